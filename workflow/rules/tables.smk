rule render_worked_examples:
    input:
        "results/scales/worked_examples.csv",
    output:
        tables("worked_examples"),
    log:
        "results/logs/render_worked_examples.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_worked_examples.py"


rule render_chains:
    input:
        "results/chains/{real}.csv",
    output:
        tables("chains_{real}"),
    log:
        "results/logs/render_chains/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_chains.py"


rule render_table1:
    input:
        "results/errors/{real}.csv",
    output:
        report(
            tables("table1_{real}")[0],
            caption="../report/table1.rst",
            category="Tables",
        ),
        tables("table1_{real}")[1:],
    log:
        "results/logs/render_table1/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_table1.py"


rule render_table2:
    input:
        "results/benchmarks/timings.csv",
    output:
        expand("results/benchmarks/table2.{suffix}", suffix=TABLE_FORMATS),
    log:
        "results/logs/render_table2.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_table2.py"


rule render_table3:
    input:
        "results/errors/{real}.csv",
    output:
        report(
            tables("table3_{real}")[0],
            caption="../report/table3.rst",
            category="Tables",
        ),
        tables("table3_{real}")[1:],
    log:
        "results/logs/render_table3/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_table3.py"


rule compare_results:
    input:
        unpack(error_tables),
    output:
        report(
            tables("comparison")[0],
            caption="../report/comparison.rst",
            category="Comparison",
        ),
        tables("comparison")[1:],
    log:
        "results/logs/compare_results.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/compare_results.py"
