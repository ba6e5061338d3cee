"""Estimates of shares: the nearest possible ones, and what they gain on bundled data."""

from pathlib import Path

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from shipped_counts import electricity_transitions
from test_release_page import noisy
from test_statistics import CASES, some_steps, statistic_of

from pufferflow.publish.noise import Noise
from pufferflow.publish.result import NoisyTable, nearest_shares
from pufferflow.publish.statistics import Column, Histogram
from reproduction.data.discretise import discretise
from reproduction.data.sample import pooled

NHANES = Path(__file__).parents[2] / "workflow/data/activity_nhanes2003_minutes.csv.xz"


@given(st.integers(0, 10**6))
@examples(60, 2_000)
def test_the_nearest_shares_against_bisection(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    exact, row = rng.dirichlet(np.full(k, 0.3)), rng.normal(0, 10.0 ** rng.integers(-3, 3), k)
    if seed % 3:
        row += exact
    low, high = row.min() - 1, row.max()
    for _ in range(200):  # the shift after which the positive parts sum to 1
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
    (found,) = nearest_shares(row[None])
    scale = 1 + np.abs(row).max()
    np.testing.assert_allclose(found, np.maximum(row - high, 0), rtol=0, atol=1e-12 * scale)
    assert found.min() >= 0
    assert np.linalg.norm(found - exact) <= np.linalg.norm(row - exact) + 1e-12 * scale
    half = np.abs(row - exact).max()  # in every band that contains the exact shares
    assert (np.abs(found - row) <= half + 1e-12 * scale).all()


@pytest.mark.parametrize(("name", "by"), [case for case in CASES if case[0] != "most-frequent"])
def test_exact_values_are_possible_and_their_own_estimates(name, by):
    for seed in range(10):
        exact = statistic_of(name, by).tabulate(some_steps(np.random.default_rng(seed)))
        table = NoisyTable(**vars(exact), noise=Noise(1.0))
        np.testing.assert_allclose(table.estimates, table.values, rtol=0, atol=1e-12)
        low, high = table.band
        used = table.sizes > 0
        assert (low <= table.values)[used].all()
        assert (high >= table.values)[used].all()


def men():
    sample = discretise(NHANES, {"kind": "activity", "step_minutes": 1}, "activity", "bundled")
    return pooled(sample.group("men_18_54")).state_counts


DATA = {
    "household": (lambda: electricity_transitions().sum(axis=0), 315.0, 0.89, 0.80),
    "activity": (men, 10.4, 0.89, 1.0),
}
"""Counts, the scale of their noise at ε = 1 (leakage), and the largest ratios that may be left: of
root mean square errors, and of widths of the band."""


@pytest.mark.parametrize("name", DATA)
def test_a_tenth_is_gained_and_the_band_contains_as_often_what_is_exact(name):
    counts, scale, *most = DATA[name]
    counts, rng = counts().astype(int), np.random.default_rng(1)
    exact, columns = counts / counts.sum(), [Column(str(j)) for j in range(len(counts))]
    errors, widths, covered = [], [], []
    for _ in range(1000):
        drawn = Noise(scale).add(counts, rng)
        table = noisy(Histogram(), ["all"], columns, [counts.sum()], drawn, scale)
        half, (low, high) = table.half_width, table.band
        errors.append([table.values - exact, table.estimates - exact])
        widths.append(((high - low) / (2 * half)).mean())
        clipped = ((low <= exact) & (exact <= high)).all()
        covered.append((clipped, (abs(errors[-1][0]) <= half).all()))
    value, estimate = np.sqrt(np.square(errors).mean(axis=(0, 2, 3)))
    assert estimate / value <= most[0]
    assert np.mean(widths) <= most[1]
    assert all(one == other for one, other in covered)
    assert np.mean(covered) > 0.93
