from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.synthetic import alpha_grid, class_scales

    alphas = alpha_grid(**params.alphas)
    rows = class_scales(params.mechanism, params.epsilons, alphas, params.length, params.options)
    tidy.write(tidy.frame(rows, "scales"), output[0], "scales")
