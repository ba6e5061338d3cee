"""Needed precision, ComputePrecision and expected random bits against their definitions, tried out."""

from fractions import Fraction
from itertools import accumulate, combinations_with_replacement

import pytest
from cases import examples
from hypothesis import assume, given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.related.dp._cumulative import CumulativeWeights
from pufferflow.related.dp.base2_exponential import _ATTEMPTS, Base2Exponential, Eta
from pufferflow.related.dp.precision import compute_precision, expected_bits, needed_precision, significant_bits


@st.composite
def etas(draw):
    y = draw(st.integers(1, 4))
    return Eta(draw(st.integers(1, 2**y - 1)), y, draw(st.integers(1, 2)))


def rounded(number, bits):
    """``number`` in ``bits`` bits, cut off: what arithmetic of that precision keeps."""
    exponent = 0
    while number >= 2**bits:
        number, exponent = number / 2, exponent + 1
    while number < 2 ** (bits - 1):
        number, exponent = number * 2, exponent - 1
    return Fraction(number.numerator // number.denominator) * Fraction(2) ** exponent


@given(st.integers(1, 2**30), st.integers(-20, 20))
def test_significant_bits_are_the_fewest_that_keep_the_number(numerator, exponent):
    number = numerator * Fraction(2) ** exponent
    bits = significant_bits(number)
    assert rounded(number, bits) == number
    assert bits == 1 or rounded(number, bits - 1) != number


def test_zero_needs_no_bit_and_a_third_too_many():
    assert significant_bits(Fraction(0)) == 0
    with pytest.raises(pf.ParameterError, match="1/3 has no finite binary expansion"):
        significant_bits(Fraction(1, 3))


@examples(16, 160)
@given(etas(), st.integers(0, 4), st.integers(1, 5))
def test_needed_precision_is_that_of_the_worst_sum(eta, span, outcomes):
    weights = [eta.base**k for k in range(span + 1)]
    sums = (sum(some) for n in range(1, outcomes + 1) for some in combinations_with_replacement(weights, n))
    assert needed_precision(eta, span, outcomes) == max(map(significant_bits, sums))


@examples(16, 160)
@given(etas(), st.integers(0, 40), st.integers(1, 40), st.integers(1, 20))
def test_compute_precision_is_doubling_until_the_test_sums_are_exact(eta, span, outcomes, start):
    full = Fraction(outcomes - 1)
    sums = [full + eta.base**k for k in range(span + 1)]
    bits = start
    while any(rounded(total, bits) != total for total in ([full] if full else []) + sums):
        bits *= 2
    assert compute_precision(eta, span, outcomes, start) == bits


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((-1, 3), "span is -1; it must be an integer of at least 0"),
        ((1, 0), "outcomes is 0"),
        ((1, 1, 0), "start is 0"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, words):
    with pytest.raises(pf.ParameterError, match=words):
        compute_precision(Eta(1, 1), *arguments)


class Tape:
    """The bits of one string, and how many were read."""

    def __init__(self, string, length):
        self.string, self.length, self.read = string, length, 0

    def __call__(self, k):
        self.read += k
        return self.string >> self.length - self.read & (1 << k) - 1


@examples(12, 120)
@given(etas(), st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_expected_bits_are_the_mean_over_every_string(eta, utilities):
    exponents = [u - min(utilities) for u in utilities]
    numerator, shift = eta.odd
    depth = shift * max(exponents)
    weights = CumulativeWeights(numerator, shift, exponents, depth)  # exact enclosures
    length = weights.exponent + depth
    assume(length <= 11)
    sums = list(accumulate(numerator**k << depth - shift * k for k in exponents))
    for sampler, attempt in _ATTEMPTS.items():
        read, accepted = 0, 0
        for s in range(1 << length):
            tape = Tape(s, length)
            accepted += attempt(weights, tape) < len(exponents)
            read += tape.read
        # attempts are independent: bits of one, over the chance that it succeeds
        assert expected_bits(sums, bitwise=sampler == "bitwise") == Fraction(read, accepted)
        assert expected_bits(sums, bitwise=False) <= 2 * length


@pytest.mark.parametrize("sampler", ["rejection", "bitwise"])
def test_the_mechanism_counts_what_it_takes(sampler):
    """Nothing but the bits of its draws: one outcome takes none bit by bit, and rounding takes its own."""
    mechanism = Base2Exponential(Eta(1, 1), 0, 4, 4, sampler=sampler, insecure_seed=3)
    assert mechanism.random_bits == 0
    mechanism.release([2])
    certain = mechanism.random_bits
    assert certain == (0 if sampler == "bitwise" else mechanism.enclosure_bits)
    mechanism.release([Fraction(1, 2)])
    assert mechanism.random_bits > 2 * certain
    assert Base2Exponential(Eta(1, 1), 0, 4, 4).random_bits == 0
