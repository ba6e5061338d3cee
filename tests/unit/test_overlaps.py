"""Which mixing families a chain lies in, and what counts show of it."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from processes import around, corner, overlap
from random_chains import chains
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow.models import mixing_from_counts, mixing_of
from pufferflow.models.mixing import _variations, overlaps_from_counts


@examples(25, 60)
@given(chains(4), st.integers(1, 5))
def test_overlaps_of_chains_are_those_of_their_laws(chain, steps):
    """By definition: joint distributions of a few nodes. Behind, other starts get a bound."""
    found, law = mixing_of(chain, steps), chain.initial_distribution
    starts = np.random.default_rng(steps).dirichlet(np.full(chain.states, 0.5), 5)
    for start in starts if law is None else [law]:
        least = overlap(start, [chain.transition_matrix] * steps, steps)
        assert least >= found.overlap - 1e-13
        if chain.start == "stationary":
            assert least == pytest.approx(found.overlap, abs=1e-9)
    assert 0 <= found.backward <= 1
    assert 0 <= found.forward <= 1


def test_behind_any_start_is_attained_by_a_law_on_two_states():
    P = np.array([[0.7, 0.3], [0.2, 0.8]])
    found = mixing_of(pf.MarkovChain(P, "any"), 1)
    root = np.sqrt(0.7 * 0.8 / (0.3 * 0.2))
    assert found.backward == pytest.approx(2 / (1 + root), rel=1e-12)
    least = min(overlap(np.array([m, 1 - m]), [P], 1) for m in np.linspace(0.001, 0.999, 999))
    assert found.backward <= least <= found.backward + 1e-4


def test_electricity_lies_in_the_families_of_the_readme():
    electricity, _ = pf.fit_chain(electricity_transitions())
    hour, two = mixing_of(electricity, 60), mixing_of(electricity, 120)
    assert (round(hour.forward, 3), round(hour.backward, 3)) == (0.476, 0.495)
    assert (round(two.forward, 3), round(two.backward, 3)) == (0.805, 0.813)
    assert hour.family(0.05).overlap == pytest.approx(0.426, abs=1e-3)


@examples(10, 25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(1e-4, 0.3))
def test_no_chain_within_the_bounds_mixes_less(seed, k, width):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), k)
    if rng.random() < 0.3:
        rows = 0.9 * np.eye(k)[rng.permutation(k)] + 0.1 * rows
    family = pf.IntervalFamily(*around(rng, [rows], width))
    bounds = _variations(family, rows, [12])
    ends = [corner(rng, family.low, family.high) for _ in range(9)]
    for member in (*ends, *(rng.dirichlet(np.ones(9), 3) @ np.reshape(ends, (9, -1)))):
        chain = pf.MarkovChain(np.maximum(np.reshape(member, (k, k)), 0), "any")
        for n in range(1, 13):
            assert 1 - mixing_of(chain, n).forward <= bounds[n] + 1e-12
    assert (np.diff(bounds) <= 0).all()


def test_counts_of_a_known_chain():
    rng = np.random.default_rng(3)
    chain = pf.MarkovChain([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.1, 0.3, 0.6]])
    for length in (300, 30_000):
        states = chain.simulate(length, rng)
        counts = np.zeros((3, 3), dtype=np.int64)
        np.add.at(counts, (states[:-1], states[1:]), 1)
        for found in overlaps_from_counts(counts, [1, 3, 10, 30], 0.95):
            true = mixing_of(chain, found.steps)
            assert found.forward <= true.forward
            assert found.backward <= true.backward
    assert found.forward > 0.95
    skewed = counts * [[1, 2, 3], [1, 1, 1], [5, 1, 1]]
    ways = [mixing_from_counts(seen, 10) for seen in (skewed, skewed.T)]
    assert (ways[0].forward, ways[0].backward) == (ways[1].backward, ways[1].forward)
    assert ways[0].forward != ways[0].backward
    sure, surer = (mixing_from_counts(counts, 10, coverage) for coverage in (0.95, 0.9999))
    assert sure.forward > surer.forward > 0.5
    rarely_left = mixing_from_counts([[5000, 200, 0], [200, 5000, 1], [0, 1, 0]], 50)
    assert rarely_left.overlap == 0


@pytest.mark.parametrize("start", ["any", [0.25] * 4])
def test_what_is_too_small_for_floats_can_still_occur(start):
    """The third state follows two steps of 1e-200; then the first record was surely in state 1."""
    rare = 1e-200
    matrix = [[0.5, rare, 0, 0.5], [0.5, 0, rare, 0.5], [0.5, 0, 0, 0.5], [0.5, 0, 0, 0.5]]
    assert mixing_of(pf.MarkovChain(matrix, start), 2).backward == 0.0
