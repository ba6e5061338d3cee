"""Draw the figures of the related systems."""

from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.panels import save
    from reproduction.related import (
        alpha_beta_figures,
        base2_figures,
        classical_figures,
        noisy_max_figures,
    )

    draw = {
        "noisy_max": noisy_max_figures.figure,
        "base2_exponential": base2_figures.figure,
        "alpha_beta": alpha_beta_figures.figure,
        "classical": classical_figures.figure,
    }
    for path, (system, curves) in zip(output.svg, input.items(), strict=True):
        figure = draw[system](tidy.read(curves, "related"))
        save(figure, path)
