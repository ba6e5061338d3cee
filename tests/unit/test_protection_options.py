"""``--window`` and ``--knows`` on the command line, and what statements say of them."""

import json

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf

MODEL = {"chains": [{"transition_matrix": [[0.7, 0.3], [0.4, 0.6]], "initial_distribution": "stationary"}]}
CHAIN = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(MODEL))
    return path


def test_scales_and_plans_hide_what_is_asked(model, run):
    asked = ("--window", 5, "--knows", "any-records")
    code, out, _ = run("scale", model, "--length", 50, "--epsilon", 1, "--mechanism", "leakage", "--json", *asked)
    [found] = json.loads(out)
    assert code == 0
    assert (found["window"], found["knows"]) == (5, "any records")
    assert found["scale"] == pytest.approx(pf.leakage(CHAIN, 50, 1.0, window=5, knows="any records").scale)
    plain = ("plan", "--chain", model, "--length", 5000, "--accuracy", 0.05, "--mechanism", "leakage", "--json")
    narrow, wide = (json.loads(run(*plain, *more)[1])[0]["epsilon"] for more in ((), asked))
    assert wide > narrow


@pytest.mark.parametrize("window", ["0", "1.5", "-3", "an hour", "1h", "3 m", "9" * 30])
def test_windows_that_are_none_are_refused_in_one_sentence(window, model, run):
    code, _, err = run("scale", model, "--length", 50, "--epsilon", 1, f"--window={window}")
    assert code == 2
    assert "window" in err
    assert len(err.splitlines()) == 1


def test_statements_say_what_is_hidden_and_from_whom(tmp_path):
    data = pd.Series(np.random.default_rng(1).integers(0, 2, 600))
    form = pf.RecordFormat(pf.StateSpace.categories(["0", "1"]), 60)
    data.index = pd.date_range("2024-01-01", periods=600, freq="min")
    narrow = pf.release_histogram(data, CHAIN, 1.0, ledger=None, form=form)
    assert "knows none of them, changes the odds between any two states at any one step (60 s)" in narrow.statement
    assert "that who knows other steps of a participant learns no more" in narrow.statement
    asked = {"window": 60, "knows": "any records"}
    wide = pf.release_histogram(data, CHAIN, 1.0, ledger=None, form=form, **asked)
    assert "may know any of the others, changes the odds between any two courses of any 60 steps in a row (3600 s)" in (
        wide.statement
    )
    assert "learns no more" not in wide.statement
    assert wide.to_dict() | asked == wide.to_dict()
    assert wide.scale > narrow.scale
    assert pf.rehearse_release(data, CHAIN, 1.0, ledger=None, form=form, **asked)["window"] == 60
    with pytest.raises(pf.ParameterError, match="mqm-exact"):
        pf.release_histogram(data, CHAIN, 1.0, ledger=None, form=form, mechanism="mqm-exact", **asked)


def test_a_time_is_a_window_where_the_step_is_known(tmp_path, model, run):
    data = tmp_path / "data.csv"
    times = pd.date_range("2024-01-01", periods=300, freq="min")
    values = np.random.default_rng(1).integers(0, 2, 300)
    pd.DataFrame({"time": times, "value": values}).to_csv(data, index=False)
    terms = ("--chain", model, "--epsilon", 1, "--states", "0,1", "--step", 60, "--no-ledger", "--dry-run", "--json")
    code, out, err = run("release", data, *terms, "--window", "90s", "--knows", "any-records")
    assert code == 0, err
    assert (json.loads(out)["window"], json.loads(out)["knows"]) == (2, "any records")
