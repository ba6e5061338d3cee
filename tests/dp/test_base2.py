"""The base-2 exponential mechanism against stored sums, over every random string."""

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from cases import counts, examples
from flint import arb, ctx
from hypothesis import assume, given
from hypothesis import strategies as st
from samplers import RARE, p_value

from pufferflow.dp import base2
from pufferflow.dp.base2 import Base2Exponential, CumulativeWeights, Eta

HALF = Eta(1, 1)


@st.composite
def etas(draw):
    y = draw(st.integers(1, 4))
    return Eta(draw(st.integers(1, 2**y - 1)), y, draw(st.integers(1, 2)))


def exponents(largest=6, most=6):
    lists = st.lists(st.integers(0, largest), min_size=1, max_size=most)
    return lists.map(lambda some: [k - min(some) for k in some])


class Tape:
    """The bits of one string, and how many were read."""

    def __init__(self, string, length):
        self.string, self.length, self.read = string, length, 0

    def __call__(self, k):
        self.read += k
        assert self.read <= self.length
        return self.string >> self.length - self.read & (1 << k) - 1


def stored(eta, ks):
    """All c_i as integers at the full depth, and that depth: the source's own way."""
    numerator, shift = eta.odd
    depth = shift * max(ks)
    return list(accumulate(numerator**k << depth - shift * k for k in ks)), depth


@pytest.mark.parametrize("last", [[100], [], [100, 100]])
def test_a_total_at_a_power_of_two_beyond_the_enclosures(last):
    """1 + ½ + … + 2^−100 is 2^−100 short of 2: the enclosures do not distinguish the totals."""
    weights = CumulativeWeights(1, 1, [*range(101), *last], 20)
    assert weights.width == 20 + (1 if len(last) < 2 else 2)


def draws_as_defined(eta, ks, bits, strings):
    weights, (sums, depth) = CumulativeWeights(*eta.odd, ks, bits), stored(eta, ks)
    length, up = weights.width + max(depth - bits, 0), max(bits - depth, 0)
    for s in strings(sums, up, length):
        for bitwise in (True, False):
            assert weights.draw(Tape(s, length), bitwise=bitwise) == bisect_right(sums, s >> up)


def test_sums_are_enclosed_though_another_thread_lowers_the_precision(monkeypatch):
    made = []

    def lowered(*values):
        made.append(values)
        ctx.prec = 20 if len(made) in (3, 4) else ctx.prec  # not q^0
        return arb(*values)

    monkeypatch.setattr(base2, "arb", lowered)
    weights = CumulativeWeights(3, 2, list(range(0, 1200, 30)), 64)
    exact = [Fraction(weights.exact(n), 1 << weights.depth) for n in range(1, 41)]
    for low, high, total in zip(weights.lower, weights.upper, exact, strict=True):
        assert low <= total * 2**64 <= high
    assert len(made) > 4


@examples(12, 120)
@given(etas(), exponents(3), st.integers(1, 6))
def test_every_random_string_gives_what_the_definition_gives(eta, ks, bits):
    """Enclosures so short that most strings need exact sums: a proof of both samplers."""
    draws_as_defined(eta, ks, bits, lambda sums, up, n: assume(n <= 12) and range(1 << n))


@examples(12, 120)
@given(etas(), exponents(400, 30), st.integers(64, 200))
def test_strings_at_the_very_edges(eta, ks, bits):
    """s = c_i and s = c_i − 1 differ in their last bit alone, far below the enclosures."""
    draws_as_defined(
        eta, ks, bits, lambda sums, up, n: {(c << up) - i for c in sums for i in (0, 1)} - {1 << n}
    )


