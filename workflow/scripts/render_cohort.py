from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.tables import cohort, save_table

    save_table(cohort(read_table(snakemake.input[0])), Path(snakemake.output[0]).with_suffix(""))
