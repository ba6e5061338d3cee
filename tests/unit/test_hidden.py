"""Hidden chains: the distributions of what they are built from, and known values."""

import numpy as np
import pytest
from sequence_programs import label_law

import pufferflow as pf

CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
ORDER_2 = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8]]])


def joint(family, length):
    chain = family.chain
    matrices = [chain.transition_matrix] * (length - 1)
    return label_law(matrices, chain.initial_distribution, family.observations, family.states)


def test_order_2_and_hidden_states_have_their_distributions():
    law = joint(pf.HiddenChain.of_order(ORDER_2), 4)
    assert law.sum() == pytest.approx(1)
    pairs = law.sum(axis=(2, 3))
    np.testing.assert_allclose(law, np.einsum("xy,xyz,yzu->xyzu", pairs, ORDER_2, ORDER_2))
    emission = np.array([[0.9, 0.1, 0], [0.2, 0.3, 0.5]])
    pi, p = CHAIN.stationary_distribution, CHAIN.transition_matrix
    expected = np.einsum("a,ab,bc,ax,by,cz->xyz", pi, p, p, emission, emission, emission)
    np.testing.assert_allclose(joint(pf.HiddenChain.hidden(CHAIN, emission), 3), expected)


def test_durations_have_their_law():
    family = pf.HiddenChain.with_durations([[0, 1], [1, 0]], [[0.2, 0, 0.8], [0.5, 0.5, 0]], [1, 0])
    law = joint(family, 5)
    expected, lasts = np.zeros_like(law), {0: {1: 0.2, 3: 0.8}, 1: {1: 0.5, 2: 0.5}}
    visits = [((), 0, 1.0)]
    while visits:
        seen, state, chance = visits.pop()
        for n, share in lasts[state].items():
            now = (*seen, *[state] * n)
            if len(now) >= 5:
                expected[now[:5]] += chance * share
            else:
                visits.append((now, 1 - state, chance * share))
    np.testing.assert_allclose(law, expected, atol=1e-15)


def test_windows_of_never_observed_records_are_left_out():
    counts = np.zeros((3, 3, 3))
    counts[0, 0, 2] = counts[0, 2, 0] = counts[2, 0, 0] = 4
    chain, states = pf.fit_chain(counts, order=2)
    assert isinstance(chain, pf.HiddenChain)
    assert states.tolist() == [0, 2]
    assert chain.chain.states == 3
    np.testing.assert_array_equal(chain.chain.transition_matrix.sum(axis=1), 1)
