from _job import job

with job(snakemake, users_input=True):
    from pufferflow.experiments.cohort import index_cohort

    index_cohort(list(snakemake.input), snakemake.params.simulated, snakemake.output[0])
