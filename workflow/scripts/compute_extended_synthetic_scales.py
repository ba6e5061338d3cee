from _job import job

with job(snakemake):
    from pufferflow.experiments.synthetic import extended
    from pufferflow.experiments.tidy import read_table, write_table

    p = snakemake.params
    write_table(extended(read_table(snakemake.input[0]), p.mechanisms, p.options), snakemake.output[0])
