from _job import job, steps

with job(snakemake):
    from pufferflow.studies.real_data.samples import describe_sample, ingest
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    for step in steps(snakemake):
        sample = ingest(function(step.work), step.settings["settings"], downloads="results/downloads")
        sample.save(step.outputs["sample"])
        write_table(describe_sample(sample), step.outputs["table"])
