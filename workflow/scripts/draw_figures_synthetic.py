from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.panels import save
    from reproduction.paper_figures import growth, quilts, synthetic_errors, wasserstein

    errors, limits = tidy.read(input.errors, "errors"), tidy.read(input.limits, "gk16_limits")
    save(synthetic_errors(errors, limits), output.figure4_upper)
    save(wasserstein(tidy.read(input["values"], "values")), output.wasserstein)
    save(quilts(tidy.read(input.quilts, "quilts")), output.quilts)
    save(growth(tidy.read(input.growth, "growth")), output.growth)
