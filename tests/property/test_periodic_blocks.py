"""Blocks of whole hours against the leakages of every node, for adversaries who know records and for any start."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from sequence_programs import largest_loss

import pufferflow as pf
from pufferflow._protection import Protection
from pufferflow.coupling.periodic import PeriodicLeakage


@st.composite
def clocks(draw):
    """Periodic chains of 2 or 3 states, sparse ones and such as hardly ever move among them."""
    k, pieces = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    matrices = rng.dirichlet(np.full(k, draw(st.sampled_from([0.1, 1.0]))), (pieces, k))
    matrices[rng.random(matrices.shape) < draw(st.sampled_from([0.0, 0.3]))] = 0.0
    matrices += np.eye(k) * draw(st.sampled_from([1e-6, 0.2, 5.0]))
    matrices /= matrices.sum(axis=2, keepdims=True)
    return pf.PeriodicChain(matrices, repeat=draw(st.integers(1, 4)), initial_distribution="any")


@given(clocks(), st.sampled_from(["nothing", "any records"]), st.sampled_from([0.01, 0.3, 3.0]), st.integers(1, 2))
@examples(6, 60)
def test_no_loss_is_above_the_bound_for_all_lengths(chain, knows, cost, window):
    length = 4 if chain.states == 2 else 3
    bound = PeriodicLeakage(chain, length, Protection(window, knows))
    bound._exact = False
    found = bound.profile(cost).max()
    rng = np.random.default_rng(1)
    for phase in range(min(chain.period, 3)):
        for law in (np.full(chain.states, 1 / chain.states), rng.dirichlet(np.full(chain.states, 0.2)) + 1e-9):
            joint = law / law.sum()
            for step in range(length - 1):
                joint = joint[..., None] * chain.transition_matrix(phase + step)
            assert found >= largest_loss(joint, cost, window, knows) * (1 - 1e-6)


def test_blocks_see_what_single_steps_do_not():
    """A state that is hardly left looks remembered for ever, step by step, to someone who may know any record."""
    day = np.array([[0.9, 0.1 - 1e-7, 1e-7], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    night = np.array([[0.99, 0.01 - 1e-9, 1e-9], [0.6, 0.4 - 1e-9, 1e-9], [0.4, 0.4, 0.2]])
    chain = pf.PeriodicChain([day, night], repeat=60)
    informed = pf.leakage(chain, 10**6, 1.0, knows="any records").scale
    alone = pf.leakage(chain, 10**6, 1.0).scale
    assert alone < informed < 20 * alone
    same = pf.PeriodicChain([day, day], repeat=60)
    one = pf.leakage(pf.MarkovChain(day), 10**6, 1.0, knows="any records").scale
    assert pf.leakage(same, 10**6, 1.0, knows="any records").scale == pytest.approx(one, rel=0.2)
