from _job import job

with job(snakemake):
    from pufferflow.experiments.least_noise import cases, least_noise
    from pufferflow.experiments.tidy import write_table

    s = snakemake.params.settings
    found = cases(dict(snakemake.input.items()), s["stay"], s["length"])
    table = least_noise(found, s["epsilons"], s["mechanisms"], snakemake.params.options, s["exact_loss"])
    write_table(table, snakemake.output[0])
