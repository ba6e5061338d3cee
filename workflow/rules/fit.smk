rule fit_chains:
    """One Markov chain for every group of a data set."""
    input:
        "results/samples/{dataset}_{source}.json",
    output:
        chains="results/chains/{dataset}_{source}.json",
        table="results/chains/{dataset}_{source}.csv",
    log:
        "results/logs/fit_chains/{dataset}_{source}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        options=lookup("chains", within=config),
        code=code_of("fit_chains.py"),
    script:
        "../scripts/fit_chains.py"
