"""Chains that follow a clock, with states that no record has at some of its phases, or at none."""

import numpy as np
import pytest
from cases import SLACK, examples
from hypothesis import assume, example, given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.coupling import periodic
from pufferflow.errors import CertificateError, ChainError, ParameterError


@st.composite
def shifts(draw):
    """Stationary chains of 3 to 5 states with 2 to 6 matrices, after each of which only some of the states occur."""
    k, pieces, seed = draw(st.integers(3, 5)), draw(st.integers(2, 6)), draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    matrices = rng.dirichlet(np.full(k, draw(st.sampled_from([0.3, 2.0]))), (pieces, k))
    matrices[rng.random(matrices.shape) < 0.4] = 0.0
    matrices += np.eye(k) * draw(st.sampled_from([0.1, 2.0, 20.0]))  # hours in which hardly anybody moves
    for matrix in matrices:
        if rng.random() < 0.7:
            matrix[:, rng.choice(k, rng.integers(1, k - 1), replace=False)] = 0.0
        stays = rng.random() < 0.3
        for x in range(k):
            if stays or not matrix[x].any():
                matrix[x] = np.eye(k)[x] if stays else np.eye(k)[rng.integers(k)]
    try:
        chain = pf.PeriodicChain(matrices / matrices.sum(axis=2, keepdims=True), repeat=draw(st.integers(1, 3)))
        assume(not chain.possible.all())
    except ChainError:  # no unique stationary law
        assume(False)
    return chain


NEVER = pf.PeriodicChain(
    [
        np.eye(4),
        [[0.79, 0, 0.16, 0.05], [0, 0.9, 0, 0.1], [0, 0, 0.99, 0.01], [0.01, 0, 0, 0.99]],
        [[0.9, 0, 0, 0.1], [0.01, 0.98, 0, 0.01], [0, 0, 1, 0], [0, 0, 0, 1]],
        np.eye(4),
    ],
    repeat=2,
)
"""No record has the second state. As one that they may have it would be a short cut between the others."""


def loss_of_counts(chain, length, cost):
    """Largest loss of a record by the number of records in any set of states, along the records in a plain loop."""
    k, period, largest = chain.states, chain.period, 0.0
    matrices = [chain.transition_matrix(phase) for phase in range(period)]
    for states in range(1, 2 ** (k - 1)):
        counted = np.exp(-cost * np.array([states >> x & 1 for x in range(k)]))
        for first in range(period):
            law = chain.stationary_distributions[first]
            before = [law]  # of the records before one, what they are expected to tilt a law by, up to a factor
            for t in range(length - 1):
                law = (law * counted) @ matrices[(first + t) % period]
                before.append(law := law / law.sum())
            after = np.ones(k)
            for t in range(length - 1, -1, -1):
                phase = (first + t) % period
                plain, there = chain.stationary_distributions[phase], chain.possible[phase]
                told = np.log((before[t] * counted * after)[there] / plain[there])
                largest = max(largest, np.ptp(told))
                after = matrices[(phase - 1) % period] @ (counted * after)
                after /= after.max()
    return largest


@given(shifts(), st.sampled_from([1e-2, 0.1, 1.0, 5.0]), st.sampled_from([1, 2, 5, 40]))
@example(NEVER, 0.01, 40)
@examples(10, 500)
def test_no_count_tells_more_than_the_bounds_of_either_kind(chain, cost, length):
    told = loss_of_counts(chain, length, cost) * (1 - 1e-9)
    assert pf.leakage_loss(chain, length, 1 / cost) >= told
    for side_information in ("none", "any"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(periodic, "_EXACT_STEPS", 0)  # the families that serve all lengths
            bound = periodic.PeriodicLeakage(chain, length, periodic.Protection(1, side_information))
            assert bound.loss(cost).value >= told


@given(shifts(), st.sampled_from([1e-2, 0.1, 1.0]), st.sampled_from([1, 2]))
@example(NEVER, 0.01, 1)
@examples(10, 300)
def test_what_serves_all_lengths_is_no_less_than_node_by_node(chain, cost, window):
    protection = periodic.Protection(window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(periodic, "_EXACT_STEPS", 10**9)
        patch.setattr(periodic, "_EXACT_WORK", 10**9)
        plain = periodic.PeriodicLeakage(chain, 30, protection).profile(cost)
        patch.setattr(periodic, "_EXACT_STEPS", 0)
        for length in (30, 3000):
            served = periodic.PeriodicLeakage(chain, length, protection).profile(cost)
            assert (served >= plain * (1 - 1e-6)).all()


@given(shifts(), st.sampled_from([1e-2, 0.2, 1.0, 5.0]), st.sampled_from([2, 40, 1000]))
@example(NEVER, 1.0, 1000)
@examples(6, 200)
def test_certificates_prove_the_scale_and_no_less(chain, epsilon, length):
    scale = pf.leakage(chain, length, epsilon).scale
    try:
        document = pf.certify(chain, length, epsilon, mechanism="leakage")
    except ParameterError:  # no round ends below where it starts, or not near the scale
        assume(False)
    most = 2 * scale if length == 1000 else length / epsilon  # few nodes are computed one by one
    assert scale * (1 - SLACK) <= float(document["scale"]) <= most * (1 + SLACK)
    pf.verify_certificate(document)
    if scale < 0.99 * length / epsilon:
        forged = document | {"scale": repr(float(document["scale"]) / 1.01)}
        with pytest.raises(CertificateError):
            pf.verify_certificate(forged)
