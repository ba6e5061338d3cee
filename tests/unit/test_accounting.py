"""What scales guarantee, and what releases cost together, against the enumerated losses."""

import itertools
import math

import numpy as np
import pytest
from cases import seeds

import pufferflow as pf


def enumerated_loss(chain, length, queries, scales):
    """Largest loss of several Laplace releases together, at the outputs on the queries' values and beyond them."""
    k, law = chain.states, chain.initial_distribution
    paths = np.array(list(itertools.product(range(k), repeat=length)))
    steps = chain.transition_matrix[paths[:, :-1], paths[:, 1:]].prod(axis=1)
    probability = law[paths[:, 0]] * steps
    density = np.ones((1, len(paths)))
    for query, scale in zip(queries, scales, strict=True):
        values = query(paths)
        outputs = np.concatenate([np.unique(values), [values.min() - 1, values.max() + 1]])
        one = np.exp(-np.abs(outputs[:, None] - values) / scale)
        density = (density[:, None] * one[None]).reshape(-1, len(paths))
    largest = 0.0
    for i in range(length):
        given = []
        for x in range(k):
            inside = paths[:, i] == x
            if probability[inside].sum() > 0:
                given.append(density[:, inside] @ probability[inside] / probability[inside].sum())
        for p, q in itertools.permutations(given, 2):
            largest = max(largest, float(np.log(p / q).max()))
    return largest


def lipschitz_query(rng, k, length):
    """A random function of the whole sequence that changes by at most 1 with one entry."""
    centres = rng.integers(k, size=(4, length))
    heights = rng.uniform(0, length, 4)

    def query(paths):
        return (heights + (paths[:, None, :] != centres).sum(axis=-1)).min(axis=1)

    return query


@pytest.mark.parametrize("seed", seeds(4, 36))
def test_costs_and_guarantees_hold_for_any_lipschitz_queries(seed):
    rng = np.random.default_rng(seed)
    k, length = (2, 4) if seed % 2 else (3, 3)
    matrix = rng.dirichlet(np.full(k, 0.5), k)
    start = rng.dirichlet(np.ones(k)) if seed % 3 else "stationary"
    chain = pf.MarkovChain(matrix, start)
    scales = [float(10 ** rng.uniform(-0.5, 1)) for _ in range(1 + seed % 3)]
    accountant = pf.Accountant(chain, length)
    for scale in scales:
        accountant.add(scale)
    cost = accountant.cost()
    queries = [lipschitz_query(rng, k, length) for _ in scales]
    loss = enumerated_loss(chain, length, queries, scales)
    assert loss <= min(cost.theorem_4_4, cost.quilts, cost.leakage) * (1 + 1e-9)
    alone = enumerated_loss(chain, length, queries[:1], scales[:1])
    for mechanism in ("mqm-exact", "leakage"):
        assert alone <= pf.guarantee(chain, length, scales[0], mechanism=mechanism) * (1 + 1e-7)


def test_a_guarantee_is_the_inverse_of_a_scale():
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    for epsilon in (0.01, 0.5, 3.0):
        scale = pf.mqm_exact(chain, 50, epsilon).scale
        found = pf.guarantee(chain, 50, scale)
        assert found == pytest.approx(epsilon, rel=1e-9)
        assert pf.mqm_exact(chain, 50, found).scale <= scale


def test_all_segments_count_in_a_guarantee():
    # a cycle: of 4 states in a row 2 are counted, whatever the first, of 2 states 0, 1 or 2
    cycle = pf.MarkovChain(np.eye(4)[[1, 2, 3, 0]])
    options = {"mechanism": "wasserstein", "states": [0, 1]}
    assert pf.guarantee(cycle, [2, 4], 1.0, **options) == pytest.approx(2.0, rel=1e-9)
    assert pf.guarantee(cycle, [4, 2], 1.0, **options) == pytest.approx(2.0, rel=1e-9)
    assert pf.guarantee(cycle, 4, 1.0, **options) <= 1.0
    assert math.isinf(pf.guarantee(cycle, 4, 1.0, mechanism="gk16"))
