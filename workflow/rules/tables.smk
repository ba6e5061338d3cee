PRINTED = {
    "chains": expand("results/chains/{dataset}.csv", dataset=DATASETS),
    "table2": ["results/timings/mechanisms.csv"],
    "examples": ["results/examples/values.csv"],
} | {f"errors_{dataset}": [f"results/errors/{dataset}.csv"] for dataset in DATASETS}
"""The tidy tables that each printed table is made of."""


rule print_tables:
    """One table of the paper: errors (Tables 1 and 3), seconds, examples, or data and chains."""
    input:
        lookup("{table}", within=PRINTED),
    output:
        csv=report(
            "results/tables/{table}.csv",
            caption="../report/tables.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
        md="results/tables/{table}.md",
        tex="results/tables/{table}.tex",
    log:
        "results/logs/print_tables/{table}.log",
    wildcard_constraints:
        table="|".join(PRINTED),
    conda:
        "../envs/pufferflow.yaml"
    params:
        table="{table}",
        code=code_of("print_tables.py"),
    script:
        "../scripts/print_tables.py"
