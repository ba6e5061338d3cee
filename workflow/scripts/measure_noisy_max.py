from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction.related import write
    from reproduction.related.noisy_max import measure

    write(measure(params.settings), output)
