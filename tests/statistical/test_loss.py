"""The privacy loss that Laplace noise of each mechanism's scale really has, by enumeration.

The query is the number of visits to a state, 1-Lipschitz. Given X_i = x its noisy value has the density
Σ_n P(n | x) exp(−|w − n|/σ) / 2σ. Between neighbouring integers, and beyond 0 and T, this is A e^{w/σ} + B e^{−w/σ};
the ratio of two such densities is a linear-fractional function of e^{2w/σ}, hence monotone there, so the largest
ratio over all outputs w is attained at w = 0, …, T.
"""

import numpy as np
import pytest
from cases import counts, seeds
from enumeration import random_chain
from scipy.special import logsumexp

import pufferflow as pf
from pufferflow.mechanisms import MECHANISMS

PRIVATE = ["group-dp", "gk16", "mqm-approx", "mqm-exact"]


def joint_distribution(matrix, initial_distribution, length):
    distribution = np.asarray(initial_distribution, dtype=float)
    for _ in range(length - 1):
        distribution = distribution[..., None] * np.asarray(matrix)
    return distribution


def largest_loss(matrix, initial_distribution, length, scale):
    """Largest log ratio over all states counted, nodes, pairs of secrets and outputs."""
    k = len(matrix)
    distribution = joint_distribution(matrix, initial_distribution, length)
    path = np.indices(distribution.shape).reshape(length, -1)
    weight = distribution.ravel()
    distance = np.abs(np.arange(length + 1)[:, None] - np.arange(length + 1)[None, :])  # output, count
    worst = 0.0
    for counted in range(k):
        visits = (path == counted).sum(axis=0)
        for node in path:
            table = np.zeros((k, length + 1))
            np.add.at(table, (node, visits), weight)
            table = table[table.sum(axis=1) > 0]
            with np.errstate(divide="ignore"):
                log_table = np.log(table / table.sum(axis=1, keepdims=True))
            densities = logsumexp(log_table[:, None, :] - distance / scale, axis=2)
            worst = max(worst, float(np.ptp(densities, axis=0).max()))
    return worst


def initial_distributions(chain, rng):
    if chain.start != "any":
        return [chain.initial_distribution]
    return [*np.eye(chain.states), *rng.dirichlet(np.ones(chain.states), size=3)]


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("number", seeds(1, 12))
def test_loss_is_at_most_epsilon(name, number):
    rng = np.random.default_rng([2017, number])
    applicable = 0
    while applicable < 20:
        exact_chain = random_chain(rng, int(rng.integers(2, 4)))
        chain = pf.MarkovChain(*exact_chain.floats())
        length = int(rng.integers(1, 7))
        epsilon = float(10 ** rng.uniform(-1.5, 1))
        if name == "mqm-approx" and not chain.is_aperiodic:
            continue
        result = MECHANISMS[name](chain, length, epsilon)
        if result.scale is None:
            continue
        applicable += 1
        for distribution in initial_distributions(chain, rng):
            loss = largest_loss(chain.transition_matrix, distribution, length, result.scale)
            assert loss <= epsilon + 1e-9, (exact_chain, distribution, length, epsilon)


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.7), (0.1, 0.5), (0.4, 0.95), (0.42, 0.58)])
@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("others", counts(2, 10))
def test_loss_within_a_binary_interval_is_at_most_epsilon(name, low, high, others):
    rng = np.random.default_rng(7)
    length, epsilon = 7, 2.0
    scale = MECHANISMS[name](pf.BinaryInterval(low, high), length, epsilon).scale
    if scale is None:
        assert name == "gk16"
        assert high - low > 0.3
        return
    for stay in [(low, low), (high, high), (low, high), *rng.uniform(low, high, (others, 2))]:
        matrix = [[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]]
        for first in (0.0, 1.0, rng.random()):
            assert largest_loss(matrix, [first, 1 - first], length, scale) <= epsilon + 1e-9


def test_a_two_sided_quilt_in_a_longer_chain_is_private():
    chain = pf.MarkovChain([[0.6, 0.4], [0.3, 0.7]])
    result = pf.mqm_exact(chain, 12, 4.0)
    assert None not in result.quilt
    assert 0 < largest_loss(chain.transition_matrix, chain.initial_distribution, 12, result.scale) <= 4.0


def test_entry_dp_is_not_private_for_correlated_data():
    chain = pf.MarkovChain([[0.95, 0.05], [0.05, 0.95]])
    loss = largest_loss(
        chain.transition_matrix, chain.initial_distribution, 8, pf.mechanisms.entry_dp(chain, 8, 1.0).scale
    )
    assert loss == pytest.approx(5.378239, abs=1e-6)  # ε = 1 was asked for


def test_the_loss_of_a_smaller_scale_is_found():
    """Independent records: 1/ε is exactly enough."""
    half = [[0.5, 0.5], [0.5, 0.5]]
    assert largest_loss(half, [0.5, 0.5], 5, 1.0) == pytest.approx(1.0, abs=1e-12)
    assert largest_loss(half, [0.5, 0.5], 5, 0.999) > 1.0
