rule draw_figure4_synthetic:
    """Figure 4, upper row: the error of a binary chain's mean against α."""
    input:
        errors="results/errors/synthetic.csv",
        limits="results/examples/gk16_limits.csv",
    output:
        svg=report(
            "results/figures/figure4_upper_synthetic.svg",
            caption="../report/figure4.rst",
            category="Figures",
            labels={"figure": "Figure 4, upper row"},
        ),
        pdf="results/figures/figure4_upper_synthetic.pdf",
    log:
        "results/logs/draw_figure4_synthetic.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("draw_figure4_synthetic.py"),
    script:
        "../scripts/draw_figure4_synthetic.py"


rule draw_figure4_histograms:
    """Figure 4, lower row, and the errors of Table 1 or 3, for one data set."""
    input:
        sample="results/samples/{dataset}_{source}.json",
        errors="results/errors/{dataset}_{source}.csv",
        releases="results/errors/{dataset}_{source}_releases.csv",
    output:
        histograms=report(
            "results/figures/histograms_{dataset}_{source}.svg",
            caption="../report/histograms.rst",
            category="Figures",
            labels={"figure": "Figure 4, lower row: {dataset}, {source}"},
        ),
        errors=report(
            "results/figures/errors_{dataset}_{source}.svg",
            caption="../report/errors.rst",
            category="Figures",
            labels={"figure": "errors and the paper's: {dataset}, {source}"},
        ),
        pdf=expand(
            "results/figures/{kind}_{{dataset}}_{{source}}.pdf", kind=["histograms", "errors"]
        ),
    log:
        "results/logs/draw_figure4_histograms/{dataset}_{source}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("draw_figure4_histograms.py"),
    script:
        "../scripts/draw_figure4_histograms.py"


rule draw_figures_examples:
    """Figures 1 to 3, and noise scales of longer and longer chains."""
    input:
        values="results/examples/values.csv",
        quilts="results/examples/quilts.csv",
        growth="results/examples/growth.csv",
    output:
        **{
            name: report(
                f"results/figures/{name}_synthetic.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
                labels={"figure": label},
            )
            for name, label in EXAMPLE_FIGURES.items()
        },
        pdf=expand("results/figures/{figure}_synthetic.pdf", figure=EXAMPLE_FIGURES),
    log:
        "results/logs/draw_figures_examples.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("draw_figures_examples.py"),
    script:
        "../scripts/draw_figures_examples.py"
