"""GK16 against Γ as it is defined: dense, from conditional probabilities by enumeration."""

from itertools import product

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.errors import ParameterError

# any start: the supremum is approached at point masses with a little of everything mixed in
NEARLY_ONE_STATE = {k: 1e-13 / k + (1 - 1e-13) * np.eye(k) for k in (2, 3)}


def influence_matrix(chain, length, laws):
    """γ_ij = ½ sup log P(x_i | x_j, rest) / P(x_i | x_j', rest), over possible values."""
    k, gamma = chain.states, np.zeros((length, length))
    for law in laws:
        joint = np.asarray(law, dtype=float)
        for _ in range(length - 1):
            joint = joint[..., None] * chain.transition_matrix
        for i, j in product(range(length), repeat=2):
            if i == j:
                continue
            table = np.moveaxis(joint, (i, j), (0, 1)).reshape(k, k, -1)
            total = table.sum(axis=0, keepdims=True)
            with np.errstate(invalid="ignore"):
                conditional = np.where(total > 0, table / total, np.nan)  # x_i, x_j, rest
            conditional[(table == 0).all(axis=(1, 2))] = np.nan  # values X_i never takes
            possible = ~np.isnan(conditional).all(axis=1)
            high = np.nanmax(np.where(np.isnan(conditional), -np.inf, conditional), axis=1)
            low = np.nanmin(np.where(np.isnan(conditional), np.inf, conditional), axis=1)
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


def limit_of_the_norm(chain_at, length, laws_of):
    """Where from 0 to 1 the norm of the dense matrix passes 1."""
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        chain = chain_at(middle)
        below = np.linalg.norm(influence_matrix(chain, length, laws_of(chain)), 2) < 1
        low, high = (middle, high) if below else (low, middle)
    return low


@pytest.mark.parametrize("length", [2, 3, 7])
def test_norm_decides_to_the_last_digits(length):
    """Just inside the limit of α it is applicable, just outside it is not."""

    def family(far):
        return pf.BinaryInterval(0.5 - 0.4 * far, 0.5 + 0.4 * far)

    limit = limit_of_the_norm(
        lambda far: family(far).chains[0], length, lambda chain: NEARLY_ONE_STATE[2]
    )
    assert pf.gk16(family(limit - 1e-8), length, 1.0).scale is not None
    assert pf.gk16(family(limit + 1e-8), length, 1.0).scale is None


@pytest.mark.parametrize("seed", range(4))
def test_norm_decides_where_the_two_sides_of_a_node_differ(seed):
    rows = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), 3)

    def chain(far):
        return pf.MarkovChain((1 - far) / 3 + far * rows)

    limit = limit_of_the_norm(chain, 5, lambda chain: [chain.initial_distribution])
    assert pf.gk16(chain(limit - 1e-8), 5, 1.0).scale is not None
    assert pf.gk16(chain(limit + 1e-8), 5, 1.0).scale is None


def test_entries_are_suprema_over_the_family():
    one = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], [0.5, 0.5])
    other = pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]], [0.9, 0.1])
    gamma = np.maximum(*(influence_matrix(c, 5, [c.initial_distribution]) for c in (one, other)))
    exact = 2 * np.linalg.inv(np.eye(5) - gamma).sum(axis=1).max()
    assert pf.gk16(pf.ChainFamily([one, other]), 5, 1.0).scale == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (
            [[0.5, 0.5], [1, 0]],
            "a transition has probability 0, so the local influence is infinite",
        ),
        (
            [[0.9, 0.1], [0.1, 0.9]],
            "the spectral norm of the influence matrix is not below 1 (interior entries 1.857 and",
        ),
    ],
)
def test_not_applicable_with_a_reason(matrix, reason):
    for length in (2, 10, 10**6):
        result = pf.gk16(pf.MarkovChain(matrix), length, 1.0)
        assert (result.scale, result.status) == (None, "not applicable")
        assert reason in result.reason
        with pytest.raises(ParameterError, match="gk16 is not applicable"):
            result.noise_scale(1.0)


def test_long_chains_take_the_limit():
    chain = pf.MarkovChain([[0.6, 0.4], [0.45, 0.55]])
    scales = [pf.gk16(chain, length, 1.0).scale for length in (10, 1000, 100_000, 100_001, 10**12)]
    assert scales == sorted(scales)
    assert scales[1] == pytest.approx(scales[-1], rel=1e-9)
