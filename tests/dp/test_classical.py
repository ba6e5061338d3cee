"""Classical mechanisms: exact privacy, which half of the noise breaks, and chi-square of draws."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import counts
from samplers import RARE, p_value
from scipy.stats import kstest, laplace

from pufferflow import dp
from pufferflow.dp.classical import bernoulli

EPSILONS = (0.01, 0.3, 1.0, 4.0)
UTILITIES, NOISE = [0.0, 1.0, 2.0, 4.5], range(-60, 61)


@pytest.mark.parametrize("categories", [("yes", "no"), ("a", "b", "c", "d", "e")])
@pytest.mark.parametrize("epsilon", [*EPSILONS, 4.544624702104553, 5.980930922469444])
def test_randomised_response_spends_its_epsilon_and_no_more(categories, epsilon):
    def loss(response):
        assert sum(response.probability(a, categories[0]) for a in categories) == 1
        chance, answers = response.probability, itertools.product(categories, repeat=3)
        return math.log(max(chance(a, x) / chance(a, y) for a, x, y in answers))

    response = dp.RandomisedResponse.for_epsilon(categories, epsilon)
    exact = loss(response)
    assert epsilon * (1 - 1e-9) < exact <= epsilon * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= response.epsilon <= epsilon
    assert loss(dp.RandomisedResponse(categories, (1 + response.truth) / 2)) > epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_laplace_spends_its_epsilon_and_no_more(sensitivity, epsilon):
    noises = [dp.Laplace(sensitivity / factor, epsilon).probability for factor in (1, 2)]
    losses = [max(math.log(p(z) / p(z + sensitivity)) for z in range(-6, 6)) for p in noises]
    assert epsilon * (1 - 1e-9) < losses[0] <= epsilon * (1 + 1e-9)
    assert losses[1] > 1.9 * epsilon


def choosers(name, epsilon, sensitivity):
    if name == "exponential":
        return dp.Exponential(sensitivity, epsilon).probabilities
    return dp.WeightedMajority(dp.private_rate(epsilon, 2) / sensitivity).probabilities


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("name", "step"), [("exponential", 0.5), ("exponential", 2), ("rwm", 1)])
def test_choices_spend_their_epsilon_and_no_more(name, step, epsilon):
    """Over numbers on a grid and all their changes: the loss, and Rényi divergences for zCDP."""
    losses, divergences = [], []
    for chances in (choosers(name, factor * epsilon, step) for factor in (1, 2)):
        pairs = [
            (chances(before), chances(before + change))
            for gap in (0.0, 1.0, 60 * step / epsilon)
            for before in [np.array([0.0, gap, 0.3 * gap])]
            for change in itertools.product((-step, 0.0, step), repeat=3)
        ]
        losses.append(max(np.abs(np.log(p / q)).max() for p, q in pairs))
        found = (
            math.log((p**a * q ** (1 - a)).sum()) / (a - 1) / a
            for p, q in pairs
            for a in (1.01, 2.0, 10.0)
        )
        divergences.append(max(found))
    assert epsilon * (1 - 1e-6) < losses[0] <= epsilon * (1 + 1e-9)
    assert losses[1] > 1.9 * epsilon
    assert divergences[0] <= epsilon**2 / 8 + 1e-12 < divergences[1]


@pytest.mark.parametrize("n", counts(2500, 20_000))
@pytest.mark.parametrize("name", ["laplace", "response", "exponential", "rwm"])
def test_draws_follow_their_distribution_and_not_one_of_half_the_noise(name, n):
    """Chi-square at fixed seeds."""
    if name == "laplace":
        drawn = [z - 7 for z in dp.Laplace(2.0, 1.4).release([7] * n, insecure_seed=1)]
        expected = [[dp.Laplace(s, 1.4).probability(z) for z in NOISE] for s in (2.0, 1.0)]
    elif name == "response":
        drawn = dp.RandomisedResponse(("a", "b", "c"), 0.6).release(["b"] * n, insecure_seed=3)
        expected = (0.2, 0.6, 0.2), (0.1, 0.8, 0.1)
    elif name == "exponential":
        drawn = dp.Exponential(1.0, 0.8).release(UTILITIES, n, insecure_seed=2)
        expected = [choosers(name, epsilon, 1)(UTILITIES) for epsilon in (0.8, 1.6)]
    else:
        learner = dp.WeightedMajority(0.5)
        drawn = [learner.release(UTILITIES, insecure_seed=seed) for seed in range(n)]
        expected = [dp.WeightedMajority(rate).probabilities(UTILITIES) for rate in (0.5, 1)]
    values = {"laplace": NOISE, "response": "abc"}.get(name, range(4))
    seen = [Counter(drawn)[value] for value in values]
    assert p_value(seen, expected[0]) > 1e-3
    assert p_value(seen, expected[1]) < RARE


def test_laplace_on_floats_and_from_the_operating_system():
    mechanism = dp.Laplace(3.0, 0.5)
    drawn = np.array(mechanism.release([10.5] * 3000)) - 10.5
    assert kstest(drawn, laplace(scale=6).cdf).pvalue > RARE
    assert kstest(drawn, laplace(scale=3).cdf).pvalue < RARE
    assert mechanism.release([]) == []
    assert all(type(z) is int for z in mechanism.release(np.arange(3)))


@pytest.mark.parametrize(("last", "event"), [(5, True), (1 << 63, False)])
def test_bits_after_the_first_64_decide_a_tie(last, event):
    source, drawn = random.Random(2), [(1 << 64) // 3, (1 << 64) // 3, last]
    source.randbytes = lambda size: drawn.pop(0).to_bytes(size, "little")
    assert bernoulli(source, Fraction(1, 3), 1)[0] == event


def joint(learner, losses):
    """Probability of every sequence of choices."""
    rounds = learner.probabilities(np.cumsum(losses, axis=0) - losses)
    choices = itertools.product(range(losses.shape[1]), repeat=len(losses))
    return {c: math.prod(row[i] for row, i in zip(rounds, c, strict=True)) for c in choices}


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
@pytest.mark.parametrize("lead", [0.0, 1.0])
@pytest.mark.parametrize("rounds", [2, 5, 9])
def test_the_account_holds_on_all_sequences(rounds, lead, delta):
    """Loss tables that differ in the first round, after which one expert keeps a lead."""
    tables = np.zeros((2, rounds, 2))
    tables[:, 1:, 0] = lead
    tables[0, 0], tables[1, 0] = (1, 0), (0, 1)
    learner = dp.WeightedMajority(dp.private_rate(0.5, rounds, delta))
    assert 0.5 * (1 - 1e-9) < learner.epsilon(rounds, delta) <= 0.5
    both = [joint(learner, table) for table in tables]
    assert sum(both[0].values()) == pytest.approx(1)
    for p, q in (both, both[::-1]):
        assert sum(max(p[c] - math.exp(0.5) * q[c], 0) for c in p) <= delta
