from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.comparison import compare_tables
    from pufferflow.reporting.tables import comparison, save_table

    tables = {name: read_table(path) for name, path in snakemake.input.items()}
    save_table(comparison(compare_tables(tables)), Path(snakemake.output[0]).with_suffix(""))
