"""MQMExact and its plain twin against the enumeration of all sequences."""

from decimal import Decimal, localcontext
from fractions import Fraction

import enumeration
import numpy as np
import plain_influence
import pytest
from cases import seeds

import pufferflow as pf
from pufferflow.influence.quilts import INFINITE, InfluenceTables

BATCHES, CHAINS_A_BATCH = seeds(2, 12), 30
EPSILONS = [1e-5, 0.01, 0.3, 1.0, 2.7, 8.0, 1e4]


def batch(number):
    rng = np.random.default_rng([2017, number])
    for _ in range(CHAINS_A_BATCH):
        k = int(rng.integers(1, 5))
        length = int(rng.integers(1, 7 if k < 4 else 6))
        yield enumeration.random_chain(rng, k), length


def plain_scale(chain, length, convention="exact"):
    start = enumeration.stationary_law(chain.matrix) if chain.start == "stationary" else chain.start
    quilts = plain_influence.quilts(chain.matrix, start, length, convention)
    return lambda epsilon: plain_influence.noise_scale(quilts, epsilon)


def close(scale, exact, epsilon):
    """An influence rounded up by some 1e-14 costs that much of ε."""
    return scale <= float(exact) * (1 + 1e-9 + 1e-12 / epsilon)


@pytest.mark.parametrize("number", BATCHES)
def test_exact_scale_is_the_enumerated_one_and_never_below(number):
    """That of the published convention is that of the printed formula."""
    for exact_chain, length in batch(number):
        chain = pf.MarkovChain(*exact_chain.floats())
        influences = enumeration.quilt_influences(exact_chain, length)
        twin, printed = (plain_scale(exact_chain, length, c) for c in ("exact", "published"))
        for epsilon in EPSILONS:
            exact, published = enumeration.exact_scale(influences, epsilon), printed(epsilon)
            scale = pf.mqm_exact(chain, length, epsilon).scale
            about = (exact_chain, length, epsilon)
            assert Decimal(scale) >= exact * (1 - Decimal("1e-25")), about  # 10^-30 is not 0
            assert close(scale, exact, epsilon), about
            assert twin(epsilon) == pytest.approx(float(exact), rel=1e-9), about
            scale = pf.mqm_exact(chain, length, epsilon, convention="published").scale
            assert published * (1 - 1e-12) <= scale, about
            assert close(scale, published, epsilon), about


@pytest.mark.parametrize("number", BATCHES)
@pytest.mark.parametrize("window", [2, 3])
def test_scales_of_windows_are_the_enumerated_ones_and_never_below(number, window):
    for exact_chain, length in batch(number):
        chain = pf.MarkovChain(*exact_chain.floats())
        influences = enumeration.quilt_influences(exact_chain, length, window)
        for epsilon in (0.05, 1.0, 10.0):
            exact = enumeration.exact_scale(influences, epsilon)
            found = pf.mqm_exact(chain, length, epsilon, window=window)
            about = (exact_chain, length, epsilon)
            assert Decimal(found.scale) >= exact * (1 - Decimal("1e-25")), about
            # otherwise the worst start of a pair of windows is not the worst of its records
            assert chain.start == "any" or close(found.scale, exact, epsilon), about
            if number == 0:
                proved = found.certified(chain)
                assert proved.scale == pytest.approx(found.scale, rel=1e-9), about
                found = pf.verify_certificate(proved.certificate)
                assert found.loss <= Fraction(repr(epsilon)), about


TINY = [
    [[0.5, 0.5, 0], [1e-200, 0.5, 0.5], [0, 1e-200, 1]],  # stationary law below the range of floats
    *([[1, 5e-324], [5e-324, 1]], [[1, 1e-310], [0.5, 0.5]], [[1, 1e-300], [1, 1e-310]]),
    *([[0.5, 0.5], [1e-300, 1]], [[0, 1, 0], [0, 1, 1e-300], [1e-300, 1, 0]]),
    [[0, 1, 1e-300], [1e-300, 1e-300, 1], [0.5, 0.5, 0]],
    [[1, 1e-155, 1e-155], [1e-155, 1, 1e-155], [1e-160, 1e-150, 1]],
    [[0.25, 0.75, 1e-291], [0.5, 0.5, 1e-289], [0.25, 0.75, 1e-290]],
]


@pytest.mark.parametrize("matrix", TINY)
@pytest.mark.parametrize(
    "start", ["any", "stationary", "first", pytest.param("last", marks=pytest.mark.long)]
)
def test_probabilities_that_underflow_never_lower_the_scale(matrix, start):
    k = len(matrix)
    rational = [[Fraction(p) for p in row] for row in matrix]
    if start in ("first", "last"):
        start = [int(x == (0 if start == "first" else k - 1)) for x in range(k)]
        exact_chain = enumeration.ExactChain(rational, [Fraction(p) for p in start])
    else:
        # floats this small do not sum to 1; the law must be stationary for the chain that is meant
        rational = [[p / sum(row) for p in row] for row in rational]
        exact_chain = enumeration.ExactChain(rational, start, zeros=6000)
    chain = pf.MarkovChain(matrix, start)
    for length in (1, 2, 3):
        influences = enumeration.quilt_influences(exact_chain, length)
        for epsilon in (0.2, 1.0, 30.0, 500.0, 2000.0):
            exact = enumeration.exact_scale(influences, epsilon)
            scale = pf.mqm_exact(chain, length, epsilon).scale
            assert Decimal(scale) >= exact * (1 - Decimal("1e-25")), (length, epsilon)
            assert scale <= length / epsilon * (1 + 1e-15)


# -- tables of influences: bounds from above, and close ones ---------------------------------------


def is_close_bound(entry, numerators, denominators, slack):
    """Whether ``entry`` lies between the largest log ratio and ``slack`` above it."""
    pairs = [(n, d) for n, d in zip(numerators, denominators, strict=True) if n]
    if any(not d for _, d in pairs):
        return entry >= INFINITE / 2
    largest = max((n / d for n, d in pairs), default=Fraction(0))
    if not largest:
        return entry <= -INFINITE / 2
    with localcontext(prec=50):
        exact = (Decimal(largest.numerator) / Decimal(largest.denominator)).ln()
    return exact <= Decimal(entry) <= exact + Decimal(slack)


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize("steps", [1, 2, 3, 7, 20, 64])
def test_forward_backward_and_initial_terms(number, steps):
    rng = np.random.default_rng([3, number])
    k = int(rng.integers(1, 4))
    matrix = enumeration.random_matrix(rng, k)
    floats = [list(map(float, row)) for row in matrix]
    tables = InfluenceTables(pf.MarkovChain(floats, "any"), "exact")
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
