"""The paper's worked examples: what it prints beside what the library computes."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import STATED, Claims, Run, Section, Step, Study, render

VALUES = "results/scales/worked_examples.csv"


def _steps(_run: Run) -> Iterator[Step]:
    yield Step(
        "compute_worked_examples",
        "measure",
        "pufferflow.studies.worked_examples.measure:worked_examples",
        {},
        {"table": VALUES},
    )
    yield render(
        "worked_examples",
        "pufferflow.reporting.tables:stated_values",
        {"table": VALUES},
        Section("Worked examples", "worked-examples"),
        published=True,
    )


WORKED_EXAMPLES = Study("worked_examples", _steps, lambda _run: [Claims(STATED, {"stated": VALUES})])
