from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.comparison import comparison_table, stated_rows, values_table
    from reproduction.panels import save
    from reproduction.related import alpha_beta_figures as alpha_beta
    from reproduction.related import base2_figures as base2
    from reproduction.related import classical_figures as classical
    from reproduction.related import noisy_max_figures as noisy_max

    draw = {"noisy_max": noisy_max.figure, "base2_exponential": base2.figure}
    draw |= {"alpha_beta": alpha_beta.figure, "classical": classical.figure}
    files = zip(input.curves, input.stated, output.svg, output.csv, strict=True)
    rows = []
    for (system, figure), (curves, stated, svg, csv) in zip(draw.items(), files, strict=True):
        save(figure(tidy.read(curves, "related")), svg)
        values = tidy.read(stated, "values")
        values_table(values, system).save(csv.removesuffix(".csv"))
        rows += stated_rows(values, system)
    comparison_table(rows, "comparison_related").save(output.comparison.removesuffix(".csv"))
