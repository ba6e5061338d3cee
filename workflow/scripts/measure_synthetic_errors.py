from _job import job

with job(snakemake):
    from pufferflow.experiments.synthetic import errors
    from pufferflow.experiments.tidy import read_table, write_table

    scales = read_table(snakemake.input[0])
    write_table(errors(scales, snakemake.params.repetitions, snakemake.params.seed), snakemake.output[0])
