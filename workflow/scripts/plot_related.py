from importlib import import_module
from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.style import save_figure

    figures = import_module(f"pufferflow.reporting.figures.{snakemake.params.name}")
    save_figure(figures.figure(read_table(snakemake.input[0])), Path(snakemake.output[0]).with_suffix(""))
