"""Nobody finds a count in what may leave; the same attack finds all of them in what must not."""

import itertools

import numpy as np
import pandas as pd
import pytest
from cases import counts
from count_attack import constants, recovered

import pufferflow as pf

RELEASES = 6
"""Of each of two neighbouring tables; a noisy count is right each time with probability below (1/50)^12."""

STATES = ("a", "b", "c")
FORM = pf.RecordFormat(pf.StateSpace.categories(STATES), 60)
RECORDS = 397


def table(seed, change=False):
    """A record of states; with ``change`` one of its values is another."""
    states = np.random.default_rng(seed).choice(STATES, RECORDS, p=[0.5, 0.3, 0.2])
    if change:
        states[200] = {"a": "b", "b": "c", "c": "a"}[states[200]]
    return pd.Series(states, index=pd.date_range(f"20{seed:02}-01-01", periods=RECORDS, freq="min", tz="UTC"))


def truth(series):
    """Everything that could be recovered: counts of states, of transitions, and the rows of these."""
    steps = list(itertools.pairwise(series))
    return (
        {state: int((series == state).sum()) for state in STATES}
        | {pair: steps.count(pair) for pair in itertools.product(STATES, repeat=2)}
        | {("from", state): sum(step[0] == state for step in steps) for state in STATES}
    )


def release(series, model, folder, figure=False):
    pf.release_histogram(series, model, 1.0, form=FORM, ledger=None, output=folder, figure=figure)
    return folder / "publish"


@pytest.mark.parametrize("releases", counts(RELEASES, 500))
def test_no_count_is_recovered_from_what_is_published(tmp_path, releases):
    """Θ is a choice: all that does not change from release to release is the same for both tables."""
    tables, model = (table(20), table(20, change=True)), pf.ForgettingFamily(5, 0.3)
    published = [
        [release(series, model, tmp_path / f"{i}-{number}", figure=number < 2) for number in range(releases)]
        for i, series in enumerate(tables)
    ]
    assert (published[0][0] / "histogram.svg").exists()
    assert recovered(published, RECORDS, [truth(series) for series in tables]) == set()
    assert constants(published[0]) == constants(published[1])


@pytest.fixture(scope="module")
def fits():
    """Chains fitted to two neighbouring tables of another time."""
    tables = (table(19), table(19, change=True))
    states = pf.States(names=STATES)
    return tables, [pf.fit_records(series, states=states, smoothing=0.0) for series in tables]


def test_no_count_of_what_the_chain_was_fitted_to_is_recovered_but_from_what_stays(fits, tmp_path):
    tables, chains = fits
    truths = [truth(series) for series in tables]
    folders = [[tmp_path / f"{i}-{number}" for number in range(RELEASES)] for i, _ in enumerate(tables)]
    for fit, of in zip(chains, folders, strict=True):
        for folder in of:
            pf.release_histogram(table(20), fit.model, 1.0, ledger=None, output=folder, figure=False)
    published = [[folder / "publish" for folder in of] for of in folders]
    assert recovered(published, RECORDS, truths) == set()
    internal = [[folder / "internal" for folder in of] for of in folders]
    different = {key for key in truths[0] if truths[0][key] != truths[1][key]}
    found = recovered(internal, RECORDS, truths)
    assert found >= {key for key in different if isinstance(key, tuple)}  # every transition count that differs


def test_every_count_is_recovered_from_a_sample(fits, tmp_path):
    tables, chains = fits
    for i, fit in enumerate(chains):
        (tmp_path / str(i)).mkdir()
        fit.sample.save(tmp_path / str(i) / "sample.json")
    truths = [truth(series) for series in tables]
    found = recovered([[tmp_path / "0"], [tmp_path / "1"]], RECORDS, truths)
    assert found >= {key for key in truths[0] if truths[0][key] != truths[1][key] and key[0] != "from"}


def test_no_count_is_recovered_from_a_private_fit(tmp_path):
    """The tables differ in all records of one participant."""
    rng, steps = np.random.default_rng(4), 30
    rows = rng.choice(["a", "b"], (200, steps))
    truths, fitted = [], []
    for i, first in enumerate((rows[:1], np.full((1, steps), "b"))):
        values = np.concatenate([first, rows[1:]])
        people = pd.DataFrame({"participant": np.repeat(np.arange(200).astype(str), steps), "value": values.ravel()})
        pairs = [tuple(pair) for record in values.tolist() for pair in itertools.pairwise(record)]
        truths.append({pair: pairs.count(pair) for pair in itertools.product("ab", repeat=2)})
        fitted.append([])
        for number in range(RELEASES):
            (folder := tmp_path / f"{i}-{number}").mkdir()
            pf.fit_privately(
                people,
                pf.RecordFormat(pf.StateSpace.categories(["a", "b"])),
                1.0,
                most_transitions=steps - 1,
                ledger=None,
                reading=pf.Reading(rows_are_steps=True),
                output=folder / "chain.json",
            )
            fitted[-1].append(folder)
    assert len({truth[pair] for truth in truths for pair in truth}) > 4
    assert recovered(fitted, 200 * (steps - 1), truths) == set()
    assert constants(fitted[0]) == constants(fitted[1])
