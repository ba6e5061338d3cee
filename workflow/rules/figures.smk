rule draw_figures_synthetic:
    """Figures 1 to 3, the upper row of Figure 4, and noise scales of longer and longer chains."""
    input:
        values="results/examples/values.csv",
        quilts="results/examples/quilts.csv",
        growth="results/examples/growth.csv",
        errors="results/errors/synthetic.csv",
        limits="results/examples/gk16_limits.csv",
    output:
        **{
            name: report(
                f"results/figures/{name}_synthetic.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
                labels={"figure": label},
            )
            for name, label in SYNTHETIC_FIGURES.items()
        },
        pdf=expand("results/figures/{figure}_synthetic.pdf", figure=SYNTHETIC_FIGURES),
    log:
        "results/logs/draw_figures_synthetic.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("draw_figures_synthetic.py"),
    script:
        "../scripts/draw_figures_synthetic.py"


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
