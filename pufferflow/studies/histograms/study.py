"""Jobs and claims of a study of histograms, whatever the data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pufferflow.studies.other_data.study import ERRORS as OTHER_ERRORS
from pufferflow.studies.record import Claims, Run, Section, Step, plot, render, shown_epsilon

HERE = "pufferflow.studies.histograms"
EMPTY: Mapping[str, Any] = MappingProxyType({})


def errors_of(run: Run, dataset: str) -> str:
    """Return the table of errors of a data set."""
    return f"results/errors/{run.labelled(dataset)}.csv"


def releases_of(run: Run, dataset: str) -> str:
    """Return the table of noisy releases of a data set."""
    return f"results/errors/{run.labelled(dataset)}_releases.csv"


def measure_steps(run: Run, dataset: str) -> Iterator[Step]:
    """Steps that compute scales and errors."""
    own, name = run.own(dataset), run.labelled(dataset)
    job = f"measure_{name}"
    scales = f"results/scales/{name}.csv"
    yield Step(
        f"compute_{name}_scales",
        "measure",
        f"{HERE}.measure:scales",
        {"sample": run.sample(dataset), "chains": run.chains(dataset)},
        {"scales": scales},
        {**run.own(dataset, without=("repetitions", "releases")), "options": run.options},
        job=job,
    )
    yield Step(
        f"measure_{name}_errors",
        "measure",
        f"{HERE}.measure:errors_and_releases",
        {"sample": run.sample(dataset), "scale_table": scales},
        {"errors": errors_of(run, dataset), "releases": releases_of(run, dataset)},
        {"repetitions": own["repetitions"], "count": own["releases"], "seed": run.seed},
        job=job,
    )


PRINTED = (
    "L1 error of a histogram as the paper prints it (hollow) and its expectation as computed here (filled). {reading}"
)


def table_steps(run: Run, dataset: str, name: str, title: str, reading: str, columns: int) -> Iterator[Step]:
    """Steps that print the errors as the paper's table ``name``, and draw its numbers beside ours.

    ``reading`` says how to read the figure, which has so many ``columns`` of panels.
    """
    anchor, own, errors = f"{dataset}-printed", run.own(dataset), {"errors": errors_of(run, dataset)}
    told: dict[str, Any] = {"data_from": run.sample(dataset), "settings": own}
    section = Section(title, anchor, PRINTED.format(reading=reading), lead=True, **told)
    settings = {"columns": columns, "epsilon": shown_epsilon(own["epsilons"])}
    draw, stem = f"{HERE}.printed:beside_printed", f"{name}_{run.labelled(dataset)}"
    yield plot(stem, draw, errors, section, settings=settings)
    section = Section(f"{title}: all numbers", f"{dataset}-table", under=anchor, **told)
    yield render(stem, f"pufferflow.studies.{dataset}.tables:{name}", errors, section, published=True)


def figure_step(
    run: Run, dataset: str, name: str, work: str, title: str, caption: str, settings: Mapping[str, Any] = EMPTY
) -> Step:
    """Step that draws histograms and their releases."""
    section = Section(title, f"{dataset}-figure", caption, data_from=run.sample(dataset), settings=run.own(dataset))
    inputs = {"releases": releases_of(run, dataset), "sample": run.sample(dataset)}
    return plot(f"{name}_{run.labelled(dataset)}", work, inputs, section, settings=settings)


def claims(
    run: Run, dataset: str, place: str, others: tuple[str, str], without_data: Sequence[str] = ()
) -> list[Claims]:
    """Order of the mechanisms and numbers of the paper's table ``place``; the others as the claims take them."""
    settings = {"dataset": dataset, "place": place, "without_data": list(without_data), "others": list(others)}
    inputs = {"errors": errors_of(run, dataset)}
    if run.enabled("other_data"):
        inputs["elsewhere"] = OTHER_ERRORS
    return [Claims(f"{HERE}.claims:histogram_claims", inputs, settings)]
