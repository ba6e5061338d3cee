"""What scales guarantee and several releases cost, by linear programs; OpenDP's measurements."""

import itertools
import math

import numpy as np
import opendp.prelude as dp
import pytest
from cases import seeds
from sequence_programs import largest_loss, sequence_law

import pufferflow as pf

dp.enable_features("contrib")
HOUR = pf.MixingFamily(60, 0.4)
FAMILIES = [HOUR, pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), pf.BinaryInterval(0.3, 0.7)]
WHOLE = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")


@pytest.mark.parametrize("seed", seeds(12, 100))
def test_costs_and_guarantees_hold_for_any_lipschitz_queries(seed):
    """The largest loss of all together, and of the first alone, is found by linear programs."""
    rng = np.random.default_rng(seed)
    k, length = (2, 4) if seed % 2 else (3, 3)
    start = rng.dirichlet(np.ones(k)) if seed % 3 else "stationary"
    chain = pf.MarkovChain(rng.dirichlet(np.full(k, 0.5), k), start)
    scales = 10 ** rng.uniform(-0.5, 1, 1 + seed % 3)
    accountant = pf.Accountant(chain, length)
    for scale in scales:
        accountant.add(scale)
    cost = accountant.cost()
    joint = sequence_law(chain.transition_matrix, chain.initial_distribution, length)
    assert largest_loss(joint, (1 / scales).sum()) <= cost.epsilon * (1 + 1e-7)
    assert cost.epsilon == min(cost.theorem_4_4, cost.quilts, cost.leakage)
    alone = largest_loss(joint, 1 / scales[0])
    for mechanism in ("mqm-exact", "leakage"):
        assert alone <= pf.Accountant.guarantee(chain, length, scales[0], mechanism) * (1 + 1e-7)


def test_a_guarantee_is_the_inverse_of_a_scale():
    chain, guarantee = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]]), pf.Accountant.guarantee
    for epsilon, name in itertools.product((0.01, 0.5, 3.0), ("mqm-exact", "group-dp", "leakage")):
        scale = pf.MECHANISMS[name](chain, 50, epsilon).scale
        found = guarantee(chain, 50, scale, mechanism=name)
        assert found == pytest.approx(epsilon, rel=1e-9)
        assert pf.MECHANISMS[name](chain, 50, found).scale <= scale
    cycle = pf.MarkovChain(np.eye(4)[[1, 2, 3, 0]])  # of 4 states in a row 2 are counted, of 2 any
    assert guarantee(cycle, [4, 2], 1.0, "wasserstein", states=[0, 1]) == pytest.approx(2, rel=1e-9)
    assert math.isinf(guarantee(cycle, 4, 1.0, "gk16"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("options", [{}, {"window": 5}, {"knows": "any records"}])
def test_a_measurement_may_spend_and_loses_what_leakage_says(family, options):
    for epsilon in (0.01, 7.0):
        event = pf.event_epsilon(family, 500, epsilon, **options)
        needed = pf.leakage(family, 500, epsilon, **options).scale
        assert event * needed == pytest.approx(1, rel=1e-6)  # couplings start from the last ones
        assert epsilon / 500 * (1 - 1e-12) <= event <= epsilon
    wrapped = pf.wrap(dp.m.make_laplace(*WHOLE, scale=5.0), family, 500, d_in=1, **options)
    assert 0.2 - 1e-16 <= wrapped.event_epsilon == pytest.approx(0.2)
    assert wrapped.scale <= 5.0
    stated = pf.leakage_loss(family, 500, 5.0, **options)
    assert stated * (1 - 1e-12) <= wrapped.loss == pytest.approx(stated, rel=1e-9)
    assert isinstance(wrapped(10), int)


def test_data_sets_that_differ_in_one_record():
    """A record goes and one comes: two changes of the symmetric distance."""
    data = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counted = data >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    assert pf.wrap(counted, HOUR, 100).event_epsilon == pytest.approx(counted.map(2))
    noisy = dp.m.make_laplace(*WHOLE, scale=5.0)
    for measurement, d_in, said in (
        (counted, 1, "is 1 for SymmetricDistance.*none for data sets"),
        (dp.m.make_gaussian(*WHOLE, scale=4.0), 1, "only pure differential privacy"),
        (noisy, None, "is None for AbsoluteDistance"),
        (noisy, 0.5, "at d_in = 0.5 is not known"),
    ):
        with pytest.raises(pf.ParameterError, match=said):
            pf.wrap(measurement, HOUR, 100, d_in=d_in)
