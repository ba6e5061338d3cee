from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    import pandas as pd

    from reproduction import page, tidy
    from reproduction.authors_code import authors_table
    from reproduction.comparison import VERDICTS, values_table
    from reproduction.data.sample import load_sample
    from reproduction.paper_tables import chain_table, error_table, seconds_table
    from reproduction.report import lead_sentences, summary_rows
    from reproduction.tables import data_label

    comparison = pd.read_csv(input.comparison, keep_default_na=False)
    errors = tidy.read_all(input.errors, "errors")
    timings, chains = tidy.read(input.timings, "timings"), tidy.read_all(input.chains, "chains")
    authors = authors_table(tidy.read(input.authors, "authors_code"))
    captions = {Path(path).stem: Path(path) for path in input.captions}
    figures = {Path(path).stem: path for path in input.figures}

    def drawn(name, data="synthetic"):
        return page.figure(figures[f"{name}_{data}"], captions[name])

    def of_dataset(path):
        """Return the blocks of a data set: its table, its figures, and a description of its
        data."""
        name, sample = Path(path).stem, load_sample(path)
        of_it = errors[errors["dataset"] == sample.dataset]
        return [
            page.text(f"{sample.dataset}: {data_label(sample.label, sample.description)}."),
            drawn("errors", name),
            drawn("histograms", name),
            page.table(error_table(of_it, f"errors_{name}"), folded=True),
        ]

    sections = []

    def section(title, anchor, *blocks):
        sections.append(page.Section(title, anchor, blocks))

    differing = comparison[comparison["verdict"] == "differs"]
    section("Differences, with reasons", "differences", page.rows(differing, folded=False))
    section("Figure 4, upper row", "figure4-upper", drawn("figure4_upper"))
    titles = {"activity": "Table 1 and Figure 4, lower row", "electricity": "Table 3 and histogram"}
    for path in input.samples:
        dataset = Path(path).stem.rpartition("_")[0]
        title = titles.get(dataset, f"Data set {dataset}")
        section(title, dataset.replace("_", "-"), *of_dataset(path))
    section("Table 2: seconds", "table2", page.table(seconds_table(timings)))
    examples = [drawn(name) for name in ("wasserstein", "quilts", "growth")]
    values = values_table(tidy.read(input.values, "values"), "pufferfish")
    section("Figures 1 to 3 and examples", "examples", *examples, page.table(values, folded=True))
    programs = page.rows(comparison[comparison["origin"] == "author's code"])
    section("The authors' own code", "authors-code", programs, page.table(authors, folded=True))
    section("Data and chains", "data", page.table(chain_table(chains)))
    given = set(comparison["verdict"])
    meanings = [page.text(f"{name}: {words}.") for name, words in VERDICTS.items() if name in given]
    counts = page.text(f"{page.count_verdicts(comparison)}.")
    section("All rows of the comparison", "comparison", counts, *meanings, page.rows(comparison))
    words = "Versions, settings, machine and digests of this run"
    section("Provenance", "provenance", page.link("provenance.json", words))
    page.write_page(
        output[0],
        title="Pufferfish Privacy Mechanisms for Correlated Data (SIGMOD 2017): a reproduction",
        lead=lead_sentences(errors, tidy.read(input.synthetic, "errors")),
        summary=summary_rows(comparison, errors, timings),
        sections=sections,
        links={"related.html": "Related systems", "beyond.html": "Beyond the paper"},
    )
