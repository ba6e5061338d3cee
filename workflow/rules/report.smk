rule compare_results:
    input:
        sorted({path for claim in CLAIMS for path in claim.inputs.values()}),
    output:
        in_report(f"{RESULTS}/tables/comparison.csv", "Comparison"),
        [f"{RESULTS}/tables/comparison.{suffix}" for suffix in TABLE_FORMATS[1:]],
    log:
        f"{RESULTS}/logs/compare_results.log",
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
        comparison=f"{RESULTS}/tables/comparison.json",
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/write_report.log",
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
        f"{RESULTS}/{TIMES_PAGE}",
    log:
        f"{RESULTS}/logs/write_times.log",
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
        results=[
            f"{RESULTS}/report.html",
            *final_results(),
            *rules.compare_results.output,
        ],
        samples=list(SAMPLES.values()),
    output:
        record=f"{RESULTS}/provenance.json",
        crate=f"{RESULTS}/ro-crate-metadata.json",
    log:
        f"{RESULTS}/logs/record_provenance.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=config,
        sources=sources_of("provenance"),
    script:
        "../scripts/provenance.py"
