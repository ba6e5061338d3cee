from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.tidy import read_table
    from pufferflow.reporting.tables import chain_properties, save_table

    save_table(chain_properties(read_table(snakemake.input[0])), Path(snakemake.output[0]).with_suffix(""))
