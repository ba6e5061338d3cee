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


@pytest.mark.parametrize("window", [1, 2, 30])
def test_who_knows_records_of_an_order_2(window):
    """One step of it bounds nothing, two do."""
    family = pf.HiddenChain.of_order(ORDER_2)
    plain, known, shorter = (
        pf.leakage(family, length, 1.0, window=window, side_information=side).scale
        for length, side in ((10**6, "none"), (10**6, "any"), (10**5, "any"))
    )
    assert plain < known < 1000
    assert known == pytest.approx(shorter, rel=1e-6)


@pytest.mark.parametrize("start", ["any", "stationary", [1.0]])
def test_labels_that_tell_nothing_of_others_need_the_noise_of_one_record(start):
    """Also where it is one label, or drawn whatever the state is."""
    one = pf.HiddenChain(pf.MarkovChain([[1.0]], start), [0])
    assert pf.leakage(one, 50, 0.5, side_information="any").scale == pytest.approx(2, rel=1e-5)
    coin = pf.HiddenChain.hidden(CHAIN, [[0.3, 0.7], [0.3, 0.7]])
    assert pf.leakage(coin, 50, 0.5).scale == pytest.approx(2, rel=1e-5)


@pytest.mark.parametrize("k", [3, 7])
def test_many_words_are_not_compared(k):
    """See refusals.txt for the reason."""
    family = pf.HiddenChain.of_order(np.random.default_rng(0).dirichlet(np.full(k, 50), (k, k)))
    found = pf.leakage(family, 40, 1.0, side_information="any")
    assert (found.scale == 40, bool(found.reason)) == (k == 7, k == 7)
