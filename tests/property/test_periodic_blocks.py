"""Blocks of whole hours against the leakages of every node, for adversaries who know records and for any start."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from random_chains import matrices_of_a_clock
from sequence_programs import largest_loss

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.coupling.distribution_sets import costs_of, reweighted_columns
from pufferflow.coupling.periodic import PeriodicLeakage, Way


@st.composite
def clocks(draw):
    """Periodic chains of 2 or 3 states, sparse ones and such as hardly ever move among them."""
    matrices, _ = matrices_of_a_clock(draw, draw(st.integers(2, 3)), draw(st.integers(1, 3)))
    return pf.PeriodicChain(matrices, repeat=draw(st.integers(1, 4)), initial_distribution="any")


@given(clocks(), st.sampled_from(["none", "any"]), st.sampled_from([0.01, 0.3, 3.0]), st.integers(1, 2))
@examples(6, 60)
def test_no_loss_is_above_the_bound_for_all_lengths(chain, side_information, cost, window):
    length = 4 if chain.states == 2 else 3
    bound = PeriodicLeakage(chain, length, Protection(window, side_information))
    bound._exact = False
    found = bound.profile(cost).max()
    rng = np.random.default_rng(1)
    for phase in range(min(chain.period, 3)):
        for law in (np.full(chain.states, 1 / chain.states), rng.dirichlet(np.full(chain.states, 0.2)) + 1e-9):
            joint = law / law.sum()
            for step in range(length - 1):
                joint = joint[..., None] * chain.transition_matrix(phase + step)
            assert found >= largest_loss(joint, cost, window, side_information) * (1 - 1e-6)


def test_blocks_see_what_single_steps_do_not():
    """A state that is hardly left looks remembered for ever, step by step, to someone who may know any record."""
    day = np.array([[0.9, 0.1 - 1e-7, 1e-7], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    night = np.array([[0.99, 0.01 - 1e-9, 1e-9], [0.6, 0.4 - 1e-9, 1e-9], [0.4, 0.4, 0.2]])
    chain = pf.PeriodicChain([day, night], repeat=60)
    informed = pf.leakage(chain, 10**6, 1.0, side_information="any").scale
    alone = pf.leakage(chain, 10**6, 1.0).scale
    assert alone < informed < 20 * alone
    same = pf.PeriodicChain([day, day], repeat=60)
    one = pf.leakage(pf.MarkovChain(day), 10**6, 1.0, side_information="any").scale
    assert pf.leakage(same, 10**6, 1.0, side_information="any").scale == pytest.approx(one, rel=0.2)


def stepped(way, piece, now, cost, cap):
    """Plain twin of :meth:`Way.walk`: a matrix operation a step."""
    matrix = way._matrix(piece)
    side = reweighted_columns(matrix.T if way._ahead else matrix)
    walked = [now]
    for step, phase in enumerate(way.phases(piece), 1):
        there = way._chain.possible[phase]
        now = np.minimum(side.bound(costs_of(now, cost)), cap)
        now[~(there[:, None] & there)] = 0.0
        np.fill_diagonal(now, 0.0)
        for block in way._piece(piece)._blocks:
            if step % block.steps == 0:
                through = block.rows.bound(costs_of(walked[step - block.steps], cost)) + block.extra(cost)
                now = np.minimum(now, through * (there[:, None] & there) * (1 - np.eye(len(now))))
        walked.append(now)
    walked[-1] = np.minimum(now, way._at_ends(cost, cap)[piece])
    return np.array(walked[1:])


@given(clocks(), st.booleans(), st.sampled_from([1e-3, 0.3, 30.0, 700.0]), st.integers(1, 40), st.integers(0, 10**6))
@examples(10, 210)
def test_a_walk_is_its_steps(chain, ahead, cost, repeat, seed):
    chain = pf.PeriodicChain(chain.transition_matrices, repeat=repeat, initial_distribution="any")
    way, k = Way(chain, ahead=ahead, known=False), chain.states
    start = np.random.default_rng(seed).random((k, k)) * cost * (1 - np.eye(k))
    for piece in range(way.pieces):
        now = start.copy()
        walked = way.walk(piece, now, cost, 100 * cost)
        expected = stepped(way, piece, start, cost, 100 * cost)
        assert walked == pytest.approx(expected, rel=1e-6, abs=1e-30)
        assert (walked >= expected * (1 - 1e-12)).all()
        assert now == pytest.approx(expected[-1], rel=1e-6, abs=1e-30)  # what blocks begin at is kept as smaller floats
