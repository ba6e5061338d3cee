from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.datasets import load_sample
    from pufferflow.experiments.tidy import read_table, shown_epsilon
    from pufferflow.reporting.figures.paper import group_histograms
    from pufferflow.reporting.style import save_figure

    releases = read_table(snakemake.input.releases)
    description = load_sample(snakemake.input.sample).description
    figure = group_histograms(releases, epsilon=shown_epsilon(releases), description=description)
    save_figure(figure, Path(snakemake.output[0]).with_suffix(""))
