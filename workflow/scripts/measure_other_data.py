from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import other_data
    from reproduction.beyond.peers import top_states
    from reproduction.beyond.shown import printed

    if params.study == "other_data":
        rows = other_data(*input, params.settings, params.options)
    else:
        rows = top_states(input[0], params.settings, params.seed)
    table = tidy.frame(rows, "beyond")
    tidy.write(table, output[0], "beyond")
    printed(table, params.study).save(output[1].removesuffix(".csv"))
