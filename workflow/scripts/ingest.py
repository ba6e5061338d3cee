from _job import job, steps

with job(snakemake):
    from pufferflow.studies.real_data.samples import describe_sample
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    for step in steps(snakemake):
        sample = function(step.work)(**step.settings["settings"])
        sample.save(step.outputs["sample"])
        write_table(describe_sample(sample), step.outputs["table"])
