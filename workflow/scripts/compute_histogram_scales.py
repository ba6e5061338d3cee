from _job import job

with job(snakemake):
    from pufferflow.datasets import load_sample
    from pufferflow.experiments.chains import load_chains
    from pufferflow.experiments.histograms import scales
    from pufferflow.experiments.tidy import write_table

    p = snakemake.params
    sample, chains = load_sample(snakemake.input.sample), load_chains(snakemake.input.models)
    write_table(scales(sample, chains, p.epsilons, p.mechanisms, p.options), snakemake.output[0])
