"""Synthetic records: of what was published alone, labelled, with the released frequencies and moves."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.markov import simulate_chain
from pufferflow.publishing import release as releasing
from pufferflow.publishing.synthetic import LABEL, _chain, _with_law, read_published, synthesise

CHAIN = pf.MarkovChain([[0.9, 0.08, 0.02], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7]])
FORM = pf.RecordFormat(pf.StateSpace.numeric([10, 20]), 60)
MODEL = pf.PublicModel(pf.ForgettingFamily(10, 0.5), FORM)


def data(length=3000):
    states = simulate_chain(CHAIN, length, np.random.default_rng(1))
    return pd.Series(states * 10 + 5, index=pd.date_range("2024-06-01", periods=length, freq="min"))


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Makes releases whose noise is known to be none, for what is done with them afterwards."""
    monkeypatch.setattr(releasing, "add_noise", lambda counts, scale: list(counts))

    def release(*names, model=MODEL, **options):
        folder = tmp_path / "out"
        shutil.rmtree(folder, ignore_errors=True)
        pf.release_statistics(data(), model, 1.0, names, ledger=None, output=folder, figure=False, **options)
        return folder

    return release


def test_records_are_labelled_and_come_from_what_was_published(released, tmp_path, run):
    folder = released("histogram-by-hour", "transitions")
    shutil.rmtree(folder / "internal")  # nothing of it is needed
    code, out, err = run("synthesise", folder, "--length", 500, "--seed", 3, "--start", "2030-01-01T00:00")
    assert (code, err) == (0, "")
    made = pd.read_csv(tmp_path / "out.synthetic.csv")
    assert LABEL in out
    assert set(made["origin"]) == {LABEL}
    assert made["time"].iloc[[0, -1]].tolist() == ["2030-01-01T00:00:00", "2030-01-01T08:19:00"]
    assert made["value"].between(10, 20).all()  # open bins have an end only
    again = synthesise(folder / "publish", 500, seed=3, start="2030-01-01T00:00")
    assert again["value"].tolist() == pytest.approx(made["value"].tolist())
    assert "step" in synthesise(folder, 5)


def test_the_released_frequencies_are_stationary_and_moves_are_the_chain(released):
    folder = released("histogram", "transitions")
    published = read_published(folder)
    chain = _chain(published, None)
    law = published.frequencies
    assert law @ chain.transition_matrix == pytest.approx(law)
    exact = np.bincount(data() // 10, minlength=3) / 3000
    assert law == pytest.approx(exact)
    assert np.diag(chain.transition_matrix) == pytest.approx(np.diag(CHAIN.transition_matrix), abs=0.1)
    only = _chain(read_published(released("transitions")), None)
    assert only.transition_matrix == pytest.approx(CHAIN.transition_matrix, abs=0.06)


def test_a_public_chain_takes_the_released_frequencies(released, tmp_path):
    folder = released("histogram")
    path = tmp_path / "public.json"
    path.write_text(
        json.dumps({"chains": [{"transition_matrix": [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]}]})
    )
    path.write_text(path.read_text().replace("]]}", ']], "initial_distribution": "stationary"}'))
    published = read_published(folder)
    moved = _chain(published, path)
    assert published.frequencies @ moved.transition_matrix == pytest.approx(published.frequencies)
    with pytest.raises(pf.ParameterError, match="is not one chain of 3 states"):
        synthesise(folder, 5)  # a forgetting family was published, which has no chain to draw from
    (folder / "publish" / "chain.json").unlink()
    with pytest.raises(pf.ParameterError, match="no chain was published; release transitions beside"):
        synthesise(folder, 5)


@pytest.mark.parametrize("seed", range(5))
def test_any_law_is_kept_by_any_chain(seed):
    rng = np.random.default_rng(seed)
    k = 4
    proposed = rng.random((k, k)) * (rng.random((k, k)) < 0.6) + np.eye(k) * 0.1
    proposed /= proposed.sum(axis=1, keepdims=True)
    law = rng.random(k) * (rng.random(k) < 0.8)
    law = law / law.sum() if law.sum() else np.full(k, 1 / k)
    made = _with_law(proposed, law)
    assert made.sum(axis=1) == pytest.approx(np.ones(k))
    assert (made >= 0).all()
    assert law @ made == pytest.approx(law)


def test_what_is_no_release_is_refused(released, tmp_path, run):
    assert run("synthesise", tmp_path, "--length", 5)[0] == 2
    pf.simulate_release(None, pf.PublicModel(pf.ChainFamily([CHAIN])), 1.0, seed=1, length=50).save(
        tmp_path / "s", figure=False
    )
    with pytest.raises(pf.ModelError, match="a simulation, not a release"):
        synthesise(tmp_path / "s" / "internal", 5)
    folder = released("histogram", "transitions")
    with pytest.raises(pf.ParameterError, match="start is 'soon'"):
        synthesise(folder, 5, start="soon")
    path = folder / "publish" / "statistics.json"
    document = json.loads(path.read_text())
    for key in ("statistics", "states", "private"):
        path.write_text(json.dumps({name: value for name, value in document.items() if name != key}))
        with pytest.raises(pf.ModelError):
            synthesise(folder, 5)
