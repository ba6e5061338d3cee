from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.figures.cohort import figure
    from pufferflow.reporting.style import save_figure

    save_figure(figure(read_table(snakemake.input[0])), Path(snakemake.output[0]).with_suffix(""))
