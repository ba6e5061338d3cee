"""Measure classical differential privacy and compute what its sources state."""

from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.related.classical import measure

    curves, values = measure(params.settings, params.seed)
    tidy.write(curves, output.curves, "related")
    tidy.write(values, output["values"], "values")
