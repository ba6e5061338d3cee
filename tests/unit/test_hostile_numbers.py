"""Numbers beyond floats prove nothing, whatever a step of a recursion returns; portions and threads
change no bit.
"""

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.bounds import distribution_sets, of_families, solver, walks
from pufferflow.bounds.blocks import blocks_of
from pufferflow.bounds.distribution_sets import (
    ExactRows,
    no_trees,
    reweighted_rows,
    reweighted_within,
)
from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.process import of_chain, of_sets
from pufferflow.bounds.robust import VertexRows
from pufferflow.bounds.walks import Stretch
from pufferflow.models.families import Protection

ROWS = np.random.default_rng(1).dirichlet(np.ones(4), 4)
BOUNDS = pf.IntervalFamily(ROWS * 0.9, np.minimum(ROWS * 1.1, 1)).rows
APART = ~np.eye(4, dtype=bool)


def spoilt(number):
    costs = np.ones((4, 4)) - np.eye(4)
    costs[1, 2] = number
    return costs


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_costs_beyond_floats_prove_nothing(number):
    for side in (ExactRows(ROWS), VertexRows(BOUNDS)):
        found = side.bound(spoilt(number))
        assert np.isposinf(found[APART]).all()
        assert (found[~APART] == 0).all()
    for side in (reweighted_rows(ROWS.T), reweighted_within(BOUNDS.log_column_ratios())):
        assert (side.bound(spoilt(number)) >= side.bound(spoilt(1e6)) * (1 - 1e-12)).all()
    _, found = Stretch(np.ones((2, 4), dtype=bool), ROWS[None]).walk(
        spoilt(number), 0.1 * APART, 50.0, no_trees(4)
    )
    assert (found == np.where(APART, ExactRows(ROWS).limit, 0.0)).all()


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("length", [5, 10**6])
def test_what_is_no_number_proves_nothing(number, length):
    """All of the records then count, or the largest ratio, near the ends and far from them."""

    def spoil(process):
        for side in (process.forward, process.backward):
            side.blocks.stacked = None
            side.blocks.pairwise.clear()
            for rows in side.sets:
                rows.bound = lambda costs: np.full((4, 4), number)
        return ProcessLoss(process), process.forward.sets[-1].limit + process.backward.sets[
            -1
        ].limit

    loss, limit = spoil(of_chain(pf.MarkovChain(ROWS), length, Protection()))
    if length == 5:
        wanted = length * 0.1
        for side in (loss._forward, loss._backward):
            side._all.walk = lambda *others: (np.full((length, 4, 4), number), None)
    else:
        wanted = 0.1 + float(limit.max())
    assert loss.loss(0.1).value >= wanted
    loss, limit = spoil(of_sets(pf.IntervalFamily(ROWS, ROWS), length, Protection()))
    assert loss.loss(0.1).value >= min(length * 0.1, 0.1 + float(limit.max()))


def test_newton_steps_that_are_no_numbers_are_left(monkeypatch):
    """A start or a step that is no number costs nothing but time."""
    expected = pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0)
    monkeypatch.setattr(solver, "newton_step", lambda side, now, *others: np.full_like(now, np.nan))
    of_families._kept.clear()
    assert (
        expected * (1 - 1e-5)
        <= pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0)
        <= expected * 1.01
    )


def test_rows_that_are_equal_after_rounding_only_keep_their_margin():
    """Distributions known to a relative error may differ if their floats do not; exact ones not."""
    row, error, costs = np.array([0.25, 0.75]), 1e-9, np.array([[0.0, 2.0], [2.0, 0.0]])
    perturbed = np.array([row, row * [1 + error, 1]])
    truth = ExactRows(perturbed / perturbed.sum(axis=1, keepdims=True)).bound(costs)
    assert truth.max() > 0
    assert (ExactRows(np.array([row, row]), error).bound(costs) >= truth).all()
    assert (ExactRows(np.array([row, row])).bound(costs) == 0).all()


def test_rows_of_powers_that_look_alike_are_told_apart_by_rounding():
    # pairs of bits, one new bit per step: after two steps every row is (¼, ¼, ¼, ¼)
    matrix = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2)
    settled = list(blocks_of(matrix, 0.0, 10**6))[-1]
    assert settled.steps == 2
    assert ((settled.limit > 0) == (np.abs(matrix[:, None] - matrix).max(axis=-1) > 0)).all()
    assert settled.limit.max() < 1e-8
    alike = list(
        blocks_of(np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]), 0.0, 100)
    )
    assert all(d.limit[0, 1] == 0 < d.limit[0, 2] for d in alike)
    assert all(d.distance[0, 1] == 0 < d.distance[0, 2] for d in alike)


def results():
    of_families._kept.clear()  # bounds of the same chain, which would begin where they ended last
    rng = np.random.default_rng(5)
    matrices, slow = (
        rng.dirichlet(np.ones(3), (2, 3)),
        0.98 * np.eye(4) + 0.02 * rng.dirichlet(np.ones(4), 4),
    )
    for start in ("stationary", "any"):
        yield pf.leakage_loss(pf.MarkovChain(slow, start), 50, 0.2)
        chain = pf.PeriodicChain(matrices, repeat=7, initial_distribution=start)
        yield pf.leakage_loss(chain, 10**6, 2.0)
    yield pf.leakage(pf.MarkovChain(rng.dirichlet(np.ones(20), 20)), 10**6, 1.0).scale
    day = pf.PeriodicChain([[[0.6, 0.4], [0.5, 0.5]], [[0.95, 0.05], [0.1, 0.9]]], repeat=20)
    yield pf.certify(day, 1000, 1.0, mechanism="leakage")
    yield pf.certify(
        pf.HiddenChain(pf.MarkovChain(slow), [0, 0, 1, 1]), 1000, 1.0, mechanism="leakage"
    )


@pytest.mark.parametrize("portion", [50, 20**4])  # a pair at a time, or on threads
def test_portions_and_threads_change_no_bit(monkeypatch, portion):
    expected = list(map(str, results()))
    monkeypatch.setattr(distribution_sets, "most_threads", lambda: 3)
    for module in (distribution_sets, walks):
        monkeypatch.setattr(module, "PORTION", portion)
    assert list(map(str, results())) == expected
