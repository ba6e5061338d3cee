from _job import job

with job(snakemake):
    from pufferflow.studies.record import function
    from pufferflow.studies.tidy import write_table

    p, out = snakemake.params, snakemake.output
    sample, table = function(p.work)(**p.settings, downloads="results/downloads")
    sample.save(out.sample)
    write_table(table, out.table)
