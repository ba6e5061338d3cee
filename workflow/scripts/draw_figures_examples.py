from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.panels import save
    from reproduction.paper_figures import growth, quilts, wasserstein

    draws = {"wasserstein": ("values", wasserstein), "quilts": ("quilts", quilts)}
    for name, (stage, draw) in (draws | {"growth": ("growth", growth)}).items():
        save(draw(tidy.read(input[stage], stage)), output[name])
