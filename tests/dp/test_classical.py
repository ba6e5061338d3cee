"""Classical mechanisms: exact privacy, which half of the noise breaks; draws; other claims."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import counts
from samplers import RARE, p_value
from scipy.stats import binom, kstest, laplace

from pufferflow import dp
from pufferflow.dp import draws
from pufferflow.dp.classical import ACCOUNTS

EPSILONS = (0.01, 0.3, 1.0, 4.0)


def response_loss(response):
    pairs = itertools.product(response.categories, repeat=3)
    ratio = max(response.probability(a, x) / response.probability(a, y) for a, x, y in pairs)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


@pytest.mark.parametrize("categories", [("yes", "no"), ("a", "b", "c", "d", "e")])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_spends_its_epsilon_and_no_more(categories, epsilon):
    response = dp.RandomisedResponse.for_epsilon(categories, epsilon)
    exact = response_loss(response)
    assert epsilon * (1 - 1e-9) < exact <= epsilon * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= response.epsilon <= epsilon
    assert sum(response.probability(a, categories[0]) for a in categories) == 1
    assert response_loss(dp.RandomisedResponse(categories, (1 + response.truth) / 2)) > epsilon


def test_the_estimate_of_randomised_response_is_unbiased():
    response, truth = dp.RandomisedResponse(("a", "b", "c"), 0.5), ["a", "a", "b"]
    mean, square = np.zeros(3), 0.0
    for answers in itertools.product("abc", repeat=3):
        p = math.prod(response.probability(a, t) for a, t in zip(answers, truth, strict=True))
        found = response.estimate(answers)["count"].to_numpy()
        mean, square = mean + float(p) * found, square + float(p) * (found[0] - 2) ** 2
    assert mean.tolist() == pytest.approx([2, 1, 0], abs=1e-12)
    assert response.standard_error(2, 3) == pytest.approx(math.sqrt(square), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1.0, 3.0])
def test_laplace_spends_its_epsilon_and_no_more(sensitivity, epsilon):
    mechanism, step = dp.Laplace(sensitivity, epsilon), int(sensitivity)

    def loss(noise):
        ratios = (noise.probability(z) / noise.probability(z + step) for z in range(-5, 6))
        return math.log(max(ratios))

    assert epsilon * (1 - 1e-9) < loss(mechanism) <= epsilon * (1 + 1e-9)
    assert loss(dp.Laplace(sensitivity / 2, epsilon)) > 1.9 * epsilon
    reach = int(60 * mechanism.scale) + 60
    law = {z: mechanism.probability(z) for z in range(-reach, reach + 1)}
    assert sum(law.values()) == pytest.approx(1, rel=1e-12)
    variance = sum(p * z * z for z, p in law.items())
    assert mechanism.standard_error() == pytest.approx(math.sqrt(variance), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [0.5, 2.0])
def test_exponential_spends_its_epsilon_and_no_more(sensitivity, epsilon):
    def loss(mechanism):
        """Over utilities on a grid, and all changes of them by up to the sensitivity."""
        found = 0.0
        for gap in (0.0, 1.0, 60 * sensitivity / epsilon):
            before = np.array([0.0, gap, 0.3 * gap])
            for change in itertools.product((-sensitivity, 0.0, sensitivity), repeat=3):
                p, q = mechanism.probabilities(before), mechanism.probabilities(before + change)
                found = max(found, np.abs(np.log(p / q)).max())
        return found

    exact = loss(dp.Exponential(sensitivity, epsilon))
    assert epsilon * (1 - 1e-6) < exact <= epsilon * (1 + 1e-9)
    assert loss(dp.Exponential(sensitivity, 2 * epsilon)) > 1.9 * epsilon


@pytest.mark.parametrize("outcomes", [2, 3, 10, 1000])
def test_the_worst_shortfall_is_attained_and_never_exceeded(outcomes):
    mechanism = dp.Exponential(1.0, 0.7)
    worst = mechanism.worst_shortfall(outcomes)
    assert worst < mechanism.shortfall_bound(outcomes)
    gap, rng = worst + mechanism.scale, np.random.default_rng(outcomes)
    attained = mechanism.expected_shortfall([gap] + [0.0] * (outcomes - 1))
    assert attained == pytest.approx(worst, rel=1e-9)
    for _ in range(100):
        utilities = rng.exponential(gap, outcomes) * rng.integers(0, 2, outcomes)
        assert mechanism.expected_shortfall(utilities) <= worst * (1 + 1e-12)


# -- draws: at fixed seeds, and with half of the noise they fail ---------------------------------


@pytest.mark.parametrize("n", counts(2500, 20_000))
def test_every_release_follows_its_distribution_and_not_one_of_half_the_noise(n):
    integers = np.array(dp.Laplace(2.0, 1.4).release([7] * n, insecure_seed=1)) - 7
    support = range(-60, 61)
    utilities, sums = [0.0, 1.0, 2.0, 4.5], [0.5, 2.0, 3.25]
    chosen = dp.Exponential(1.0, 0.8).release(utilities, n, insecure_seed=2)
    answers = dp.RandomisedResponse(("a", "b", "c"), 0.6).release(["b"] * n, insecure_seed=3)
    learner = dp.WeightedMajority(3, 0.5)
    followed = [learner.release(sums, insecure_seed=seed) for seed in range(n)]
    for drawn, values, law, halved in (
        (
            integers,
            support,
            *([dp.Laplace(s, 1.4).probability(z) for z in support] for s in (2.0, 1.0)),
        ),
        (chosen, range(4), *(dp.Exponential(1.0, e).probabilities(utilities) for e in (0.8, 1.6))),
        (answers, "abc", (0.2, 0.6, 0.2), (0.1, 0.8, 0.1)),
        (followed, range(3), *(dp.WeightedMajority(3, r).probabilities(sums) for r in (0.5, 1.0))),
    ):
        seen = Counter(drawn if isinstance(drawn, list) else drawn.tolist())
        assert p_value([seen[value] for value in values], law) > 1e-3
        assert p_value([seen[value] for value in values], halved) < RARE


def test_laplace_on_floats_and_from_the_operating_system():
    mechanism = dp.Laplace(3.0, 0.5)
    drawn = np.array(mechanism.release([10.5] * 3000)) - 10.5
    assert kstest(drawn, laplace(scale=6).cdf).pvalue > RARE
    assert kstest(drawn, laplace(scale=3).cdf).pvalue < RARE
    assert mechanism.release([]) == []
    assert all(type(z) is int for z in mechanism.release(np.arange(3)))


@pytest.mark.parametrize("n", counts(1500, 20_000))
@pytest.mark.parametrize("x", ["0", "1/100", "1/2", "1", "9/4"])
def test_events_of_exponential_probability(x, n):
    source, x = draws.randomness(4), Fraction(x)
    hits = sum(draws.exp_event(source, x) for _ in range(n))
    assert min(binom.cdf(hits, n, math.exp(-x)), binom.sf(hits - 1, n, math.exp(-x))) > 1e-4


def test_words_decide_rational_probabilities():
    source, n = draws.randomness(2), 200_000
    for p in (Fraction(1, 3), Fraction(1, 10**6), Fraction(1, 2), Fraction(1), Fraction(0)):
        hits = int(draws.bernoulli(source, p, n).sum())
        assert min(binom.cdf(hits, n, float(p)), binom.sf(hits - 1, n, float(p))) > 1e-4
    # the leading word of 1/3 twice, then another one: later bits decide the tie
    for last, event in ((5, True), (1 << 63, False)):
        words = [(1 << 64) // 3, (1 << 64) // 3, last]
        source.randbytes = lambda size, words=words: words.pop(0).to_bytes(size, "little")
        assert draws.bernoulli(source, Fraction(1, 3), 1)[0] == event


# -- weighted majority ---------------------------------------------------------------------------


def joint(learner, losses):
    """Probability of every sequence of choices."""
    rounds = learner.probabilities(np.cumsum(losses, axis=0) - losses)
    choices = itertools.product(range(learner.experts), repeat=len(losses))
    return {c: math.prod(row[i] for row, i in zip(rounds, c, strict=True)) for c in choices}


def neighbours(rounds, lead):
    """Loss tables that differ in the first round, after which one expert keeps a lead."""
    one, two = np.zeros((2, rounds, 2))
    one[1:, 0] = two[1:, 0] = lead
    one[0], two[0] = (1, 0), (0, 1)
    return one, two


def test_the_pure_account_holds_and_fails_with_half_the_noise():
    """While one expert leads by 40 losses the trailing one leaks most."""
    sums = [np.cumsum(table, axis=0)[:-1] + np.array([40.0, 0.0]) for table in neighbours(6, 1.0)]
    limit = dp.WeightedMajority(2, 1.0).epsilon(6, account="pure")
    assert limit == pytest.approx(2 * 5)
    for rate, holds in ((1.0, True), (2.0, False)):
        one, two = (dp.WeightedMajority(2, rate).probabilities(table) for table in sums)
        loss = np.abs(np.log(one / two)).max(axis=1).sum()
        assert loss > 0.99 * 10 * rate
        assert bool(loss <= limit) is holds


@pytest.mark.parametrize("delta", [1e-6, 0.05])
@pytest.mark.parametrize("account", ["published", "zcdp"])
def test_the_approximate_accounts_hold_on_all_sequences(account, delta):
    for rounds, lead in itertools.product((2, 5, 9), (0.0, 1.0)):
        learner = dp.WeightedMajority(2, dp.private_rate(0.5, rounds, delta, account=account))
        laws = [joint(learner, table) for table in neighbours(rounds, lead)]
        assert sum(laws[0].values()) == pytest.approx(1)
        for p, q in (laws, laws[::-1]):
            assert sum(max(p[c] - math.exp(0.5) * q[c], 0) for c in p) <= delta


def test_the_zcdp_account_is_that_of_the_renyi_divergences():
    """Each choice is η²/2-zCDP: D_a ≤ a η²/2 for all orders; not with η doubled."""
    rng, broken = np.random.default_rng(1), 0
    for _ in range(200):
        k, rate = int(rng.integers(2, 6)), float(rng.uniform(0.01, 2))
        sums, change = rng.uniform(0, 3 / rate, k), rng.choice([-1.0, 0.0, 1.0], k)
        for factor, a in itertools.product((1.0, 2.0), (1.01, 2.0, 10.0)):
            learner = dp.WeightedMajority(k, rate * factor)
            p, q = learner.probabilities(sums), learner.probabilities(sums + change)
            above = math.log((p**a * q ** (1 - a)).sum()) / (a - 1) > a * rate**2 / 2 + 1e-12
            assert factor > 1 or not above
            broken += above
    assert broken > 60


def test_accounts_and_rates_are_inverse():
    for account, epsilon, rounds in itertools.product(ACCOUNTS, (0.01, 1.0), (2, 100, 10**6)):
        delta = 0.0 if account == "pure" else 1e-6
        rate = dp.private_rate(epsilon, rounds, delta, account=account)
        loss = dp.WeightedMajority(2, rate).epsilon(rounds, delta, account=account)
        assert epsilon * (1 - 1e-9) < loss <= epsilon
    rates = {account: dp.private_rate(1, 1000, 1e-6, account=account) for account in ACCOUNTS[1:]}
    assert rates["published"] == pytest.approx(1 / math.sqrt(32000 * math.log(1e6)), rel=1e-9)
    assert rates["zcdp"] > 3.8 * rates["published"]


def test_regret_is_the_expectation_over_all_sequences_and_within_its_bound():
    losses = np.random.default_rng(4).random((5, 3))
    learner = dp.WeightedMajority(3, 0.9)
    law = joint(learner, losses)
    expected = sum(p * losses[np.arange(5), list(c)].sum() for c, p in law.items())
    regret = (expected - losses.sum(axis=0).min()) / 5
    assert learner.regret(losses) == pytest.approx(regret, rel=1e-12)
    perfect = np.tile(np.arange(10.0) > 0, (400, 1))
    for rate, rounds in itertools.product((0.005, 0.05, 0.5), (perfect, perfect * 0.3)):
        learner = dp.WeightedMajority(10, rate)
        assert learner.regret(rounds) <= learner.regret_bound(400)
    # the misprint ln k/(nT) with n records would promise this much
    assert dp.WeightedMajority(10, 0.005).regret(perfect) > 0.005 + math.log(10) / 400**2
    tuned = dp.WeightedMajority.tuned(10, 400).regret_bound(400)
    assert tuned == pytest.approx(2 * math.sqrt(math.log(10) / 400))
