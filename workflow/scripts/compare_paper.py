from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction import tidy
    from reproduction.authors_code import authors_scales, authors_table
    from reproduction.chains import load_chains
    from reproduction.claims import paper_rows
    from reproduction.comparison import comparison_table

    stages = {"values": "values", "growth": "growth", "limits": "gk16_limits"}
    stages["synthetic"] = "errors"
    tables = {name: tidy.read(input[name], stage) for name, stage in stages.items()}
    for stage in ("errors", "releases"):
        paths = input[stage]
        tables[stage] = tidy.read_all(paths, stage) if paths else tidy.frame([], stage)
    chains = {group: chain for path in input.chains for group, chain in load_chains(path).items()}
    tables["authors"] = authors_scales(chains)
    printed = comparison_table(paper_rows(tables)), authors_table(tables["authors"])
    for table, path in zip(printed, output.csv, strict=True):
        table.save(path.removesuffix(".csv"))
