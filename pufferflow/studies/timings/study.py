"""Table 2, seconds to compute each noise scale, and the benchmark of the engine."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import ALONE, Run, Section, Step, Study, render

HERE = "pufferflow.studies.timings"
TIMES = "results/benchmarks/timings.csv"
NOTE = """\
Measured seconds change from run to run, so Table 2 stands in files of its own beside this page, \
benchmarks/table2.md, .tex and .csv; machine and time of the run are in provenance.json."""


def _steps(run: Run) -> Iterator[Step]:
    inputs = {"samples": tuple(map(run.sample, run.datasets)), "chains": tuple(map(run.chains, run.datasets))}
    settings = {**run.own("timings", without=()), "length": run.own("synthetic")["length"], "options": run.options}
    yield Step(
        "measure_timings", "measure", f"{HERE}.measure:timings", inputs, {"table": TIMES}, settings, threads=ALONE
    )
    yield render("table2", f"{HERE}.tables:table2", {"timings": TIMES}, folder="benchmarks", published=True)
    # `make bench` runs it
    yield render("engine", f"{HERE}.tables:engine_table", {}, folder="benchmarks", threads=ALONE, usual=False)


TIMINGS = Study("timings", _steps, note=Section("Seconds to compute a scale (Table 2)", "times", NOTE))
