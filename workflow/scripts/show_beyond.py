from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pufferflow.drawing.style import save_figure
    from reproduction import tidy
    from reproduction.beyond.shown import drawn, printed

    table = tidy.read(input[0], "beyond")
    save_figure(drawn(table, params.study), output[0].removesuffix(".svg"))
    printed(table, params.study).save(output[1].removesuffix(".csv"))
