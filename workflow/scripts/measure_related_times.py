from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.by_name import experiment
    from pufferflow.experiments.tidy import write_table
    from pufferflow.reporting.figures.by_name import figures_of
    from pufferflow.reporting.style import save_figure

    p = snakemake.params
    times = experiment(p.name).measure_times(p.settings)
    write_table(times, snakemake.output.table)
    save_figure(figures_of(p.name).time_figure(times), Path(snakemake.output.figure[0]).with_suffix(""))
