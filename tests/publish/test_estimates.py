"""Estimates of shares: the nearest possible ones, within a possible band."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from test_statistics import CASES, some_steps, statistic_of

from pufferflow.publish.noise import Noise
from pufferflow.publish.result import NoisyTable, nearest_shares


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
