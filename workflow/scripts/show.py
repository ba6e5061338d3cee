from pathlib import Path

from _job import job, read_inputs, steps

with job(snakemake):
    from pufferflow.reporting.comparison import reported_values
    from pufferflow.reporting.style import save_figure
    from pufferflow.reporting.tables import Table, save_table
    from pufferflow.studies.record import function

    for step in steps(snakemake):
        inputs = read_inputs(step.inputs)
        if sample := inputs.pop("sample", None):
            inputs["description"] = sample.description
        reported = {"reported": reported_values()} if step.published else {}
        made = function(step.work)(**inputs, **reported, **step.settings)
        save = save_table if isinstance(made, Table) else save_figure
        save(made, Path(next(iter(step.outputs.values()))).with_suffix(""))
