"""Periodic chains: known values, the profile, fits."""

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.bounds.rounds import Cycle, Rounds

FAST, SLOW = np.array([[0.6, 0.4], [0.5, 0.5]]), np.array([[0.95, 0.05], [0.1, 0.9]])
DAY = pf.PeriodicChain([FAST, SLOW, SLOW], repeat=20)


@pytest.mark.parametrize("length", [3, 10**6])
@pytest.mark.parametrize("protection", [{}, {"window": 2}, {"side_information": "any"}])
def test_equal_matrices_are_one_chain(length, protection):
    chains = pf.MarkovChain(SLOW), pf.PeriodicChain([SLOW, SLOW], repeat=3)
    for scale in (0.5, 3.0, 40.0):
        one, other = (pf.leakage_loss(chain, length, scale, **protection) for chain in chains)
        assert other == pytest.approx(one, rel=1e-5)
    one, other = (pf.leakage(chain, length, 1.0, **protection).scale for chain in chains)
    assert other == pytest.approx(one, rel=1e-5)


def test_slow_hours_decide():
    scale = pf.leakage(DAY, 10**6, 1.0).scale
    assert 1 - 1e-5 < pf.leakage_loss(DAY, 10**6, scale) <= 1
    slow, fast = (pf.leakage(pf.MarkovChain(matrix), 10**6, 1.0).scale for matrix in (SLOW, FAST))
    assert fast < scale < slow


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("forward", [True, False])
def test_leakages_are_the_same_wherever_the_search_begins(forward, known, monkeypatch):
    """Those that a period raises bound no node; a search that has no time for more ends above."""
    chain = pf.PeriodicChain([SLOW, (SLOW + np.eye(2)) / 2])
    rounds = Rounds(Cycle(chain, forward=forward, known=known), 10**6)
    rounds.begin()
    usual, start = np.array(rounds.tables(0.1)), rounds._start
    for factor in (0.0, 0.3, 0.8, 5.0):
        rounds._start, rounds._found_at = factor * start, 0.0
        np.testing.assert_allclose(rounds.tables(0.1), usual, rtol=1e-4)
    for limit, passes in (("_PASSES", 1), ("_STEPS", 0)):
        monkeypatch.setattr(f"pufferflow.bounds.rounds.{limit}", passes)
    rounds._start, rounds._found_at = 0 * start, 0.0
    assert (np.array(rounds.tables(0.1)) >= usual * (1 - 1e-4)).all()


def test_segments_may_begin_at_any_phase():
    """From phase 0 on five records are independent; who begins at another phase needs five times
    the noise of these.
    """
    mixes, keeps = np.full((2, 2), 0.5), np.array([[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]])
    chain = pf.PeriodicChain([mixes] * 4 + [keeps] * 6)
    scale = pf.leakage(chain, 5, 1.0)
    assert 4.99 < scale.scale <= 5
    assert 1 <= scale.node <= 5


@pytest.mark.parametrize("length", [50, 10**18])
@pytest.mark.parametrize("epsilon", [30.0, 1000.0])
def test_large_budgets_cost_hardly_more_than_a_record(epsilon, length):
    """No distribution reveals more than the log of a ratio, where flows lose their digits."""
    chain = pf.PeriodicChain(np.random.default_rng(0).dirichlet(np.ones(5), (3, 5)))
    most = np.zeros((3, 5, 5))  # of the next record, and of the one before
    for phase, (start, matrix) in enumerate(
        zip(chain.stationary_distributions, chain.transition_matrices, strict=True)
    ):
        joint = (start[:, None] * matrix).T
        for at, rows in ((phase, matrix), ((phase + 1) % 3, joint / joint.sum(axis=1)[:, None])):
            most[at] += np.log(rows[:, None] / rows).max(axis=2)
    scale = pf.leakage(chain, length, epsilon).scale
    assert 1 / epsilon < scale <= (1 + 1e-5) / (epsilon - most.max())
    assert pf.leakage_loss(chain, length, scale) <= epsilon * (1 + 1e-9)


EAST = [[0.79, 0, 0.16, 0.05], [0, 0.9, 0, 0.1], [0, 0, 0.99, 0.01], [0.01, 0, 0, 0.99]]
WEST = [[0.9, 0, 0, 0.1], [0.01, 0.98, 0, 0.01], [0, 0, 1, 0], [0, 0, 0, 1]]
NEVER = pf.PeriodicChain([np.eye(4), EAST, WEST, np.eye(4)], repeat=2)
"""No record has the second state. If one might, it would be a short cut between the others."""


@pytest.mark.parametrize("cost", [0.01, 1.0])
def test_a_state_that_no_record_has_is_no_short_cut(cost):
    """The same chain without it loses no more."""
    others = np.delete(np.delete(NEVER.transition_matrices, 1, axis=1), 1, axis=2)
    without = pf.PeriodicChain(others / others.sum(axis=2, keepdims=True), repeat=2)
    for length in (5, 40, 10**6):
        whole, part = (pf.leakage_loss(chain, length, 1 / cost) for chain in (NEVER, without))
        assert whole >= part * (1 - 1e-3)
    document = pf.certify(NEVER, 1000, 1.0, mechanism="leakage")
    least = pf.leakage(without, 1000, 1.0).scale * (1 - 1e-3)
    assert float(pf.verify_certificate(document).scale) >= least


def test_blocks_see_what_single_steps_do_not():
    """A state hardly ever left looks remembered for ever, step by step, with side information."""
    day = np.array([[0.9, 0.1 - 1e-7, 1e-7], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    night = np.array([[0.99, 0.01 - 1e-9, 1e-9], [0.6, 0.4 - 1e-9, 1e-9], [0.4, 0.4, 0.2]])
    chain = pf.PeriodicChain([day, night], repeat=60)
    plain, informed = (
        pf.leakage(chain, 10**6, 1.0, side_information=known).scale for known in ("none", "any")
    )
    assert plain < informed < 20 * plain


def test_a_clock_with_a_matrix_an_hour_is_fitted():
    counts = np.array([[[8, 2], [4, 6]], [[0, 0], [1, 9]]])
    chain, states = pf.models.fit_periodic_chain(counts, repeat=60, smoothing=0)
    assert (states.tolist(), chain.period) == ([0, 1], 120)
    fitted = [[[0.8, 0.2], [0.4, 0.6]], [[0.8, 0.2], [0.1, 0.9]]]
    np.testing.assert_allclose(chain.transition_matrices, fitted)
    smoothed, _ = pf.models.fit_periodic_chain(counts, smoothing=10)
    rows = [[0.8, 0.2], [(4 + 2.5) / 20, (6 + 7.5) / 20]]
    np.testing.assert_allclose(smoothed.transition_matrix(0), rows)


def test_distributions_that_floats_cannot_hold_are_not_used():
    """The first state leads to the third by two steps of 1e-200: how often it occurs is unknown."""
    away, back = [[1, 1e-200, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [1, 0, 1e-200], [0.5, 0, 0.5]]
    chain, anything = (
        pf.PeriodicChain([away, back], initial_distribution=s) for s in ("stationary", "any")
    )
    assert np.isinf(chain.stationary_error)
    assert chain.possible.tolist() == [[True, False, True], [True, True, True]]
    assert pf.leakage(chain, 50, 1.0).scale == pytest.approx(pf.leakage(anything, 50, 1.0).scale)
