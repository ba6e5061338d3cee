"""Table 1 and Figure 4, lower row: what people did, by group."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.histograms.study import claims, figure_step, measure_steps, releases_of, table_steps
from pufferflow.studies.record import Claims, Dataset, Run, Step, Study, shown_epsilon

CAPTION = (
    "Exact aggregate histograms of the groups (bars) and {releases} noisy releases of each "
    "mechanism (points) at ε = {epsilon:g}; below, the same releases as their distance from the exact frequency, on a "
    "symmetric logarithmic axis that tells the quilt mechanisms apart."
)

OTHERS = "other people, and records of a minute", "other people's minutes, and a group's among ours,"
"""What the paper's data are to ours, and which other data were measured."""

READING = (
    "The paper's activity data were never published; other people stand in for its groups. Which mechanism is better, "
    "and where none applies, can agree; the numbers cannot be compared."
)


def _steps(run: Run) -> Iterator[Step]:
    yield from measure_steps(run, "activity")
    yield from table_steps(run, "activity", "table1", "Table 1: activity", READING, columns=3)
    draw = "pufferflow.studies.activity.figures:group_histograms"
    own, epsilon = run.own("activity"), shown_epsilon(run.own("activity")["epsilons"])
    caption = CAPTION.format(epsilon=epsilon, releases=own["releases"])
    title = "Figure 4, lower row: activity histograms"
    yield figure_step(run, "activity", "figure4_lower", draw, title, caption, {"epsilon": epsilon})


def _claims(run: Run) -> list[Claims]:
    patterns = Claims("pufferflow.studies.activity.claims:pattern_claims", {"releases": releases_of(run, "activity")})
    return [*claims(run, "activity", "Table 1", OTHERS), patterns]


ACTIVITY = Study(
    "activity",
    _steps,
    _claims,
    dataset=Dataset("pufferflow.datasets.activity:ingest_activity", "pufferflow.studies.wider_guarantees.runs:people"),
)
