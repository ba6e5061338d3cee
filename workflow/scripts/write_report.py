from _job import job

with job(snakemake):
    from pufferflow.reporting.assemble import assemble_report

    assemble_report(dict(snakemake.input.items()), snakemake.params.settings, snakemake.output[0])
