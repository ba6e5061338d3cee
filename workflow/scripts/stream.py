"""Tables too large to hold: the function reads and writes the files itself."""

from _job import job, named

with job(snakemake):
    from pufferflow.studies.record import function

    p = snakemake.params
    function(p.work)(**named(snakemake.input), **named(snakemake.output), **dict(snakemake.wildcards), **p.settings)
