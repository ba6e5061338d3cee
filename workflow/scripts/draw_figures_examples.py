from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow.drawing.style import save_figure
    from reproduction import tidy
    from reproduction.paper_figures import growth, quilts, wasserstein

    draws = {"wasserstein": ("values", wasserstein), "quilts": ("quilts", quilts)}
    for name, (stage, draw) in (draws | {"growth": ("growth", growth)}).items():
        figure = draw(tidy.read(input[stage], stage))
        save_figure(figure, output[name].removesuffix(".svg"))
