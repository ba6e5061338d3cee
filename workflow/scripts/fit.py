from _job import job, steps

with job(snakemake):
    from pufferflow.records.sample import load_sample
    from pufferflow.studies.real_data.chains import describe_chains, save_chains
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    for step in steps(snakemake):
        sample = load_sample(step.inputs["sample"])
        chains = function(step.work)(sample, **step.settings)
        save_chains(chains, step.outputs["models"])
        write_table(describe_chains(sample, chains), step.outputs["table"])
