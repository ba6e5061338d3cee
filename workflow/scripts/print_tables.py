from reproduction.job import job

with job(snakemake) as (input, output, params):
    from functools import partial

    from reproduction import tidy
    from reproduction.comparison import values_table
    from reproduction.paper_tables import chain_table, error_table, seconds_table

    kinds = {"chains": ("chains", chain_table), "table2": ("timings", seconds_table)}
    kinds["examples"] = ("values", partial(values_table, name="pufferfish"))
    errors = ("errors", partial(error_table, name=params.table))
    stage, printed = kinds.get(params.table, errors)
    printed(tidy.read_all(input, stage)).save(output.csv.removesuffix(".csv"))
