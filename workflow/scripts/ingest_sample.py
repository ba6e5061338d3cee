from _job import job

with job(snakemake, users_input=True):
    from pufferflow.experiments.samples import describe_sample, ingest
    from pufferflow.experiments.tidy import write_table

    sample = ingest(snakemake.params.dataset, snakemake.params.settings, downloads="results/downloads")
    sample.save(snakemake.output.sample)
    write_table(describe_sample(sample), snakemake.output.table)
