rule measure_noisy_max:
    """Noisy Max in hidden Markov models: both examples and every prior, stated values."""
    output:
        curves="results/related/noisy_max.csv",
        values="results/related/noisy_max_values.csv",
    log:
        "results/logs/measure_noisy_max.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=lookup("related/noisy_max", within=config),
        code=code_of("measure_noisy_max.py"),
    script:
        "../scripts/measure_noisy_max.py"


rule measure_base2_exponential:
    """Base-2 exponential mechanism: attacks, exact losses and counted bits, stated values."""
    output:
        curves="results/related/base2_exponential.csv",
        values="results/related/base2_exponential_values.csv",
    log:
        "results/logs/measure_base2_exponential.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=lookup("related/base2_exponential", within=config),
        seed=config["seed"],
        code=code_of("measure_base2_exponential.py"),
    script:
        "../scripts/measure_base2_exponential.py"


rule measure_alpha_beta:
    """The αβ algorithm: errors of counting queries, what views reveal, stated values."""
    output:
        curves="results/related/alpha_beta.csv",
        values="results/related/alpha_beta_values.csv",
    log:
        "results/logs/measure_alpha_beta.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=lookup("related/alpha_beta", within=config),
        seed=config["seed"],
        code=code_of("measure_alpha_beta.py"),
    script:
        "../scripts/measure_alpha_beta.py"


rule measure_classical:
    """Classical differential privacy: errors and exact losses against ε, stated values."""
    output:
        curves="results/related/classical.csv",
        values="results/related/classical_values.csv",
    log:
        "results/logs/measure_classical.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=lookup("related/classical", within=config),
        seed=config["seed"],
        code=code_of("measure_classical.py"),
    script:
        "../scripts/measure_classical.py"


rule draw_related:
    """Figures of the related systems."""
    input:
        **{system: f"results/related/{system}.csv" for system in RELATED},
    output:
        svg=report(
            expand("results/figures/{system}_synthetic.svg", system=RELATED),
            caption="../report/related.rst",
            category="Related systems",
        ),
        pdf=expand("results/figures/{system}_synthetic.pdf", system=RELATED),
    log:
        "results/logs/draw_related.log",
    priority: 1
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("draw_related.py"),
    script:
        "../scripts/draw_related.py"


rule compare_related:
    """Claims and numbers of the related systems' sources beside ours, and all values of each."""
    input:
        expand("results/related/{system}_values.csv", system=RELATED),
    output:
        report(
            expand("results/tables/{system}_values.csv", system=RELATED),
            caption="../report/related.rst",
            category="Related systems",
        ),
        expand("results/tables/{system}_values.{form}", system=RELATED, form=["md", "tex"]),
        multiext("results/tables/comparison_related", ".md", ".tex"),
        comparison=report(
            "results/tables/comparison_related.csv",
            caption="../report/comparison_related.rst",
            category="Related systems",
            labels={"table": "claims and numbers"},
        ),
    log:
        "results/logs/compare_related.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        code=code_of("compare_related.py"),
    script:
        "../scripts/compare_related.py"
