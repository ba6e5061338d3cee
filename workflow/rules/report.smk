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
        figures=expand(
            "results/figures/{figure}.svg",
            figure=[
                *expand("{kind}_{dataset}", kind=["errors", "histograms"], dataset=DATASETS),
                *[f"{name}_synthetic" for name in ["figure4_upper", *EXAMPLE_FIGURES]],
            ],
        ),
        captions=expand(
            f"{WORKFLOW}/report/{{caption}}.rst",
            caption=["figure4", "errors", "histograms", *EXAMPLE_FIGURES],
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


rule write_related:
    """The systems related to the paper's: their figures, and each claim with a verdict."""
    input:
        comparison="results/tables/comparison_related.csv",
        values=expand("results/related/{system}_values.csv", system=RELATED),
        figures=expand("results/figures/{figure}_synthetic.svg", figure=RELATED),
        captions=expand(f"{WORKFLOW}/report/{{system}}.rst", system=RELATED),
    output:
        report("results/related.html", category="Pages"),
    log:
        "results/logs/write_related.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("write_related.py"),
    script:
        "../scripts/write_related.py"


rule write_beyond:
    """Studies beyond the paper: least noise, several releases, wider guarantees, other data."""
    input:
        tables=expand("results/beyond/{table}.csv", table=BEYOND),
        figures=expand("results/figures/{figure}.svg", figure=BEYOND_FIGURES),
    output:
        report("results/beyond.html", category="Pages"),
    log:
        "results/logs/write_beyond.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("write_beyond.py"),
    script:
        "../scripts/write_beyond.py"


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
