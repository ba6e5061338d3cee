"""What wider guarantees cost, and what noise made for a narrow one gives away: electricity and activity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pufferflow.studies.record import SOURCES, Run, Section, Step, Study, plot, render, shown_epsilon

HERE = "pufferflow.studies.wider_guarantees"
TITLE = "What the model costs, and what it hides: {dataset}"
CAPTION = (
    "The paper hides one record of a chain that is known exactly from someone who knows nothing else. Above: the noise "
    "that wider guarantees cost, by leakage calibration, over the noise of MQMExact for the narrow one. Below: what "
    "that noise gives away at most when more is to be hidden, more is known, or less is believed; shaded: more than ε."
)


def _steps(run: Run) -> Iterator[Step]:
    own = run.own("wider_guarantees", without=())
    edges = own["edges_watts"]
    taken = {name: value for name, value in own.items() if name != "edges_watts"}
    for dataset, data in run.datasets.items():
        name, anchor = run.labelled(dataset), f"wider-guarantees-{dataset}"
        runs, table = f"results/samples/{name}_runs.csv", f"results/scales/wider_guarantees_{name}.csv"
        settings = run.source(dataset)
        counted: dict[str, Any] = {"settings": settings} | ({"edges_watts": edges} if data.has_values else {})
        yield Step(
            f"count_runs_{name}",
            "measure",
            data.runs,
            {"sample": run.sample(dataset)},
            {"runs": runs},
            counted,
            priority=1,
        )
        yield Step(
            f"compute_wider_guarantees_{name}",
            "measure",
            f"{HERE}.measure:wider_guarantees",
            {"sample": run.sample(dataset), "runs": runs},
            {"table": table},
            taken | {"states": len(edges) + 1 if data.has_values else None},
            priority=1,
        )
        label = SOURCES[settings["source"]]
        shown = {"epsilon": shown_epsilon(own["epsilons"])}
        section = Section(TITLE.format(dataset=dataset), anchor, CAPTION, label, settings=own)
        inputs = {"table": table, "sample": run.sample(dataset)}
        yield plot(f"wider_guarantees_{name}", f"{HERE}.figures:wider_guarantees", inputs, section, settings=shown)
        section = Section(f"{TITLE.format(dataset=dataset)}, table", f"{anchor}-table", under=anchor)
        work = f"{HERE}.tables:wider_guarantees"
        yield render(f"wider_guarantees_{name}", work, {"table": table}, section, settings=shown)


WIDER_GUARANTEES = Study("wider_guarantees", _steps)
"""Windows, informed adversaries and richer models: what they cost, and what the paper's noise hides of them."""
