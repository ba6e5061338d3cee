from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.panels import save
    from reproduction.related import alpha_beta_figures as alpha_beta
    from reproduction.related import base2_figures as base2
    from reproduction.related import classical_figures as classical
    from reproduction.related import noisy_max_figures as noisy_max

    draw = {"noisy_max": noisy_max.figure, "base2_exponential": base2.figure}
    draw |= {"alpha_beta": alpha_beta.figure, "classical": classical.figure}
    for path, (system, curves) in zip(output.svg, input.items(), strict=True):
        save(draw[system](tidy.read(curves, "related")), path)
