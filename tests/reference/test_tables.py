"""Every entry of a max-influence table bounds the exact logarithm from above, and closely."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import plain_influence
import pytest
from enumeration import random_matrix, stationary_law

import pufferflow as pf
from pufferflow.influence.quilts import INFINITE, InfluenceTables, initial_term


def is_close_bound(entry, numerators, denominators, slack):
    """Whether ``entry`` lies between the largest log ratio and ``slack`` above it."""
    pairs = [(n, d) for n, d in zip(numerators, denominators, strict=True) if n]
    if any(not d for _, d in pairs):
        return entry >= INFINITE / 2
    largest = max((n / d for n, d in pairs), default=Fraction(0))
    if not largest:
        return entry <= -INFINITE / 2
    with localcontext() as context:
        context.prec = 50
        exact = (Decimal(largest.numerator) / Decimal(largest.denominator)).ln()
    return exact <= Decimal(entry) <= exact + Decimal(slack)


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("steps", [1, 2, 3, 7, 20, 64])
def test_forward_backward_and_initial_terms(number, steps):
    rng = np.random.default_rng([3, number])
    k = int(rng.integers(1, 4))
    matrix = random_matrix(rng, k)
    tables = InfluenceTables(
        pf.MarkovChain([[float(p) for p in row] for row in matrix], "any"), "exact"
    )
    power = plain_influence.powers(matrix, steps)[steps]
    columns = list(zip(*power, strict=True))
    sources = rng.random(k) < 0.7
    sources[rng.integers(k)] = True
    kept = [[p for p, keep in zip(column, sources, strict=True) if keep] for column in columns]
    right, left = tables.at(steps), tables.at(steps, sources)
    initial = tables.any_initial(steps)
    slack = 1e-12
    for x in range(k):
        for y in range(k):
            assert is_close_bound(tables.stack[right, x, y], power[x], power[y], slack)
            assert is_close_bound(tables.stack[left, x, y], kept[x], kept[y], slack)
            assert is_close_bound(initial[x, y], columns[y], columns[x], slack)


@pytest.mark.parametrize("number", range(40))
def test_stationary_term(number):
    rng = np.random.default_rng([4, number])
    k = int(rng.integers(2, 7))
    matrix = random_matrix(rng, k)
    exact = stationary_law(matrix)
    if exact is None:
        return
    chain = pf.MarkovChain([[float(p) for p in row] for row in matrix])
    table = initial_term(chain.stationary_distribution, chain.stationary_error)
    for x, y in product(np.flatnonzero(exact), repeat=2):
        assert is_close_bound(table[x, y], [exact[y]], [exact[x]], 1e-12)
