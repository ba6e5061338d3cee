from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    import pandas as pd

    from reproduction import page, tidy
    from reproduction.comparison import SOURCES, values_table

    comparison = pd.read_csv(input.comparison, keep_default_na=False)
    captions = {Path(path).stem: Path(path) for path in input.captions}
    sections, summary = [], []
    for path in input.values:
        name = Path(path).stem.removesuffix("_values")
        own = comparison[comparison["source"] == SOURCES[name]]
        figures = [file for file in input.figures if Path(file).stem.startswith(name)]
        blocks = [page.figure(file, captions[name]) for file in figures]
        values = page.table(values_table(tidy.read(path, "values"), name), folded=True)
        sections.append(page.Section(SOURCES[name], name, [*blocks, page.rows(own), values]))
        claims, outcome = f"{len(own)} claims and numbers", page.outcome_of(own["verdict"])
        found = page.count_verdicts(own)
        summary.append(page.Summary(SOURCES[name], name, claims, found, outcome))
    page.write_page(
        output[0],
        title="Systems related to Pufferfish privacy for correlated data: a reproduction",
        lead=[
            "What four sources around the paper state, computed again: Noisy Max in hidden Markov "
            "models, the base-2 exponential mechanism, the αβ algorithm, and classical mechanisms."
        ],
        summary=summary,
        sections=sections,
        links={"report.html": "The paper", "beyond.html": "Beyond the paper"},
    )
