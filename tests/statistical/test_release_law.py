"""The law of what is released, against the exact one.

The noise of a release comes from the operating system and has no seed. Its tests raise a false alarm less than once in
10^7 runs: the level of the chi-square test is 10^-9, so that its error in the far tail does not matter. What has a seed
fails on a change only.
"""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, gamma

import pufferflow as pf
from pufferflow.markov import simulate_chain
from pufferflow.publishing import release as releasing
from pufferflow.publishing.exact import ExactCounts
from pufferflow.publishing.noise import DiscreteLaplace, add_noise, add_seeded_noise, count_scale
from pufferflow.publishing.request import ReleaseRequest
from pufferflow.publishing.statistics.base import Table

pytestmark = pytest.mark.usefixtures("scales_once")
CHAIN = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
MODEL = pf.PublicModel(pf.ChainFamily([CHAIN]), pf.RecordFormat(pf.StateSpace.categories(["a", "b"])))
LENGTH, EPSILON = 3, 2.0
REACH = 60


def exact_law(scale):
    """Probability of every pair of noisy counts within reach: all records, and noise on each count."""
    p, q = CHAIN.transition_matrix, CHAIN.stationary_distribution
    noise = DiscreteLaplace(scale).probability(np.arange(-REACH, REACH + 1))
    law = np.zeros((2 * REACH + 1, 2 * REACH + 1))
    for path in itertools.product((0, 1), repeat=LENGTH):
        chance = q[path[0]] * np.prod([p[x, y] for x, y in itertools.pairwise(path)])
        ones = sum(path)
        law += chance * np.outer(np.roll(noise, LENGTH - ones), np.roll(noise, ones))
    return law


def p_value(drawn, law):
    """Chi-square of pairs of counts; pairs of small probability are one cell, with all that is out of reach."""
    seen = Counter(drawn)
    cells = np.argwhere(law * len(drawn) >= 10)
    expected = [law[i, j] * len(drawn) for i, j in cells]
    observed = [seen[(i - REACH, j - REACH)] for i, j in cells.tolist()]
    rest = len(drawn) - sum(expected)
    return chisquare([*observed, len(drawn) - sum(observed)], [*expected, rest]).pvalue


def releases(rng, number):
    """Histograms of as many records from the chain, through the whole release but for the reading of a file."""
    calibration = releasing.calibrate(MODEL.family, LENGTH, EPSILON)
    scale = count_scale(calibration.scale)
    request = ReleaseRequest(None, MODEL, EPSILON)
    columns = request.statistics[0].columns(MODEL.records.states)
    drawn = []
    for _ in range(number):
        counts = np.bincount(simulate_chain(CHAIN, LENGTH, rng), minlength=2)[None]
        table = Table(request.statistics[0], ("all",), columns, (LENGTH,), counts)
        exact = ExactCounts((table,), LENGTH, 1, LENGTH, LENGTH, 1, MODEL.records.states, MODEL, EPSILON)
        drawn.append(exact.noisy(releasing.add_noise, calibration, request).counts)
    return drawn, scale


@pytest.mark.parametrize("number", counts(2_000, 20_000))
def test_releases_follow_the_exact_law(monkeypatch, number):
    drawn, scale = releases(np.random.default_rng(11), number)
    assert p_value(drawn, exact_law(scale)) > 1e-9
    monkeypatch.setattr(releasing, "add_noise", lambda counts, s: add_noise(counts, 0.8 * s))
    cut, _ = releases(np.random.default_rng(12), max(number, 4_000))  # fewer may not tell them apart
    assert p_value(cut, exact_law(scale)) < 1e-12


