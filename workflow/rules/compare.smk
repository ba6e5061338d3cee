COMPARED = of_paper("activity") + of_paper("electricity")
COMPARISONS = ["comparison", "authors_code"]


rule compare_paper:
    """Every reported value of the paper compared with ours, and scales of the authors' programs."""
    input:
        values="results/examples/values.csv",
        limits="results/examples/gk16_limits.csv",
        growth="results/examples/growth.csv",
        synthetic="results/errors/synthetic.csv",
        errors=expand("results/errors/{dataset}.csv", dataset=COMPARED),
        releases=expand("results/errors/{dataset}_releases.csv", dataset=COMPARED),
        chains=expand("results/chains/{dataset}.json", dataset=COMPARED),
    output:
        csv=report(
            expand("results/tables/{table}.csv", table=COMPARISONS),
            caption="../report/comparison.rst",
            category="comparison",
        ),
        others=expand("results/tables/{table}.{form}", table=COMPARISONS, form=["md", "tex"]),
    log:
        "results/logs/compare_paper.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("compare_paper.py"),
    script:
        "../scripts/compare_paper.py"
