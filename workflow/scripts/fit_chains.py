from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.chains import describe_chains, fit_chains, save_chains
    from reproduction.data.sample import load_sample

    sample = load_sample(input[0])
    chains = fit_chains(sample, **params.options)
    save_chains(chains, output.chains)
    tidy.write(describe_chains(sample, chains), output.table, "chains")
