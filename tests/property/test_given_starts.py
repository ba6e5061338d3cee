"""Bounds for many nodes of a given start at once, against the same node by node."""

import math
import signal
import subprocess
import sys

import flint
import numpy as np
import pytest
from cases import examples
from hypothesis import example, given
from hypothesis import strategies as st
from random_chains import distributions

import pufferflow as pf
from pufferflow.influence import _kernels, search
from pufferflow.influence.search import QuiltSearch
from pufferflow.influence.tables import influence_tables

WEIGHTS = st.sampled_from([0.0, 0.0, 1e-12, 1e-3, 0.2, 1.0, 3.0])
EPSILONS = st.sampled_from([1e-9, 1e-4, 0.05, 0.3, 1.0, 2.5, 10.0, 1e90])
CONVENTIONS = st.sampled_from(["exact", "published"])


@st.composite
def starts(draw):
    """Chains from given starts: any, hardly moving, mostly round a cycle, or two cycles of different length."""
    k = draw(st.integers(1, 6))
    rows = np.array([draw(distributions(k, WEIGHTS)) for _ in range(k)])
    pace = draw(st.sampled_from([1.0, 0.3, 0.01, 1e-4, 0.0]))
    cut = draw(st.integers(1, k))
    rounds = np.eye(k)[[*np.roll(range(cut), -1), *np.roll(range(cut, k), -1)]]
    still = draw(st.sampled_from([np.eye(k), rounds]))
    return pf.MarkovChain((1 - pace) * still + pace * rows, draw(distributions(k, WEIGHTS)))


def node_by_node(chain, length, epsilon, convention="exact"):
    tables = influence_tables(chain, convention)
    return max(QuiltSearch(tables, length, epsilon).best_quilt(node).score for node in range(1, length + 1))


def assert_equal(scale, epsilon, plain, slack=1e-11):
    """Rounding of influences acts as a change of ε does."""
    slack += 1e-12 * epsilon
    assert plain(epsilon + slack) * (1 - 1e-12) <= scale <= plain(epsilon - slack) * (1 + 1e-12)


@given(starts(), st.integers(1, 70), EPSILONS, CONVENTIONS)
@examples(10, 260)
def test_search_equals_the_search_node_by_node(chain, length, epsilon, convention):
    scale = pf.mqm_exact(chain, length, epsilon, convention=convention).scale
    assert_equal(scale, epsilon, lambda e: node_by_node(chain, length, e, convention))


@pytest.mark.parametrize(
    ("start", "move", "epsilon"),
    [
        pytest.param(start, move, epsilon, marks=() if epsilon == usual and start[1] != 0.5 else pytest.mark.long)
        for start in ([1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5])
        for move, usual in ((0.03, 5.0), (0.97, 0.2))
        for epsilon in (0.2, 1.0, 5.0)
    ],
)
def test_slow_cycles_equal_the_search_node_by_node(start, move, epsilon):
    cycle = (1 - move) * np.eye(3) + move * np.roll(np.eye(3), 1, 1)
    chain = pf.MarkovChain(cycle, start)
    assert_equal(pf.mqm_exact(chain, 400, epsilon).scale, epsilon, lambda e: node_by_node(chain, 400, e))


LEAVING = pf.MarkovChain([[1.0, 0.0], [1 - 5e-12, 5e-12]], [0, 1])
"""From node 27 on its law is below what counts as a float here, from node 30 on it rounds to 0."""


