rule compute_least_noise:
    input:
        unpack(fitted_data),
    output:
        "results/scales/least_noise_{case}.csv",
    log:
        "results/logs/compute_least_noise/{case}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=EXPERIMENTS["least_noise"],
        options=config["mechanisms"],
    script:
        "../scripts/compute_least_noise.py"


rule compute_composition:
    input:
        unpack(fitted_data),
    output:
        "results/scales/composition_{case}.csv",
    log:
        "results/logs/compute_composition/{case}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        settings=EXPERIMENTS["least_noise"],
    script:
        "../scripts/compute_composition.py"


rule render_least_noise:
    input:
        "results/scales/least_noise_{case}.csv",
    output:
        report(
            tables("least_noise_{case}")[0],
            caption="../report/least_noise.rst",
            category="Least noise",
            labels={"table": "{case}"},
        ),
        tables("least_noise_{case}")[1:],
    log:
        "results/logs/render_least_noise/{case}.log",
    conda:
        "../envs/pufferflow.yaml"
    script:
        "../scripts/render_least_noise.py"


rule plot_least_noise:
    input:
        unpack(fitted_data),
        table="results/scales/least_noise_{case}.csv",
    output:
        report(
            figures("least_noise_{case}")[0],
            caption="../report/least_noise.rst",
            category="Least noise",
            labels={"figure": "{case}"},
        ),
        figures("least_noise_{case}")[1:],
    log:
        "results/logs/plot_least_noise/{case}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="relative_noise",
    script:
        "../scripts/plot_least_noise.py"


rule plot_composition:
    input:
        unpack(fitted_data),
        table="results/scales/composition_{case}.csv",
    output:
        report(
            figures("composition_{case}")[0],
            caption="../report/composition.rst",
            category="Least noise",
            labels={"figure": "{case}"},
        ),
        figures("composition_{case}")[1:],
    log:
        "results/logs/plot_composition/{case}.log",
    conda:
        "../envs/pufferflow.yaml"
    params:
        name="composition",
    script:
        "../scripts/plot_least_noise.py"
