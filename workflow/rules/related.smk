# One job an experiment: each takes about a second, less than starting a second job.
rule run_related:
    output:
        report(
            figures("{related}_synthetic")[0],
            caption="../report/related.rst",
            category="Related systems",
            labels={"figure": "{related}"},
        ),
        figures("{related}_synthetic")[1:],
        curves="results/related/{related}_synthetic.csv",
        claims="results/related/{related}_claims.csv",
        tables=tables("{related}_claims"),
    log:
        "results/logs/run_related/{related}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="{related}",
        settings=lambda wildcards: EXPERIMENTS[wildcards.related],
        seed=config["seed"],
    script:
        "../scripts/run_related.py"


# Seconds change from run to run, so they stand apart, in results/benchmarks. A usual run measures them beside other
# jobs; `make bench` gives this rule all cores, so that nothing runs beside it.
rule measure_related_times:
    output:
        table="results/benchmarks/{related}.csv",
        figure=[f"results/benchmarks/{{related}}.{suffix}" for suffix in FIGURE_FORMATS],
    log:
        "results/logs/measure_related_times/{related}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="{related}",
        settings=lambda wildcards: EXPERIMENTS[wildcards.related],
    script:
        "../scripts/measure_related_times.py"
