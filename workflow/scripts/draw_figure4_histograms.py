from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow.drawing.style import save_figure
    from pufferflow.records.sample import load_sample
    from reproduction import tidy
    from reproduction.histogram_figures import errors_beside_printed, histograms

    releases = tidy.read(input.releases, "releases")
    figure = histograms(releases, load_sample(input.sample).description)
    save_figure(figure, output.histograms.removesuffix(".svg"))
    figure = errors_beside_printed(tidy.read(input.errors, "errors"))
    save_figure(figure, output.errors.removesuffix(".svg"))
