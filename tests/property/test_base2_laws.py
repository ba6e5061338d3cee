"""The samplers against the plain definition over every random string, and the privacy bound in exact fractions."""

from fractions import Fraction
from itertools import accumulate

import pytest
from cases import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from pufferflow.related.dp._cumulative import CumulativeWeights
from pufferflow.related.dp.base2_exponential import _ATTEMPTS, Base2Exponential, Eta
from reproduction.related.base2_exponential import rounding_loss

odd = st.integers(0, 3).map(lambda i: 2 * i + 1)


@st.composite
def bases(draw):
    shift = draw(st.integers(1, 4))
    return draw(st.integers(0, (1 << shift) // 2 - 1)) * 2 + 1, shift


@st.composite
def exponent_lists(draw, largest=6):
    exponents = draw(st.lists(st.integers(0, largest), min_size=1, max_size=6))
    return [k - min(exponents) for k in exponents]


class Replay:
    """Hand out the bits of one string, from the top."""

    def __init__(self, string, length):
        self.string, self.left = string, length

    def __call__(self, k):
        self.left -= k
        assert self.left >= 0
        return self.string >> self.left & (1 << k) - 1


def plain(exponents, numerator, shift):
    """All c_i as integers at the full depth, and that depth."""
    depth = shift * max(exponents)
    return list(accumulate(numerator**k << depth - shift * k for k in exponents)), depth


@examples(20, 240)
@given(bases(), exponent_lists(), st.integers(1, 40))
def test_enclosures_and_exact_sums(base, exponents, bits):
    weights = CumulativeWeights(*base, exponents, bits)
    sums, depth = plain(exponents, *base)
    assert weights.depth == depth
    assert [weights.exact(i + 1) for i in range(len(sums))] == sums
    assert 1 << weights.exponent + depth >= sums[-1] > 1 << weights.exponent + depth >> 1
    for low, c, high in zip(weights._lower, sums, weights._upper, strict=True):
        assert Fraction(low, 1 << bits) <= Fraction(c, 1 << depth) <= Fraction(high, 1 << bits)
        if depth <= bits:
            assert low == high


@pytest.mark.parametrize("last", [[100], [], [100, 100]])
def test_a_total_at_a_power_of_two_beyond_the_enclosures(last):
    """1 + ½ + … + 2^−100 is 2^−100 short of 2: the enclosures cannot tell the three totals apart."""
    weights = CumulativeWeights(1, 1, [*range(101), *last], 20)
    assert weights.exponent == (1 if len(last) < 2 else 2)


@examples(12, 120)
@given(bases(), exponent_lists(largest=3), st.integers(1, 6))
def test_every_random_string_gives_what_the_definition_gives(base, exponents, bits):
    """Both samplers, with enclosures so short that most strings need exact sums: an exact proof of their law."""
    weights = CumulativeWeights(*base, exponents, bits)
    sums, depth = plain(exponents, *base)
    places = max(depth, bits)
    length = weights.exponent + places
    assume(length <= 12)
    for s in range(1 << length):
        expected = next((i for i, c in enumerate(sums) if c << places - depth > s), len(sums))
        for attempt in _ATTEMPTS.values():
            assert attempt(weights, Replay(s, length)) == expected


@examples(12, 120)
@given(bases(), st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(64, 200), st.data())
def test_strings_at_the_very_edge(base, utilities, bits, data):
    """s = c_i and s = c_i − 1 differ in their last bit alone, far below the enclosures."""
    exponents = [u - min(utilities) for u in utilities]
    weights = CumulativeWeights(*base, exponents, bits)
    sums, depth = plain(exponents, *base)
    places = max(depth, bits)
    i = data.draw(st.integers(0, len(sums) - 1))
    for s in (sums[i] << places - depth, (sums[i] << places - depth) - 1):
        if s >> weights.exponent + places:
            continue  # c_n = 2^exponent
        expected = next((j for j, c in enumerate(sums) if c << places - depth > s), len(sums))
        for attempt in _ATTEMPTS.values():
            assert attempt(weights, Replay(s, weights.exponent + places)) == expected


@examples(20, 300)
@given(
    odd,
    st.integers(3, 4),
    st.integers(1, 2),
    st.lists(st.tuples(st.integers(-5, 9), st.integers(-2, 2)), min_size=1, max_size=7),
)
def test_loss_of_integer_utilities(x, y, z, pairs):
    eta = Eta(x, y, z)
    mechanism = Base2Exponential(eta, -3, 5, 7)  # some utilities are clamped
    sensitivity = max(1, *(abs(change) for _, change in pairs), 0)
    first = mechanism.probabilities([u for u, _ in pairs])
    second = mechanism.probabilities([u + change for u, change in pairs])
    assert sum(first) == 1
    bound = eta.base ** (-2 * sensitivity)
    assert all(p <= bound * q and q <= bound * p and p > 0 for p, q in zip(first, second, strict=True))


quarters = st.integers(-8, 20).map(lambda i: Fraction(i, 4))


@examples(20, 300)
@given(
    odd,
    st.integers(3, 5),
    st.lists(st.tuples(quarters, st.integers(-6, 6)), min_size=1, max_size=5),
)
def test_loss_of_rounded_utilities(x, y, pairs):
    """2⌈α⌉η holds for every α once utilities are rounded at random."""
    eta = Eta(x, y)
    changes = [Fraction(change, 4) for _, change in pairs]
    alpha = max(*(abs(change) for change in changes), Fraction(1, 4))
    mechanism = Base2Exponential(eta, -2, 6, 5, sensitivity=alpha)
    first = mechanism.probabilities([u for u, _ in pairs])
    second = mechanism.probabilities([u + change for (u, _), change in zip(pairs, changes, strict=True)])
    bound = eta.base ** -int(2 * -(-alpha // 1))
    assert all(p <= bound * q and q <= bound * p for p, q in zip(first, second, strict=True))


@pytest.mark.parametrize("eta", [Eta(1, 2), Eta(3, 2), Eta(1, 3, 2)])
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1), Fraction(1, 4)])
def test_rounding_loss_is_the_exact_ratio(eta, alpha):
    outcomes = 7
    mechanism = Base2Exponential(eta, 0, 1, outcomes)
    first = mechanism.probabilities([1, *[1 - alpha] * (outcomes - 1)])[0]
    second = mechanism.probabilities([1 - alpha, *[1] * (outcomes - 1)])[0]
    assert 2 ** rounding_loss(eta, outcomes, alpha) == pytest.approx(float(second / first), rel=1e-12)


def test_a_fractional_sensitivity_costs_more_than_in_proportion():
    """2αη with α = 1/2 does not hold for rounded utilities, whatever η; 2⌈α⌉η is approached for α = 1."""
    for eta in (Eta(1, 1), Eta(1, 2), Eta(1, 4), Eta(7, 3)):
        assert 2 * 0.5 * eta.value < rounding_loss(eta, 2000 if eta.x == 7 else 200, Fraction(1, 2))
        assert rounding_loss(eta, 200, Fraction(1, 2)) < 2 * eta.value
        assert 0.9 * 2 * eta.value < rounding_loss(eta, 200, Fraction(1)) < 2 * eta.value
