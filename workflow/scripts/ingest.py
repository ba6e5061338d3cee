from _job import job

with job(snakemake):
    from pufferflow.studies.real_data.samples import describe_sample, ingest
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    p, out = snakemake.params, snakemake.output
    sample = ingest(function(p.work), p.settings["settings"], downloads="results/downloads")
    sample.save(out.sample)
    write_table(describe_sample(sample), out.table)
