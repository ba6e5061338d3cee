rule run_mechanism:
    """Noise scales of one mechanism for one data set, at every ε."""
    input:
        sample="results/samples/{dataset}_{source}.json",
        chains="results/chains/{dataset}_{source}.json",
    output:
        "results/scales/{dataset}_{source}/{mechanism}.csv",
    log:
        "results/logs/run_mechanism/{dataset}_{source}_{mechanism}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        mechanism="{mechanism}",
        epsilons=lookup("datasets/{dataset}/epsilons", within=config),
        options=lookup("mechanisms/{mechanism}", within=config, default={}),
        code=code_of("run_mechanism.py"),
    script:
        "../scripts/run_mechanism.py"


rule run_mechanism_synthetic:
    """Noise scales of one mechanism for the classes [α, 1 − α] of binary chains, at every ε."""
    output:
        "results/scales/synthetic/{mechanism}.csv",
    log:
        "results/logs/run_mechanism_synthetic/{mechanism}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        mechanism="{mechanism}",
        epsilons=lookup("synthetic/epsilons", within=config),
        alphas=lookup("synthetic/alphas", within=config),
        length=lookup("synthetic/length", within=config),
        options=lookup("mechanisms/{mechanism}", within=config, default={}),
        code=code_of("run_mechanism_synthetic.py"),
    script:
        "../scripts/run_mechanism_synthetic.py"


rule compute_examples:
    """The paper's worked examples, quilts to draw, where GK16 applies, and longer chains."""
    output:
        **{name: f"results/examples/{name}.csv" for name in EXAMPLES},
    log:
        "results/logs/compute_examples.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        epsilons=lookup("synthetic/epsilons", within=config),
        growth=lookup("synthetic/growth", within=config),
        length=lookup("synthetic/length", within=config),
        mechanisms=lookup("synthetic/mechanisms", within=config),
        options=lookup("mechanisms", within=config),
        code=code_of("compute_examples.py"),
    script:
        "../scripts/compute_examples.py"


rule time_mechanisms:
    """Seconds to compute each noise scale (Table 2); runs alone."""
    input:
        samples=expand("results/samples/{dataset}.json", dataset=DATASETS),
        chains=expand("results/chains/{dataset}.json", dataset=DATASETS),
    output:
        "results/timings/mechanisms.csv",
    log:
        "results/logs/time_mechanisms.log",
    conda:
        "../envs/pufferflow.yaml"
    threads: 1000
    params:
        epsilon=lookup("timings/epsilon", within=config),
        mechanisms=lookup("timings/mechanisms", within=config),
        repeats=lookup("timings/repeats", within=config),
        alphas=lookup("synthetic/alphas", within=config),
        length=lookup("synthetic/length", within=config),
        options=lookup("mechanisms", within=config),
        code=code_of("time_mechanisms.py"),
    script:
        "../scripts/time_mechanisms.py"
