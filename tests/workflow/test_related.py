"""What is measured of αβ, classical mechanisms and the base-2 exponential one.

Their values are in the stored tables of test_comparison.py and test_shown.py.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import convolve2d

from pufferflow import dp
from reproduction import tidy
from reproduction.related import base2_exponential as base2
from reproduction.related import classical, disclosure


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("alpha_beta", ["rho_expected", "rho_measured", "rho_standard_error"]),
        ("classical", ["expected_error", "mean_error", "standard_error"]),
    ],
)
def test_measured_errors_agree_with_exact_ones(finished, name, columns):
    curves = tidy.read(finished.made / f"related/{name}.csv", "related")
    exact, measured, error = curves[columns].dropna().to_numpy().T
    assert (np.abs(exact - measured)[error > 0] < 4.5 * error[error > 0]).all()
    assert (error > 0).sum() > 20


@examples(10, 80)
@given(
    st.lists(st.integers(-50, 50) | st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.floats(0.05, 1e4),
    st.integers(1, 9),
)
def test_possible_outputs_are_those_of_every_uniform_number(values, scale, bits):
    """Of Laplace noise in doubles."""
    draws = list(itertools.product((-1, 1), range(1, 2**bits + 1)))
    every = [{base2.naive_laplace(v, scale, *drawn, bits) for drawn in draws} for v in values]
    for output in every[0] | every[1]:
        for near in (output, math.nextafter(output, math.inf)):
            assert base2.possible(near, values[0], scale, bits) == (near in every[0])


@st.composite
def parameters(draw):
    keep = draw(st.fractions(Fraction(1, 20), 1, max_denominator=20))
    beta = keep * draw(st.fractions(0, Fraction(9, 10), max_denominator=10))
    return dp.AlphaBeta(keep - beta, beta)


@examples(12, 60)
@given(parameters(), st.fractions(0, 1, max_denominator=50), st.sampled_from([1, 2, 3, 40, 150]))
def test_difference_of_answers_by_plain_convolution(view, prior, tuples):
    """The joint distribution of answer and published tuples, one tuple after the other."""
    p, keep, beta = float(prior), float(view.keep), float(view.beta)
    one = np.array([[(1 - p) * (1 - beta), (1 - p) * beta], [p * (1 - keep), p * keep]])
    joint = reduce(convolve2d, [one] * tuples)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    plain = np.abs(joint - independent).sum()
    assert disclosure.answer_difference(view, prior, tuples) == pytest.approx(plain, abs=1e-9)
    assert plain <= disclosure.difference_bound(view, prior, tuples) + 1e-9


@examples(12, 120)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_expected_bits_are_the_mean_over_every_string(weights):
    """Bit by bit: until all strings with the bits so far lie below, or above, the same sums."""
    sums = list(itertools.accumulate(weights))
    e, taken = (sums[-1] - 1).bit_length(), 0
    for s, left in itertools.product(range(1 << e), range(e, -1, -1)):
        low = s >> left << left
        taken += left > 0 and bisect_right(sums, low) != bisect_left(sums, low + (1 << left))
    # attempts are independent: bits of one, over the chance that it succeeds
    assert base2.expected_bits(sums, bitwise=True) == Fraction(taken, sums[-1])
    assert base2.expected_bits(sums, bitwise=False) == Fraction(e << e, sums[-1])


ETAS = [dp.Eta(1, 2), dp.Eta(3, 2), dp.Eta(1, 3, 2)]


@examples(20, 200)
@given(
    st.sampled_from(ETAS),
    st.lists(st.integers(0, 12).map(lambda i: Fraction(i, 4)), min_size=1, max_size=7),
)
def test_rounding_against_all_ways(eta, values):
    exact = dp.Base2Exponential(eta, 0, 4, len(values)).probabilities(values)
    found = base2.rounded_distribution(eta, values)
    np.testing.assert_allclose(found, np.array(exact, float), rtol=1e-12)


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1), Fraction(1, 4)])
def test_the_loss_of_rounding_is_the_exact_ratio(eta, alpha):
    mechanism = dp.Base2Exponential(eta, 0, 1, 7)
    first = mechanism.probabilities([1, *[1 - alpha] * 6])[0]
    second = mechanism.probabilities([1 - alpha, *[1] * 6])[0]
    ratio = float(second / first)
    assert 2 ** base2.rounding_loss(eta, 7, alpha) == pytest.approx(ratio, rel=1e-12)


def test_regret_is_the_expectation_over_all_sequences():
    losses, learner = np.random.default_rng(4).random((5, 3)), dp.WeightedMajority(3, 0.9)
    rounds, expected = learner.probabilities(np.cumsum(losses, axis=0) - losses), 0.0
    for choices in itertools.product(range(3), repeat=5):
        chance = math.prod(rounds[range(5), choices])
        expected += chance * losses[range(5), choices].sum()
    regret = (expected - losses.sum(axis=0).min()) / 5
    assert classical.regret(learner, losses) == pytest.approx(regret, rel=1e-12)


@pytest.mark.parametrize("outcomes", [2, 3, 10, 1000])
def test_the_worst_shortfall_is_attained_and_never_exceeded(outcomes):
    chooser, rng = dp.Exponential(1.0, 0.7), np.random.default_rng(outcomes)
    worst = classical.worst_shortfall(chooser, outcomes)
    assert worst < chooser.scale * math.log(outcomes)
    gap = worst + chooser.scale
    attained = classical.shortfall(chooser, np.array([gap] + [0.0] * (outcomes - 1)))
    assert attained == pytest.approx(worst, rel=1e-9)
    for _ in range(100):
        utilities = rng.exponential(gap, outcomes) * rng.integers(0, 2, outcomes)
        assert classical.shortfall(chooser, utilities) <= worst * (1 + 1e-12)
