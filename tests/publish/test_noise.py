"""The distribution of what is released, against the exact one.

The noise of a release has no seed. Its tests raise a false alarm less than once in 10^7 runs; what
has a seed fails on a change only.
"""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import pufferflow as pf
from pufferflow._noise import discrete_laplace
from pufferflow._protection import Level
from pufferflow.publish.calibrate import calibrate
from pufferflow.publish.noise import DiscreteLaplace, add_noise, add_seeded_noise, noise_scale

CHAIN = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
LENGTH, EPSILON, REACH = 3, 2.0, 60
SCALE = noise_scale(calibrate(pf.ChainFamily([CHAIN]), Level(1), EPSILON).cost, 2)
P, Q = CHAIN.transition_matrix, CHAIN.stationary_distribution
PATHS = {
    path: Q[path[0]] * np.prod([P[x, y] for x, y in pairwise(path)])
    for path in product((0, 1), repeat=LENGTH)
}


def outputs(paths):
    """Probability of each pair of noisy counts within reach, given the chances of sequences."""
    noise = discrete_laplace(np.arange(-REACH, REACH + 1), SCALE)
    total = np.zeros((2 * REACH + 1, 2 * REACH + 1))
    for path, chance in paths.items():
        total += chance * np.outer(np.roll(noise, LENGTH - sum(path)), np.roll(noise, sum(path)))
    return total


def p_value(drawn, expected):
    """Chi-square of outcomes, by their places in ``expected``; those of small chance are one."""
    seen = Counter(drawn)
    cells = np.argwhere(expected * len(drawn) >= 10).tolist()
    wanted = [expected[*cell] * len(drawn) for cell in cells]
    observed = [seen[tuple(cell)] for cell in cells]
    rest = len(drawn) - sum(wanted)
    return chisquare([*observed, len(drawn) - sum(observed)], [*wanted, rest]).pvalue


@pytest.mark.parametrize("number", counts(2_000, 20_000))
def test_releases_follow_the_exact_distribution(number):
    rng, exact = np.random.default_rng(11), outputs(PATHS)

    def drawn(size, factor):
        for j in rng.choice(len(PATHS), size=size, p=list(PATHS.values())):
            n = sum(list(PATHS)[j])
            zeros, ones = add_noise([LENGTH - n, n], factor * SCALE)
            yield zeros + REACH, ones + REACH

    assert p_value(list(drawn(number, 1)), exact) > 1e-9
    assert p_value(list(drawn(max(number, 4_000), 0.8)), exact) < 1e-12


def test_the_whole_release_draws_the_same_noise():
    table = pd.Series([*"aab"], name="value")
    options = {"statistics": ["histogram"], "states": ["a", "b"], "accept_noise": True}
    drawn = [pf.release(table, CHAIN, EPSILON, **options).tables[0] for _ in range(120)]
    noise = np.array([made.counts[0] for made in drawn]) - np.array([2, 1])
    z = np.arange(-500, 501)
    chance = discrete_laplace(z, drawn[0].scale)
    mean = float(np.abs(z) @ chance)
    deviation = float(np.sqrt(z**2 @ chance - mean**2))
    # 240 sizes, nearly exponential: six standard deviations are passed with probability 4e-8
    assert abs(np.abs(noise).mean() - mean) < 6 * deviation / np.sqrt(noise.size)


def test_the_loss_of_the_discrete_noise_is_within_epsilon():
    """Exactly, over all outputs, given two values of any reading."""
    worst, inner = 0.0, slice(LENGTH, -LENGTH)
    for node in range(LENGTH):
        one, other = (
            outputs({p: chance / Q[v] for p, chance in PATHS.items() if p[node] == v})[inner, inner]
            for v in (0, 1)
        )
        worst = max(worst, np.abs(np.log(one / other)).max())
    assert 0.6 * EPSILON < worst <= EPSILON


@pytest.mark.parametrize("scale", [0.3, 2.0, 17.0])
def test_seeded_noise_has_the_same_distribution(scale):
    noise = add_seeded_noise([9] * 20_000, scale, np.random.default_rng(3))
    assert p_value([(z,) for z in noise], discrete_laplace(np.arange(-9, 300), scale)) > 1e-6
    wide = add_seeded_noise([2**62, -(2**62)] * 1000, 2.0**60, np.random.default_rng(3))
    assert np.abs(np.array(wide, dtype=np.int64)).max() == 2**63 - 1


@examples(15, 60)
@given(st.floats(0.05, 40), st.floats(0.01, 0.999), st.integers(1, 5))
def test_quantiles_are_the_smallest_that_suffice(scale, confidence, bins):
    z, noise = np.arange(-3000, 3001), DiscreteLaplace(scale)
    chance = discrete_laplace(z, scale)
    single = np.array([chance[np.abs(z) <= h].sum() for h in range(800)])
    h = noise.quantile(confidence, bins)
    assert single[h] ** bins >= confidence * (1 - 1e-9)
    assert h == 0 or single[h - 1] ** bins < confidence * (1 + 1e-9)
    assert noise.tail(h) == pytest.approx(1 - single[h], abs=1e-9)