def test_the_whole_release_draws_the_same_noise():
    """The same from pandas to histogram, a hundred times: the counts are those of the records plus noise."""
    records = pd.Series([*"aab"])
    drawn = [pf.release_histogram(records, MODEL, EPSILON, ledger=None) for _ in range(120)]
    law = DiscreteLaplace(drawn[0].noise_scale)
    noise = np.array([made.counts for made in drawn]) - np.array([2, 1])
    spread = np.abs(noise).mean()
    mean = float(np.abs(np.arange(-500, 501)) @ law.probability(np.arange(-500, 501)))
    deviation = float(np.sqrt(np.arange(-500, 501) ** 2 @ law.probability(np.arange(-500, 501)) - mean**2))
    # 240 sizes, nearly exponential: a gamma law leaves six standard deviations with probability 4e-8
    assert abs(spread - mean) < 6 * deviation / np.sqrt(noise.size)


def test_the_loss_of_the_discrete_noise_is_within_epsilon():
    """Exactly: over all outputs, the ratio given two values of any record is at most e^epsilon (and not far below)."""
    scale = count_scale(releasing.calibrate(MODEL.family, LENGTH, EPSILON, "leakage").scale)
    p, q = CHAIN.transition_matrix, CHAIN.stationary_distribution
    noise = DiscreteLaplace(scale).probability(np.arange(-REACH, REACH + 1))
    worst = 0.0
    for node in range(LENGTH):
        laws = []
        for value in (0, 1):
            law = np.zeros((2 * REACH + 1, 2 * REACH + 1))
            for path in itertools.product((0, 1), repeat=LENGTH):
                if path[node] == value:
                    chance = q[path[0]] * np.prod([p[x, y] for x, y in itertools.pairwise(path)]) / q[value]
                    ones = sum(path)
                    law += chance * np.outer(np.roll(noise, LENGTH - ones), np.roll(noise, ones))
            laws.append(law[LENGTH:-LENGTH, LENGTH:-LENGTH])
        worst = max(worst, np.abs(np.log(laws[0] / laws[1])).max())
    assert 0.7 * EPSILON < worst <= EPSILON


def test_seeded_noise_has_the_same_law():
    rng = np.random.default_rng(3)
    for scale in (0.3, 2.0, 17.0):
        noise = add_seeded_noise([0] * 20_000, scale, rng)
        values = np.arange(-8, 9)
        expected = DiscreteLaplace(scale).probability(values) * 20_000
        observed = [noise.count(z) for z in values.tolist()]
        keep = expected >= 5
        rest = 20_000 - expected[keep].sum()
        cells = [*np.array(observed)[keep], 20_000 - np.array(observed)[keep].sum()]
        if rest > 5:
            assert chisquare(cells, [*expected[keep], rest]).pvalue > 1e-6


# -- quantiles --------------------------------------------------------------------------------------------------


@examples(15, 60)
@given(st.floats(0.05, 40), st.floats(0.01, 0.999), st.integers(1, 5))
def test_quantiles_are_the_smallest_that_suffice(scale, confidence, bins):
    law = DiscreteLaplace(scale)
    z = np.arange(-3000, 3001)
    probability = law.probability(z)
    assert probability.sum() == pytest.approx(1)
    single = np.array([probability[np.abs(z) <= h].sum() for h in range(800)])
    h = law.quantile(confidence, bins)
    assert single[h] ** bins >= confidence * (1 - 1e-9)
    assert h == 0 or single[h - 1] ** bins < confidence * (1 + 1e-9)
    absolute = np.concatenate((probability[z == 0], 2 * probability[z > 0]))
    total = np.ones(1)
    for _ in range(bins):
        total = np.convolve(total, absolute)[:3000]
    t = law.total_quantile(confidence, bins)
    assert np.cumsum(total)[t] >= confidence - 1e-9
    assert t == 0 or np.cumsum(total)[t - 1] < confidence + 1e-9


def test_the_sum_of_large_noise_is_gamma():
    for bins in (1, 4, 51):
        law = DiscreteLaplace(1e5)
        assert law.total_quantile(0.95, bins) == pytest.approx(gamma(bins, scale=1e5).ppf(0.95), rel=1e-4)
