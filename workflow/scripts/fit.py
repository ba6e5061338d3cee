from _job import job

with job(snakemake):
    from pufferflow.records.sample import load_sample
    from pufferflow.studies.real_data.chains import describe_chains, save_chains
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    p, out = snakemake.params, snakemake.output
    sample = load_sample(snakemake.input.sample)
    chains = function(p.work)(sample, **p.settings)
    save_chains(chains, out.models)
    write_table(describe_chains(sample, chains), out.table)
