from _job import job

with job(snakemake):
    from pufferflow.experiments.least_noise import cases, composition
    from pufferflow.experiments.tidy import write_table

    s = snakemake.params.settings
    found = cases(dict(snakemake.input.items()), s["stay"], s["length"])
    write_table(composition(found, s["composed_epsilon"], s["composed_releases"]), snakemake.output[0])
