"""What other people, time steps and windows change in Tables 1 and 3."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import Run, Section, Step, Study, render, shown_epsilon

HERE = "pufferflow.studies.other_data"
ERRORS = "results/errors/other_data_bundled.csv"
TITLE = "What a difference is made of: other people, time steps and windows"


def _steps(run: Run) -> Iterator[Step]:
    own = run.own("other_data", without=())
    settings = {**own, "options": run.options}
    yield Step("measure_other_data", "measure", f"{HERE}.measure:other_data", {}, {"errors": ERRORS}, settings)
    section = Section(TITLE, "other-data", settings=own)
    shown = {"epsilon": shown_epsilon(own["epsilons"])}
    yield render("other_data_bundled", f"{HERE}.tables:other_data", {"errors": ERRORS}, section, settings=shown)


OTHER_DATA = Study("other_data", _steps)
