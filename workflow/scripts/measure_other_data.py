from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import other_data
    from reproduction.beyond.peers import top_states

    if params.study == "other_data":
        rows = other_data(*input, params.settings, params.options)
    else:
        rows = top_states(input[0], params.settings, params.seed)
    tidy.write(tidy.frame(rows, "beyond"), output[0], "beyond")
