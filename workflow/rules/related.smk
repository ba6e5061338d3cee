rule measure_related:
    output:
        curves="results/related/{related}_synthetic.csv",
        claims="results/related/{related}_claims.csv",
    log:
        "results/logs/measure_related/{related}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="{related}",
        settings=lambda wildcards: EXPERIMENTS[wildcards.related],
        seed=config["seed"],
        sources=lambda wildcards: sources(f"experiments.{wildcards.related}"),
    script:
        "../scripts/measure_related.py"


rule plot_related:
    input:
        "results/related/{related}_synthetic.csv",
    output:
        report(
            figures("{related}_synthetic")[0],
            caption="../report/related.rst",
            category="Related systems",
            labels={"figure": "{related}"},
        ),
        figures("{related}_synthetic")[1:],
    log:
        "results/logs/plot_related/{related}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="{related}",
        sources=lambda wildcards: sources(f"reporting.figures.{wildcards.related}"),
    script:
        "../scripts/plot_related.py"


rule render_related:
    input:
        "results/related/{related}_claims.csv",
    output:
        tables("{related}_claims"),
    log:
        "results/logs/render_related/{related}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="{related}",
        sources=sources("reporting.tables", "reporting.comparison"),
    script:
        "../scripts/render_related.py"


# Seconds change from run to run, so they stand apart, in results/benchmarks.
rule measure_related_times:
    output:
        table="results/benchmarks/{related}.csv",
        figure=[f"results/benchmarks/{{related}}.{suffix}" for suffix in FIGURE_FORMATS],
    log:
        "results/logs/measure_related_times/{related}.log",
    conda:
        "../envs/pufferflow.yaml"
    threads: 256  # capped at --cores: times are measured alone
    params:
        name="{related}",
        settings=lambda wildcards: EXPERIMENTS[wildcards.related],
        sources=lambda wildcards: sources(
            f"experiments.{wildcards.related}",
            f"reporting.figures.{wildcards.related}",
        ),
    script:
        "../scripts/measure_related_times.py"
