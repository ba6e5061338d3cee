from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    from reproduction import page, tidy
    from reproduction.beyond.shown import printed, study_of

    figures = {Path(path).stem: path for path in input.figures}
    blocks = {}
    for path in input.tables:
        stem = Path(path).stem
        study = study_of(stem)
        table = printed(tidy.read(path, "beyond"), study)
        own = blocks.setdefault(study.replace("_", "-"), [])
        if stem in figures:
            own.append(page.figure(figures[stem], f"{table.caption} Data: {table.label}."))
        own.append(page.table(table, folded=True))
    titles = {anchor: anchor.replace("-", " ").capitalize() for anchor in blocks}
    page.write_page(
        output[0],
        title="Beyond the paper: less noise, several releases, wider guarantees, other data",
        lead=[
            "Leakage calibration bounds the loss of any mechanism that protects single records: "
            "less noise, guarantees for wider secrets, side information and richer models."
        ],
        summary=[],
        sections=[page.Section(titles[anchor], anchor, own) for anchor, own in blocks.items()],
        links={"report.html": "The paper", "related.html": "Related systems"},
    )
