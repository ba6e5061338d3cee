"""Lemma 4.9 and Appendix C.9 of the paper, on random chains; the comparison names these tests."""

import math

import numpy as np
import pytest
from cases import seeds

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
