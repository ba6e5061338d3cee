from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.datasets import load_sample
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.figures import least_noise
    from pufferflow.reporting.style import save_figure

    sample = snakemake.input.get("sample")
    description = load_sample(sample).description if sample else ""
    figure = getattr(least_noise, snakemake.params.name)(read_table(snakemake.input.table), description=description)
    save_figure(figure, Path(snakemake.output[0]).with_suffix(""))
