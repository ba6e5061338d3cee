"""Lemma 4.9, Appendix C.9 and GK16 of the paper on random chains; the comparison names them."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from cases import seeds
from sequence_programs import sequence_law

import pufferflow as pf
from pufferflow.influence.quilts import QuiltSearch
from pufferflow.models.chain import MarkovChain


def random_chain(seed):
    """A chain of two to four states, with a stationary start, that moves anywhere at each step."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    return MarkovChain(0.9 * rng.dirichlet(np.full(k, rng.choice([0.3, 1, 3])), k) + 0.1 / k)


def chain_influence(chain, length, node, a, b):
    search = QuiltSearch(chain, length, 1.0)
    return search.influence(search.nodes(node), a, b)


def mixing_terms(chain, distance):
    """log((1 + Δ)/(1 − Δ)), Δ = exp(−g t / 2) / π_min, g the eigengap of P P*; ∞ where Δ ≥ 1."""
    P = chain.transition_matrix
    values, vectors = np.linalg.eig(P.T)
    pi = np.real(vectors[:, np.argmax(np.real(values))])
    pi /= pi.sum()
    reversal = P.T * pi / pi[:, None]
    moduli = np.sort(np.abs(np.linalg.eigvals(P @ reversal)))
    delta = math.exp(-(1 - moduli[-2]) * distance / 2) / pi.min()
    return math.log((1 + delta) / (1 - delta)) if delta < 1 else math.inf


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_lemma_4_9_bounds_every_influence(seed):
    """The bound by mixing is never below the max-influence of a two-sided, left or right quilt."""
    chain, length, node = random_chain(seed), 81, 41
    finite = 0
    for a, b in ((1, 1), (5, 2), (2, 9), (12, 12), (40, 3), (40, 40), (20, 0), (0, 20)):
        bound = 2 * mixing_terms(chain, a) if a else 0.0
        bound += mixing_terms(chain, b) if b else 0.0
        finite += math.isfinite(bound)
        assert chain_influence(chain, length, node, a, b) <= bound * (1 + 1e-9) + 1e-12
    assert finite


def best_quilt(chain, length, node, epsilon):
    """Score and distances of a node's best quilt, over all quilts of Lemma 4.6."""
    lefts, rights = range(node), range(length - node + 1)

    def score(a, b):
        e = chain_influence(chain, length, node, a, b)
        left, right = a or node, b or length - node + 1  # distances to the end of what is near
        return (left + right - 1) / (epsilon - e) if e < epsilon else math.inf

    return min((score(a, b), a, b) for a in lefts for b in rights)


@pytest.mark.parametrize("seed", seeds(10, 60))
def test_appendix_c_9_one_two_sided_quilt_decides(seed):
    """Where the best quilt of a node is two-sided, no other node has a larger best score."""
    chain, length = random_chain(seed), 14
    for epsilon in (1.0, 3.0, 10.0):
        best = [best_quilt(chain, length, node, epsilon) for node in range(1, length + 1)]
        two_sided = [score for score, a, b in best if a and b]
        worst = max(score for score, *_ in best)
        assert all(score >= worst * (1 - 1e-9) for score in two_sided)


def test_appendix_c_9_has_cases():
    """Some of these chains do have a node whose best quilt is two-sided."""
    found = [best_quilt(random_chain(seed), 14, 7, 10.0) for seed in range(10)]
    assert any(a and b for _, a, b in found)


# -- GK16 against Γ as it is defined ---------------------------------------------------------------

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
