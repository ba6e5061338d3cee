from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction.related import alpha_beta, base2_exponential, classical, noisy_max, write

    settings, seed = params.settings, params.seed
    systems = [
        noisy_max.measure(settings["noisy_max"]),
        base2_exponential.measure(settings["base2_exponential"], seed),
        alpha_beta.measure(settings["alpha_beta"], seed),
        classical.measure(settings["classical"], seed),
    ]
    for files in zip(systems, output.curves, output.stated, strict=True):
        write(*files)
