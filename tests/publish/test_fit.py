"""A fit to public readings: counts, chains, and which mixing families they lie in."""

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.models import read_public_model
from pufferflow.overlaps import forgetting, forgetting_from_counts


def walk(n):
    """Numbers that wander between 0 and 500, with times."""
    values = np.abs(np.cumsum(np.random.default_rng(1).normal(size=n)) * 30) % 500
    return pd.DataFrame({"time": pd.date_range("2024", periods=n, freq="30min"), "value": values})


def plain_counts(states, k):
    found = np.zeros((k, k), dtype=int)
    np.add.at(found, (states[:-1], states[1:]), 1)
    return found


def is_fitted(chain, counts):
    return np.allclose(chain.transition_matrix * counts.sum(axis=1, keepdims=True), counts)


def test_the_chain_is_that_of_the_counts(tmp_path):
    table, edges = walk(3000), [100, 200, 400]
    made = pf.fit(table, edges=edges)
    [chain] = made.family.chains
    assert is_fitted(chain, plain_counts(np.digitize(table["value"], edges), 4))
    assert "3,000 of 1 participant(s), 2024-01-01T00:00:00 to 2024-03-03T11:30:00" in made.summary()
    path = made.save(tmp_path / "model.json")
    assert path.stat().st_mode & 0o077 == 0
    assert read_public_model(path).records == made.model.records
    assert "confidential" in repr(made)


def test_a_chain_that_would_not_be_ergodic_is_smoothed():
    never_left, of_period_2 = [[1, 2, 0], [1, 2, 1], [0, 0, 0]], [[0, 2], [1, 0]]
    for values, counts in [("aababbbc", never_left), ("abab", of_period_2)]:
        made = pf.fit(pd.Series([*values]), states=sorted({*values}))
        assert is_fitted(made.family.chains[0], np.array(counts) + 0.5)


def test_groups_have_a_chain_each_and_coverage_has_intervals():
    who, values = np.repeat([*"abcdefgh"], 50), np.random.default_rng(2).integers(0, 2, 400)
    table = pd.DataFrame({"who": who, "kind": np.where(who < "d", "x", "y"), "value": values})
    asked = {"participant": "who", "states": ["0", "1"], "rows_are_steps": True}
    made = pf.fit(table, group="kind", **asked)
    each = [sum(plain_counts(values[who == p], 2) for p in names) for names in ("abc", "defgh")]
    assert all(map(is_fitted, made.family.chains, each))
    for start in ("stationary", "any"):
        family = pf.fit(table, coverage=0.9, start=start, **asked).family
        expected = pf.confidence_family(sum(each), 0.9, backward=start == "stationary")
        assert np.array_equal(family.low, expected.low)
        assert (family.backward is None) == (start == "any")


def test_the_mixing_families_are_those_of_the_chains_and_of_their_counts():
    table = walk(4000).assign(**{n: np.repeat(["p", "q"], 2000) for n in ("who", "kind")})
    made = pf.fit(table, edges=[150, 300], participant="who", group="kind")
    halves = np.digitize(table["value"], [150, 300]).reshape(2, -1)
    each = [plain_counts(half, 3) for half in halves]
    for row in made.mixing:
        steps = row["steps"]
        assert row["overlap"] == forgetting(made.family, steps).overlap
        alone, both = (
            min(forgetting_from_counts(n, steps, coverage).overlap for n in each)
            for coverage in (0.95, 0.975)
        )
        assert both - 1e-12 <= row["bound"] <= alone + 1e-12  # of all groups together
    overlaps = {row["after"]: row["overlap"] for row in made.mixing}
    printed = [line.split() for line in made.summary().splitlines() if "--mixing" in line]
    for _, time, overlap, *_ in printed:  # what is printed never exceeds what holds
        assert overlaps[time] - 0.01 < float(overlap) <= overlaps[time]


@pytest.mark.parametrize(
    ("values", "options", "said"),
    [
        ("ab", {}, "give `states` or `edges` of at least two states, such as edges 0.5,1"),
        ("ab", {"states": ["a"]}, "give `states` or `edges` of at least two states"),
        ("a", {"states": ["a", "b"]}, "so there is no transition to count"),
        ("ab", {"states": ["a", "b"], "group": "x", "coverage": 0.9}, "coverage is for one group"),
        ("ab", {"coverage": 2}, "coverage is 2"),
    ],
)
def test_what_cannot_be_fitted(values, options, said):
    """States are never found in the data: they would be published with the chain."""
    with pytest.raises(pf.PufferflowError, match=said):
        pf.fit(pd.Series([*values]), **options)
