"""Finite families and the binary interval."""

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.markov import as_family

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
IRREVERSIBLE = pf.MarkovChain([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]])


def test_smallest_probability_and_gaps_of_the_running_example():
    family = pf.ChainFamily([THETA_1, THETA_2])
    assert family.chains == (THETA_1, THETA_2)
    assert 0.2 * (1 - 1e-13) < family.smallest_stationary_probability() <= 0.2
    assert family.eigengap("general") == pytest.approx(0.75)
    assert family.eigengap("reversible") == family.eigengap("auto") == pytest.approx(1)


def test_automatic_gap_chooses_for_each_chain():
    family = pf.ChainFamily([THETA_1, IRREVERSIBLE])
    assert family.eigengap("auto") == min(THETA_1.eigengap("reversible"), IRREVERSIBLE.eigengap("general"))
    with pytest.raises(pf.ChainError, match="detailed balance"):
        family.eigengap("reversible")


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ([], "the family holds no chain; give at least one"),
        ([THETA_1, [[1]]], "the family holds a list, which is not a MarkovChain"),
    ],
)
def test_bad_family(chains, message):
    with pytest.raises(pf.ChainError, match=message):
        pf.ChainFamily(chains)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 0.5), (0.5, 1), (0.6, 0.4), (-0.1, 0.5), (0.5, 1.1), (float("nan"), 0.5), (0.5, float("nan")), ("0", 0.5)],
)
def test_bad_interval(low, high):
    with pytest.raises(pf.ChainError, match=rf"binary interval \[{low!r}, {high!r}\]: needs 0 < low ≤ high < 1"):
        pf.BinaryInterval(low, high)


@pytest.mark.parametrize(
    ("low", "high", "stay"), [(0.25, 0.75, 0.75), (0.2, 0.6, 0.2), (0.4, 0.9, 0.9), (0.8, 0.9, 0.9), (0.1, 0.1, 0.1)]
)
def test_dominating_chain(low, high, stay):
    (chain,) = pf.BinaryInterval(low, high).chains
    assert chain.start == "any"
    assert chain.transition_matrix == pytest.approx(np.array([[stay, 1 - stay], [1 - stay, stay]]))


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.7), (0.2, 0.6), (0.4, 0.9), (0.5, 0.5), (0.1, 0.2)])
def test_interval_numbers_are_minima_over_a_grid(low, high):
    family = pf.BinaryInterval(low, high)
    grid = [pf.MarkovChain([[p, 1 - p], [1 - r, r]]) for p in (low, high) for r in (low, high)]
    inside = pf.ChainFamily(grid)
    assert family.smallest_stationary_probability() == pytest.approx(inside.smallest_stationary_probability())
    for kind in ("general", "reversible", "auto"):
        assert family.eigengap(kind) == pytest.approx(inside.eigengap(kind), abs=1e-11)
    assert pf.BinaryInterval(low, high) == family


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.36])
def test_class_of_the_synthetic_experiment(alpha):
    family = pf.BinaryInterval(alpha, 1 - alpha)
    assert family.smallest_stationary_probability() == pytest.approx(alpha)
    assert family.eigengap("reversible") == pytest.approx(4 * alpha)


def test_interval_of_the_smallest_numbers():
    family = pf.BinaryInterval(5e-324, 0.5)
    assert family.eigengap("reversible") == 0
    assert pf.mqm_approx(family, 10, 1.0).scale == pf.mqm_exact(family, 10, 1.0).scale == 10


def test_as_family():
    family = pf.BinaryInterval(0.3, 0.7)
    assert as_family(family) is family
    assert as_family(THETA_1).chains == (THETA_1,)
    with pytest.raises(
        pf.ParameterError, match="give a MarkovChain, a ChainFamily, a BinaryInterval, an IntervalFamily, a"
    ):
        as_family([[0.5, 0.5], [0.5, 0.5]])


INFINITE = [pf.BinaryInterval(0.3, 0.6), pf.IntervalFamily([[0.2, 0.1], [0.1, 0.2]], [[0.9, 0.8], [0.8, 0.9]])]


@pytest.mark.parametrize("family", INFINITE, ids=repr)
def test_what_needs_finitely_many_chains_says_so(family):
    message = "is computed for finitely many chains"
    with pytest.raises(pf.ChainError, match=message):
        pf.privacy_loss(family, 5, 3.0, pf.CountQuery({1}))
    with pytest.raises(pf.ChainError, match=message):
        pf.close_adversary(family, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 5)
    found = pf.wasserstein(family, 5, 1.0)
    assert (found.status, found.scale) == ("not applicable", None)
    assert message in found.reason


def test_an_interval_of_one_chain_is_finite():
    family = pf.BinaryInterval(0.5, 0.5)
    assert pf.privacy_loss(family, 5, 3.0, pf.CountQuery({1})).loss == pytest.approx(1 / 3)
    assert pf.wasserstein(family, 5, 1.0).scale == pytest.approx(1.0)
    assert pf.close_adversary(family, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 5).delta < 1e-12
