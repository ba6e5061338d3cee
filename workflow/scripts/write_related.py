from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    from reproduction import page, tidy
    from reproduction.comparison import SOURCES, comparison_table, stated_rows, values_table
    from reproduction.panels import save
    from reproduction.related.figures import FIGURES

    given = zip(input.curves, input.stated, input.captions, output.svg, output.csv, strict=True)
    rows, sections, summary = [], [], []
    for (system, draw), (curves, stated, caption, svg, csv) in zip(
        FIGURES.items(), given, strict=True
    ):
        save(draw(tidy.read(curves, "related")), svg)
        values, source = tidy.read(stated, "values"), SOURCES[system]
        printed, own = values_table(values, system), list(stated_rows(values, system))
        printed.save(csv.removesuffix(".csv"))
        rows += own
        compared = comparison_table(own, system).data
        claims, outcome = f"{len(own)} claims and numbers", page.outcome_of(compared["verdict"])
        found = page.count_verdicts(compared)
        summary.append(page.Summary(source, system, claims, found, outcome))
        blocks = [page.figure(svg, Path(caption)), page.rows(compared)]
        blocks.append(page.table(printed, folded=True))
        sections.append(page.Section(source, system, blocks))
    comparison_table(rows, "comparison_related").save(output.comparison.removesuffix(".csv"))
    page.write_page(
        output.page,
        title="Systems related to Pufferfish privacy for correlated data: a reproduction",
        lead=[
            "What four sources around the paper state, computed again: Noisy Max in hidden Markov "
            "models, the base-2 exponential mechanism, the αβ algorithm, and classical mechanisms."
        ],
        summary=summary,
        sections=sections,
        links={"report.html": "The paper", "beyond.html": "Beyond the paper"},
    )
