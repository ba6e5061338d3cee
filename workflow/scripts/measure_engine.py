from pathlib import Path

from _job import job

with job(snakemake):
    from pufferflow.experiments.engine_benchmark import engine_benchmark
    from pufferflow.reporting.tables import engine, save_table

    save_table(engine(engine_benchmark()), Path(snakemake.output[0]).with_suffix(""))
