"""GK16 against Γ as it is defined: dense, from conditional probabilities by enumeration."""

from itertools import permutations, product

import numpy as np
import pytest
from sequence_programs import sequence_law

import pufferflow as pf

# any start: the supremum is approached at point masses with a little of everything mixed in
NEARLY_ONE_STATE = {k: 1e-13 / k + (1 - 1e-13) * np.eye(k) for k in (2, 3)}


def influence_matrix(chain, length, laws):
    """γ_ij = ½ sup log P(x_i | x_j, rest) / P(x_i | x_j', rest), over possible values."""
    gamma = np.zeros((length, length))
    for law, (i, j) in product(laws, permutations(range(length), 2)):
        joint = sequence_law(chain.transition_matrix, law, length)
        table = np.moveaxis(joint, (i, j), (0, 1)).reshape(*joint.shape[:1] * 2, -1)
        table = table[table.any(axis=(1, 2))]  # values that X_i takes
        with np.errstate(invalid="ignore"):
            conditional = table / table.sum(axis=0)  # x_i, x_j, rest; NaN where these cannot be
        high = np.nanmax(conditional, axis=1, initial=0, where=~np.isnan(conditional))
        low = np.nanmin(conditional, axis=1, initial=1, where=~np.isnan(conditional))
        possible = ~np.isnan(conditional).all(axis=1)
        gamma[i, j] = max(gamma[i, j], np.log(high[possible] / low[possible]).max() / 2)
    return gamma


def weak_chain(rng, k, start):
    matrix = rng.uniform(1, rng.uniform(1.05, 2.2), (k, k))
    if start == "given":
        start = rng.dirichlet(np.ones(k))
    elif start == "with zeros":
        start = np.eye(k)[0] if k == 2 else np.array([0.5, 0, 0.5])
    return pf.MarkovChain(matrix / matrix.sum(axis=1, keepdims=True), start)


@pytest.mark.parametrize("start", ["stationary", "given", "with zeros", "any"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 6])
def test_scale_against_the_dense_matrix(k, length, start):
    rng = np.random.default_rng([k, length])
    applicable = 0
    for _ in range(6):
        chain = weak_chain(rng, k, start)
        laws = NEARLY_ONE_STATE[k] if start == "any" else [chain.initial_distribution]
        gamma = influence_matrix(chain, length, laws)
        norm = np.linalg.norm(gamma, 2)
        result = pf.gk16(chain, length, 0.7)
        if norm >= 1:
            assert result.scale is None
            assert "spectral norm" in result.reason
            continue
        applicable += 1
        exact = 2 * np.linalg.inv(np.eye(length) - gamma).sum(axis=1).max() / 0.7
        assert result.scale == pytest.approx(exact, rel=1e-9)
        assert result.scale >= exact * (1 - 1e-10)
    assert applicable


def test_entries_are_suprema_over_the_family():
    one = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], [0.5, 0.5])
    other = pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]], [0.9, 0.1])
    gamma = np.maximum(*(influence_matrix(c, 5, [c.initial_distribution]) for c in (one, other)))
    exact = 2 * np.linalg.inv(np.eye(5) - gamma).sum(axis=1).max()
    assert pf.gk16(pf.ChainFamily([one, other]), 5, 1.0).scale == pytest.approx(exact, rel=1e-12)


def test_long_chains_take_the_limit():
    chain = pf.MarkovChain([[0.6, 0.4], [0.45, 0.55]])
    scales = [pf.gk16(chain, length, 1.0).scale for length in (10, 1000, 100_000, 100_001, 10**12)]
    assert scales == sorted(scales)
    assert scales[1] == pytest.approx(scales[-1], rel=1e-9)
