SYSTEMS = {"caption": "../report/related.rst", "category": "Related systems"}


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


rule write_related:
    """Figures, values, claims and numbers of the related systems' sources, and ours, on a page."""
    input:
        curves=expand("results/related/{system}.csv", system=RELATED),
        stated=expand("results/related/{system}_values.csv", system=RELATED),
        captions=expand(f"{WORKFLOW}/report/{{system}}.rst", system=RELATED),
    output:
        page=report("results/related.html", category="Pages"),
        svg=report(expand("results/figures/{system}_synthetic.svg", system=RELATED), **SYSTEMS),
        csv=report(expand("results/tables/{system}_values.csv", system=RELATED), **SYSTEMS),
        pdf=expand("results/figures/{system}_synthetic.pdf", system=RELATED),
        others=expand("results/tables/{system}_values.{form}", system=RELATED, form=["md", "tex"]),
        comparison=report("results/tables/comparison_related.csv", **SYSTEMS),
        printed=multiext("results/tables/comparison_related", ".md", ".tex"),
    log:
        "results/logs/write_related.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("write_related.py"),
    script:
        "../scripts/write_related.py"
