from reproduction.job import job

with job(snakemake) as (input, output, params):
    from pathlib import Path

    from reproduction import page, tidy
    from reproduction.beyond.figures import drawn
    from reproduction.beyond.shown import printed, study_of
    from reproduction.panels import save

    figures = {Path(path).stem: path for path in output.svg}
    blocks = {}
    for path, csv in zip(input, output.csv, strict=True):
        case = Path(path).stem
        table, study = tidy.read(path, "beyond"), study_of(case)
        shown, own = printed(table, study), blocks.setdefault(study.replace("_", "-"), [])
        shown.save(csv.removesuffix(".csv"))
        if case in figures:
            save(drawn(table, study), figures[case])
            own.append(page.figure(figures[case], f"{shown.caption} Data: {shown.label}."))
        own.append(page.table(shown, folded=True))
    titles = {anchor: anchor.replace("-", " ").capitalize() for anchor in blocks}
    page.write_page(
        output.page,
        title="Beyond the paper: less noise, several releases, wider guarantees, other data",
        lead=[
            "Leakage calibration bounds the loss of any mechanism that protects single records: "
            "less noise, guarantees for wider secrets, side information and richer models."
        ],
        summary=[],
        sections=[page.Section(titles[anchor], anchor, own) for anchor, own in blocks.items()],
        links={"report.html": "The paper", "related.html": "Related systems"},
    )
