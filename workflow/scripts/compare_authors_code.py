from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction.authors_code import authors_scales, authors_table
    from reproduction.chains import load_chains

    chains = {group: chain for path in input for group, chain in load_chains(path).items()}
    authors_table(authors_scales(chains)).save(output.csv.removesuffix(".csv"))
