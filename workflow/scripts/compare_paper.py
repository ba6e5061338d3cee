from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.claims import paper_rows
    from reproduction.comparison import comparison_table

    stages = {"values": "values", "limits": "gk16_limits", "growth": "growth"}
    stages |= {"synthetic": "errors", "authors": "authors_code"}
    tables = {name: tidy.read(input[name], stage) for name, stage in stages.items()}
    for stage in ("errors", "releases"):
        paths = input[stage]
        tables[stage] = tidy.read_all(paths, stage) if paths else tidy.frame([], stage)
    comparison_table(paper_rows(tables)).save(output.csv.removesuffix(".csv"))
