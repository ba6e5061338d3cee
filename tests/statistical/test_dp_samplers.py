"""Samplers against their laws; a test that passes must fail when the noise is halved.

Own samplers run at fixed seeds; OpenDP's have none, so their tests raise a false alarm less than once in 10^7 runs: the
level is 10^-9, and at most 3·10^-8 where cells of few expected draws make the tail of chi-square heavier.
"""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import counts
from scipy.stats import binom, chisquare

from pufferflow.related.dp import _sampling
from pufferflow.related.dp.alpha_beta import AlphaBeta, choose_alpha_beta, publish
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.exponential import Exponential
from pufferflow.related.dp.laplace import Laplace
from pufferflow.related.dp.randomised_response import RandomisedResponse
from pufferflow.related.dp.weighted_majority import WeightedMajority

RARE = 1e-9


def p_value(counts, probabilities):
    """Chi-square over cells with at least five expected, the others together."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    expected = counts.sum() * probabilities
    small = expected < 5
    observed = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], counts.sum() - expected[~small].sum())
    if expected[-1] < 1e-6:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


class Leading:
    """Bits whose first request of ``width`` bits begins with a given binary fraction; those after it alternate."""

    def __init__(self, numerator, bits, width):
        self.numerator, self.rest, self.first = numerator, width - bits, True

    def take(self, size):
        value = int.from_bytes(b"\x55" * size, "little")
        if self.first:
            rest = self.rest
            value = (self.numerator << rest) | (value & ((1 << rest) - 1))
            self.first = False
        return value.to_bytes(size, "little")


@pytest.mark.parametrize(("trials", "p"), [(1, "1/3"), (5, "2/7"), (40, "1/50"), (12, "99/100"), (7, "1/2")])
def test_binomial_inverts_the_exact_law(trials, p):
    p = Fraction(p)
    law = [math.comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(trials + 1)]
    width = _sampling.WORD + 2 * trials.bit_length()
    outcomes = Counter(_sampling.binomial(Leading(u, 10, width), trials, p) for u in range(2**10))
    for j, probability in enumerate(law):
        # each outcome is an interval of uniform numbers, so the counts are exact up to its ends
        assert abs(outcomes[j] - 2**10 * probability) <= 1


def test_binomial_law_at_random():
    source = _sampling.randomness(1)
    for trials, p in ((3, Fraction(1, 2)), (30, Fraction(1, 7)), (10**9, Fraction(5, 10**9)), (200, Fraction(9, 10))):
        drawn = np.array([_sampling.binomial(source, trials, p) for _ in range(2000)])
        support = np.arange(min(trials, 300) + 1)
        assert p_value(np.bincount(drawn, minlength=support.size), binom.pmf(support, trials, float(p))) > 1e-3
    assert _sampling.binomial(source, 9, Fraction(0)) == 0
    assert _sampling.binomial(source, 9, Fraction(1)) == 9
    big = _sampling.binomial(source, 10**30, Fraction(10**6, 10**30))
    assert abs(big - 10**6) < 6000


def test_words_decide_rational_probabilities():
    source = _sampling.randomness(2)
    for p in (Fraction(1, 3), Fraction(1, 10**6), Fraction(999, 1000), Fraction(1, 2), Fraction(1), Fraction(0)):
        hits = int(_sampling.bernoulli(source, p, 200_000).sum())
        assert binom.cdf(hits, 200_000, float(p)) > 1e-4
        assert binom.sf(hits - 1, 200_000, float(p)) > 1e-4

    class Ties:
        """The leading word of 1/3 forever, then a small one: the tie must be broken by later bits."""

        def __init__(self, last):
            self.words = [(1 << 64) // 3, (1 << 64) // 3, last]

        def take(self, size):
            return self.words.pop(0).to_bytes(size, "little")

    assert _sampling.bernoulli(Ties(5), Fraction(1, 3), 1)[0]
    assert not _sampling.bernoulli(Ties(1 << 63), Fraction(1, 3), 1)[0]


def test_integers_below_are_uniform():
    source = _sampling.randomness(3)
    for bound in (1, 2, 5, 6, 33):
        drawn = _sampling.integers_below(source, bound, 20_000)
        assert drawn.size == 20_000
        assert bound == 1 or p_value(np.bincount(drawn, minlength=bound), np.full(bound, 1 / bound)) > 1e-3
        single = [_sampling.integer_below(source, bound) for _ in range(3000)]
        assert bound == 1 or p_value(np.bincount(single, minlength=bound), np.full(bound, 1 / bound)) > 1e-3
    assert _sampling.integers_below(source, 2**62, 10).max() > 2**55


@pytest.mark.parametrize("draws", counts(1_500, 20_000))
@pytest.mark.parametrize("x", ["0", "1/100", "1/2", "1", "9/4"])
def test_events_of_exponential_probability(x, draws):
    source, x = _sampling.randomness(4), Fraction(x)
    hits = sum(_sampling.bernoulli_exp(source, x) for _ in range(draws))
    assert binom.cdf(hits, draws, math.exp(-x)) > 1e-4
    assert binom.sf(hits - 1, draws, math.exp(-x)) > 1e-4


@pytest.mark.parametrize("draws", counts(300, 1000))
@pytest.mark.parametrize(("alpha", "beta"), [("1/2", "1/5"), ("1/10", "7/10")])
def test_the_law_of_the_published_set(alpha, beta, draws):
    """Chi-square over all subsets of a small domain; the second case goes through the dense branch."""
    domain, data = Domain({"x": [0, 1], "y": [0, 1]}), {(0, 1)}
    every = list(itertools.product((0, 1), repeat=2))
    subsets = [frozenset(s) for size in range(5) for s in itertools.combinations(every, size)]

    def law(parameters):
        return [
            math.prod(
                float(rate if t in s else 1 - rate)
                for t in every
                for rate in [parameters.keep if t in data else parameters.beta]
            )
            for s in subsets
        ]

    parameters = AlphaBeta(alpha, beta)
    found = Counter(frozenset(publish(data, domain, parameters, insecure_seed=seed).tuples()) for seed in range(draws))
    seen = [found[s] for s in subsets]
    assert sum(seen) == draws
    assert p_value(seen, law(parameters)) > 1e-3
    assert p_value(seen, law(AlphaBeta(parameters.keep - parameters.beta / 2, parameters.beta / 2))) < RARE


@pytest.mark.parametrize("publications", counts(100, 200))
def test_the_estimate_is_unbiased(publications):
    domain = Domain({"x": range(20), "y": range(50)})
    data = {(x, y) for x in range(5) for y in range(8)}
    parameters = choose_alpha_beta("0.1", "0.4")
    published = [publish(data, domain, parameters, insecure_seed=s) for s in range(publications)]
    for where, truth, size in ((None, 40, 1000), ({"x": range(2)}, 16, 100), ({"y": 49}, 0, 20)):
        found = [view.count(where) for view in published]
        errors = np.array([estimate.count for estimate in found]) - truth
        exact = parameters.standard_error(truth, size)
        assert abs(errors.mean()) < 3 * exact / math.sqrt(len(errors))
        assert errors.std() == pytest.approx(exact, rel=0.15)
        assert np.mean([estimate.standard_error for estimate in found]) == pytest.approx(exact, rel=0.15)


def test_opendp_laplace_on_integers_follows_its_law():
    mechanism, halved = Laplace(1.0, 0.7), Laplace(1.0, 1.4)
    drawn = np.array(mechanism.release([0] * 20_000))
    support = np.arange(-60, 61)
    counts = [(drawn == z).sum() for z in support]
    assert p_value(counts, [mechanism.probability(z) for z in support]) > RARE
    assert p_value(counts, [halved.probability(z) for z in support]) < RARE


def test_opendp_laplace_on_floats_follows_its_law():
    from scipy.stats import kstest, laplace

    mechanism = Laplace(3.0, 0.5)
    drawn = np.array(mechanism.release([10.5] * 5000)) - 10.5
    assert kstest(drawn, laplace(scale=mechanism.scale).cdf).pvalue > RARE
    assert kstest(drawn, laplace(scale=mechanism.scale / 2).cdf).pvalue < RARE


@pytest.mark.parametrize("draws", counts(2500, 6000))
def test_opendp_gumbel_maximum_is_the_exponential_mechanism(draws):
    utilities = [0.0, 1.0, 2.0, 4.5]
    mechanism, halved = Exponential(1.0, 0.8), Exponential(1.0, 1.6)
    counts = np.bincount(mechanism.release(utilities, count=draws), minlength=4)
    assert p_value(counts, mechanism.probabilities(utilities)) > RARE
    assert p_value(counts, halved.probabilities(utilities)) < RARE


@pytest.mark.parametrize("draws", counts(2500, 8000))
def test_opendp_randomised_response_follows_its_law(draws):
    response = RandomisedResponse(("a", "b", "c"), 0.6)
    halved = RandomisedResponse(("a", "b", "c"), 0.8)
    answers = Counter(response.release(["b"] * draws))
    counts = [answers[c] for c in "abc"]
    assert p_value(counts, [float(response.probability(c, "b")) for c in "abc"]) > RARE
    assert p_value(counts, [float(halved.probability(c, "b")) for c in "abc"]) < RARE


@pytest.mark.parametrize("draws", counts(1500, 4000))
def test_weighted_majority_draws_from_its_law(draws):
    learner, halved = WeightedMajority(3, 0.5), WeightedMajority(3, 1.0)
    losses_so_far = [0.5, 2.0, 3.25]
    counts = np.bincount([learner.choose(losses_so_far, insecure_seed=s) for s in range(draws)], minlength=3)
    assert p_value(counts, learner.probabilities(losses_so_far)) > 1e-3
    assert p_value(counts, halved.probabilities(losses_so_far)) < RARE


@pytest.mark.parametrize("plays", counts(30, 100))
def test_weighted_majority_plays_as_it_expects_to(plays):
    losses = np.random.default_rng(0).random((60, 4)) * [0.4, 1, 1, 1]
    learner = WeightedMajority.tuned(4, 60)
    played = [learner.play(losses, insecure_seed=s) for s in range(plays)]
    regrets = np.array([losses[np.arange(60), p].mean() for p in played]) - losses.mean(axis=0).min()
    assert abs(regrets.mean() - learner.regret(losses)) < 4 * regrets.std() / math.sqrt(len(regrets))
