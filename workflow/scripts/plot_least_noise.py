from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.figures import least_noise
    from pufferflow.reporting.style import save_figure

    figure = getattr(least_noise, snakemake.params.name)(read_table(snakemake.input[0]))
    save_figure(figure, Path(snakemake.output[0]).with_suffix(""))
