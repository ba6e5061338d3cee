rule plot_synthetic_errors:
    input:
        errors="results/errors/{synthetic}.csv",
        limits="results/scales/synthetic_gk16_limits.csv",
    output:
        report(
            figures("figure4_upper_{synthetic}")[0],
            caption="../report/figure4_upper.rst",
            category="Figures",
        ),
        figures("figure4_upper_{synthetic}")[1:],
    log:
        "results/logs/plot_synthetic_errors/{synthetic}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/plot_synthetic_errors.py"


rule plot_group_histograms:
    input:
        sample="results/samples/{real}.json",
        releases="results/errors/{real}_releases.csv",
    output:
        report(
            figures("figure4_lower_{real}")[0],
            caption="../report/figure4_lower.rst",
            category="Figures",
        ),
        figures("figure4_lower_{real}")[1:],
    log:
        "results/logs/plot_group_histograms/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/plot_group_histograms.py"


rule plot_power_histogram:
    input:
        sample="results/samples/{real}.json",
        releases="results/errors/{real}_releases.csv",
    output:
        report(
            figures("histogram_{real}")[0],
            caption="../report/histogram.rst",
            category="Figures",
        ),
        figures("histogram_{real}")[1:],
    log:
        "results/logs/plot_power_histogram/{real}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/plot_power_histogram.py"
