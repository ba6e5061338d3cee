rule measure_synthetic_errors:
    input:
        "results/scales/{synthetic}.csv",
    output:
        "results/errors/{synthetic}.csv",
    log:
        "results/logs/measure_synthetic_errors/{synthetic}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        repetitions=EXPERIMENTS["synthetic"]["repetitions"],
        seed=config["seed"],
    script:
        "../scripts/measure_synthetic_errors.py"


rule measure_histogram_errors:
    input:
        sample="results/samples/{real}.json",
        scales="results/scales/{real}.csv",
    output:
        errors="results/errors/{real}.csv",
        releases="results/errors/{real}_releases.csv",
    log:
        "results/logs/measure_histogram_errors/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        repetitions=lambda wildcards: settings_of(wildcards)["repetitions"],
        releases=lambda wildcards: settings_of(wildcards)["releases"],
        seed=config["seed"],
    script:
        "../scripts/measure_histogram_errors.py"
