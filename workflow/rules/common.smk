# All helper functions of the workflow; the other files hold rules only.
from pathlib import Path

from snakemake.exceptions import WorkflowError

from pufferflow.errors import ConfigError
from pufferflow.experiments.checksums import missing_files
from pufferflow.experiments.related import RELATED, TIMED as TIMED_RELATED
from pufferflow.experiments.settings import check_settings
from pufferflow._sources import source_digest

try:
    check_settings(
        config, Path(workflow.basedir) / "workflow/schemas/config.schema.yaml"
    )
except ConfigError as error:
    raise WorkflowError(str(error)) from None


wildcard_constraints:
    real=r"(electricity|activity)_[a-z]+",
    synthetic="synthetic|synthetic_extended",
    related="|".join(RELATED),
    case=r"synthetic|(electricity|activity)_[a-z]+",


EXPERIMENTS = config["experiments"]
LABELS = {"bundled": "bundled", "download": "downloaded", "file": "file"}


def enabled(experiment):
    """Whether an experiment is to be run."""
    return EXPERIMENTS[experiment]["enabled"]


def labelled(dataset):
    """Name of a real data set with the label of its source: every file made from it carries both."""
    return f"{dataset}_{LABELS[config['datasets'][dataset]['source']]}"


REAL = [name for name in ("activity", "electricity") if enabled(name)]
TIMED = [
    name for name in ("activity", "electricity") if enabled("timings") and enabled(name)
]
RUN_RELATED = [name for name in RELATED if enabled(name)]
CASES = ["synthetic", *map(labelled, REAL)] if enabled("least_noise") else []
COMPOSED = [case for case in CASES if not case.startswith("electricity")]
for name in map(labelled, REAL):
    if gone := missing_files(Path("results/chains", name)):
        raise WorkflowError(
            f"{gone[0]} is missing; delete results/chains/{name} as a whole and run snakemake again"
        )
FIGURE_FORMATS = ["svg", "pdf", "png"]
TABLE_FORMATS = ["csv", "md", "tex"]


def dataset_of(wildcards):
    """Data set name without its label."""
    return wildcards.real.partition("_")[0]


def settings_of(wildcards):
    """Settings of the experiment on a real data set."""
    return EXPERIMENTS[dataset_of(wildcards)]


def ingestion_of(wildcards):
    """Ingestion settings of a real data set, source and path included."""
    return config["datasets"][dataset_of(wildcards)]


def own_file(wildcards):
    """The user's file, where there is one, so that an edit of it reruns the ingestion."""
    return ingestion_of(wildcards)["path"] or []


def fitted_data(wildcards):
    """Sample and chains of a case; the synthetic one needs none."""
    if wildcards.case == "synthetic":
        return {}
    return {
        "sample": f"results/samples/{wildcards.case}.json",
        "models": f"results/chains/{wildcards.case}",
    }


def depend_on_sources(rules):
    """Give each rule a digest of all that its script runs, so that an edit of the package runs it again."""
    scripts = Path(workflow.basedir) / "workflow/scripts"
    for each in rules:
        if each.script:
            each.set_params(sources=source_digest(scripts / Path(each.script).name))


def tables(stem):
    """All formats of a table."""
    return [f"results/tables/{stem}.{suffix}" for suffix in TABLE_FORMATS]


def figures(stem):
    """All formats of a figure."""
    return [f"results/figures/{stem}.{suffix}" for suffix in FIGURE_FORMATS]


def error_tables(_wildcards=None):
    """Inputs of the comparison, by name."""
    found = {name: f"results/errors/{labelled(name)}.csv" for name in REAL}
    if enabled("worked_examples"):
        found["worked"] = "results/scales/worked_examples.csv"
    if enabled("synthetic"):
        found["synthetic"] = "results/errors/synthetic.csv"
        found["limits"] = "results/scales/synthetic_gk16_limits.csv"
    for name in RUN_RELATED:
        found[f"{name}_claims"] = f"results/related/{name}_claims.csv"
    return found


