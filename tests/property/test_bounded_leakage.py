"""Leakage between bounds against plain twins, against narrower and wider families, and for informed adversaries."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from cases import SLACK, examples, seeds
from hypothesis import example, given
from hypothesis import strategies as st
from interval_families import draw, family
from plain_bounds import crude_values, pair_value, robust_values
from sequence_programs import largest_loss

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.coupling.affine import AffineRows
from pufferflow.coupling.distribution_sets import ExactRows, reweighted_columns, reweighted_within
from pufferflow.coupling.loss import ProcessLoss
from pufferflow.coupling.process import of_sets
from pufferflow.coupling.robust import AscendingRows, VertexRows

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.sampled_from([0.0, 1e-9, 0.001, 0.03, 0.1, 0.5, 1.0])
STICKY = st.sampled_from([0.0, 0.5, 0.9])
COSTS = st.sampled_from([1e-3, 0.1, 0.7, 3.0])
MOVED = 1e-3
"""How far above the exact value a bound may be: what rounding leaves at a state is moved, at e^costs, up to e^12."""


def some_family(rng, k, width, sticky):
    if rng.random() < 0.5:
        return family(rng, k, width, sticky, zeros=float(rng.choice([0.0, 0.3])))
    centre = (1 - sticky) * rng.dirichlet(np.full(k, rng.choice([0.2, 1.0])), size=k) + sticky * np.eye(k)
    return pf.TotalVariationFamily(centre, np.minimum(width * rng.random(k), 1))


def some_costs(rng, k, cost):
    costs = cost * (1 + 3 * rng.random((k, k)))
    np.fill_diagonal(costs, 0)
    return costs


@given(SEEDS, st.integers(1, 3), WIDTHS, STICKY, COSTS)
@examples(8, 80)
def test_the_worst_laws_are_vertices_of_one_order(seed, k, width, sticky, cost):
    rng = np.random.default_rng(seed)
    rows = some_family(rng, k, width, sticky).rows
    costs = some_costs(rng, k, cost)
    plain = robust_values(rows, costs)
    found = VertexRows(rows).bound(costs)
    assert (found >= plain * (1 - 1e-7) - 1e-9).all()
    assert (found <= plain * (1 + MOVED) + 1e-9).all()
    crude = crude_values(rows, [rows.vertex(x, range(k), largest=True) for x in range(k)], costs)
    assert (found <= crude * (1 + MOVED) + 1e-9).all()


@given(SEEDS, st.integers(1, 5), WIDTHS, STICKY, COSTS)
@examples(8, 90)
def test_affine_flows_are_above_and_ascents_below(seed, k, width, sticky, cost):
    rng = np.random.default_rng(seed)
    rows = some_family(rng, k, width, sticky).rows
    costs = some_costs(rng, k, cost)
    exact, ascent = VertexRows(rows).bound(costs), AscendingRows(rows).bound(costs)
    assert (ascent <= exact * (1 + 1e-12)).all()
    affine = AffineRows(rows)
    bound = affine.bound(costs)
    assert (bound >= ascent * (1 - 1e-12) - 1e-13).all()
    assert (bound >= exact * (1 - MOVED) - 1e-13).all()
    assert (bound <= 2.5 * exact + 1e-6).all()
    assert (affine.bound(costs) == bound).all()  # from the programs kept
    # whatever the flows are, they prove a bound
    growth = np.exp(costs)
    for x, y in product(range(k), repeat=2):
        if x != y and (flows := affine.flows(x, y, growth)) is not None:
            worse = flows._replace(flow=flows.flow * rng.uniform(0.5, 2, (k, k)))
            assert affine.proved(x, y, growth, worse) >= ascent[x, y] * (1 - 1e-12)


@given(SEEDS, st.integers(2, 5), STICKY, COSTS)
@examples(10, 40)
def test_rows_known_exactly(seed, k, sticky, cost):
    rng = np.random.default_rng(seed)
    box = family(rng, k, 0.0, sticky)
    matrix, costs = box.low, some_costs(rng, k, cost)
    robust, coupling = VertexRows(box.rows).bound(costs), ExactRows(matrix).bound(costs)
    assert (robust >= AscendingRows(box.rows).bound(costs) * (1 - 1e-12) - 1e-13).all()
    assert (robust >= coupling * (1 - MOVED) - 1e-12).all()
    assert (robust <= coupling * (1 + MOVED) + 1e-12).all()
    forgetting = reweighted_within(box.rows.log_column_ratios()).bound(costs)
    assert np.allclose(forgetting, reweighted_columns(matrix).bound(costs), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", seeds(4, 40))
@pytest.mark.parametrize("epsilon", [1e-4, 2e-5])
def test_small_budgets_are_used_up(seed, epsilon):
    rng = np.random.default_rng(seed)
    theta = family(rng, 3, 0.03, 0.5)
    for length, side_information in product([3, 20, 1000], ["none", "any"]):
        found = pf.leakage(theta, length, epsilon, side_information=side_information)
        if found.quilt is None and found.scale > 1 / epsilon:
            loss = pf.leakage_loss(theta, length, found.scale, side_information=side_information)
            assert epsilon * (1 - 1e-5) <= loss <= epsilon * (1 + 3e-6)  # post-fixed points have a slack of 1e-6


@given(SEEDS, st.integers(2, 4), STICKY, st.sampled_from([1e-6, 0.2, 1.0, 5.0, 1e3]), st.sampled_from([2, 30, 10**6]))
@examples(7, 60)
def test_a_known_stationary_chain_read_both_ways(seed, k, sticky, epsilon, length):
    rng = np.random.default_rng(seed)
    chain = pf.MarkovChain((1 - sticky) * rng.dirichlet(np.ones(k), k) + sticky * np.eye(k))
    P, R = chain.transition_matrix, chain.time_reversal
    both = pf.IntervalFamily(P, P, backward=pf.IntervalFamily(R, R))
    known, found = (pf.leakage(theta, length, epsilon).scale for theta in (chain, both))
    assert found >= known * (1 - SLACK)
    assert found <= known * 1.15
    ball = pf.TotalVariationFamily(P, 0.0, backward=pf.TotalVariationFamily(R, 0.0))
    assert math.isclose(pf.leakage(ball, length, epsilon).scale, found, rel_tol=SLACK)


@example(0, 3, 0.0, 0.0, 10.0, 9)
@given(SEEDS, st.integers(1, 4), WIDTHS, STICKY, st.sampled_from([0.1, 1.0, 10.0]), st.sampled_from([1, 2, 9, 500]))
@examples(5, 32)
def test_less_known_costs_no_less(seed, k, width, sticky, epsilon, length):
    rng = np.random.default_rng(seed)
    inner = family(rng, k, width, sticky)
    outer = pf.IntervalFamily(inner.low * 0.9, np.minimum(inner.high * 1.1, 1))
    small, large = (pf.leakage(theta, length, epsilon) for theta in (inner, outer))
    assert large.scale >= small.scale * (1 - SLACK)
    assert pf.leakage_loss(outer, length, large.scale) <= epsilon * (1 + SLACK)
    both = pf.IntervalFamily(inner.low, inner.high, backward=outer)
    assert pf.leakage(both, length, epsilon).scale <= small.scale * (1 + SLACK)
    losses = [
        ProcessLoss(of_sets(both, length, Protection(window, side_information))).loss(epsilon / 3).value
        for window, side_information in ((1, "none"), (2, "none"), (10**4, "none"), (1, "any"))
    ]
    assert losses[0] <= losses[1] * (1 + SLACK) <= losses[2] * (1 + 2 * SLACK)
    assert losses[0] <= losses[3] * (1 + 1e-2) + 1e-12


def conditioned(joint, known, values):
    """The law of the other records, given those known."""
    law = joint[tuple(values[known.index(i)] if i in known else slice(None) for i in range(joint.ndim))]
    return law / law.sum() if law.sum() > 0 else None


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_whoever_knows_other_records(seed):
    """All sets of known records with all their values, and a linear program over the others."""
    rng = np.random.default_rng(seed)
    k, length = [(2, 4), (3, 3)][seed % 2]
    cost = float(rng.choice([0.05, 0.5, 2.0]))
    box = family(rng, k, float(rng.choice([0.0, 0.1])), 0.5)
    steps = [draw(box, rng, corner=seed % 3 == 0) for _ in range(length - 1)]
    joint = rng.dirichlet(np.ones(k))
    for matrix in steps:
        joint = joint[..., None] * matrix
    bound = ProcessLoss(of_sets(box, length, Protection(1, "any"))).loss(cost).value
    for size in range(length):
        for known in combinations(range(length), size):
            for values in product(range(k), repeat=size):
                law = conditioned(joint, known, values)
                if law is not None:
                    assert largest_loss(law, cost) <= bound * (1 + 1e-6)


def test_pairs_of_laws_in_a_linear_program():
    assert math.isclose(pair_value(np.array([1.0, 0]), np.array([0, 1.0]), np.array([[0, 0.3], [0.3, 0]])), 0.3)
