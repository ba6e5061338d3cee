"""Table 3 and its histogram: power use of one household."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.histograms.study import claims, errors_of, figure_step, measure_steps, table_step
from pufferflow.studies.record import Claims, Run, Step, Study

CAPTION = (
    "Histogram of electric power: exact relative frequencies (bars) and {releases} noisy releases of each mechanism "
    "(points) at ε = {epsilon:g}."
)


def _steps(run: Run) -> Iterator[Step]:
    yield from measure_steps(run, "electricity")
    yield table_step(run, "electricity", "table3", "Electricity (Table 3)")
    draw = "pufferflow.studies.electricity.figures:power_histogram"
    yield figure_step(run, "electricity", "histogram", draw, "Electricity histogram", CAPTION)


def _claims(run: Run) -> Iterator[Claims]:
    yield from claims(run, "electricity", "Table 3", without_data=["group-dp"])
    if run.enabled("activity"):
        inputs = {"household": errors_of(run, "electricity"), "people": errors_of(run, "activity")}
        yield Claims("pufferflow.studies.electricity.claims:bin_claims", inputs)


ELECTRICITY = Study(
    "electricity",
    _steps,
    _claims,
    dataset="pufferflow.datasets.electricity:ingest_electricity",
)
