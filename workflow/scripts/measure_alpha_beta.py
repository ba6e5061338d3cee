"""Measure the αβ algorithm and compute what its source states."""

from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.related.alpha_beta import measure

    curves, values = measure(params.settings, params.seed)
    tidy.write(curves, output.curves, "related")
    tidy.write(values, output["values"], "values")
