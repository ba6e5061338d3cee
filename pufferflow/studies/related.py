"""Questions beyond the paper, and the systems related to it: studies that are made alike.

Each is one job on synthetic data that returns a tidy table for a figure and a table of values that its source states;
some have a second job that measures seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pufferflow.studies.record import STATED, Claims, Run, Section, Step, Study, plot, render

SECONDS = "Seconds on the machine of this run; the study itself is in the report."


def related_study(
    name: str, title: str, caption: str, *, timed: bool = False, further: Mapping[str, str] | None = None
) -> Study:
    """Return the record of a study in the package of its ``name``.

    Its module ``measure`` has ``measure(settings, seed)``, and ``measure_times(settings)`` where it is ``timed``; its
    module ``figures`` has ``figure(curves)``, and then ``time_figure(times)``. A ``further`` figure has a word of its
    own and a caption, and is drawn by ``<word>_figure(curves)``.
    """
    home, anchor = f"pufferflow.studies.{name}", name.replace("_", "-")
    curves, stated = f"results/related/{name}_synthetic.csv", f"results/related/{name}_claims.csv"

    def steps(run: Run) -> Iterator[Step]:
        own, outputs = run.own(name), {"curves": curves, "claims": stated}
        settings = {"settings": own, "seed": run.seed}
        yield Step(f"measure_{name}", "measure", f"{home}.measure:measure", {}, outputs, settings)
        section = Section(title, anchor, caption, "synthetic", settings=own)
        yield plot(f"{name}_synthetic", f"{home}.figures:figure", {"curves": curves}, section)
        for word, text in (further or {}).items():
            also = Section(f"{title}: {word}", f"{anchor}-{word}", text, "synthetic", settings=own)
            yield plot(f"{name}_{word}_synthetic", f"{home}.figures:{word}_figure", {"curves": curves}, also)
        yield render(
            f"{name}_claims",
            "pufferflow.reporting.tables:stated_values",
            {"table": stated},
            Section(f"{title}: values", f"{anchor}-values", under=anchor),
            settings={"name": f"{name}_claims", "title": title},
            published=True,
        )
        if timed and run.enabled("timings"):
            # seconds change from run to run, so they stand apart
            times = f"results/benchmarks/{name}.csv"
            work = f"{home}.measure:measure_times"
            yield Step(f"measure_{name}_times", "measure", work, {}, {"times": times}, {"settings": own})
            seconds = Section(f"{title}: seconds", f"{anchor}-seconds", SECONDS, "synthetic", settings=own)
            yield plot(name, f"{home}.figures:time_figure", {"times": times}, seconds, folder="benchmarks")

    def claims(_run: Run) -> Iterable[Claims]:
        return [Claims(STATED, {"stated": stated})]

    return Study(name, steps, claims)
