rule write_report:
    """The paper compared with this run: three sentences, six rows, then everything in its own order."""
    input:
        comparison="results/tables/comparison.csv",
        authors="results/tables/authors_code.csv",
        values="results/examples/values.csv",
        synthetic="results/errors/synthetic.csv",
        timings="results/timings/mechanisms.csv",
        samples=expand("results/samples/{dataset}.json", dataset=DATASETS),
        chains=expand("results/chains/{dataset}.csv", dataset=DATASETS),
        errors=expand("results/errors/{dataset}.csv", dataset=DATASETS),
        figures=expand("results/figures/{figure}.svg", figure=FIGURES),
        captions=expand(
            f"{WORKFLOW}/report/{{caption}}.rst",
            caption=["errors", "histograms", *SYNTHETIC_FIGURES],
        ),
    output:
        report("results/report.html", category="Pages"),
    log:
        "results/logs/write_report.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("write_report.py"),
    script:
        "../scripts/write_report.py"


rule record_provenance:
    """Versions, settings, machine, and the SHA-256 of every sample, table, figure and page."""
    input:
        samples=expand("results/samples/{dataset}.json", dataset=DATASETS),
        results=lambda wildcards: [*rules.paper.input, *rules.related.input, *rules.beyond.input],
    output:
        "results/provenance.json",
    log:
        "results/logs/record_provenance.log",
    localrule: True
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=config,
        code=code_of("record_provenance.py"),
    script:
        "../scripts/record_provenance.py"
