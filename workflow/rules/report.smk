rule write_report:
    input:
        unpack(report_inputs),
    output:
        "results/report.html",
    log:
        "results/logs/write_report.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=config,
    script:
        "../scripts/write_report.py"


rule record_provenance:
    input:
        results=["results/report.html", *final_results()],
        samples=expand("results/samples/{real}.json", real=map(labelled, REAL)),
    output:
        "results/provenance.json",
    log:
        "results/logs/record_provenance.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=config,
    script:
        "../scripts/record_provenance.py"
