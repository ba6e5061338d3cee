from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.reporting.comparison import compare
    from pufferflow.reporting.tables import comparison, save_table
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import read_table

    rows = [
        row
        for work, tables, settings in snakemake.params.claims
        for row in function(work)(**{name: read_table(path) for name, path in tables.items()}, **settings)
    ]
    save_table(comparison(compare(rows)), Path(snakemake.output[0]).with_suffix(""))
