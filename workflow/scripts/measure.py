from _job import job, read_inputs

with job(snakemake):
    from pufferflow.studies.real_data.chains import load_chains
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    p = snakemake.params
    tables = function(p.work)(**read_inputs(snakemake.input, folder=load_chains), **p.settings)
    for table, path in zip(tables if isinstance(tables, tuple) else (tables,), snakemake.output, strict=True):
        write_table(table, path)
