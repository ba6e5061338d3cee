from _job import job

with job(snakemake):
    from pufferflow.experiments.related import experiment
    from pufferflow.experiments.tidy import write_table

    p = snakemake.params
    curves, claims = experiment(p.name).measure(p.settings, p.seed)
    write_table(curves, snakemake.output.curves)
    write_table(claims, snakemake.output.claims)
