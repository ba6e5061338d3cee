from _job import job

with job(snakemake):
    from pufferflow.reporting.assemble import assemble_times

    assemble_times(snakemake.params.shown, snakemake.params.report, snakemake.output[0])
