"""The study of wider guarantees: its tables of runs, its models, and what must hold between its rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import pufferflow as pf
from pufferflow.records.runs import Runs
from pufferflow.records.sample import Participant, Sample
from pufferflow.studies.catalogue import plan
from pufferflow.studies.record import DOWNLOADS
from pufferflow.studies.wider_guarantees.figures import wider_guarantees as figure
from pufferflow.studies.wider_guarantees.measure import models, wider_guarantees
from pufferflow.studies.wider_guarantees.runs import as_table, of_table
from pufferflow.studies.wider_guarantees.tables import ABOVE
from pufferflow.studies.wider_guarantees.tables import wider_guarantees as table
from pufferflow.studies.wider_guarantees.words import duration

pytestmark = pytest.mark.xdist_group("wider guarantees")  # what its tests share is made once


@pytest.fixture(scope="module")
def runs():
    """Counts of a simulated binary chain, in quarters of an hour."""
    rng = np.random.default_rng(3)
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    from pufferflow.markov import simulate_chain

    states = simulate_chain(chain, 5000, rng)
    triples, hourly = np.zeros((2, 2, 2), dtype=np.int64), np.zeros((24, 2, 2), dtype=np.int64)
    np.add.at(triples, (states[:-2], states[1:-1], states[2:]), 1)
    np.add.at(hourly, (np.arange(4999) // 4 % 24, states[:-1], states[1:]), 1)
    return {"somebody": Runs(triples, hourly)}


def sample(runs):
    counts = runs["somebody"].hourly.sum(axis=0)
    person = Participant("somebody", "somebody", (40, 60), counts.sum(axis=1), counts)
    return Sample("simulated", "synthetic", "a simulated chain", 900, ("low", "high"), (person,))


@pytest.fixture(scope="module")
def measured(runs):
    forgetting = {"steps": 5, "overlap": 0.5}
    return wider_guarantees(sample(runs), as_table(runs), None, [0.5, 2.0], [1, 4, 90], 0.9, forgetting, [2.0])


def test_runs_survive_a_table(runs):
    again = of_table(as_table(runs), 2)
    assert (again["somebody"].triples == runs["somebody"].triples).all()
    assert (again["somebody"].hourly == runs["somebody"].hourly).all()


def test_wider_guarantees_never_cost_less(measured):
    keys = ["model", "epsilon", "window", "knows"]
    scales = measured.set_index(keys)["scale"]
    losses = measured.set_index(keys)["paper_loss"]
    assert scales.notna().all()
    for (model, epsilon, window, _), scale in scales[scales.index.get_level_values("knows") == "nothing"].items():
        assert scales[model, epsilon, window, "any records"] >= scale * (1 - 1e-6)
        assert losses[model, epsilon, window, "any records"] >= losses[model, epsilon, window, "nothing"] * (1 - 1e-6)
    for (model, epsilon, window, knows), scale in scales.items():
        if window < 90:
            assert scales[model, epsilon, {1: 4, 4: 90}[window], knows] >= scale * (1 - 1e-6)
        else:  # the whole of every segment
            assert scale == pytest.approx(60 / epsilon)
    assert (scales["intervals"] >= scales["fitted"] * (1 - 1e-6)).all()


def test_scales_and_losses_are_those_of_the_mechanisms(runs, measured):
    family = models(runs["somebody"], 900, 0.9, {"steps": 5, "overlap": 0.5})
    for row in measured.to_dict("records"):
        options = {"window": row["window"], "knows": row["knows"]}
        loss = pf.leakage_loss(family[row["model"]], 60, row["paper_scale"], **options)
        assert row["paper_loss"] == pytest.approx(loss, rel=1e-6)
        assert row["relative_noise"] == row["scale"] / row["paper_scale"]
    fitted = pf.MarkovChain(runs["somebody"].hourly.sum(axis=0) / runs["somebody"].hourly.sum(axis=(0, 2))[:, None])
    assert set(measured["paper_scale"]) == {pf.mqm_exact(fitted, 60, epsilon).scale for epsilon in (0.5, 2.0)}
    assert measured["certified"].notna().sum() == len(measured) / 2
    assert measured.loc[(measured["model"] == "fitted") & (measured["epsilon"] == 2), "certified"].all()


def test_the_table_marks_what_exceeds(measured):
    printed = table(measured, 2.0)
    over = measured[(measured["epsilon"] == 2) & (measured["paper_loss"] > 2)]
    assert sum(cell.startswith(ABOVE) for cell in printed.display.to_numpy().ravel()) == len(over) > 0
    assert f"{len(over)} of 30 cases" in printed.note
    assert "an hour: scale" in printed.display.columns


def test_the_figure_has_a_panel_a_group_and_question(measured):
    drawn = figure(measured, epsilon=2.0, description="a simulated chain")
    two = pd.concat([measured, measured.assign(group="somebody else")])
    assert [len(f.axes) for f in (drawn, figure(two, epsilon=2.0))] == [2, 4]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1, "a second"), (3600, "an hour"), (5400, "90 minutes"), (172800, "2 days"), (61, "61 seconds")],
)
def test_durations_in_words(seconds, said):
    assert duration(seconds) == said


def test_what_is_downloaded_is_kept_in_one_folder():
    """The sample and the runs are counted from the same copy."""
    config = yaml.safe_load((Path(__file__).parents[2] / "config/config.yaml").read_text(encoding="utf-8"))
    config["datasets"]["electricity"]["source"] = "download"
    downloaded = {
        step.kind: step.settings["settings"]["path"]
        for step in plan(config)[0]
        if step.settings.get("settings", {}).get("source") == "download"
    }
    assert downloaded == {"ingest": DOWNLOADS, "measure": DOWNLOADS}
