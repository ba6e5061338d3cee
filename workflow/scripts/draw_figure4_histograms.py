from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.data.sample import load_sample
    from reproduction.histogram_figures import errors_beside_printed, histograms
    from reproduction.panels import save

    releases = tidy.read(input.releases, "releases")
    save(histograms(releases, load_sample(input.sample).description), output.histograms)
    save(errors_beside_printed(tidy.read(input.errors, "errors")), output.errors)
