from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.cohort import measure

    rows = measure(params.piece, params.settings, params.options, params.seed)
    tidy.write(tidy.frame(rows, "beyond"), output[0], "beyond")
