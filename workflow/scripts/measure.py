from _job import job, read_inputs, steps

with job(snakemake):
    from pufferflow.studies.real_data.chains import load_chains
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    for step in steps(snakemake):
        tables = function(step.work)(**read_inputs(step.inputs, folder=load_chains), **step.settings)
        tables = tables if isinstance(tables, tuple) else (tables,)
        for table, path in zip(tables, step.outputs.values(), strict=True):
            write_table(table, path)
