from _job import job

with job(snakemake):
    from pufferflow.experiments.cohort import COLUMNS, measure, members, write_rows

    p, index = snakemake.params, snakemake.input[0]
    own = p.settings
    chunk, chunks = map(int, snakemake.wildcards.scatteritem.split("-of-"))
    people = members(index, chunk, chunks, own["simulated"], p.fit, p.seed)
    found = measure(index, people, own["epsilons"], own["mechanisms"], p.options, own["lower_bound"], p.seed)
    write_rows(found, COLUMNS, snakemake.output[0])
