"""Lower bounds against linear programs over all sequences: attained, and never above."""

from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from cases import examples, seeds
from hypothesis import example, given
from hypothesis import strategies as st
from random_chains import chains, distributions
from sequence_programs import largest_loss, sequence_law, stated_loss

import pufferflow as pf
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow.audit._lower_bound_kernels import TINY, tilted
from pufferflow.errors import ChainError


def random_chain(rng, largest):
    """Dense, sparse, nearly deterministic, transient and slow chains."""
    k = int(rng.integers(2, 4))
    length = int(rng.integers(2, largest[k] + 1))
    matrix = rng.dirichlet(np.full(k, rng.choice([0.1, 0.3, 1.0, 5.0])), k)
    kind = rng.integers(5)
    if kind == 0:
        matrix = matrix * (rng.random((k, k)) < 0.6) + 0.01 * np.eye(k)[rng.permutation(k)]
    elif kind == 1:
        matrix = np.eye(k)[rng.permutation(k)] + rng.choice([0, 1e-3]) * matrix
    elif kind == 2:
        matrix = np.triu(matrix) + 1e-12 * np.eye(k)
    elif kind == 3:
        matrix = 0.97 * np.eye(k) + 0.03 * matrix
    matrix /= matrix.sum(axis=1, keepdims=True)
    laws = ["stationary", rng.dirichlet(np.ones(k)), np.eye(k)[rng.integers(k)]]
    try:
        return pf.MarkovChain(matrix, laws[rng.integers(3)]), length
    except ChainError:  # no unique stationary law
        return pf.MarkovChain(matrix, laws[1]), length


def random_epsilon(rng):
    return float(np.exp(rng.uniform(np.log(0.02), np.log(8))))


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_one_record_needs_what_the_program_says(seed):
    rng = np.random.default_rng([1, seed])
    chain, length = random_chain(rng, {2: 6, 3: 4})
    epsilon = random_epsilon(rng)
    found = pf.lower_bound(chain, length, epsilon)
    if found.scale == 0:
        return
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    assert stated_loss(joint, found, found.scale * (1 - 1e-7)) > epsilon
    program = largest_loss(joint, 1 / found.scale)
    assert epsilon * (1 - 1e-6) <= program <= epsilon * (1 + 1e-6)  # the tolerance of the solver


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_any_start_is_bounded_by_the_stationary_one_or_by_all_alike(seed):
    rng = np.random.default_rng([4, seed])
    chain, length = random_chain(rng, {2: 5, 3: 3})
    k, epsilon = chain.states, random_epsilon(rng)
    found = pf.lower_bound(pf.MarkovChain(chain.transition_matrix, "any"), length, epsilon)
    law = chain.stationary_distribution if chain.is_irreducible else np.full(k, 1 / k)
    joint = sequence_law(chain.transition_matrix, law, length)
    assert stated_loss(joint, found, found.scale * (1 - 1e-7)) > epsilon
    assert largest_loss(joint, 1 / found.scale) <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize("seed", seeds(2, 100))
def test_one_set_for_all_entries_is_the_best_of_them(seed):
    rng = np.random.default_rng([5, seed])
    chain, length = random_chain(rng, {2: 6, 3: 5})
    found = pf.lower_bound(chain, length, random_epsilon(rng), alternating=False)
    assert set(found.earlier + found.later) <= {found.states}
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    k, scale = chain.states, found.scale * (1 + 1e-6)
    if not scale:
        return
    assert stated_loss(joint, found, found.scale * (1 - 1e-7)) > found.epsilon
    for inside in product([0.0, 1.0], repeat=k):
        tilt = np.exp(np.array(inside) / scale)
        tilted = joint
        for t in range(length):
            tilted = tilted * tilt.reshape([k if s == t else 1 for s in range(length)])
        for node in range(length):
            rest = tuple(t for t in range(length) if t != node)
            over, plain = tilted.sum(axis=rest), joint.sum(axis=rest)
            logs = np.log(over[plain > 0] / plain[plain > 0])
            assert logs.max() - logs.min() <= found.epsilon * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 3.0])
@pytest.mark.parametrize("length", [2, 6, 100, 20_001])
def test_a_cycle_needs_the_noise_of_a_group(epsilon, length):
    found = pf.lower_bound(pf.MarkovChain(np.eye(3)[[1, 2, 0]]), length, epsilon)
    assert found.scale == pytest.approx((len(found.earlier + found.later) + 1) / epsilon, rel=1e-6)
    assert len(found.earlier + found.later) + 1 == length


