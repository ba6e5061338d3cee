from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.by_name import experiment
    from pufferflow.experiments.related import RELATED
    from pufferflow.experiments.tidy import read_table, write_table
    from pufferflow.reporting.comparison import reported_values
    from pufferflow.reporting.figures.by_name import figures_of
    from pufferflow.reporting.style import save_figure
    from pufferflow.reporting.tables import save_table, stated_values

    p, output = snakemake.params, snakemake.output
    for table, path in zip(experiment(p.name).measure(p.settings, p.seed), (output.curves, output.claims)):
        write_table(table, path)
    save_figure(figures_of(p.name).figure(read_table(output.curves)), Path(output[0]).with_suffix(""))
    claims = read_table(output.claims), reported_values()
    table = stated_values(*claims, name=f"{p.name}_claims", title=RELATED[p.name])
    save_table(table, Path(output.tables[0]).with_suffix(""))
