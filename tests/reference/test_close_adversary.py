"""Theorem 2.4's Δ against a list of all k^T paths, with fractions."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cases import counts
from enumeration import joint_law, stationary_law

import pufferflow as pf
from pufferflow.errors import ChainError


def paths(chain, length):
    """Weights of all paths, up to a factor: P(path | secret) is one over its secret's sum."""
    matrix = [[Fraction(float(p)) for p in row] for row in chain.transition_matrix]
    matrix = [[p / sum(row) for p in row] for row in matrix]
    if chain.start == "stationary":
        return joint_law(matrix, stationary_law(matrix), length)
    return joint_law(matrix, [Fraction(float(p)) for p in chain.initial_distribution], length)


def delta(theta, tilde, length):
    """The definition."""
    first, second = paths(theta, length), paths(tilde, length)
    largest = Fraction(1)
    for i, x in product(range(length), range(theta.states)):
        p, q = (np.atleast_1d(law.take(x, axis=i)).ravel().tolist() for law in (first, second))
        if not any(q):
            continue
        if [bool(a) for a in p] != [bool(b) for b in q]:
            return math.inf
        ratios = [Fraction(b * sum(p), a * sum(q)) for a, b in zip(p, q, strict=True) if a]
        largest = max(largest, max(ratios), 1 / min(ratios))
    return math.log(largest.numerator) - math.log(largest.denominator)


def random_pair(rng):
    """Two chains, most often with the same zeros."""
    k = int(rng.integers(1, 4))
    supports = rng.random((k + 1, k)) < rng.choice([0.5, 1.0])
    supports[np.arange(k + 1), rng.integers(0, k, k + 1)] = True
    chains = []
    for _ in range(2):
        rows = np.where(supports, rng.dirichlet(np.ones(k), k + 1) + 1e-6, 0)
        rows /= rows.sum(axis=1, keepdims=True)
        start = "stationary" if rng.integers(2) else rows[k]
        try:
            chains.append(pf.MarkovChain(rows[:k], start))
        except ChainError:
            chains.append(pf.MarkovChain(rows[:k], rows[k]))
        if rng.integers(8) == 0:
            supports[:] = True
    return chains


@pytest.mark.parametrize("cases", counts(50, 150))
def test_against_all_paths(cases):
    rng = np.random.default_rng(24)
    infinite = 0
    for _ in range(cases):
        theta, tilde = random_pair(rng)
        length = int(rng.integers(1, 6))
        expected = delta(theta, tilde, length)
        found = pf.audit.close_adversary(theta, tilde, length)
        assert found.exact
        assert found.delta >= expected
        assert found.delta == pytest.approx(expected, abs=1e-10)
        infinite += expected == math.inf
    assert cases / 30 < infinite < cases / 2


def test_the_closest_chain_of_the_family_counts():
    tilde = pf.MarkovChain([[0.82, 0.18], [0.3, 0.7]], [0.9, 0.1])
    near, far = (pf.MarkovChain([[p, 1 - p], [0.3, 0.7]], [0.9, 0.1]) for p in (0.8, 0.5))
    found = pf.audit.close_adversary(pf.ChainFamily([far, near]), tilde, 6)
    assert found.chain == 1
    assert found.delta == pytest.approx(delta(near, tilde, 6))
    assert found.loss(0.5) == pytest.approx(0.5 + 2 * found.delta)
    assert found.loss(0.5) >= 0.5 + 2 * found.delta
    assert pf.audit.close_adversary(pf.ChainFamily([far, tilde]), tilde, 10**5).chain == 1


def test_special_starts_and_lengths():
    matrix = [[0.9, 0.1], [0.4, 0.6]]
    chain, any_start = pf.MarkovChain(matrix), pf.MarkovChain(matrix, "any")
    found = pf.audit.close_adversary(chain, chain, 1000)
    assert (found.delta, found.exact, found.node) == (0.0, True, None)
    assert pf.audit.close_adversary(any_start, chain, 1000).delta == 0
    tilde = pf.MarkovChain([[0.85, 0.15], [0.4, 0.6]], [0.3, 0.7])  # of any start its own is taken
    found = pf.audit.close_adversary(any_start, tilde, 5)
    assert not found.exact
    assert found.delta == pytest.approx(delta(pf.MarkovChain(matrix, [0.3, 0.7]), tilde, 5))
    near = pf.MarkovChain([[0.9001, 0.0999], [0.4, 0.6]])
    short, long = (pf.audit.close_adversary(chain, near, n) for n in (10**4, 2 * 10**4))
    assert long.delta == pytest.approx(2 * short.delta, rel=1e-2)
    assert short.exact
