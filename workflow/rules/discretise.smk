rule discretise_data:
    """Counts of states and of transitions of every participant."""
    input:
        raw_data,
    output:
        sample="results/samples/{dataset}_{source}.json",
        table="results/samples/{dataset}_{source}.csv",
    log:
        "results/logs/discretise_data/{dataset}_{source}.log",
    priority: 2
    conda:
        "../envs/pufferflow.yaml"
    params:
        dataset="{dataset}",
        source="{source}",
        settings=how_to_read,
        code=code_of("discretise_data.py"),
    script:
        "../scripts/discretise_data.py"