def loss_along(matrix, law, length, found, scale):
    """What Laplace noise of this scale leaks of the stated record, on the stated count: a vector an entry."""

    def product(entries, values, rows, cost):
        for t in entries:
            tilt = np.ones(len(matrix))
            tilt[list(found.counted(t))] = np.exp(cost)
            values = (values * tilt) @ rows
            values = values / values.max()
        return values

    def leak(cost):
        behind = product(range(1, found.node), law, matrix, cost)
        ahead = product(range(length, found.node, -1), np.ones(len(matrix)), matrix.T, cost)
        own = np.array([cost * (x in found.states) for x in range(len(matrix))])
        logs = own[list(found.pair)] + np.log(behind[list(found.pair)]) + np.log(ahead[list(found.pair)])
        return logs[0] - logs[1]

    return leak(1 / scale) - leak(0.0)


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_slow_chains_are_followed_far(seed):
    rng = np.random.default_rng([6, seed])
    k, length = int(rng.integers(2, 4)), int(rng.integers(4500, 9000))
    move = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0])), k) * (rng.random((k, k)) < 0.7)
    move = np.triu(move) if rng.random() < 0.7 else move
    matrix = np.eye(k) + 10.0 ** rng.uniform(-6, -2.5) * move
    matrix /= matrix.sum(axis=1, keepdims=True)
    start = rng.dirichlet(np.ones(k))
    found = pf.lower_bound(pf.MarkovChain(matrix, start), length, random_epsilon(rng))
    assert loss_along(matrix, start, length, found, found.scale * (1 - 1e-6)) > found.epsilon
    assert found.scale <= length / found.epsilon


@pytest.mark.parametrize(
    ("matrix", "start", "epsilon"),
    [
        ([[0.9995, 0.0005], [0, 1]], [0.5, 0.5], 0.1),
        ([[0.999, 0.001, 0], [0, 0.999, 0.001], [0, 0, 1]], [0.4, 0.3, 0.3], 5.0),
    ],
)
def test_chains_that_absorb_late_need_about_the_noise_of_a_group(matrix, start, epsilon):
    found = pf.lower_bound(pf.MarkovChain(matrix, start), 20_000, epsilon)
    assert 0.95 * 20_000 < found.scale * epsilon <= 20_000


def plain_product(matrix, sets, cost, end):
    """K D_1 … K D_n · end by its definition, in decimals of 60 digits."""
    with localcontext() as context:
        context.prec, context.Emin = 60, -(10**9)
        growth, rows = Decimal(-cost).exp(), [[Decimal(p) for p in row] for row in matrix]
        values = [Decimal(p) for p in end]
        for inside in sets[::-1]:
            values = [p * (1 if state else growth) for p, state in zip(values, inside, strict=True)]
            values = [sum(p * q for p, q in zip(row, values, strict=True)) for row in rows]
        return values


@st.composite
def products(draw):
    """A matrix, sets that change with time, the cost and the last vector."""
    matrix = np.array(draw(chains(4)).transition_matrix)
    k = len(matrix)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    sets = rng.random((draw(st.integers(0, 70)), k)) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    if draw(st.booleans()):
        matrix = np.ascontiguousarray(matrix.T)
    return matrix, sets, draw(st.sampled_from([1e-6, 0.1, 2.0, 40.0])), draw(distributions(k))


@given(products())
@example((np.eye(2), np.tile([True, False], (70, 1)), 40.0, np.array([0.5, 0.5])))  # underflow takes one
@examples(16, 160)
def test_differences_of_logarithms_are_enclosed(case):
    """From below and from above, up to the rounding stated: periodic chains, entries below floats."""
    matrix, sets, cost, end = case
    k, exact = len(matrix), plain_product(matrix, sets, cost, end)
    low, high = np.empty((2, k))
    for upper, values in ((False, low), (True, high)):
        tilted(np.ascontiguousarray(matrix.T), end, sets, cost, upper, values)
    room = 4.0 * (k + 8) * UNIT_ROUNDOFF * (len(sets) + 2)
    for x, y in product(range(k), repeat=2):
        if low[x] > 0 and exact[y] > 0:
            true = float((exact[x] / exact[y]).ln())
            assert np.log(low[x]) - np.log(high[y]) <= true + room + 1e-15 * abs(true)
            if min(exact) / max(exact) > TINY and not (matrix == 0).any() and end.min() > TINY:
                assert np.log(low[x]) - np.log(high[y]) >= true - room - 1e-15 * abs(true)