def report_inputs(_wildcards=None):
    """Everything the report shows, by name: tidy tables and figures."""
    found = {"comparison": "results/tables/comparison.csv", **error_tables()}
    if enabled("synthetic"):
        found["synthetic_figure"] = "results/figures/figure4_upper_synthetic.svg"
        if EXPERIMENTS["synthetic"]["extension"]:
            found["extended_figure"] = (
                "results/figures/figure4_upper_synthetic_extended.svg"
            )
    for name in REAL:
        found[f"{name}_sample"] = f"results/samples/{labelled(name)}.json"
        found[f"{name}_chains"] = f"results/chains/{labelled(name)}.csv"
        found[f"{name}_figure"] = (
            f"results/figures/{FIGURE_OF[name]}_{labelled(name)}.svg"
        )
    for case in CASES:
        found[f"least_noise_{case}"] = f"results/scales/least_noise_{case}.csv"
        found[f"least_noise_{case}_figure"] = f"results/figures/least_noise_{case}.svg"
    for case in COMPOSED:
        found[f"composition_{case}_figure"] = f"results/figures/composition_{case}.svg"
    for name in RUN_RELATED:
        found[f"{name}_figure"] = f"results/figures/{name}_synthetic.svg"
    if enabled("cohort"):
        found["cohort"] = cohort("results/errors/cohort_summary.csv")
        found["cohort_figure"] = cohort("results/figures/cohort.svg")
    return found


FIGURE_OF = {"activity": "figure4_lower", "electricity": "histogram"}


def cohort(name):
    """Name of a file, or its stem, with the label of the cohort: simulated, or from a folder of the user."""
    label = "file" if EXPERIMENTS["cohort"]["samples"] else "synthetic"
    stem, dot, suffix = name.partition(".")
    return f"{stem}_{label}{dot}{suffix}"


def cohort_samples():
    """The sample files of the cohort, in the order of its participants."""
    folder = EXPERIMENTS["cohort"]["samples"]
    return sorted(str(path) for path in Path(folder).glob("*.json")) if folder else []


def final_results(_wildcards=None):
    """Rendered tables and figures that belong to a complete run."""
    folders = ("results/tables/", "results/figures/")
    return [path for path in every_file() if path.startswith(folders)]


def every_file():
    """All files of a complete run, intermediate ones too: Snakemake makes a deleted one again only if asked for it."""
    real = list(map(labelled, REAL))
    found = made("compare_results") + made("write_report")
    if enabled("worked_examples"):
        found += made("compute_worked_examples") + made("render_worked_examples")
    if enabled("synthetic"):
        drawn = ["synthetic"]
        found += made("compute_synthetic_scales")
        if EXPERIMENTS["synthetic"]["extension"]:
            drawn.append("synthetic_extended")
            found += made("compute_extended_synthetic_scales")
        for step in ("measure_synthetic_errors", "plot_synthetic_errors"):
            found += made(step, synthetic=drawn)
    for step in OF_REAL:
        found += made(step, real=real)
    for name in REAL:
        for step in OF_DATASET[name]:
            found += made(step, real=labelled(name))
    for step in ("compute_least_noise", "render_least_noise", "plot_least_noise"):
        found += made(step, case=CASES)
    for step in ("compute_composition", "plot_composition"):
        found += made(step, case=COMPOSED)
    found += made("run_related", related=RUN_RELATED)
    if enabled("timings"):
        timed = [name for name in TIMED_RELATED if enabled(name)]
        found += made("measure_related_times", related=timed)
        found += made("measure_timings") + made("render_table2")
    if enabled("cohort"):
        found += gather.cohort(made("measure_cohort"))
        for step in ("index_cohort", "gather_cohort", "render_cohort", "plot_cohort"):
            found += made(step)
    return found


OF_REAL = (
    "ingest_sample",
    "fit_chains",
    "compute_histogram_scales",
    "measure_histogram_errors",
    "render_chains",
)
OF_DATASET = {
    "activity": ("render_table1", "plot_group_histograms"),
    "electricity": ("render_table3", "plot_power_histogram"),
}


def made(step, **wildcards):
    """All outputs of a rule, for each of the given values of its wildcards."""
    outputs = map(str, getattr(rules, step).output)
    return expand(list(outputs), **wildcards) if wildcards else list(outputs)
