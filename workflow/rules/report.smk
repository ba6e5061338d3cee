rule compare_results:
    input:
        sorted({path for claim in CLAIMS for path in claim.inputs.values()}),
    output:
        in_report("results/tables/comparison.csv", "Comparison"),
        [f"results/tables/comparison.{suffix}" for suffix in TABLE_FORMATS[1:]],
    log:
        "results/logs/compare_results.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        claims=[(c.work, dict(c.inputs), dict(c.settings)) for c in CLAIMS],
        captions={
            "Comparison": "Every claim and number of the sources beside ours, with a verdict; other data never read “reproduced”."
        },
        sources=sources_of("compare", *(claim.work for claim in CLAIMS)),
    script:
        "../scripts/compare.py"


rule write_report:
    input:
        shown=[step.shown for step in SHOWN],
        samples=list(SAMPLES.values()),
        comparison="results/tables/comparison.json",
    output:
        "results/report.html",
    log:
        "results/logs/write_report.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        shown=[*map(shown_of, SHOWN), *({"file": "", **asdict(n)} for n in NOTES)],
        samples=SAMPLES,
        settings=config,
        sources=sources_of("report"),
    script:
        "../scripts/report.py"


rule write_times:
    input:
        shown=[step.shown for step in TIMED],
    output:
        TIMES_PAGE,
    log:
        "results/logs/write_times.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        shown=[*map(shown_of, TIMED)],
        report="../report.html",
        sources=sources_of("times"),
    script:
        "../scripts/times.py"


rule record_provenance:
    input:
        results=["results/report.html", *final_results(), *rules.compare_results.output],
        samples=list(SAMPLES.values()),
    output:
        "results/provenance.json",
    log:
        "results/logs/record_provenance.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=config,
        sources=sources_of("provenance"),
    script:
        "../scripts/provenance.py"
