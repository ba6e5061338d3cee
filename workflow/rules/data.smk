rule ingest_sample:
    input:
        own_file,
    output:
        sample="results/samples/{real}.json",
        table="results/samples/{real}.csv",
    log:
        "results/logs/ingest_sample/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        dataset=dataset_of,
        settings=ingestion_of,
    script:
        "../scripts/ingest_sample.py"


rule fit_chains:
    input:
        sample="results/samples/{real}.json",
    output:
        table="results/chains/{real}.csv",
        models=directory("results/chains/{real}"),
    log:
        "results/logs/fit_chains/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=config["chains"],
    script:
        "../scripts/fit_chains.py"
