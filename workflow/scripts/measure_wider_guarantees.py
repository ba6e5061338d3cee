from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.beyond.measures import wider_guarantees
    from reproduction.data.discretise import count_runs
    from reproduction.data.sample import load_sample

    edges, dataset = params.settings.pop("edges_watts"), params.dataset | {"source": params.source}
    runs = count_runs(input.raw, dataset, edges if dataset["kind"] == "power" else None)
    rows = wider_guarantees(load_sample(input.sample), runs, **params.settings)
    tidy.write(tidy.frame(rows, "beyond"), output[0], "beyond")
