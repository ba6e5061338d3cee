"""Draw a figure of a related system."""

from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow.drawing.style import save_figure
    from reproduction import tidy
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
    curves = tidy.read(input[0], "related")
    save_figure(draw[params.system](curves), output[0].removesuffix(".svg"))
