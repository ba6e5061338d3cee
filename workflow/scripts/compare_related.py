from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    from reproduction import tidy
    from reproduction.comparison import comparison_table, stated_rows
    from reproduction.related.printed import values_table

    stem = Path(output.comparison).with_suffix("")
    rows = []
    for path in input:
        table = Path(path).stem
        name, values = table.removesuffix("_values"), tidy.read(path, "values")
        rows += stated_rows(values, name)
        values_table(values, name).save(stem.with_name(table))
    comparison_table(rows, stem.name).save(stem)
