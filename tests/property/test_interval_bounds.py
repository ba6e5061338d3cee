"""The bounds of interval families against chains drawn from them."""

import math
from itertools import product

import numpy as np
import pytest
from cases import examples
from hypothesis import example, given
from hypothesis import strategies as st
from interval_families import draw, family, log_ratios

import pufferflow as pf
from pufferflow.influence import intervals
from pufferflow.influence.intervals import interval_influence

SEEDS = st.integers(0, 2**32 - 1)
STATES = st.integers(2, 5)
WIDTHS = st.sampled_from([0.0, 1e-9, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0])
STICKY = st.sampled_from([0.0, 0.5, 0.9])
EPSILONS = st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0])


def covers(bound, exact, length, epsilon, slack=1e-10):
    """Whether a scale is large enough, both being rounded up and an error in an influence acting as one of ε."""
    return bound(length, epsilon).scale >= exact(length, epsilon + slack).scale * (1 - 1e-12)


@given(SEEDS, STATES, WIDTHS, STICKY, st.sampled_from([0.0, 0.2]))
@examples(8, 270)
def test_log_ratios_of_chains_of_the_family(seed, k, width, sticky, zeros):
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky, zeros)
    bounds = interval_influence(box)
    assert bounds.distances[:20] == list(range(1, 21))
    assert bounds.forward == np.minimum.accumulate(bounds.forward).tolist()
    assert bounds.backward == np.minimum.accumulate(bounds.backward).tolist()
    for trial in range(10):
        P = draw(box, rng, corner=trial % 2)
        power = np.eye(k)
        for n in range(20):
            power = power @ P
            forward, backward = log_ratios(power)
            slack = 1e-12 / power[power > 0].min()
            assert forward <= bounds.forward[n] + slack
            assert backward <= bounds.backward[n] + slack


@given(SEEDS, STATES, WIDTHS, STICKY, EPSILONS, st.sampled_from([2, 7, 40, 10**5]))
@examples(8, 170)
def test_the_scale_covers_every_chain(seed, k, width, sticky, epsilon, length):
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky)
    for trial in range(8):
        chain = pf.MarkovChain(draw(box, rng, corner=trial % 2), "any")
        for convention in ("exact", "published"):
            assert covers(
                lambda t, e: pf.mqm_exact(box, t, e),
                lambda t, e, c=chain, v=convention: pf.mqm_exact(c, t, e, convention=v),
                length,
                epsilon,
            )


@given(SEEDS, st.integers(2, 4), st.sampled_from([0.01, 0.1]), STICKY, EPSILONS, st.sampled_from([10, 40]))
@examples(8, 220)
def test_the_scale_covers_the_worst_chain_found(seed, k, width, sticky, epsilon, evaluations):
    box = family(np.random.default_rng(seed), k, width, sticky)
    chain = box.worst_chain(200, epsilon, evaluations=evaluations)
    assert box.contains(chain)
    assert covers(lambda t, e: pf.mqm_exact(box, t, e), lambda t, e: pf.mqm_exact(chain, t, e), 200, epsilon)


@given(SEEDS, STATES, WIDTHS, STICKY)
@examples(8, 180)
def test_log_ratios_are_covered_without_all_sets(seed, k, width, sticky):
    rng = np.random.default_rng(seed)
    box = family(rng, k, width, sticky)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "MOST_SETS", 1)
        bounds = intervals.IntervalInfluence(box)
    for trial in range(6):
        P = draw(box, rng, corner=trial % 2)
        for n in range(1, 30):
            forward, backward = log_ratios(np.linalg.matrix_power(P, n))
            slack = 1e-12 / P.min()
            assert forward <= bounds.forward[n - 1] + slack
            assert backward <= bounds.backward[n - 1] + slack


