"""A private fit: bounded contributions, noise, intervals that cover both, and nothing but that."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow import cli
from pufferflow.interval_family import noisy_confidence_bounds
from pufferflow.publishing import private_fit
from pufferflow.publishing.noise import DiscreteLaplace, add_noise
from pufferflow.publishing.private_fit import _margins, _sum_margin
from pufferflow.records import tables
from pufferflow.records.rows import open_records
from pufferflow.records.tally import Tally

pytestmark = pytest.mark.usefixtures("scales_once", "only_svg")
STEPS = pf.Reading(rows_are_steps=True)
FORM = pf.RecordFormat(pf.StateSpace.categories(["a", "b"]))


def people(records):
    """A table of participants, each with a text of states, "." where a value is missing."""
    rows = [(f"p{i}", "" if state == "." else state) for i, record in enumerate(records) for state in record]
    return pd.DataFrame(rows, columns=["participant", "value"])


def tallied(table, most):
    tally = Tally(FORM, transitions=True, most_transitions=most)
    tally.read(open_records(table, STEPS))
    return tally.transition_counts.sum(axis=0)


def first_transitions(record, most):
    """Plain twin of the tally: the first so many steps between two values."""
    pairs = [(x, y) for x, y in itertools.pairwise(record) if "." not in (x, y)][:most]
    return np.array([[pairs.count((x, y)) for y in "ab"] for x in "ab"])


texts = st.text("ab.", min_size=2, max_size=12)


@examples(10, 170)
@given(st.lists(texts, min_size=1, max_size=5), texts, st.integers(1, 6), st.integers(1, 9))
def test_a_participant_adds_its_first_transitions_and_changes_no_more_than_twice_as_many(records, other, most, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", rows)  # chunks that end anywhere
        counts = tallied(people(records), most)
        twin = tallied(people([other, *records[1:]]), most)
    assert counts.tolist() == sum(first_transitions(record, most) for record in records).tolist()
    assert np.abs(counts - twin).sum() <= 2 * most


@examples(10, 60)
@given(st.lists(st.lists(st.integers(-3, 8), min_size=2, max_size=2), min_size=2, max_size=2), st.integers(0, 3))
def test_the_intervals_hold_those_of_every_count_within_the_margins(noisy, margin):
    low, high = noisy_confidence_bounds(np.array(noisy), 0.9, margin=margin, others=margin)
    for row in range(2):
        boxes = [range(max(w - margin, 0), max(w + margin, 0) + 1) for w in noisy[row]]
        for counts in itertools.product(*boxes):
            exact = noisy_confidence_bounds(np.array([counts, counts]), 0.9)
            assert (low[row] <= exact[0][0] + 1e-12).all()
            assert (exact[1][0] <= high[row] + 1e-12).all()


@pytest.mark.parametrize(("scale", "terms", "miss"), [(0.7, 2, 0.1), (5.0, 3, 1e-3), (20.0, 6, 1e-5)])
def test_the_margin_of_a_sum_is_passed_less_often_than_said(scale, terms, miss):
    h = _sum_margin(scale, terms, miss)
    reach = 60 * int(np.ceil(scale))
    one = DiscreteLaplace(scale).probability(np.arange(-reach, reach + 1))
    law = one
    for _ in range(terms - 1):
        law = np.convolve(law, one)
    away = np.abs(np.arange(len(law)) - len(law) // 2)
    assert law[away > h].sum() <= miss
    assert law[away > h // 3].sum() > miss  # and the bound is not idle


CHAINS = {
    2: np.array([[0.9, 0.1], [0.3, 0.7]]),
    3: np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]]),
}


def simulated_counts(matrix, runs, participants, steps, rng):
    """Pooled transition counts of many runs, shape (runs, k, k)."""
    k = len(matrix)
    state = rng.integers(k, size=(runs, participants))
    counts = np.zeros((runs, k * k), dtype=np.int64)
    edges = matrix.cumsum(axis=1)[:, :-1]
    for _ in range(steps):
        after = (rng.random((runs, participants))[..., None] >= edges[state]).sum(axis=-1)
        flat = np.arange(runs)[:, None] * k * k + state * k + after
        counts += np.bincount(flat.ravel(), minlength=counts.size).reshape(counts.shape)
        state = after
    return counts.reshape(runs, k, k)


@pytest.mark.parametrize(("states", "confidence"), [(2, 0.5), (3, 0.9)])
def test_the_intervals_hold_the_chain_with_their_confidence(states, confidence):
    """1,000 fits to 200 participants each, with the noise that is really drawn.

    A coverage of just ``confidence`` would give fewer than 1,000·confidence − 4 standard deviations with probability
    below 1e-4; intervals that forget the noise, or half of it, fall far short.
    """
    matrix, runs, steps = CHAINS[states], 1000, 20
    counts = simulated_counts(matrix, runs, 200, steps, np.random.default_rng(5))
    margins = _margins(states, steps, 0.3, confidence)
    noisy = np.array(add_noise(counts.ravel().tolist(), margins.scale)).reshape(counts.shape)

    def held(**given):
        low, high = noisy_confidence_bounds(noisy, margins.coverage, **given)
        return int(((low <= matrix) & (matrix <= high)).all(axis=(1, 2)).sum())

    least = runs * confidence - 4 * np.sqrt(runs * confidence * (1 - confidence))
    assert held(margin=margins.margin, others=margins.others) >= least
    assert held() < least / 2


def test_a_fit_is_paid_for_and_its_file_says_that_it_may_leave(tmp_path):
    rng = np.random.default_rng(1)
    table = people(["".join(rng.choice(["a", "b"], 40)) for _ in range(120)])
    book = pf.Ledger.create(tmp_path / "ledger", 2.5)
    fit = pf.fit_privately(table, FORM, 1.0, most_transitions=39, ledger=book, reading=STEPS, output=tmp_path / "m")
    model = pf.read_public_model(tmp_path / "m")
    assert np.array_equal(model.family.low, fit.model.family.low)
    assert model.family.backward is not None
    assert "This file may leave" in json.loads((tmp_path / "m").read_text())["records"]["fitted_privately"]["statement"]
    assert book.spent == 1.0
    assert book.to_dict()["releases"][0]["released"]
    assert (tmp_path / "m").stat().st_mode & 0o044
    released = pf.release_histogram(table, model, 1.0, ledger=book)
    assert "fitted to 120 participants with noise" in released.statement
    assert 1.9 < book.spent <= 2.0
    with pytest.raises(pf.BudgetError) as refused:
        pf.fit_privately(table, FORM, 1.0, most_transitions=39, ledger=book, reading=STEPS)
    assert 0.5 <= refused.value.largest <= refused.value.left
    pf.fit_privately(table, FORM, refused.value.largest, most_transitions=39, ledger=book, reading=STEPS)
    with pytest.raises(pf.BudgetError, match=r"ask for at most ε = (0\.00|[\d.]+e-)") as refused:
        pf.release_histogram(table, model, 1.0, ledger=book)
    pf.release_histogram(table, model, refused.value.largest, ledger=book)
    assert book.verify().entries == 10


def test_participants_that_differ_wholly_look_alike_but_for_the_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(private_fit, "add_noise", lambda counts, scale: [900] * len(counts))
    rng = np.random.default_rng(2)
    records = ["".join(rng.choice(["a", "b"], 30)) for _ in range(150)]
    said = set()
    for number, other in enumerate(["a" * 30, "ab", ".....", "b", "abab.b" * 20]):
        table = people([*records[:77], other, *records[78:]])
        fit = pf.fit_privately(
            table, FORM, 2.0, most_transitions=20, ledger=None, reading=STEPS, output=tmp_path / str(number)
        )
        said.add((fit.summary(), repr(fit), (tmp_path / str(number)).read_text()))
    assert len(said) == 1


def test_a_fit_whose_noise_was_beyond_its_margins_is_still_one(monkeypatch):
    monkeypatch.setattr(private_fit, "add_noise", lambda counts, scale: [-(10**6), 10**6, -5, -(10**5)])
    fit = pf.fit_privately(people(["ab"] * 500), FORM, 5.0, most_transitions=1, ledger=None, reading=STEPS)
    assert fit.facts["unknown_states"] == ["b"]


TIMED = pd.DataFrame({"participant": ["x", "x"], "time": ["2024-01-01T00:00", "2024-01-01T01:00"], "value": ["a", "b"]})


@pytest.mark.parametrize(
    ("table", "form", "options", "said"),
    [
        (people(["ab"] * 9).drop(columns="participant"), FORM, {}, "no column tells participants apart"),
        (people(["ab"] * 9).assign(group="g"), FORM, {}, "there is a column of groups"),
        (people(["ab"] * 9), FORM, {}, "9 participants are too few.* 41 participants would do"),
        (TIMED, FORM, {"reading": None}, "the time step must be public"),
        (TIMED, pf.RecordFormat(FORM.states, 3600), {"reading": None}, "local clock, which must be public"),
        (people(["ab"] * 9), pf.RecordFormat(FORM.states, 60), {}, "no column of times"),
        (people(["ab"] * 9), pf.RecordFormat(pf.StateSpace.categories(["a"])), {}, "one state only"),
        (people(["ab"] * 90), FORM, {"ledger": "new", "limit": 0.5}, "above the limit 0.5"),
        (people(["ab"] * 90), FORM, {"output": "."}, "exists already"),
    ],
)
def test_what_is_not_public_is_refused_before_anything_is_drawn(table, form, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(private_fit, "add_noise", None)
    with pytest.raises(pf.PufferflowError, match=said):
        pf.fit_privately(table, form, 1.0, **{"most_transitions": 10, "ledger": None, "reading": STEPS} | options)
    assert not list(tmp_path.iterdir())


def test_the_number_that_would_do_does():
    said = "41 participants would do"
    with pytest.raises(pf.DataError, match=said):
        pf.fit_privately(people(["ab"] * 40), FORM, 1.0, most_transitions=10, ledger=None, reading=STEPS)
    pf.fit_privately(people(["ab"] * 41), FORM, 1.0, most_transitions=10, ledger=None, reading=STEPS)


def test_the_command_writes_one_file_that_may_leave(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(["abba"] * 100).to_csv("homes.csv", index=False)
    words = ["fit", "homes.csv", "--private", "--epsilon", "1", "--most-transitions", "3", "--rows-are-steps"]
    assert cli.main([*words, "--states", "a,b"]) == 0
    assert "may leave" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "homes.csv",
        "homes.csv.ledger",
        "homes.csv.private.json",
    ]
    assert cli.main(["release", "homes.csv", "--chain", "homes.csv.private.json", "--epsilon", "1"]) == 2
    assert "none fits" in capsys.readouterr().err
    for more, said in (
        ([], "--states or --edges"),
        (["--states", "a,b", "--bins", "4"], "--bins speaks of the data without noise"),
        (["--states", "a,b"], "is never overwritten"),
    ):
        assert cli.main([*words, *more]) == 2
        assert said in capsys.readouterr().err
    assert cli.main(["fit", "homes.csv", "--confidence", "0.9"]) == 2
