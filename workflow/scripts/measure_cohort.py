from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import cohort

    rows = cohort(params.piece, params.settings, params.options, params.seed)
    tidy.write(tidy.frame(rows, "beyond"), output[0], "beyond")