@given(SEEDS, STATES, WIDTHS)
@example(0, 3, 0.0)  # the centre is followed to 127 steps, between two distances
@examples(8, 130)
def test_far_distances_cover_too(seed, k, width):
    """Strides, doubled steps and products of total variations, on chains that mix slowly."""
    rng = np.random.default_rng(seed)
    box = family(rng, k, width / 100, 0.997)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "FIRST", 4)
        patch.setattr(intervals, "POINTS", 8)
        patch.setattr(intervals, "CENTRED", int(rng.integers(1, 300)))
        bounds = intervals.IntervalInfluence(box)
        for _ in range(9):
            bounds.grow()
    assert (np.diff(bounds.distances) >= 1).all()
    assert bounds.distances[-1] == 4 * 2**9
    for trial in range(4):
        P = draw(box, rng, corner=trial % 2)
        for n, forward, backward in zip(bounds.distances, bounds.forward, bounds.backward, strict=True):
            phi, psi = log_ratios(np.linalg.matrix_power(P, n))
            slack = 1e-10 / P[P > 0].min()
            assert phi <= forward + slack
            assert psi <= backward + slack


@given(SEEDS, STATES, st.sampled_from([0.001, 0.01, 0.1]), STICKY, EPSILONS)
@examples(8, 110)
def test_a_larger_box_has_no_smaller_scale(seed, k, width, sticky, epsilon):
    rng = np.random.default_rng(seed)
    inner = family(rng, k, width, sticky)
    outer = pf.IntervalFamily(inner.low * 0.8, np.minimum(inner.high * 1.2, 1))
    large, small = (pf.mqm_exact(box, 500, epsilon).scale for box in (outer, inner))
    assert large >= small * (1 - 1e-9)


@given(st.floats(0.02, 0.98), st.floats(0.02, 0.98), EPSILONS, st.sampled_from([5, 100, 10**6]))
@examples(8, 110)
def test_binary_intervals(one, other, epsilon, length):
    low, high = min(one, other), max(one, other)
    box = pf.IntervalFamily([[low, 1 - high], [1 - high, low]], [[high, 1 - low], [1 - low, high]])
    proved = pf.BinaryInterval(low, high)
    assert covers(lambda t, e: pf.mqm_exact(box, t, e), lambda t, e: pf.mqm_exact(proved, t, e), length, epsilon)
    # and the recursion loses nothing: its φ and ψ are those of the dominating chain
    bounds, P = interval_influence(box), proved.chains[0].transition_matrix
    for n in (1, 2, 5, 9):
        phi, psi = log_ratios(np.linalg.matrix_power(P, n))
        assert math.isclose(bounds.forward[n - 1], phi, rel_tol=1e-6, abs_tol=1e-12)
        assert math.isclose(bounds.backward[n - 1], psi, rel_tol=1e-6, abs_tol=1e-12)


@given(SEEDS, st.integers(2, 4), st.floats(0.01, 5), st.floats(0.01, 5))
@examples(10, 60)
def test_one_step_of_both_recursions_against_all_vertices(seed, k, phi, psi):
    """Rows p, p' of a chain, all h in {1, e^φ}^k and g in {1, e^ψ}^k: the forward step is the maximum itself."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), size=k)
    step = interval_influence(pf.IntervalFamily(P, P))._steps[1]
    vertices = np.array(list(product([0.0, 1.0], repeat=k)))
    h, g = np.exp(phi * vertices), np.exp(psi * vertices)
    means = np.log(P @ h.T)
    assert step.forward(phi) >= np.ptp(means, axis=0).max() - 1e-12
    exact = np.log1p(np.expm1(phi) * (P @ vertices.T))
    assert step.forward(phi) <= np.ptp(exact, axis=0).max() + 1e-9
    tilted = P[:, None, :] * h[None, :, :]  # one law q a state and h
    averages = np.log((tilted @ g.T) / tilted.sum(axis=2, keepdims=True))
    assert step.backward(phi, psi) >= np.ptp(averages, axis=0).max() - 1e-12
