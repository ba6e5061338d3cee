from _job import job

with job(snakemake):
    from pufferflow.experiments.cohort import gather

    out = snakemake.output
    gather(list(snakemake.input), out.table, out.summary, out.distribution)
