"""Tables too large to hold: the function reads and writes the files itself."""

from _job import job, steps

with job(snakemake):
    from pufferflow.studies.record import function

    for step in steps(snakemake):
        function(step.work)(**step.inputs, **step.outputs, **dict(snakemake.wildcards), **step.settings)
