from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.related import RELATED
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.comparison import reported_values
    from pufferflow.reporting.tables import save_table, stated_values

    name = snakemake.params.name
    table = stated_values(read_table(snakemake.input[0]), reported_values(), name=name, title=RELATED[name])
    save_table(table, Path(snakemake.output[0]).with_suffix(""))
