"""What the report shows, in which order, with which captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow.experiments.related import RELATED
from pufferflow.experiments.tidy import read_table, shown_epsilon
from pufferflow.records.sample import load_sample
from pufferflow.reporting import tables
from pufferflow.reporting.comparison import reported_values
from pufferflow.reporting.figures import cohort
from pufferflow.reporting.figures.by_name import figures_of
from pufferflow.reporting.provenance import reproducible_provenance
from pufferflow.reporting.report import Section, write_report
from pufferflow.reporting.style import data_label

TITLE = "Pufferfish privacy mechanisms for correlated data: the paper's results beside ours"

ABOUT = """\
Every table and figure of Song, Wang and Chaudhuri, “Pufferfish Privacy Mechanisms for Correlated Data” (SIGMOD 2017), \
computed anew. A scale is the scale of Laplace noise that hides the state at any one time from whoever knows the \
chain; no scale here is below its exact value. Errors are L1 norms of the noise of a release.

Real data are not the paper's: its activity data was never published, and its household's electricity data is not ours \
to ship. A number on other data can therefore agree in its conclusion, never read “reproduced”."""

TIMES = """\
Measured seconds change from run to run, so Table 2 stands in files of its own beside this page, \
benchmarks/table2.md, .tex and .csv; machine and time of the run are in provenance.json."""

UPPER = (
    "Figure 4, upper row: L1 error of the released mean of a binary chain of length {length} against the class "
    "parameter α. Lines are expected errors, points means over {repetitions} simulated chains with one standard error. "
    "Left of the dashed line GK16 does not apply."
)
EXTENDED = (
    "Figure 4, upper row, with mechanisms the paper does not draw. Leakage holds for the whole class and every query; "
    "the Wasserstein Mechanism only for the mean, and here for a grid of chains of the class."
)
LOWER = (
    "Figure 4, lower row: exact aggregate histograms of the groups (bars) and {releases} noisy releases of each "
    "mechanism (points) at ε = {epsilon:g}."
)
POWER = (
    "Histogram of electric power: exact relative frequencies (bars) and {releases} noisy releases of each mechanism "
    "(points) at ε = {epsilon:g}."
)
RELATIVE = (
    "Laplace scale of each mechanism over that of MQMExact at the same ε. In the shaded region no Laplace noise on the "
    "counts of the states is private, whatever the mechanism: the distance from it is what remains to be gained."
)
TOTAL = (
    "Total privacy loss of 1 to {composed_releases} releases on the same chain, each at MQMExact's scale for "
    "ε = {composed_epsilon:g}, by Theorem 4.4, by one Markov quilt for all releases, and by leakage calibration."
)


def assemble_report(inputs: Mapping[str, str], settings: Mapping[str, Any], path: str | Path) -> None:
    """Write the report from the files of a run.

    Parameters
    ----------
    inputs : mapping of str to path
        ``comparison``; and of each experiment that was run ``worked``, ``synthetic``, ``limits``,
        ``synthetic_figure``, and ``<dataset>``, ``<dataset>_sample``, ``<dataset>_chains``,
        ``<dataset>_figure``, ``least_noise_<case>``, ``least_noise_<case>_figure``,
        ``composition_<case>_figure``, ``<related>_claims``, ``<related>_figure``, ``cohort``,
        ``cohort_figure``.
    settings : mapping
        The configuration of the run.
    path : path
        The HTML file.
    """
    samples = {name: Path(inputs[f"{name}_sample"]) for name in ("activity", "electricity") if name in inputs}
    write_report(
        path,
        title=TITLE,
        comparison=tables.comparison(read_table(inputs["comparison"])),
        sections=list(_sections(inputs, settings)),
        provenance=reproducible_provenance(samples),
        settings=settings,
    )


def _sections(inputs: Mapping[str, str], settings: Mapping[str, Any]) -> Iterator[Section]:
    experiments = settings["experiments"]
    published = reported_values()
    yield Section("About these results", "about", "note", ABOUT)
    if "worked" in inputs:
        table = tables.stated_values(read_table(inputs["worked"]), published)
        yield Section("Worked examples", "worked-examples", "table", table)
    if "synthetic" in inputs:
        yield Section(
            "Synthetic chains (Figure 4, upper row)",
            "synthetic",
            "figure",
            _text(inputs["synthetic_figure"]),
            UPPER.format(**experiments["synthetic"]),
            data_label("synthetic"),
            experiments["synthetic"],
        )
    if "extended_figure" in inputs:
        yield Section(
            "Synthetic chains with further mechanisms",
            "synthetic-extended",
            "figure",
            _text(inputs["extended_figure"]),
            EXTENDED,
            data_label("synthetic"),
            experiments["synthetic"],
        )
    real = [name for name in ("activity", "electricity") if name in inputs]
    if real:
        chains = pd.concat([read_table(inputs[f"{name}_chains"]) for name in real], ignore_index=True)
        yield Section(
            "Real data and their chains",
            "chains",
            "table",
            tables.chain_properties(chains),
            settings={name: settings["datasets"][name] for name in real} | {"chains": settings["chains"]},
        )
    for name in real:
        errors = read_table(inputs[name])
        sample = load_sample(inputs[f"{name}_sample"])
        label = data_label(sample.label, sample.description)
        own = experiments[name]
        activity = name == "activity"
        table = (tables.table1 if activity else tables.table3)(errors, published)
        title = "Activity (Table 1)" if activity else "Electricity (Table 3)"
        yield Section(title, f"{name}-table", "table", table, data_label=label, settings=own)
        caption = (LOWER if activity else POWER).format(epsilon=shown_epsilon(errors), releases=own["releases"])
        title = "Activity histograms (Figure 4, lower row)" if activity else "Electricity histogram"
        yield Section(title, f"{name}-figure", "figure", _text(inputs[f"{name}_figure"]), caption, label, own)
    yield from _least_noise(inputs, experiments["least_noise"])
    for name, title in RELATED.items():
        if f"{name}_figure" in inputs:
            yield from _related(name, title, inputs, experiments[name], published)
    if "cohort" in inputs:
        summary = read_table(inputs["cohort"])
        caption = cohort.CAPTION.format(epsilon=shown_epsilon(summary), participants=summary["participants"].max())
        label, own = data_label(summary["label"].iloc[0]), experiments["cohort"]
        yield Section("A cohort", "cohort-figure", "figure", _text(inputs["cohort_figure"]), caption, label, own)
        yield Section("A cohort: errors", "cohort-table", "table", tables.cohort(summary), settings=own)
    if experiments["timings"]["enabled"]:
        yield Section("Seconds to compute a scale (Table 2)", "times", "note", TIMES)


def _least_noise(inputs: Mapping[str, str], settings: Mapping[str, Any]) -> Iterator[Section]:
    """Sections of every case: the table's name without its ``least_noise_`` is the case."""
    for key in inputs:
        if not key.startswith("least_noise_") or key.endswith("_figure"):
            continue
        case = key.removeprefix("least_noise_")
        table = tables.least_noise(read_table(inputs[key]))
        title, anchor = f"Least noise: {case.partition('_')[0]}", f"least-noise-{case.replace('_', '-')}"
        figure = _text(inputs[f"{key}_figure"])
        yield Section(title, anchor, "figure", figure, RELATIVE, table.data_label, settings)
        yield Section(f"{title}, table", f"{anchor}-table", "table", table)
        if f"composition_{case}_figure" in inputs:
            caption = TOTAL.format(**settings)
            figure = _text(inputs[f"composition_{case}_figure"])
            title = f"Several releases: {case.partition('_')[0]}"
            yield Section(title, f"composition-{anchor}", "figure", figure, caption, table.data_label, settings)


def _related(
    name: str, title: str, inputs: Mapping[str, str], settings: Mapping[str, Any], published: pd.DataFrame
) -> Iterator[Section]:
    anchor = name.replace("_", "-")
    caption = figures_of(name).CAPTION
    figure = _text(inputs[f"{name}_figure"])
    yield Section(title, anchor, "figure", figure, caption, data_label("synthetic"), settings)
    claims = tables.stated_values(read_table(inputs[f"{name}_claims"]), published, name=f"{name}_claims", title=title)
    yield Section(f"{title}: values", f"{anchor}-values", "table", claims)


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
