"""What all studies of real data share: samples and fitted chains."""

from __future__ import annotations

from collections.abc import Iterator

from pufferflow.studies.record import Run, Section, Step, render

HERE = "pufferflow.studies.real_data"


def data_steps(run: Run) -> Iterator[Step]:
    """Jobs that ingest the data sets of a run and fit chains to them."""
    described = {}
    for dataset, data in run.datasets.items():
        settings = run.settings["datasets"][dataset]
        name, sample, chains = run.labelled(dataset), run.sample(dataset), run.chains(dataset)
        described[dataset] = f"{chains}.csv"
        yield Step(
            f"ingest_{name}",
            "ingest",
            data.ingest,
            {"file": settings["path"]} if settings["path"] else {},
            {"sample": sample, "table": f"results/samples/{name}.csv"},
            {"dataset": dataset, "settings": run.source(dataset)},
            given=True,
            priority=1,
        )
        outputs = {"table": described[dataset], "models": chains}
        yield Step(
            f"fit_{name}",
            "fit",
            f"{HERE}.chains:fit_chains",
            {"sample": sample},
            outputs,
            run.settings["chains"],
            priority=1,
        )
        yield render(f"chains_{name}", f"{HERE}.tables:chain_properties", {dataset: described[dataset]})
    shown = {name: run.settings["datasets"][name] for name in run.datasets} | {"chains": run.settings["chains"]}
    section = Section("Real data and their chains", "chains", settings=shown)
    yield render("chains", f"{HERE}.tables:chain_properties", described, section)
