from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import other_data
    from reproduction.beyond.shown import printed

    table = tidy.frame(other_data(*input, params.settings, params.options), "beyond")
    tidy.write(table, output[0], "beyond")
    printed(table, "other_data").save(output[1].removesuffix(".csv"))
