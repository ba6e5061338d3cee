from _job import job

with job(snakemake):
    from pufferflow.experiments.synthetic import alpha_grid, gk16_limits, scales
    from pufferflow.experiments.tidy import write_table

    p = snakemake.params
    table = scales(p.epsilons, alpha_grid(**p.alphas), p.length, p.mechanisms, p.options)
    write_table(table, snakemake.output.scales)
    write_table(gk16_limits(p.length), snakemake.output.limits)
