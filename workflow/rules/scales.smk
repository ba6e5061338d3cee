rule compute_worked_examples:
    output:
        "results/scales/worked_examples.csv",
    log:
        "results/logs/compute_worked_examples.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/compute_worked_examples.py"


rule compute_synthetic_scales:
    output:
        scales="results/scales/synthetic.csv",
        limits="results/scales/synthetic_gk16_limits.csv",
    log:
        "results/logs/compute_synthetic_scales.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        epsilons=EXPERIMENTS["synthetic"]["epsilons"],
        alphas=EXPERIMENTS["synthetic"]["alphas"],
        length=EXPERIMENTS["synthetic"]["length"],
        mechanisms=EXPERIMENTS["synthetic"]["mechanisms"],
        options=config["mechanisms"],
    script:
        "../scripts/compute_synthetic_scales.py"


rule compute_extended_synthetic_scales:
    input:
        "results/scales/synthetic.csv",
    output:
        "results/scales/synthetic_extended.csv",
    log:
        "results/logs/compute_extended_synthetic_scales.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        mechanisms=EXPERIMENTS["synthetic"]["extension"],
        options=config["mechanisms"],
    script:
        "../scripts/compute_extended_synthetic_scales.py"


rule compute_histogram_scales:
    input:
        sample="results/samples/{real}.json",
        models="results/chains/{real}",
    output:
        "results/scales/{real}.csv",
    log:
        "results/logs/compute_histogram_scales/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        epsilons=lambda wildcards: settings_of(wildcards)["epsilons"],
        mechanisms=lambda wildcards: settings_of(wildcards)["mechanisms"],
        options=config["mechanisms"],
    script:
        "../scripts/compute_histogram_scales.py"


rule measure_timings:
    input:
        samples=expand("results/samples/{real}.json", real=map(labelled, TIMED)),
        models=expand("results/chains/{real}", real=map(labelled, TIMED)),
    output:
        "results/benchmarks/timings.csv",
    log:
        "results/logs/measure_timings.log",
    conda:
        "../envs/pufferflow.yaml"
    threads: 256  # capped at --cores: times are measured alone
    params:
        settings=EXPERIMENTS["timings"],
        length=EXPERIMENTS["synthetic"]["length"],
        options=config["mechanisms"],
    script:
        "../scripts/measure_timings.py"


# Not part of `all`: `make bench` runs it.
rule measure_engine:
    output:
        expand("results/benchmarks/engine.{suffix}", suffix=TABLE_FORMATS),
    log:
        "results/logs/measure_engine.log",
    conda:
        "../envs/pufferflow.yaml"
    threads: 256
    script:
        "../scripts/measure_engine.py"
