# Participants are shared out to jobs, any number of them, and what these find is joined again.
# Every job takes participants one at a time: the memory it asks for is enough for a cohort of any size. Counting,
# drawing and printing take seconds and are done where Snakemake runs.
scattergather:
    cohort=EXPERIMENTS["cohort"]["chunks"],


rule index_cohort:
    input:
        cohort_samples(),
    output:
        cohort("results/cohort/index.csv"),
    log:
        "results/logs/index_cohort.log",
    localrule: True
    conda:
        "../envs/pufferflow.yaml"
    params:
        simulated=EXPERIMENTS["cohort"]["simulated"],
    script:
        "../scripts/index_cohort.py"


rule measure_cohort:
    input:
        cohort("results/cohort/index.csv"),
    output:
        cohort("results/cohort/{scatteritem}.csv"),
    log:
        "results/logs/measure_cohort/{scatteritem}.log",
    conda:
        "../envs/pufferflow.yaml"
    resources:
        mem_mb=1000,
    params:
        settings=EXPERIMENTS["cohort"],
        fit=config["chains"],
        options=config["mechanisms"],
        seed=config["seed"],
    script:
        "../scripts/measure_cohort.py"


rule gather_cohort:
    input:
        gather.cohort(cohort("results/cohort/{scatteritem}.csv")),
    output:
        table=cohort("results/errors/cohort.csv"),
        summary=cohort("results/errors/cohort_summary.csv"),
        distribution=cohort("results/errors/cohort_distribution.csv"),
    log:
        "results/logs/gather_cohort.log",
    conda:
        "../envs/pufferflow.yaml"
    resources:
        mem_mb=1000,
    script:
        "../scripts/gather_cohort.py"


rule plot_cohort:
    input:
        cohort("results/errors/cohort_distribution.csv"),
    output:
        report(
            figures(cohort("cohort"))[0],
            caption="../report/cohort.rst",
            category="Figures",
        ),
        figures(cohort("cohort"))[1:],
    log:
        "results/logs/plot_cohort.log",
    localrule: True
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/plot_cohort.py"


rule render_cohort:
    input:
        cohort("results/errors/cohort_summary.csv"),
    output:
        tables(cohort("cohort")),
    log:
        "results/logs/render_cohort.log",
    localrule: True
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_cohort.py"
