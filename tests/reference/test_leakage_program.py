"""Leakage bounds against a linear program over all sequences, which knows no Markov property and no coupling."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import pufferflow as pf


def sequence_law(matrix, law, length):
    joint = np.array(law, dtype=float)
    for _ in range(length - 1):
        joint = joint[..., None] * matrix
    return joint


def largest_loss(matrix, law, length, cost):
    """Largest log E[f | X_i = x] / E[f | X_i = x'] over f > 0 that change by at most e^cost with one entry."""
    k = len(matrix)
    joint = sequence_law(matrix, law, length)
    sequences = list(product(range(k), repeat=length))
    number = {s: n for n, s in enumerate(sequences)}
    rows, columns, entries, count = [], [], [], 0
    for s in sequences:
        for i, z in product(range(length), range(k)):
            if z != s[i]:
                rows += [count, count]
                columns += [number[s], number[(*s[:i], z, *s[i + 1 :])]]
                entries += [1.0, -np.exp(cost)]
                count += 1
    lipschitz = csr_array((entries, (rows, columns)), shape=(count, len(sequences)))
    flat = joint.ravel()
    values = np.array(sequences)
    worst = cost
    for i, x, y in product(range(length), range(k), range(k)):
        above, below = flat * (values[:, i] == x), flat * (values[:, i] == y)
        if x == y or not above.sum() or not below.sum():
            continue
        found = linprog(
            -above / above.sum(),
            A_ub=lipschitz,
            b_ub=np.zeros(count),
            A_eq=[below / below.sum()],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
        )
        assert found.status == 0
        worst = max(worst, np.log(-found.fun))
    return worst


def random_case(seed):
    rng = np.random.default_rng(seed)
    k, length = [(2, 2), (2, 4), (2, 5), (3, 3), (3, 4), (4, 3), (5, 2)][seed % 7]
    matrix = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), k)
    if seed % 3 == 0:  # some impossible steps
        matrix = matrix * (rng.random((k, k)) < 0.6) + 0.01 * np.eye(k)[rng.permutation(k)]
        matrix /= matrix.sum(axis=1, keepdims=True)
    cost = rng.choice([0.01, 0.1, 0.5, 1.5, 4.0])
    return rng, matrix, length, float(cost)


def excess(seed, start):
    """Excess of the bound over the program, and whether both are of a binary chain."""
    rng, matrix, length, cost = random_case(seed)
    k = len(matrix)
    if start == "stationary":
        try:
            chain = pf.MarkovChain(matrix)
        except pf.ChainError:
            return None
        laws = [chain.stationary_distribution]
    elif start == "given":
        law = rng.dirichlet(np.ones(k)) * (rng.random(k) < 0.7)
        law = law / law.sum() if law.any() else np.eye(k)[0]
        chain, laws = pf.MarkovChain(matrix, law), [law]
    else:
        chain = pf.MarkovChain(matrix, "any")
        laws = [0.999 * np.eye(k)[rng.integers(k)] + 0.001 / k, *rng.dirichlet(np.ones(k) * 0.2, 3)]
    program = max(largest_loss(matrix, law, length, cost) for law in laws)
    bound = pf.leakage_loss(chain, length, 1 / cost)
    assert bound >= program * (1 - 1e-6)  # the tolerance of the solver
    return bound / program - 1


@pytest.mark.parametrize("start", ["stationary", "given", "any"])
@pytest.mark.parametrize("seed", range(14))
def test_never_below_the_program(seed, start):
    found = excess(seed, start)
    if found is not None and start != "any":
        assert found < 0.15
