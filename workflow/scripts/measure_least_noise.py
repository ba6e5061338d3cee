from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import composition, fitted_cases, least_noise, synthetic_cases

    cases = fitted_cases(*input) if input else synthetic_cases(**params.synthetic)
    measure = {"least_noise": least_noise, "composition": composition}[params.study]
    tidy.write(tidy.frame(measure(cases, **params.settings), "beyond"), output[0], "beyond")
