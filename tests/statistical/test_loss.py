"""The privacy loss that Laplace noise of each mechanism's scale has, by exact losses of counts.

``privacy_loss`` is compared with enumerations in fractions in
``tests/property/test_exact_loss.py``.
"""

import numpy as np
import pytest
from cases import counts, seeds
from enumeration import random_chain

import pufferflow as pf
from pufferflow.audit import CountQuery
from pufferflow.mechanisms import MECHANISMS

PRIVATE = ["group-dp", "gk16", "mqm-approx", "mqm-exact", "leakage"]


def largest_loss(chain, length, scale):
    """Largest loss of the counts of single states, surely attained."""
    queries = [CountQuery([state]) for state in range(chain.states)]
    return max(pf.privacy_loss(chain, length, scale, query).lower for query in queries)


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("number", seeds(1, 12))
def test_loss_is_at_most_epsilon(name, number):
    rng = np.random.default_rng([2017, number])
    applicable = 0
    while applicable < 20:
        chain = pf.MarkovChain(*random_chain(rng, int(rng.integers(2, 4))).floats())
        length, epsilon = int(rng.integers(1, 9)), float(10 ** rng.uniform(-1.5, 1))
        if name == "mqm-approx" and not chain.is_aperiodic:
            continue
        scale = MECHANISMS[name](chain, length, epsilon).scale
        if scale is not None:
            applicable += 1
            assert largest_loss(chain, length, scale) <= epsilon


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.7), (0.1, 0.5), (0.4, 0.95), (0.42, 0.58)])
@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("others", counts(2, 10))
def test_loss_within_a_binary_interval_is_at_most_epsilon(name, low, high, others):
    rng = np.random.default_rng(7)
    scale = MECHANISMS[name](pf.BinaryInterval(low, high), 7, 2.0).scale
    if scale is None:
        assert name == "gk16"
        assert high - low > 0.3
        return
    for p, q in [(low, low), (high, high), (low, high), *rng.uniform(low, high, (others, 2))]:
        assert largest_loss(pf.MarkovChain([[p, 1 - p], [1 - q, q]], "any"), 7, scale) <= 2.0


def test_what_is_private_and_what_is_not():
    chain = pf.MarkovChain([[0.6, 0.4], [0.3, 0.7]])
    result = pf.mqm_exact(chain, 12, 4.0)
    assert None not in result.quilt  # two-sided
    assert 0 < largest_loss(chain, 12, result.scale) <= 4.0
    sticky = pf.MarkovChain([[0.95, 0.05], [0.05, 0.95]])
    scale = pf.mechanisms.entry_dp(sticky, 8, 1.0).scale
    # ε = 1 was asked for
    assert largest_loss(sticky, 8, scale) == pytest.approx(5.378239, abs=1e-6)
    half = pf.MarkovChain([[0.5, 0.5]] * 2)
    # 1/ε is exactly enough
    assert largest_loss(half, 5, 0.999) > 1.0 > largest_loss(half, 5, 1.0) - 1e-12
