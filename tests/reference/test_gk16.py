"""GK16 against Γ as it is defined: dense, from conditional probabilities by enumeration."""

import numpy as np
import pytest
from local_influence import NEARLY_ONE_STATE, influence_matrix, weak_chain

import pufferflow as pf
from pufferflow.errors import ParameterError


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


@pytest.mark.parametrize("length", [2, 3, 7])
def test_norm_decides_to_the_last_digits(length):
    """The limit of α: just inside it is applicable, just outside it is not."""
    low, high = 0.1, 0.5
    for _ in range(45):
        alpha = (low + high) / 2
        chain = pf.BinaryInterval(alpha, 1 - alpha).chains[0]
        if np.linalg.norm(influence_matrix(chain, length, NEARLY_ONE_STATE[2]), 2) < 1:
            high = alpha
        else:
            low = alpha
    assert pf.gk16(pf.BinaryInterval(high + 1e-9, 1 - high - 1e-9), length, 1.0).scale is not None
    assert pf.gk16(pf.BinaryInterval(low - 1e-9, 1 - low + 1e-9), length, 1.0).scale is None


@pytest.mark.parametrize("seed", range(4))
def test_norm_decides_where_the_two_sides_of_a_node_differ(seed):
    rng = np.random.default_rng(seed)
    one = rng.dirichlet(np.full(3, 0.3), 3)
    low, high = 0.0, 1.0  # how far from a uniform chain
    for _ in range(40):
        far = (low + high) / 2
        chain = pf.MarkovChain((1 - far) / 3 + far * one)
        if np.linalg.norm(influence_matrix(chain, 5, [chain.initial_distribution]), 2) < 1:
            low = far
        else:
            high = far
    assert pf.gk16(pf.MarkovChain((1 - low + 1e-8) / 3 + (low - 1e-8) * one), 5, 1.0).scale is not None
    assert pf.gk16(pf.MarkovChain((1 - high - 1e-8) / 3 + (high + 1e-8) * one), 5, 1.0).scale is None


def test_entries_are_suprema_over_the_family():
    one = pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]], [0.5, 0.5])
    other = pf.MarkovChain([[0.5, 0.5], [0.4, 0.6]], [0.9, 0.1])
    gamma = np.maximum(*(influence_matrix(c, 5, [c.initial_distribution]) for c in (one, other)))
    exact = 2 * np.linalg.inv(np.eye(5) - gamma).sum(axis=1).max()
    assert pf.gk16(pf.ChainFamily([one, other]), 5, 1.0).scale == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[0.5, 0.5], [1, 0]], "a transition has probability 0, so the local influence is infinite"),
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