@examples(30, 400)
@given(
    etas(),
    st.lists(st.tuples(st.integers(-8, 20), st.integers(-6, 6)), min_size=1, max_size=5),
    st.booleans(),
)
def test_the_loss_is_the_stated_one(eta, pairs, whole):
    """2⌈α⌉η for integers and for utilities rounded at random, some of them clamped."""
    unit = 1 if whole else Fraction(1, 4)
    first, second = [u * unit for u, _ in pairs], [(u + change) * unit for u, change in pairs]
    alpha = max(*(abs(change) * unit for _, change in pairs), unit)
    mechanism = Base2Exponential(eta, -2, 5, 5, sensitivity=alpha)
    p, q = mechanism.probabilities(first), mechanism.probabilities(second)
    assert sum(p) == 1
    bound = eta.base ** (-2 * math.ceil(alpha))
    assert all(a <= bound * b and b <= bound * a and a > 0 for a, b in zip(p, q, strict=True))
    assert mechanism.epsilon >= math.log(bound) * (1 - 1e-15)


@pytest.mark.parametrize("size", counts(2_500, 10_000))
@pytest.mark.parametrize("sampler", ["rejection", "bitwise"])
@pytest.mark.parametrize("eta", [HALF, Eta(7, 3), Eta(5, 3, 2)])
def test_frequencies_are_the_exact_probabilities(sampler, eta, size):
    for utilities in ([0, 9, 9, 9], [4] * 6, [3, -2, 0, 7, 1, 1, 50], [0, 0, 30], [-0.25, 0, 0.5]):
        mechanism = Base2Exponential(
            eta, -2, 9, 8, sampler=sampler, insecure_seed=11, minimum_attempts=1 + eta.z
        )
        drawn = np.bincount(mechanism.release(utilities, size), minlength=len(utilities))
        assert p_value(drawn, mechanism.probabilities(utilities)) > 1e-3
    system = Base2Exponential(eta, 0, 5, 8, sampler=sampler)
    drawn = np.bincount(system.release([0, 1, 2, 5], size), minlength=4)
    assert p_value(drawn, system.probabilities([0, 1, 2, 5])) > RARE


@pytest.mark.parametrize(("utilities", "least"), [([4], 1), ([2, 2, 2, 2], 1), ([0, 5, 5], 9)])
def test_the_minimum_of_attempts_is_always_made(utilities, least):
    mechanism, calls, needed = Base2Exponential(HALF, 0, 5, 4, minimum_attempts=least), [], []
    draw = mechanism._random.getrandbits
    mechanism._random.getrandbits = lambda k: calls.append(k) or draw(k)
    for _ in range(200):
        calls.clear()
        mechanism.release(utilities)
        needed.append(len(calls))
    # a total that is a power of two is never rejected; [0, 5, 5] is, with probability 0.47
    assert min(needed) == least
    assert needed.count(least) >= (180 if least > 1 else 200)


@pytest.mark.parametrize(("x", "y", "z"), [(1, 1, 1), (3, 2, 5), (2**40 - 1, 40, 1), (6, 3, 2)])
def test_the_loss_of_eta_is_rounded_up_and_hardly(x, y, z):
    for factor in (1, 6):
        loss = Eta(x, y, z).loss(factor)
        with ctx.workprec(2000):
            exact = -arb(factor * z) * (arb(x) / arb(2) ** y).log()
            assert arb(loss) >= exact > arb(math.nextafter(loss, 0))


@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.5, 3.7, 30.0])
@pytest.mark.parametrize("sensitivity", [1, 2, Fraction(3, 2)])
def test_for_epsilon_is_the_largest_eta_that_keeps_it(epsilon, sensitivity):
    eta, factor = Eta.for_epsilon(epsilon, sensitivity, y=40), 2 * math.ceil(sensitivity)
    assert eta.loss(factor) <= epsilon
    assert eta.x == 1 or Eta(eta.x - 1, 40).loss(factor) > epsilon


@pytest.mark.parametrize("span", counts(10**5, 10**6))
def test_large_outcome_sets_and_ranges(span):
    mechanism = Base2Exponential(HALF, 0, 74_999, 75_000, insecure_seed=5)
    assert max(mechanism.release(range(75_000), 50)) < 40
    wide = Base2Exponential(Eta(51_040, 16), 0, span, 3, sampler="bitwise", insecure_seed=5)
    assert wide.release([span, 0, span - 1]) == [1]
