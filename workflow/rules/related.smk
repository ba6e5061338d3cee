rule measure_related:
    """The related systems: rows of their curves, and the values that their sources state."""
    output:
        curves=expand("results/related/{system}.csv", system=RELATED),
        stated=expand("results/related/{system}_values.csv", system=RELATED),
    log:
        "results/logs/measure_related.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=lookup("related", within=config),
        seed=config["seed"],
        code=code_of("measure_related.py"),
    script:
        "../scripts/measure_related.py"


rule draw_related:
    """Figures of the related systems."""
    input:
        **{system: f"results/related/{system}.csv" for system in RELATED},
    output:
        svg=report(
            expand("results/figures/{system}_synthetic.svg", system=RELATED),
            caption="../report/related.rst",
            category="Related systems",
        ),
        pdf=expand("results/figures/{system}_synthetic.pdf", system=RELATED),
    log:
        "results/logs/draw_related.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("draw_related.py"),
    script:
        "../scripts/draw_related.py"


rule compare_related:
    """Claims and numbers of the related systems' sources beside ours, and all values of each."""
    input:
        expand("results/related/{system}_values.csv", system=RELATED),
    output:
        report(
            expand("results/tables/{system}_values.csv", system=RELATED),
            caption="../report/related.rst",
            category="Related systems",
        ),
        expand("results/tables/{system}_values.{form}", system=RELATED, form=["md", "tex"]),
        multiext("results/tables/comparison_related", ".md", ".tex"),
        comparison=report(
            "results/tables/comparison_related.csv",
            caption="../report/comparison_related.rst",
            category="Related systems",
            labels={"table": "claims and numbers"},
        ),
    log:
        "results/logs/compare_related.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("compare_related.py"),
    script:
        "../scripts/compare_related.py"
