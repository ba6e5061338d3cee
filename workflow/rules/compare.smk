COMPARED = of_paper("activity") + of_paper("electricity")


rule compare_authors_code:
    """Scales of the authors' programs and ours, for the chains of this run."""
    input:
        expand("results/chains/{dataset}.json", dataset=COMPARED),
    output:
        csv=report(
            "results/tables/authors_code.csv",
            caption="../report/authors_code.rst",
            category="comparison",
            labels={"table": "the authors' code"},
        ),
        others=expand("results/tables/authors_code.{form}", form=["md", "tex"]),
    log:
        "results/logs/compare_authors_code.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("compare_authors_code.py"),
    script:
        "../scripts/compare_authors_code.py"


rule compare_paper:
    """Every reported value of the paper compared with ours, each with a verdict."""
    input:
        values="results/examples/values.csv",
        limits="results/examples/gk16_limits.csv",
        growth="results/examples/growth.csv",
        synthetic="results/errors/synthetic.csv",
        errors=expand("results/errors/{dataset}.csv", dataset=COMPARED),
        releases=expand("results/errors/{dataset}_releases.csv", dataset=COMPARED),
        authors="results/tables/authors_code.csv",
    output:
        csv=report(
            "results/tables/comparison.csv",
            caption="../report/comparison.rst",
            category="comparison",
            labels={"table": "claims and numbers"},
        ),
        others=expand("results/tables/comparison.{form}", form=["md", "tex"]),
    log:
        "results/logs/compare_paper.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("compare_paper.py"),
    script:
        "../scripts/compare_paper.py"
