from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.figures.paper import synthetic_error
    from pufferflow.reporting.style import save_figure

    figure = synthetic_error(read_table(snakemake.input.errors), read_table(snakemake.input.limits))
    save_figure(figure, Path(snakemake.output[0]).with_suffix(""))
