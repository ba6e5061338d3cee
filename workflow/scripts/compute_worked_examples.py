from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import write_table
    from pufferflow.experiments.worked_examples import worked_examples

    write_table(worked_examples(), snakemake.output[0])
