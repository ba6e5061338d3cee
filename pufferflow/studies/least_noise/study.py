"""How little noise would do, what it gives away, and what several releases cost: synthetic chains and real data."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import SOURCES, Run, Section, Step, Study, plot, render

HERE = "pufferflow.studies.least_noise"
RELATIVE = (
    "Laplace scale of each mechanism over that of MQMExact at the same ε. In the shaded region no Laplace noise on the "
    "counts of the states is private, whatever the mechanism: the distance from it is what remains to be gained."
)
TOTAL = (
    "Total privacy loss of 1 to {composed_releases} releases on the same chain, each at MQMExact's scale for "
    "ε = {composed_epsilon:g}, by Theorem 4.4, by one Markov quilt for all releases, and by leakage calibration."
)


def _steps(run: Run) -> Iterator[Step]:
    own = run.own("least_noise")
    chains = {"stay": own["stay"], "length": own["length"]}
    yield from _case(run, "synthetic", "synthetic", {}, chains, composed=True)
    for dataset, data in run.datasets.items():
        fitted = {"sample": run.sample(dataset), "chains": run.chains(dataset)}
        label = SOURCES[run.settings["datasets"][dataset]["source"]]
        yield from _case(run, run.labelled(dataset), label, fitted, {}, composed=data.composed)


def _case(
    run: Run, case: str, label: str, fitted: dict[str, str], chains: dict[str, object], *, composed: bool
) -> Iterator[Step]:
    own, dataset = run.own("least_noise"), case.partition("_")[0]
    table, anchor = f"results/scales/least_noise_{case}.csv", f"least-noise-{case.replace('_', '-')}"
    described = {"sample": fitted["sample"]} if fitted else {}
    others = ("stay", "length", "composed_epsilon", "composed_releases")
    settings = {**run.own("least_noise", without=others), "options": run.options}
    yield Step(
        f"compute_least_noise_{case}",
        "measure",
        f"{HERE}.measure:least_noise",
        fitted,
        {"table": table},
        chains | settings,
        priority=1,
    )
    section = Section(f"Least noise: {dataset}", anchor, RELATIVE, label, settings=own)
    yield plot(f"least_noise_{case}", f"{HERE}.figures:relative_noise", {"table": table} | described, section)
    section = Section(f"Least noise: {dataset}, table", f"{anchor}-table", under=anchor)
    yield render(f"least_noise_{case}", f"{HERE}.tables:least_noise", {"table": table}, section)
    if not composed:
        return
    table = f"results/scales/composition_{case}.csv"
    settings = {"epsilon": own["composed_epsilon"], "releases": own["composed_releases"]}
    yield Step(
        f"compute_composition_{case}",
        "measure",
        f"{HERE}.measure:composition",
        fitted,
        {"table": table},
        chains | settings,
    )
    section = Section(f"Several releases: {dataset}", f"composition-{anchor}", TOTAL.format(**own), label, settings=own)
    yield plot(f"composition_{case}", f"{HERE}.figures:composition", {"table": table} | described, section)


LEAST_NOISE = Study("least_noise", _steps)
