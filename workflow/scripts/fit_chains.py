from _job import job

with job(snakemake):
    from pufferflow.datasets import load_sample
    from pufferflow.experiments.chains import describe_chains, fit_chains, save_chains
    from pufferflow.experiments.tidy import write_table

    sample = load_sample(snakemake.input.sample)
    chains = fit_chains(sample, **snakemake.params.settings)
    save_chains(chains, snakemake.output.models)
    write_table(describe_chains(sample, chains), snakemake.output.table)
