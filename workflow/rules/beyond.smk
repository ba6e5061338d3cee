# Studies beyond the paper. A case is the synthetic chains or a data set with its source.
STUDIES = {"synthetic": ["least_noise", "composition", "related_bounds"]} | {
    f"{name}_{dataset['source']}": dataset["studies"]
    for name, dataset in config["datasets"].items()
}
BEYOND_FIGURES = [
    f"{study}_{case}"
    for study in ["least_noise", "composition", "wider_guarantees", "related_bounds", "certainty"]
    for case, studies in STUDIES.items()
    if study in studies
]
BEYOND = [*BEYOND_FIGURES, "other_data_bundled", "top_states_bundled"]
NO_DATA = evaluate("{case} == 'synthetic'")
LEAST_NOISE = config["beyond"]["least_noise"] | {"options": config["mechanisms"]}
SYNTHETIC = {key: LEAST_NOISE.pop(key) for key in ["stay", "length"]}
RELATED_BOUNDS = {**config["beyond"]["related_bounds"]}
RANDOM = {key: RELATED_BOUNDS.pop(key) for key in ["chains", "length"]} | {"seed": config["seed"]}
SETTINGS = {
    "least_noise": LEAST_NOISE,
    "composition": config["beyond"]["composition"],
    "related_bounds": RELATED_BOUNDS,
    "certainty": config["beyond"]["certainty"],
}
SHOWN = {"caption": "../report/beyond.rst", "category": "Beyond the paper"}


scattergather:
    cohort=config["beyond"]["cohort"]["pieces"],


rule measure_least_noise:
    """Studies of single chains: synthetic ones, or those fitted to a sample."""
    input:
        branch(NO_DATA, otherwise=["results/samples/{case}.json", "results/chains/{case}.json"]),
    output:
        "results/beyond/{study,least_noise|composition|related_bounds|certainty}_{case}.csv",
    log:
        "results/logs/measure_least_noise/{study}_{case}.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        study="{study}",
        synthetic=branch(NO_DATA, then=SYNTHETIC),
        random=branch(NO_DATA, then=RANDOM),
        settings=lookup("{study}", within=SETTINGS),
        code=code_of("measure_least_noise.py"),
    script:
        "../scripts/measure_least_noise.py"


rule measure_wider_guarantees:
    """Scales for wider secrets, richer models and side information."""
    input:
        raw=raw_data,
        sample="results/samples/{dataset}_{source}.json",
    output:
        "results/beyond/wider_guarantees_{dataset}_{source}.csv",
    log:
        "results/logs/measure_wider_guarantees/{dataset}_{source}.log",
    priority: 2  # the longest jobs begin first
    conda:
        "../envs/pufferflow.yaml"
    params:
        source="{source}",
        dataset=how_to_read,
        settings=lookup("beyond/wider_guarantees", within=config),
        code=code_of("measure_wider_guarantees.py"),
    script:
        "../scripts/measure_wider_guarantees.py"


rule measure_other_data:
    """Tables 1 and 3 for other people, steps and windows; lists of the most frequent states."""
    input:
        [NHANES, FITBIT, HOUSEHOLD],
    output:
        "results/beyond/{study}_bundled.csv",
    log:
        "results/logs/measure_other_data/{study}.log",
    wildcard_constraints:
        study="other_data|top_states",
    conda:
        "../envs/pufferflow.yaml"
    params:
        study="{study}",
        seed=config["seed"],
        settings=lookup("beyond/{study}", within=config),
        options=lookup("mechanisms", within=config),
        code=code_of("measure_other_data.py"),
    script:
        "../scripts/measure_other_data.py"


rule write_beyond:
    """Figures and tables of the studies beyond the paper, and their page."""
    input:
        expand("results/beyond/{case}.csv", case=BEYOND),
    output:
        page=report("results/beyond.html", category="Pages"),
        svg=report(expand("results/figures/{case}.svg", case=BEYOND_FIGURES), **SHOWN),
        csv=report(expand("results/tables/{case}.csv", case=BEYOND), **SHOWN),
        pdf=expand("results/figures/{case}.pdf", case=BEYOND_FIGURES),
        tables=expand("results/tables/{case}.{form}", case=BEYOND, form=["md", "tex"]),
    log:
        "results/logs/write_beyond.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("write_beyond.py"),
    script:
        "../scripts/write_beyond.py"


rule measure_cohort:
    """Noise, errors and lower bounds of a piece of the cohort."""
    output:
        "results/beyond/cohort/{scatteritem}.csv",
    log:
        "results/logs/measure_cohort/{scatteritem}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        piece="{scatteritem}",
        settings=lookup("beyond/cohort", within=config),
        options=lookup("mechanisms", within=config),
        seed=config["seed"],
        code=code_of("measure_cohort.py"),
    script:
        "../scripts/measure_cohort.py"


rule gather_cohort:
    """All pieces of the cohort, and quantiles over its participants."""
    input:
        gather.cohort("results/beyond/cohort/{scatteritem}.csv"),
    output:
        rows="results/beyond/cohort.csv",
        summary="results/beyond/cohort_summary.csv",
        tables=multiext("results/tables/cohort", ".csv", ".md", ".tex"),
    log:
        "results/logs/gather_cohort.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("gather_cohort.py"),
    script:
        "../scripts/gather_cohort.py"


rule cohort:
    """A cohort of simulated participants, in pieces for a cluster."""
    input:
        rules.gather_cohort.output,
