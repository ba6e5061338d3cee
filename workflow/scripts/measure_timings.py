from _job import job

with job(snakemake):
    from pufferflow.datasets import load_sample
    from pufferflow.experiments.chains import load_chains
    from pufferflow.experiments.tidy import write_table
    from pufferflow.experiments.timings import timings

    p, s = snakemake.params, snakemake.params.settings
    files = zip(snakemake.input.samples, snakemake.input.models, strict=True)
    pairs = [(load_sample(sample), load_chains(models)) for sample, models in files]
    table = timings(pairs, s["alpha"], p.length, s["epsilon"], s["mechanisms"], p.options, s["repeats"])
    write_table(table, snakemake.output[0])
