"""What is measured of Noisy Max, αβ, classical mechanisms and the base-2 exponential one."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import convolve2d
from scipy.stats import binom

from pufferflow import dp
from reproduction import tidy
from reproduction.related import base2_exponential as base2
from reproduction.related import classical, disclosure, noisy_max


@pytest.fixture(scope="module")
def curves(finished):
    """The curves of each system, as a complete run measured them."""
    names = ("noisy_max", "alpha_beta", "classical")
    return {name: tidy.read(finished.made / f"related/{name}.csv", "related") for name in names}


def test_priors_that_preserve_a_factor_lie_within_their_boundary(curves):
    """On the boundary the largest ratio is the factor, inside it is below."""
    region = curves["noisy_max"].query("panel == 'region'")
    assert list(region["exact"].unique()) == ["33/20", "5/3", "17/10", "7/4"]
    first = region[(region["p1"] == 0) & (region["exact"] == "5/3")]
    assert (first["lowest_p2"].item(), first["highest_p2"].item()) == (0, 7 / 9)
    for row in region[::10].itertuples():
        for p2, ratio in ((row.highest_p2, row.factor), (row.highest_p2 / 2, None)):
            both = noisy_max.index_distributions(Fraction(row.p1), Fraction(p2)).values()
            largest = max(max(p / q, q / p) for p, q in zip(*both, strict=True))
            assert largest <= row.factor + 1e-12
            assert ratio is None or p2 == 1 or float(largest) == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize("name", ["alpha_beta", "classical"])
def test_measured_errors_agree_with_exact_ones(curves, name):
    of = "rho_expected rho_measured rho_standard_error"
    of = of if name == "alpha_beta" else "expected_error mean_error standard_error"
    exact, measured, error = curves[name][of.split()].dropna().to_numpy().T
    assert (np.abs(exact - measured)[error > 0] < 4.5 * error[error > 0]).all()
    assert (error > 0).sum() > 20


def test_views_and_beliefs(curves):
    views, beliefs = (
        curves["alpha_beta"].query(f"panel == '{p}'") for p in ("views", "difference")
    )
    assert views["posterior_same"].tolist()[:3] == pytest.approx([0.5, 0.9, 81 / 82])
    assert views["posterior_together"].tolist() == pytest.approx([0.5] * len(views))
    known = beliefs.dropna(subset="statistical_difference")
    assert len(known) > 5
    assert (known["statistical_difference"] <= known["difference_bound"]).all()


def test_the_smoker_by_fractions():
    """Four other smokers and noise of the ratio 1/3, by all their numbers of ill ones."""
    rates, prior = (Fraction("0.05"), Fraction("0.2")), Fraction(1, 2)
    noise = {z: Fraction(1, 2 * 3 ** abs(z)) for z in range(-60, 61)}

    def answers(rate, counted):
        chances = Counter()
        for ill, (z, q) in itertools.product(range(5), noise.items()):
            chance = math.comb(4, ill) * rate**ill * (1 - rate) ** (4 - ill)
            chances[ill + counted + z] += chance * q
        return chances

    found = [classical.smoker(4, math.log(3), ill=ill) for ill in (False, True)]
    for takes_part, name in enumerate(("after it, without his record", "with his record")):
        given = {(rate, ill): answers(rate, ill * takes_part) for rate in rates for ill in (0, 1)}
        for ill in (0, 1):
            exact = 0
            for answer, p in given[rates[1], ill].items():
                well, sick = (
                    sum(prior * (r if x else 1 - r) * given[r, x][answer] for r in rates)
                    for x in (0, 1)
                )
                exact += p * sick / (well + sick)
            assert found[ill][name] == pytest.approx(float(exact), rel=1e-12)
    assert found[0]["before the study"] == 0.125
    # with all others known the odds of any one answer change by at most 3
    known = [risks["with it, all others known"] for risks in found]
    assert 0.2 / 2.6 < known[0] < 0.2 < known[1] < 0.6 / 1.4
    assert 0.2 * known[1] + 0.8 * known[0] == pytest.approx(0.2, rel=1e-12)


def test_privacy_is_what_is_declared_unless_the_noise_is_halved(curves):
    privacy = curves["classical"].query("panel == 'privacy'")
    halved = privacy["mechanism"].str.endswith("halved")
    ratio = privacy["expected_error"] / privacy["epsilon"]
    assert (np.abs(ratio[~halved] - 1) < 1e-6).all()
    assert (ratio[halved] > 1.05).all()
    assert halved.sum() == 4 * 7


def test_attacks_break_the_naive_mechanism_and_not_ours():
    for name, attack in base2.all_attacks(30).items():
        naive, exact = (base2.distributions(attack, mechanism) for mechanism in ("naive", "base-2"))
        assert base2.privacy_loss(*exact.values()) <= attack.epsilon
        if name == "last":  # the truncated attack depends on the order of the sum
            assert base2.privacy_loss(*naive.values()) <= attack.epsilon
            continue
        assert base2.privacy_loss(*naive.values()) == math.inf
        seen, absent = (of[attack.watched] for of in naive.values())
        assert seen == 1 > 0.7 > absent


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


# -- what views of αβ disclose ---------------------------------------------------------------------


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
@given(parameters(), st.integers(0, 60), st.integers(0, 60), st.floats(0, 40))
def test_published_counts_extreme_answers_and_failures_by_their_definitions(view, n, more, error):
    """f, g: distributions of the published tuples of a query's n + more, given Q = n and Q = 0."""
    rates = [float(rate) for rate in (view.keep, view.beta)]
    some, others = (binom.pmf(range(k + 1), k, p) for k, p in zip((n, more), rates, strict=True))
    f, g = np.convolve(some, others), binom.pmf(range(n + more + 1), n + more, rates[1])
    difference = np.abs(np.outer(f, g) - np.outer(g, f)).sum()
    found = disclosure.extreme_difference(view, n, n + more)
    assert found == pytest.approx(difference, abs=1e-8)
    estimates = [(v - view.beta * (n + more)) / view.alpha for v in range(n + more + 1)]
    missed = sum(p for p, x in zip(f, estimates, strict=True) if abs(x - n) > Fraction(error))
    assert disclosure.failure(view, error, n, n + more) == pytest.approx(missed, abs=1e-10)
    low, chances = disclosure.published(view, n, more)
    np.testing.assert_allclose(chances, f[low : low + len(chances)], rtol=1e-9, atol=1e-12)


