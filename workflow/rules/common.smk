# Helpers of the rules; the other files hold rules only.
import os
import shlex
import sys

from snakemake.exceptions import WorkflowError

from pufferflow.errors import PufferflowError
from reproduction.code import code_of
from reproduction.settings import complete

try:
    complete(config)
except PufferflowError as error:
    raise WorkflowError(str(error)) from None

# Snakemake writes this path into shell commands as it is; in a folder with a space it needs quotes.
sys.executable = shlex.quote(sys.executable)

# relative to the working directory, so that a project that is moved has nothing to rerun
WORKFLOW = os.path.relpath(os.path.dirname(workflow.current_basedir.get_path_or_uri(True)))

DATASETS = [f"{name}_{dataset['source']}" for name, dataset in config["datasets"].items()]
SCALES = [
    f"results/scales/{name}_{dataset['source']}/{mechanism}.csv"
    for name, dataset in config["datasets"].items()
    for mechanism in dataset["mechanisms"]
] + expand("results/scales/synthetic/{mechanism}.csv", mechanism=config["synthetic"]["mechanisms"])
SYNTHETIC_FIGURES = {
    "figure4_upper": "Figure 4, upper row",
    "wasserstein": "Figure 1",
    "quilts": "Figures 2 and 3",
    "growth": "longer chains",
}
FIGURES = expand("{kind}_{dataset}", kind=["errors", "histograms"], dataset=DATASETS)
FIGURES += expand("{name}_synthetic", name=SYNTHETIC_FIGURES)
EXAMPLES = ["values", "quilts", "growth", "gk16_limits", "flu_network"]
RELATED = ["noisy_max", "base2_exponential", "alpha_beta", "classical"]
FIGURE = ["svg", "pdf"]
TABLE = ["csv", "md", "tex"]


# Raw files that the project ships.
HOUSEHOLD = f"{WORKFLOW}/../pufferflow/data/electricity_uci235_minute_watts.csv.xz"
NHANES = f"{WORKFLOW}/data/activity_nhanes2003_minutes.csv.xz"
FITBIT = f"{WORKFLOW}/data/activity_fitbit2016_minutes.csv.xz"
READ = ["kind", "columns", "gap_minutes", "states", "bin_watts", "bins", "gaps"]
READ += ["window_start", "window_minutes"]


wildcard_constraints:
    dataset="[a-z0-9_]+",
    source="bundled|downloaded|file",
    mechanism="[a-z0-9-]+",


def of_paper(name):
    """The paper's data set of this name with its source; empty if the settings lack it."""
    return [dataset for dataset in DATASETS if dataset.rpartition("_")[0] == name]


def raw_data(wildcards):
    """The raw file of a data set: shipped with the project, downloaded, or the user's own."""
    dataset = config["datasets"][wildcards.dataset]
    files = {
        "bundled": {"power": HOUSEHOLD, "activity": NHANES}[dataset["kind"]],
        "downloaded": f"resources/{wildcards.dataset}.csv.xz",
        "file": dataset["path"],
    }
    return files[wildcards.source]


def how_to_read(wildcards):
    """The settings that shape a sample: after an edit of others, such as ε, it stays."""
    dataset = config["datasets"][wildcards.dataset]
    return {name: dataset[name] for name in READ if name in dataset}
