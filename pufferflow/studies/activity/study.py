"""Table 1 and Figure 4, lower row: what people did, by group."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.histograms.study import claims, figure_step, measure_steps, releases_of, table_step
from pufferflow.studies.record import Claims, Run, Step, Study

CAPTION = (
    "Figure 4, lower row: exact aggregate histograms of the groups (bars) and {releases} noisy releases of each "
    "mechanism (points) at ε = {epsilon:g}."
)


def _steps(run: Run) -> Iterator[Step]:
    yield from measure_steps(run, "activity")
    yield table_step(run, "activity", "table1", "Activity (Table 1)")
    draw = "pufferflow.studies.activity.figures:group_histograms"
    yield figure_step(run, "activity", "figure4_lower", draw, "Activity histograms (Figure 4, lower row)", CAPTION)


def _claims(run: Run) -> list[Claims]:
    patterns = Claims("pufferflow.studies.activity.claims:pattern_claims", {"releases": releases_of(run, "activity")})
    return [*claims(run, "activity", "Table 1"), patterns]


ACTIVITY = Study(
    "activity",
    _steps,
    _claims,
    dataset="pufferflow.datasets.activity:ingest_activity",
)
