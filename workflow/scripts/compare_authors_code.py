from reproduction.job import job

with job(snakemake) as (input, output, params):
    from reproduction.authors_code import authors_scales
    from reproduction.chains import load_chains
    from reproduction.labels import display_names
    from reproduction.tables import Table, shortest

    chains = {group: chain for path in input for group, chain in load_chains(path).items()}
    scales = authors_scales(chains)
    numbers = {name: scales[name].map(shortest) for name in ("epsilon", "theirs", "ours")}
    display = scales.assign(**numbers).map(display_names).rename(columns={"epsilon": "ε"})
    caption = "Scales of the authors' programs beside ours."
    note = "Of the 81 chains of run_synthetic.m the one farthest from ours stands for all."
    label = "synthetic chains, and the fitted chains of the real data"
    table = Table("authors_code", caption, label, scales, display, headers=2, note=note)
    table.save(output.csv.removesuffix(".csv"))
