from pathlib import Path

from _job import job, read_inputs

with job(snakemake):
    from pufferflow.reporting.style import save_figure
    from pufferflow.studies.record import function

    p, tables = snakemake.params, read_inputs(snakemake.input)
    if sample := tables.pop("sample", None):
        tables["description"] = sample.description
    save_figure(function(p.work)(**tables, **p.settings), Path(snakemake.output[0]).with_suffix(""))
