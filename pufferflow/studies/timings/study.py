"""Table 2, seconds to compute each noise scale, and the benchmark of the engine."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import ALONE, TIMES_PAGE, Run, Section, Step, Study, render

HERE = "pufferflow.studies.timings"
TIMES = "results/benchmarks/timings.csv"
NOTE = """\
Measured seconds change from run to run, so Table 2 has a page of its own, with the ratios of the mechanisms' seconds \
beside the paper's; machine and time of the run are in provenance.json."""


def _steps(run: Run) -> Iterator[Step]:
    inputs = {"samples": tuple(map(run.sample, run.datasets)), "chains": tuple(map(run.chains, run.datasets))}
    settings = {
        **run.own("timings", without=()),
        **{name: run.own("synthetic")[name] for name in ("alphas", "length")},
        "options": run.options,
    }
    yield Step(
        "measure_timings", "measure", f"{HERE}.measure:timings", inputs, {"table": TIMES}, settings, threads=ALONE
    )
    for stem, title in (
        ("table2", "Table 2: seconds to compute a scale"),
        ("ratios", "Table 2: ratios of the seconds"),
    ):
        section = Section(title, stem, settings=run.own("timings"), lead=True)
        yield render(stem, f"{HERE}.tables:{stem}", {"timings": TIMES}, section, folder="benchmarks", published=True)
    # `make bench` runs it
    yield render("engine", f"{HERE}.tables:engine_table", {}, folder="benchmarks", threads=ALONE, usual=False)


TIMINGS = Study(
    "timings",
    _steps,
    note=Section("Table 2: seconds to compute a scale", "times", NOTE, link=TIMES_PAGE),
)