@given(starts(), st.integers(1, 60), st.integers(0, 6), st.integers(1, 3))
@example(LEAVING, 25, 0, 1)
@example(LEAVING, 28, 0, 1)
@example(LEAVING, 28, 3, 1)
@examples(16, 160)
def test_chords_bound_the_laws_of_all_nodes_in_range(chain, node, levels, steps):
    tables = influence_tables(chain, "exact")
    quilts = QuiltSearch(tables, 10**6, 1.0)
    settled, period = quilts.settled()
    first, stride = settled + node, period * steps
    support = quilts.support(first)
    found = quilts.laws.chord(first, levels, stride, support)
    states, bound = np.flatnonzero(support).tolist(), found.table[np.ix_(support, support)]
    with flint.ctx.workprec(100):  # the laws leave the range of floats
        step, law = (
            flint.arb_mat(chain.transition_matrix.tolist()),
            flint.arb_mat([chain.initial_distribution.tolist()]),
        )
        for i in range(1, first + (stride << levels)):
            if i >= first and (i - first) % stride == 0:
                logs = np.array([float(law[0, x].log()) for x in states])
                exact = logs[None, :] - logs[:, None]
                assert (exact <= bound + 1e-12).all()
                assert (bound <= exact + found.excess + 1e-9).all()
            law = law * step


def test_chords_are_close():
    """Far closer than the ends are to each other, also where the chain mostly moves."""
    for move in (1e-4, 1 - 1e-4):
        cycle = (1 - move) * np.eye(3) + move * np.roll(np.eye(3), 1, 1)
        laws = QuiltSearch(influence_tables(pf.MarkovChain(cycle, [1, 0, 0]), "exact"), 10**4, 1.0).laws
        everything = np.ones(3, dtype=bool)
        stride, levels = (1, 9) if move < 0.5 else (3, 7)
        ends = [laws.table(node, everything) for node in (3000, 3000 + (stride << levels))]
        bound = laws.chord(3000, levels, stride, everything).table
        assert (bound - np.maximum(*ends)).max() < 0.05 * np.abs(ends[0] - ends[1]).max()


@pytest.mark.parametrize("work", [1, 50, 1000])
def test_kernels_that_return_early_find_the_same(work, monkeypatch):
    matrix = [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]]
    for epsilon in (0.1, 1.0):
        found = [pf.mqm_exact(pf.MarkovChain(matrix, [1, 0, 0]), 300, epsilon)]
        with monkeypatch.context() as patch:
            patch.setattr(search, "KERNEL_WORK", work)
            patch.setattr(search, "_ROOM", 4)
            found.append(pf.mqm_exact(pf.MarkovChain(matrix, [1, 0, 0]), 300, epsilon))
        assert found[0].scale == found[1].scale


@examples(12, 120)
@given(st.integers(1, 2**62 - 1), st.integers(1, 2**62))
def test_every_interval_is_cut(low, width):
    high = min(low + width, 2**62)
    middle = _kernels.middle_of(low, high)
    assert low <= middle < high
    if high >= 4 * low:
        assert middle & (middle - 1) == 0
        assert middle / 2 <= math.sqrt(low) * math.sqrt(high) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 1e90])
def test_the_longest_chain_whose_start_alone_tells_nothing(epsilon):
    """Only the first node is a quilt, at any distance: products of distances would leave 64 bits."""
    chain = pf.MarkovChain([[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]], [1, 0, 0])
    assert pf.mqm_exact(chain, 2**62, epsilon).scale == pytest.approx(2**62 / epsilon)


ENDLESS = """
import signal
import pufferflow as pf
from pufferflow._jit import compile_at_once
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts jobs in the background with it ignored
from pufferflow.influence import search
search.SPACES = 2**60  # all distances
compile_at_once()
slow = [[1 - 1e-7, 1e-7], [3e-7, 1 - 3e-7]]
pf.mqm_exact(pf.MarkovChain(slow), 10**4, 1.0)  # compiles: an interrupt of the compiler is another matter
try:
    print("begun", flush=True)
    pf.mqm_exact(pf.MarkovChain(slow), 2**62, 1.0)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_arrives_in_a_long_search():
    child = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)  # it is in the search by now
    child.send_signal(signal.SIGINT)
    printed, _ = child.communicate(timeout=120)
    assert printed == "interrupted\n"
    assert child.returncode == 0
