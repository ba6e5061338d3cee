"""Decide Noisy Max exactly and compute what its source states."""

from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.related.noisy_max import measure

    curves, values = measure(params.settings)
    tidy.write(curves, output.curves, "related")
    tidy.write(values, output["values"], "values")
