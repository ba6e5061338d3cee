from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import composition, fitted_cases, least_noise, synthetic_cases
    from reproduction.beyond.peers import certainty, random_cases, related_bounds

    studies = {
        "least_noise": (synthetic_cases, params.synthetic, least_noise),
        "composition": (synthetic_cases, params.synthetic, composition),
        "certainty": (synthetic_cases, params.synthetic, certainty),
        "related_bounds": (random_cases, params.random, related_bounds),
    }
    simulated, settings, measure = studies[params.study]
    cases = fitted_cases(*input) if input else simulated(**settings)
    tidy.write(tidy.frame(measure(cases, **params.settings), "beyond"), output[0], "beyond")
