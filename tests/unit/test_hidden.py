"""Labelled chains: what they are built from, and known values."""

import itertools

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
    for x, y, z, u in itertools.product(range(2), repeat=4):
        assert law[x, y, z, u] == pytest.approx(
            law[x, y].sum() * ORDER_2[x, y, z] * ORDER_2[y, z, u]
        )
    emission = np.array([[0.9, 0.1, 0], [0.2, 0.3, 0.5]])
    pi, p = CHAIN.stationary_distribution, CHAIN.transition_matrix
    expected = np.einsum("a,ab,bc,ax,by,cz->xyz", pi, p, p, emission, emission, emission)
    np.testing.assert_allclose(joint(pf.HiddenChain.hidden(CHAIN, emission), 3), expected)


def test_durations_have_their_law():
    family = pf.HiddenChain.with_durations([[0, 1], [1, 0]], [[0.2, 0, 0.8], [0.5, 0.5, 0]], [1, 0])
    law = joint(family, 5)
    expected = np.zeros_like(law)
    lasts = {0: {1: 0.2, 3: 0.8}, 1: {1: 0.5, 2: 0.5}}
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


def test_words_are_the_last_labels_where_they_tell_states_apart():
    assert pf.HiddenChain.of_order(ORDER_2).words.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert pf.HiddenChain(CHAIN, [0, 1]).words.tolist() == [[0], [1]]
    third = pf.HiddenChain.of_order(np.full((2,) * 4, 0.5))
    assert third.words.tolist() == [list(word) for word in itertools.product((0, 1), repeat=3)]
    assert pf.HiddenChain(CHAIN, [0, 0]).words is None  # no labels tell these apart
    assert pf.HiddenChain.hidden(CHAIN, [[0.9, 0.1], [0.2, 0.8]]).words is None
    # 1, 1 never occurs after the first record
    alone = pf.HiddenChain.of_order([[[0.5, 0.5], [1, 0]], [[0.5, 0.5], [1, 0]]], "any")
    assert alone.words.tolist()[:3] == [[0, 0], [0, 1], [1, 0]]
    assert alone.words[3, 1] == 1
    assert alone.words[3, 0] < 0


@pytest.mark.parametrize("window", [1, 2, 30])
def test_who_knows_records_of_an_order_2(window):
    """One step of it bounds nothing, two do."""
    family = pf.HiddenChain.of_order(ORDER_2)
    known = pf.leakage(family, 10**6, 1.0, window=window, side_information="any").scale
    assert pf.leakage(family, 10**6, 1.0, window=window).scale < known < 1000
    assert known == pytest.approx(
        pf.leakage(family, 10**5, 1.0, window=window, side_information="any").scale, rel=1e-6
    )


@pytest.mark.parametrize(
    "family",
    [
        *(
            pf.HiddenChain(pf.MarkovChain([[1.0]], start), [0])
            for start in ("any", "stationary", [1.0])
        ),
        pf.HiddenChain.hidden(CHAIN, [[0.3, 0.7], [0.3, 0.7]]),
    ],
)
def test_labels_that_tell_nothing_of_others_need_the_noise_of_one_record(family):
    """Also where it is one label, or drawn whatever the state is."""
    side_information = "any" if family.states == 1 else "none"
    assert pf.leakage(family, 50, 0.5, side_information=side_information).scale == pytest.approx(
        2, rel=1e-5
    )


def test_many_words_are_not_compared_and_that_is_said():
    law = {k: np.random.default_rng(0).dirichlet(np.full(k, 50), (k, k)) for k in (3, 7)}
    few, many = (
        pf.leakage(pf.HiddenChain.of_order(law[k]), 40, 1.0, side_information="any") for k in (3, 7)
    )
    assert many.reason.endswith(
        "histories of 2 observations are compared where there are at most 36, not 49"
    )
    assert not few.reason
    assert few.scale < 40 == many.scale