# -- costs of base-2 samplers, and rounding at random ----------------------------------------------


@st.composite
def etas(draw):
    y = draw(st.integers(1, 4))
    return dp.Eta(draw(st.integers(1, 2**y - 1)), y, draw(st.integers(1, 2)))


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


def significant_bits(number):
    """Bits from the first to the last 1 of a finite binary fraction."""
    return (number.numerator // (number.numerator & -number.numerator)).bit_length()


@examples(16, 160)
@given(etas(), st.integers(0, 4), st.integers(1, 5), st.integers(1, 20))
def test_needed_precision_is_that_of_the_worst_sum(eta, span, outcomes, start):
    weights = [eta.base**k for k in range(span + 1)]
    some = itertools.combinations_with_replacement
    sums = (sum(w) for n in range(1, outcomes + 1) for w in some(weights, n))
    assert base2.needed_precision(eta, span, outcomes) == max(map(significant_bits, sums))
    tests = [w + outcomes - 1 for w in weights] + [Fraction(outcomes - 1)] * (outcomes > 1)
    bits = start
    while any(significant_bits(test) > bits for test in tests):
        bits *= 2
    assert base2.compute_precision(eta, span, outcomes, start) == bits


@pytest.mark.parametrize("eta", [dp.Eta(1, 2), dp.Eta(3, 2), dp.Eta(1, 3, 2)])
def test_the_loss_of_rounding_is_the_exact_ratio(eta):
    mechanism, size = dp.Base2Exponential(eta, 0, 1, 7), -math.log2(eta.base)
    for alpha in (Fraction(1, 2), Fraction(1), Fraction(1, 4)):
        first = mechanism.probabilities([1, *[1 - alpha] * 6])[0]
        second = mechanism.probabilities([1 - alpha, *[1] * 6])[0]
        ratio = float(second / first)
        assert 2 ** base2.rounding_loss(eta, 7, alpha) == pytest.approx(ratio, rel=1e-12)
    # α = ½ costs more than in proportion; 2⌈α⌉η is approached for α = 1
    assert size < base2.rounding_loss(eta, 2000, Fraction(1, 2)) < 2 * size
    assert 0.9 * 2 * size < base2.rounding_loss(eta, 200, Fraction(1)) < 2 * size


@examples(20, 200)
@given(etas(), st.lists(st.integers(0, 12).map(lambda i: Fraction(i, 4)), min_size=1, max_size=7))
def test_rounding_against_all_ways_and_within_its_bounds(eta, values):
    exact = dp.Base2Exponential(eta, 0, 4, len(values)).probabilities(values)
    found = [base2.rounded_distribution(eta, values)]
    lower, width = base2.rounding_bounds(eta, values)
    assert all(low <= p <= low + width for low, p in zip(lower, exact, strict=True))
    if all(u.denominator == 1 for u in values):
        assert width == 0
        found.append(base2.unrounded_distribution(eta, values))
    for distribution in found:
        np.testing.assert_allclose(distribution, np.array(exact, float), rtol=1e-12)


# -- the textbook's mechanisms ---------------------------------------------------------------------


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


def test_regret_is_the_expectation_over_all_sequences_and_within_its_bound():
    losses, learner = np.random.default_rng(4).random((5, 3)), dp.WeightedMajority(3, 0.9)
    rounds, expected = learner.probabilities(np.cumsum(losses, axis=0) - losses), 0.0
    for choices in itertools.product(range(3), repeat=5):
        chance = math.prod(rounds[range(5), choices])
        expected += chance * losses[range(5), choices].sum()
    regret = (expected - losses.sum(axis=0).min()) / 5
    assert classical.regret(learner, losses) == pytest.approx(regret, rel=1e-12)
    perfect = np.tile(np.sign(np.arange(10.0)), (400, 1))
    for rate, table in itertools.product((0.005, 0.05, 0.5), (perfect, perfect * 0.3)):
        learner = dp.WeightedMajority(10, rate)
        assert classical.regret(learner, table) <= classical.regret_bound(learner, 400)


@examples(10, 50)
@given(st.floats(0, 0.9))
def test_differencing_against_all_noises(ratio):
    """Sum over both noises; no other rule on the difference does better."""
    reach = 1 if ratio < 1e-9 else math.ceil(25 / -math.log(ratio))
    noise = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1.0))
    given = np.convolve(noise, noise)  # the difference of both, from −2·reach
    best = np.maximum(np.append(given, 0), np.insert(given, 0, 0)).sum() / 2
    # 0 for D < 1, 1 for 1 + D ≥ 1
    right = (given[: 2 * reach + 1].sum() + given[2 * reach :].sum()) / 2
    found = classical.differencing_success(ratio)
    assert found == pytest.approx(right, abs=1e-9)
    assert right == pytest.approx(best, abs=1e-12)
    # two counts, each with this noise, are ratio^-2-DP together
    assert found <= 1 / (1 + ratio**2) + 1e-12


@pytest.mark.parametrize(("rounds", "delta"), [(1000, 1e-6), (10**5, 0.01)])
def test_the_published_rate_is_what_advanced_composition_gives(rounds, delta):
    rate = classical.published_rate(1.0, rounds, delta)
    assert rate == pytest.approx(1 / math.sqrt(32 * rounds * math.log(1 / delta)), rel=1e-9)
    assert dp.private_rate(1.0, rounds, delta) > 3.8 * rate
    assert classical.published_rate(9.0, 9, 0.1) is None
