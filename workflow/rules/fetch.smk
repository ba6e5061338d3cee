rule fetch_data:
    """The whole of UCI #235 as minute watts, for `source: downloaded`; its SHA-256 is checked."""
    input:
        sources=f"{WORKFLOW}/data/sources.csv",
    output:
        "resources/{dataset}.csv.xz",
    log:
        "results/logs/fetch_data/{dataset}.log",
    retries: 3
    localrule: True
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("fetch_data.py"),
    script:
        "../scripts/fetch_data.py"
