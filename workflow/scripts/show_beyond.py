from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    from reproduction import tidy
    from reproduction.beyond.figures import drawn
    from reproduction.beyond.shown import printed, study_of
    from reproduction.panels import save

    for path, svg, csv in zip(input, output.svg, output.csv, strict=True):
        table, study = tidy.read(path, "beyond"), study_of(Path(path).stem)
        save(drawn(table, study), svg)
        printed(table, study).save(csv.removesuffix(".csv"))
