"""The distribution of what is released, against the exact one.

The noise of a release has no seed. Its tests raise a false alarm less than once in 10^7 runs; what has
a seed fails on a change only.
"""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import pufferflow as pf
from pufferflow._protection import Level
from pufferflow.publish.calibrate import calibrate
from pufferflow.publish.noise import DiscreteLaplace, add_noise, add_seeded_noise, noise_scale

CHAIN = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
LENGTH, EPSILON, REACH = 3, 2.0, 60


def outputs(scale, paths):
    """Probability of every pair of noisy counts within reach; ``paths`` maps sequences to chances."""
    noise = DiscreteLaplace(scale).probability(np.arange(-REACH, REACH + 1))
    total = np.zeros((2 * REACH + 1, 2 * REACH + 1))
    for path, chance in paths.items():
        ones = sum(path)
        total += chance * np.outer(np.roll(noise, LENGTH - ones), np.roll(noise, ones))
    return total


def sequences():
    p, q = CHAIN.transition_matrix, CHAIN.stationary_distribution
    for path in itertools.product((0, 1), repeat=LENGTH):
        yield path, q[path[0]] * np.prod([p[x, y] for x, y in itertools.pairwise(path)])


def p_value(drawn, expected):
    """Chi-square of pairs of counts; pairs of small probability are one cell."""
    seen = Counter(drawn)
    cells = np.argwhere(expected * len(drawn) >= 10)
    wanted = [expected[i, j] * len(drawn) for i, j in cells]
    observed = [seen[(i - REACH, j - REACH)] for i, j in cells.tolist()]
    rest = len(drawn) - sum(wanted)
    return chisquare([*observed, len(drawn) - sum(observed)], [*wanted, rest]).pvalue


def scale_of_a_histogram():
    return noise_scale(calibrate(pf.ChainFamily([CHAIN]), Level(1), EPSILON).cost, 2)


@pytest.mark.parametrize("number", counts(2_000, 20_000))
def test_releases_follow_the_exact_distribution(number):
    rng, scale = np.random.default_rng(11), scale_of_a_histogram()
    chances = dict(sequences())
    exact = outputs(scale, chances)

    def drawn(size, factor):
        chosen = rng.choice(len(chances), size=size, p=list(chances.values()))
        ones = [sum(list(chances)[j]) for j in chosen]
        return [tuple(add_noise([LENGTH - n, n], factor * scale)) for n in ones]

    assert p_value(drawn(number, 1), exact) > 1e-9
    assert p_value(drawn(max(number, 4_000), 0.8), exact) < 1e-12


def test_the_whole_release_draws_the_same_noise():
    table = pd.Series([*"aab"], name="value")
    options = {"statistics": ["histogram"], "states": ["a", "b"], "accept_noise": True}
    drawn = [pf.release(table, CHAIN, EPSILON, **options).tables[0] for _ in range(120)]
    noise = np.array([made.counts[0] for made in drawn]) - np.array([2, 1])
    z = np.arange(-500, 501)
    chance = DiscreteLaplace(drawn[0].scale).probability(z)
    mean = float(np.abs(z) @ chance)
    deviation = float(np.sqrt(z**2 @ chance - mean**2))
    # 240 sizes, nearly exponential: six standard deviations are passed with probability 4e-8
    assert abs(np.abs(noise).mean() - mean) < 6 * deviation / np.sqrt(noise.size)


def test_the_loss_of_the_discrete_noise_is_within_epsilon():
    """Exactly, over all outputs: given two values of any reading, and not far below."""
    scale, worst = scale_of_a_histogram(), 0.0
    q = CHAIN.stationary_distribution
    for node in range(LENGTH):
        one, other = (outputs(scale, {p: chance / q[v] for p, chance in sequences() if p[node] == v}) for v in (0, 1))
        inner = slice(LENGTH, -LENGTH)
        worst = max(worst, np.abs(np.log(one[inner, inner] / other[inner, inner])).max())
    assert 0.6 * EPSILON < worst <= EPSILON


def test_seeded_noise_has_the_same_distribution():
    rng, values = np.random.default_rng(3), np.arange(-8, 9)
    for scale in (0.3, 2.0, 17.0):
        noise = add_seeded_noise([0] * 20_000, scale, rng)
        expected = DiscreteLaplace(scale).probability(values) * 20_000
        observed = np.array([noise.count(z) for z in values.tolist()])
        keep = expected >= 5
        rest = 20_000 - expected[keep].sum()
        if rest > 5:
            cells = [*observed[keep], 20_000 - observed[keep].sum()]
            assert chisquare(cells, [*expected[keep], rest]).pvalue > 1e-6


@examples(15, 60)
@given(st.floats(0.05, 40), st.floats(0.01, 0.999), st.integers(1, 5))
def test_quantiles_are_the_smallest_that_suffice(scale, confidence, bins):
    z = np.arange(-3000, 3001)
    chance = DiscreteLaplace(scale).probability(z)
    single = np.array([chance[np.abs(z) <= h].sum() for h in range(800)])
    h = DiscreteLaplace(scale).quantile(confidence, bins)
    assert single[h] ** bins >= confidence * (1 - 1e-9)
    assert h == 0 or single[h - 1] ** bins < confidence * (1 + 1e-9)
