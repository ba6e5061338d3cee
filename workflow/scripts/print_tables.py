from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.paper_tables import chain_table, error_table, seconds_table
    from reproduction.related.printed import values_table

    if params.table == "chains":
        table = chain_table(tidy.read_all(input, "chains"))
    elif params.table == "table2":
        table = seconds_table(tidy.read_all(input, "timings"))
    elif params.table == "examples":
        table = values_table(tidy.read_all(input, "values"), "pufferfish")
    else:
        table = error_table(tidy.read_all(input, "errors"), params.table)
    table.save(output.csv.removesuffix(".csv"))
