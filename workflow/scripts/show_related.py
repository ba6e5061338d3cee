from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.comparison import comparison_table, stated_rows, values_table
    from reproduction.panels import save
    from reproduction.related.figures import FIGURES

    files = zip(input.curves, input.stated, output.svg, output.csv, strict=True)
    rows = []
    for (system, draw), (curves, stated, svg, csv) in zip(FIGURES.items(), files, strict=True):
        save(draw(tidy.read(curves, "related")), svg)
        values = tidy.read(stated, "values")
        values_table(values, system).save(csv.removesuffix(".csv"))
        rows += stated_rows(values, system)
    comparison_table(rows, "comparison_related").save(output.comparison.removesuffix(".csv"))
