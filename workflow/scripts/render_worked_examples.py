from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.comparison import reported_values
    from pufferflow.reporting.tables import save_table, stated_values

    save_table(stated_values(read_table(snakemake.input[0]), reported_values()), Path(snakemake.output[0]).with_suffix(""))
