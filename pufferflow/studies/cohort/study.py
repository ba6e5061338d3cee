"""A cohort: many participants with a chain each, shared out to jobs that a cluster can run.

Every job takes participants one at a time: the memory it asks for is enough for a cohort of any size. Counting,
drawing and printing take seconds and are done where Snakemake runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pufferflow.studies.record import Run, Section, Step, Study, plot, render, shown_epsilon

HERE = "pufferflow.studies.cohort"
CAPTION = (
    "Share of the {who}participants whose histogram has at most this expected L1 error (left), and whose noise is at "
    "most this multiple of the lower bound (right, where that is computed), at ε = {epsilon:g}. Each has a chain of "
    "their own. No Laplace noise below the lower bound is private."
)


def _steps(run: Run) -> Iterator[Step]:
    own = run.own("cohort")
    samples = sorted(map(str, Path(own["samples"]).glob("*.json"))) if own["samples"] else []
    label = "file" if samples else "synthetic"
    who = "" if samples else f"{own['simulated']['participants']:,} "
    index, chunks = f"results/cohort/index_{label}.csv", own["chunks"]
    table, summary, distribution = (
        f"results/errors/cohort{what}_{label}.csv" for what in ("", "_summary", "_distribution")
    )
    yield Step(
        "index_cohort",
        "stream",
        f"{HERE}.measure:index_cohort",
        {"samples": tuple(samples)},
        {"path": index},
        {"simulated": own["simulated"]},
        local=True,
        given=True,
    )
    yield Step(
        "measure_cohort",
        "stream",
        f"{HERE}.measure:measure_chunk",
        {"index": index},
        {"path": f"results/cohort/{{chunk}}-of-{chunks}_{label}.csv"},
        {**run.own("cohort", without=("samples",)), "fit": run.settings["chains"]}
        | {"options": run.options, "seed": run.seed},
        megabytes=1000,
    )
    yield Step(
        "gather_cohort",
        "stream",
        f"{HERE}.measure:gather",
        {"chunks": tuple(f"results/cohort/{chunk}-of-{chunks}_{label}.csv" for chunk in range(1, chunks + 1))},
        {"table": table, "summary": summary, "distribution": distribution},
        megabytes=1000,
    )
    stem, printed = f"cohort_{label}", f"results/tables/cohort_{label}.json"
    caption = CAPTION.format(who=who, epsilon=shown_epsilon(own["epsilons"]))
    section = Section("A cohort", "cohort-figure", caption, data_from=printed, settings=own)
    yield plot(stem, f"{HERE}.figures:figure", {"distribution": distribution}, section, local=True)
    section = Section("A cohort: errors", "cohort-table", settings=own, under="cohort-figure")
    yield render(stem, f"{HERE}.tables:cohort", {"table": summary}, section, local=True)


COHORT = Study("cohort", _steps)
