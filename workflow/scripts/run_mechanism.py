from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.chains import histogram_scales, load_chains
    from reproduction.data.sample import load_sample

    sample, chains = load_sample(input.sample), load_chains(input.chains)
    rows = histogram_scales(sample, chains, params.mechanism, params.epsilons, params.options)
    tidy.write(tidy.frame(rows, "scales"), output[0], "scales")
