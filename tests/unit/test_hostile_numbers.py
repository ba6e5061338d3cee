"""Numbers beyond floats prove nothing, whatever a step of a recursion returns; portions and threads change no bit."""

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.coupling import calibration, periodic, sides
from pufferflow.coupling.blocks import Blocks
from pufferflow.coupling.interval_leakage import IntervalLeakage
from pufferflow.coupling.periodic import CouplingWay
from pufferflow.coupling.robust import RobustSide
from pufferflow.coupling.sides import CouplingSide, ForgettingSide, RatioSide

ROWS = np.random.default_rng(1).dirichlet(np.ones(4), 4)
BOUNDS = pf.IntervalFamily(ROWS * 0.9, np.minimum(ROWS * 1.1, 1)).rows
APART = ~np.eye(4, dtype=bool)


def spoilt(number):
    costs = np.ones((4, 4)) - np.eye(4)
    costs[1, 2] = number
    return costs


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_costs_beyond_floats_prove_nothing(number):
    for side in (CouplingSide(ROWS), RobustSide(BOUNDS)):
        found = side.apply(spoilt(number))
        assert np.isposinf(found[APART]).all()
        assert (found[~APART] == 0).all()
    for side in (ForgettingSide(ROWS), RatioSide(BOUNDS.log_column_ratios())):
        assert (side.apply(spoilt(number)) >= side.apply(spoilt(1e6)) * (1 - 1e-12)).all()
    way = CouplingWay(pf.PeriodicChain([ROWS]), ahead=True, trees_alone=True)
    assert (way.walk(0, spoilt(number), 0.1, 50.0)[0][APART] == 50).all()


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize("length", [5, 10**6])
def test_what_is_no_number_proves_nothing(number, length):
    """All of the records then count, or the largest ratio, near the ends and far from them."""
    bounds, wanted = calibration.ChainLeakage(pf.MarkovChain(ROWS), length), length * 0.1
    if bounds.exact:
        bounds._all_nodes = lambda name, view: np.full((length, 4, 4), number)
    else:
        bounds._ahead.apply = lambda costs: np.full((4, 4), number)
        bounds._ahead_blocks.caps = lambda cost: np.full((4, 4), length * cost)
        wanted = 0.1 + bounds._ahead.limit.max()
    assert bounds.loss(0.1).value >= wanted
    theta = IntervalLeakage(pf.IntervalFamily(ROWS, ROWS), length, Protection())
    theta._past[0].apply = theta._ahead[0].apply = lambda costs: np.full((4, 4), number)
    theta._blocks.clear()
    both = float((theta._past[0].limit + theta._ahead[0].limit).max())
    assert theta.loss(0.1).value >= min(length * 0.1, 0.1 + both)


def test_newton_steps_that_are_no_numbers_are_left(monkeypatch):
    """A start or a step that is no number costs nothing but time."""
    expected = pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0)
    monkeypatch.setattr(sides, "_newton_step", lambda side, now, *others: np.full_like(now, np.nan))
    calibration._kept.clear()
    assert expected * (1 - 1e-5) <= pf.leakage_loss(pf.MarkovChain(ROWS), 10**6, 2.0) <= expected * 1.01


def test_rows_that_are_equal_after_rounding_only_keep_their_margin():
    """Distributions known to a relative error may differ where their floats do not; exact ones may not."""
    row, error, costs = np.array([0.25, 0.75]), 1e-9, np.array([[0.0, 2.0], [2.0, 0.0]])
    perturbed = np.array([row, row * [1 + error, 1]])
    truth = CouplingSide(perturbed / perturbed.sum(axis=1, keepdims=True)).apply(costs)
    assert truth.max() > 0
    assert (CouplingSide(np.array([row, row]), error).apply(costs) >= truth).all()
    assert (CouplingSide(np.array([row, row])).apply(costs) == 0).all()


def test_rows_of_powers_that_look_alike_are_told_apart_by_rounding():
    # pairs of bits, one new bit a step: after two steps every row is (¼, ¼, ¼, ¼)
    matrix = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2)
    settled = Blocks(matrix, 0.0, 10**6).blocks[-1]
    assert settled.steps == 2
    assert ((settled.limit > 0) == (np.abs(matrix[:, None] - matrix).max(axis=-1) > 0)).all()
    assert settled.limit.max() < 1e-8
    alike = Blocks(np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]), 0.0, 100)
    assert all(d.limit[0, 1] == 0 < d.limit[0, 2] for d in alike.blocks)
    assert all(d.distance[0, 1] == 0 < d.distance[0, 2] for d in alike.blocks)


def results():
    calibration._kept.clear()  # bounds of the same chain, which would begin where they ended last
    rng = np.random.default_rng(5)
    matrices, slow = rng.dirichlet(np.ones(3), (2, 3)), 0.98 * np.eye(4) + 0.02 * rng.dirichlet(np.ones(4), 4)
    for start in ("stationary", "any"):
        yield pf.leakage_loss(pf.MarkovChain(slow, start), 50, 0.2)
        chain = pf.PeriodicChain(matrices, repeat=7, initial_distribution=start)
        yield pf.mechanisms.loss_profile(chain, 10**6, 2.0)["loss_nats"].tolist()
    yield pf.leakage(pf.MarkovChain(rng.dirichlet(np.ones(20), 20)), 10**6, 1.0).scale
    day = pf.PeriodicChain([[[0.6, 0.4], [0.5, 0.5]], [[0.95, 0.05], [0.1, 0.9]]], repeat=20)
    yield pf.certify(day, 1000, 1.0, mechanism="leakage")
    yield pf.certify(pf.HiddenChain(pf.MarkovChain(slow), [0, 0, 1, 1]), 1000, 1.0, mechanism="leakage")


@pytest.mark.parametrize("portion", [50, 20**4])  # a pair at a time, or on threads
def test_portions_and_threads_change_no_bit(monkeypatch, portion):
    expected = list(map(str, results()))
    monkeypatch.setattr(sides, "most_threads", lambda: 3)
    for module in (sides, periodic):
        monkeypatch.setattr(module, "PORTION", portion)
    assert list(map(str, results())) == expected
