"""The paper's worked examples: what it prints beside what the library computes."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import STATED, Claims, Run, Section, Step, Study, plot, render

HERE = "pufferflow.studies.worked_examples"
VALUES = "results/scales/worked_examples.csv"
FLU_NETWORK = "results/scales/flu_network.csv"
QUILTS = "results/scales/quilts.csv"
JOB = "measure_worked_examples"
CAPTION = (
    "Markov quilts (the paper's Figures 1 to 3), drawn from the library's own objects: given the quilt, the remote "
    "records are independent of the secret one; only the nearby ones are hidden by noise in full."
)


def _steps(_run: Run) -> Iterator[Step]:
    yield Step(
        "compute_worked_examples",
        "measure",
        f"{HERE}.measure:worked_examples",
        {},
        {"table": VALUES, "flu_network": FLU_NETWORK},
        job=JOB,
    )
    yield render(
        "worked_examples",
        "pufferflow.reporting.tables:stated_values",
        {"table": VALUES},
        Section("Worked examples", "worked-examples"),
        published=True,
    )
    yield Step("find_quilts", "measure", f"{HERE}.quilts:quilts", {}, {"table": QUILTS}, job=JOB)
    section = Section("Markov quilts (Figures 1–3)", "quilts", CAPTION, "synthetic")
    yield plot("quilts_synthetic", f"{HERE}.figures:quilts", {"table": QUILTS}, section)


WORKED_EXAMPLES = Study("worked_examples", _steps, lambda _run: [Claims(STATED, {"stated": VALUES})])
