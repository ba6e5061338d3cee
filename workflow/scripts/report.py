from _job import job

with job(snakemake):
    from pufferflow.reporting.assemble import assemble_report

    p = snakemake.params
    assemble_report(snakemake.input.comparison, p.shown, p.samples, p.settings, snakemake.output[0])
