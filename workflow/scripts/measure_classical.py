from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction.related import write
    from reproduction.related.classical import measure

    write(measure(params.settings, params.seed), output)
