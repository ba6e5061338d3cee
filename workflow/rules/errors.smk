rule measure_errors:
    """L1 errors of the released histograms of a data set, and releases to draw."""
    input:
        sample="results/samples/{dataset}_{source}.json",
        scales=expand(
            "results/scales/{{dataset}}_{{source}}/{mechanism}.csv",
            mechanism=lookup("datasets/{dataset}/mechanisms", within=config),
        ),
    output:
        errors="results/errors/{dataset}_{source}.csv",
        releases="results/errors/{dataset}_{source}_releases.csv",
    log:
        "results/logs/measure_errors/{dataset}_{source}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        repetitions=lookup("datasets/{dataset}/repetitions", within=config),
        releases=lookup("datasets/{dataset}/releases", within=config),
        seed=config["seed"],
        code=code_of("measure_errors.py"),
    script:
        "../scripts/measure_errors.py"


rule measure_errors_synthetic:
    """L1 error of the released mean of a binary chain, expected and simulated."""
    input:
        scales=expand(
            "results/scales/synthetic/{mechanism}.csv", mechanism=config["synthetic"]["mechanisms"]
        ),
    output:
        "results/errors/synthetic.csv",
    log:
        "results/logs/measure_errors_synthetic.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        repetitions=lookup("synthetic/repetitions", within=config),
        seed=config["seed"],
        code=code_of("measure_errors_synthetic.py"),
    script:
        "../scripts/measure_errors_synthetic.py"
