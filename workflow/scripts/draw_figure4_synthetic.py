from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.panels import save
    from reproduction.paper_figures import synthetic_errors

    errors, limits = tidy.read(input.errors, "errors"), tidy.read(input.limits, "gk16_limits")
    save(synthetic_errors(errors, limits), output.svg)
