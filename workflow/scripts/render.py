from pathlib import Path

from _job import job, read_inputs

with job(snakemake):
    from pufferflow.reporting.comparison import reported_values
    from pufferflow.reporting.tables import save_table
    from pufferflow.studies.record import function

    p = snakemake.params
    reported = {"reported": reported_values()} if p.published else {}
    table = function(p.work)(**read_inputs(snakemake.input), **reported, **p.settings)
    save_table(table, Path(snakemake.output[0]).with_suffix(""))
