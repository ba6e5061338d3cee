"""Lower bounds: attained by the stated query, and not above linear programs over sequences."""

from fractions import Fraction
from itertools import permutations

import flint
import numpy as np
import pytest
from cases import examples, seeds
from enumeration import random_matrix, stationary_law
from hypothesis import example, given
from hypothesis import strategies as st
from processes import a_start, matrices
from sequence_programs import largest_loss, sequence_law

import pufferflow as pf
from pufferflow.audit import _lower_bound_kernels as kernels
from pufferflow.errors import ChainError


@pytest.mark.parametrize("seed", seeds(6, 200))
@pytest.mark.parametrize("start", ["stationary", "given", "any"])
def test_one_record_needs_what_the_program_says(seed, start):
    rng = np.random.default_rng([1, seed])
    k = int(rng.integers(2, 4))
    matrix, law = matrices(rng, k)[0], a_start(rng, k)
    length, epsilon = int(rng.integers(2, {2: 7, 3: 5}[k])), float(np.exp(rng.uniform(-4, 2)))
    try:
        chain = pf.MarkovChain(matrix, law if start == "given" else start)
    except ChainError:  # no unique stationary distribution
        return
    if start != "given":
        law = (
            chain.stationary_distribution
            if start != "any" or chain.is_irreducible
            else np.full(k, 1 / k)
        )
    joint, found = sequence_law(matrix, law, length), pf.lower_bound(chain, length, epsilon)
    if found.scale:
        program = largest_loss(joint, 1 / found.scale)
        # the tolerance of the solver
        assert epsilon * (1 - 1e-6) <= program <= epsilon * (1 + 1e-6)
    one_set = pf.lower_bound(chain, length, epsilon, alternating=False)
    assert one_set.scale <= found.scale * (1 + 1e-9)
    assert set(one_set.earlier + one_set.later) <= {one_set.states}


def fractions(row):
    return [flint.arb(p.numerator) / p.denominator for p in row]


def stated_loss(matrix, law, found):
    """What the query that a lower bound states tells just below its scale, in ball arithmetic."""
    cost = 1 / (flint.arb(found.scale) * (1 - flint.arb(2) ** -60))
    k, steps = len(matrix), flint.arb_mat([fractions(row) for row in matrix])
    end = min(found.length, found.node + len(found.later))

    def told(tilted):
        """E[e^count; X_node = x] for the two values x of the pair."""
        rows = flint.arb_mat([fractions(law)])  # from the node on, one row per value of it
        for node in range(1, end + 1):
            rows = rows * steps if node > 1 else rows
            weights = [(cost * (tilted and y in found.counted(node))).exp() for y in range(k)]
            rows = flint.arb_mat([[row[y] * weights[y] for y in range(k)] for row in rows.tolist()])
            if node == found.node:
                rows = flint.arb_mat(
                    [[rows[0, y] * (x == y) for y in range(k)] for x in found.pair]
                )
        return [sum(row) for row in rows.tolist()]

    (over, above), (plain, below) = told(True), told(False)
    return (over / plain / (above / below)).log()


@example(1096)  # 5e-17 nats at first: a step to a root beyond the range of floats
@given(st.integers(0, 2**32 - 1))
@examples(12, 200)
def test_the_query_that_is_stated_tells_epsilon(seed):
    """Slow, periodic and absorbing chains, with asymmetric windows; entries below all floats."""
    rng = np.random.default_rng(seed)
    k, length = int(rng.integers(2, 4)), int(rng.integers(1, 80))
    matrix = random_matrix(rng, k)
    if rng.random() < 0.3:  # slow
        rare = Fraction(1, 2 ** int(rng.integers(5, 46)))  # floats hold these entries exactly
        matrix = [
            [(x == y) * (1 - rare) + p * rare for y, p in enumerate(row)]
            for x, row in enumerate(matrix)
        ]
    if rng.random() < 0.3:  # a cycle, too long for every node to be looked at
        k, length = int(rng.choice([3, 5])), int(rng.integers(501, 560))
        matrix = [[Fraction(int(y == (x + 1) % k)) for y in range(k)] for x in range(k)]
    stationary = stationary_law(matrix)
    law = stationary if stationary and rng.random() < 0.5 else random_matrix(rng, k)[0]
    start = "stationary" if law is stationary else [float(p) for p in law]
    epsilon = float(np.exp(rng.uniform(-2, 1.5)))
    chain = pf.MarkovChain([[float(p) for p in row] for row in matrix], start)
    for alternating in (True, False):
        found = pf.lower_bound(chain, length, epsilon, alternating=alternating)
        assert len(found.earlier) < found.node <= length - len(found.later)
        if found.scale:
            with flint.ctx.workprec(300):
                assert stated_loss(matrix, law, found) > epsilon


@given(st.integers(0, 2**32 - 1))
@examples(60, 3000)
def test_products_of_hostile_entries_are_enclosed(seed):
    """Against fractions: entries of 1e-320 and less, tilts of e^-199. Nothing or a true bound."""
    rng = np.random.default_rng(seed)
    k, records = int(rng.integers(2, 4)), int(rng.integers(1, 12))
    powers = rng.choice([0, 0, -1, -40, -100, -200, -290, -300, -307, -320, -400], (k, k))
    matrix = np.array([[float(f"{rng.uniform(1, 9)}e{n - 1}") for n in row] for row in powers])
    end = np.array([1, *(float(f"1e{n}") for n in rng.choice([0, 0, -100, -250], k - 1))])
    sets, low = rng.random((records, k)) < 0.5, float(np.exp(-rng.choice([0.1, 5, 60, 199])))
    tables, columns = np.empty((2, records + 1, k)), np.ascontiguousarray(matrix.T)
    powers = [
        kernels.pull_back(columns, end, sets, low, least, table)
        for least, table in zip((0.0, 2 * kernels.TINY), tables, strict=True)
    ]
    exact = [Fraction(x) for x in end]
    for inside in sets[::-1]:
        tilted = [v if kept else v * Fraction(low) for v, kept in zip(exact, inside, strict=True)]
        exact = [sum(Fraction(p) * v for p, v in zip(row, tilted, strict=True)) for row in matrix]
    if np.isfinite(tables).all():
        lower, upper = ([Fraction(x) for x in table[0]] for table in tables)
        error, factor = 1 + Fraction(1, 10**11), Fraction(2) ** (powers[0] - powers[1])
        for x, y in permutations(range(k), 2):
            assert lower[x] * factor * exact[y] <= upper[y] * exact[x] * error
