from _job import job

with job(snakemake):
    from pufferflow.datasets import load_sample
    from pufferflow.experiments.histograms import errors, releases
    from pufferflow.experiments.tidy import read_table, write_table

    p = snakemake.params
    sample, scales = load_sample(snakemake.input.sample), read_table(snakemake.input.scales)
    write_table(errors(scales, p.repetitions, p.seed), snakemake.output.errors)
    write_table(releases(sample, scales, p.releases, p.seed), snakemake.output.releases)
