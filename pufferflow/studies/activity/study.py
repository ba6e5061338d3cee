"""Table 1 and Figure 4, lower row: what people did, by group."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.histograms.study import claims, figure_step, measure_steps, table_step
from pufferflow.studies.record import Run, Step, Study

CAPTION = (
    "Figure 4, lower row: exact aggregate histograms of the groups (bars) and {releases} noisy releases of each "
    "mechanism (points) at ε = {epsilon:g}."
)


def _steps(run: Run) -> Iterator[Step]:
    yield from measure_steps(run, "activity")
    yield table_step(run, "activity", "table1", "Activity (Table 1)")
    draw = "pufferflow.studies.activity.figures:group_histograms"
    yield figure_step(run, "activity", "figure4_lower", draw, "Activity histograms (Figure 4, lower row)", CAPTION)


ACTIVITY = Study(
    "activity",
    _steps,
    lambda run: claims(run, "activity", "Table 1"),
    dataset="pufferflow.datasets.activity:ingest_activity",
)
