"""Table 3 and its histogram: power use of one household."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.histograms.study import claims, errors_of, figure_step, measure_steps, table_steps
from pufferflow.studies.record import Claims, Dataset, Run, Step, Study

CAPTION = (
    "Histogram of electric power, one row a mechanism and one column an ε: exact relative frequencies (bars), one "
    "noisy release (marks) and the range of {releases} (thin lines). A symmetric logarithmic axis shows the negative "
    "values too."
)

OTHERS = "another household", "other windows of ours"
"""What the paper's data are to ours, and which other data were measured."""

READING = "Another household's power: only GroupDP's errors, which depend on no record, can be compared as numbers."


def _steps(run: Run) -> Iterator[Step]:
    yield from measure_steps(run, "electricity")
    yield from table_steps(run, "electricity", "table3", "Table 3: electricity", READING, columns=1)
    draw = "pufferflow.studies.electricity.figures:power_histogram"
    caption = CAPTION.format(releases=run.own("electricity")["releases"])
    yield figure_step(run, "electricity", "histogram", draw, "Electricity histogram", caption)


def _claims(run: Run) -> Iterator[Claims]:
    yield from claims(run, "electricity", "Table 3", OTHERS, without_data=["group-dp"])
    if run.enabled("activity"):
        inputs = {"household": errors_of(run, "electricity"), "people": errors_of(run, "activity")}
        yield Claims("pufferflow.studies.electricity.claims:bin_claims", inputs)


ELECTRICITY = Study(
    "electricity",
    _steps,
    _claims,
    dataset=Dataset(
        "pufferflow.datasets.electricity:ingest_electricity",
        "pufferflow.studies.wider_guarantees.runs:household",
        has_values=True,
        composed=False,  # 51 states take up to a second a release
    ),
)
