from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow.drawing.style import save_figure
    from reproduction import tidy
    from reproduction.paper_figures import synthetic_errors

    errors, limits = tidy.read(input.errors, "errors"), tidy.read(input.limits, "gk16_limits")
    save_figure(synthetic_errors(errors, limits), output.svg.removesuffix(".svg"))
