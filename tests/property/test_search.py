"""The fast search against its plain twins, many nodes at once or one by one; rules for scales."""

from itertools import product

import flint
import numpy as np
import plain_influence
import pytest
from cases import LONG, examples
from hypothesis import example, given
from hypothesis import strategies as st
from processes import chains, distributions

import pufferflow as pf
from pufferflow.influence import _kernels, quilts
from pufferflow.influence.quilts import InfluenceTables, QuiltSearch
from pufferflow.mechanisms import MECHANISMS

EPSILONS = st.floats(-6, 3).map(lambda power: 10.0**power)
CONVENTIONS = st.sampled_from(["exact", "published"])

SPACES = st.sampled_from([1, 2, 8])
MIXING = chains(3, st.floats(0.05, 1.0), permutations=False)
SYMMETRIC = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]], [0.1, 0.9])


def twin(chain, length, convention="exact"):
    start = "any" if chain.start == "any" else chain.initial_distribution.tolist()
    quilts = plain_influence.quilts(chain.transition_matrix.tolist(), start, length, convention)
    return lambda epsilon: plain_influence.noise_scale(quilts, epsilon)


def between(epsilon, plain, slack=1e-11):
    """Bounds for a scale whose influences are off by rounding, which acts as a change of ε does."""
    slack += 1e-12 * epsilon
    return plain(epsilon + slack) * (1 - 1e-12), plain(epsilon - slack) * (1 + 1e-12)


@given(chains() | MIXING, st.integers(1, 40), EPSILONS, CONVENTIONS, SPACES, st.integers(0, 5))
@example(SYMMETRIC, 37, 1.0, "exact", 1, 0)  # 36.03, and 35.53 for 44 nodes
@examples(24, 270)
def test_search_equals_the_plain_twin(chain, length, epsilon, convention, spaces, ranges):
    """From few distances it is larger by what is said; how much ranges raise it is not said."""
    length = length if chain.states <= 4 else min(length, 14)
    low, high = between(epsilon, twin(chain, length, convention))

    def scale():
        return pf.mqm_exact(chain, length, epsilon, convention=convention).scale

    assert low <= scale() <= high
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quilts, "SPACES", spaces)  # distances of quilt nodes an octave
        assert low <= scale() <= high * (1 + 1 / spaces)
        patch.setattr(quilts, "RANGE_LIMIT", ranges)
        assert low <= scale() <= length / epsilon * (1 + 1e-15)


@pytest.mark.parametrize("rate", [1e-7, pytest.param(1e-6, marks=pytest.mark.long)])
@pytest.mark.parametrize("start", ["2 any", "3 first", "4 stationary", "2 some"])
@pytest.mark.parametrize("name", ["mqm-exact", "leakage"])
def test_work_does_not_grow_as_a_chain_slows_down(name, rate, start, monkeypatch):
    """Tables of k² logarithms and looks at them, not seconds; both grew with the square root and
    the size of quilts.
    """
    tables, looks = [], []
    fill, look = InfluenceTables._fill, _kernels.search_quilts
    monkeypatch.setattr(
        InfluenceTables, "_fill", lambda self, *a, **k: (tables.append(1), fill(self, *a, **k))[1]
    )
    monkeypatch.setattr(_kernels, "search_quilts", lambda *a: (looks.append(1), look(*a))[1])
    states, start = int(start[0]), start[2:]
    rng = np.random.default_rng(states)
    leave = rate * rng.uniform(0.3, 3, (states, states))
    np.fill_diagonal(leave, 0)
    matrix = np.diag(1 - leave.sum(axis=1)) + leave
    given_starts = {"first": np.eye(states)[0], "some": rng.dirichlet(np.ones(states))}
    chain = pf.MarkovChain(matrix, given_starts.get(start, start))
    for length in (10**9, 10**12):
        scale = MECHANISMS[name](chain, length, 0.1).scale
        assert 1 / rate < scale < length / 0.1
    assert len(tables) < 3000
    assert len(looks) < 5000


@examples(16, 160)
@given(chains(4) | MIXING, st.integers(2, 60), EPSILONS, st.floats(1.01, 10), st.data())
def test_what_every_scale_obeys(chain, length, epsilon, factor, data):
    result = pf.mqm_exact(chain, length, epsilon)
    exact = result.scale
    assert 1 / epsilon <= exact <= pf.group_dp(chain, length, epsilon).scale
    assert exact <= pf.mqm_exact(chain, length, epsilon, convention="published").scale * (1 + 1e-9)
    assert exact >= pf.mqm_exact(chain, length, epsilon * factor).scale
    assert exact <= pf.mqm_exact(chain, length + 7, epsilon).scale * (1 + 1e-9)
    # the longest of several segments decides
    assert pf.mqm_exact(chain, [1, length, 2], epsilon).scale == exact
    # node, quilt and influence explain it
    a, b = result.quilt
    assert a is None or 1 <= a < result.node
    assert b is None or 1 <= b <= length - result.node
    card = (a or result.node) + (b or length - result.node + 1) - 1
    assert exact == pytest.approx(card / (epsilon - result.influence), rel=1e-9)
    # names of the states do not matter
    order = data.draw(st.permutations(range(chain.states)))
    start = chain.start if chain.start != "given" else chain.initial_distribution[order]
    renamed = pf.MarkovChain(chain.transition_matrix[np.ix_(order, order)], start)
    low, high = between(epsilon, lambda e: pf.mqm_exact(chain, length, e).scale)
    assert low <= pf.mqm_exact(renamed, length, epsilon).scale <= high
    if chain.is_aperiodic:
        approximate = pf.mqm_approx(chain, length, epsilon).scale
        assert exact <= approximate * (1 + 1e-12)
        assert approximate <= pf.group_dp(chain, length, epsilon).scale


@examples(12, 120)
@given(MIXING, st.integers(1, 45), EPSILONS, st.sampled_from(["general", "auto"]))
def test_approximation_equals_its_plain_twin(chain, length, epsilon, kind):
    family = pf.ChainFamily([chain])
    smallest, gap = family.smallest_stationary_probability(), family.eigengap(kind)
    scale = pf.mqm_approx(chain, length, epsilon, eigengap=kind).scale

    def plain(e):
        return plain_influence.approximate_noise_scale(length, e, smallest, gap)

    low, high = between(epsilon, plain, slack=1e-12 * epsilon)
    assert low <= scale <= high


SHARES = st.tuples(*[st.floats(0.02, 0.98)] * 2, *[st.floats(0, 1)] * 2)


@examples(12, 120)
@given(SHARES, st.sampled_from(["any", "stationary", "given"]), st.integers(1, 40), EPSILONS)
def test_binary_interval_covers_the_chains_inside(shares, start, length, epsilon):
    (low, high), (zero, one) = sorted(shares[:2]), shares[2:]
    family = pf.BinaryInterval(low, high)

    def binary(a, b, start="any"):
        return pf.MarkovChain([[a, 1 - a], [1 - b, b]], start)

    stay = (low + (high - low) * share for share in (zero, one))
    chain = binary(*stay, [zero, 1 - zero] if start == "given" else start)
    for mechanism in (pf.mqm_exact, pf.mqm_approx, pf.gk16):
        whole, inside = (mechanism(theta, length, epsilon).scale for theta in (family, chain))
        if whole is not None:
            assert inside <= whole * (1 + 1e-9)
    corners = pf.ChainFamily([binary(p, r) for p in (low, high) for r in (low, high)])
    attained = pf.mqm_exact(corners, length, epsilon).scale
    assert pf.mqm_exact(family, length, epsilon).scale == pytest.approx(attained, rel=1e-9)


MATRIX = [[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]]


# -- given starts: bounds for many nodes at once, against the same node by node --------------------

LARGE = st.sampled_from([1e-9, 1e-4, 0.05, 0.3, 1.0, 2.5, 10.0, 1e90])


@st.composite
def starts(draw):
    """Chains from given starts: any, hardly moving, mostly round a cycle, or two unequal cycles."""
    k = draw(st.integers(1, 6))
    rows = np.array([draw(distributions(k)) for _ in range(k)])
    pace = draw(st.sampled_from([1.0, 0.3, 0.01, 1e-4, 0.0]))
    cut = draw(st.integers(1, k))
    rounds = np.eye(k)[[*np.roll(range(cut), -1), *np.roll(range(cut, k), -1)]]
    still = draw(st.sampled_from([np.eye(k), rounds]))
    return pf.MarkovChain((1 - pace) * still + pace * rows, draw(distributions(k)))


def node_by_node(chain, length, epsilon, convention="exact"):
    search = QuiltSearch(chain, length, epsilon, convention)
    return max(search.best_quilt(search.nodes(node)).score for node in range(1, length + 1))


def slow_cycles(test):
    starts, paces = ([1, 0, 0], [0.2, 0.3, 0.5], [0.5, 0.5, 0]), ((0.03, 5), (0.97, 0.2), (0.03, 1))
    for start, (move, epsilon) in product(starts[: 2 + LONG], paces[: 2 + LONG]):
        chain = pf.MarkovChain((1 - move) * np.eye(3) + move * np.roll(np.eye(3), 1, 1), start)
        test = example(chain, 400, epsilon, "exact")(test)
    return test


@given(starts(), st.integers(1, 70), LARGE, CONVENTIONS)
@slow_cycles
@examples(10, 260)
def test_search_equals_the_search_node_by_node(chain, length, epsilon, convention):
    scale = pf.mqm_exact(chain, length, epsilon, convention=convention).scale
    low, high = between(epsilon, lambda e: node_by_node(chain, length, e, convention))
    assert low <= scale <= high


LEAVING = pf.MarkovChain([[1.0, 0.0], [1 - 5e-12, 5e-12]], [0, 1])
"""From node 27 on its probability of state 2 is below what counts as a float here, from node 30 on
it rounds to 0.
"""


@given(starts(), st.integers(0, 60), st.integers(1, 60), st.integers(1, 3))
@example(LEAVING, 25, 1, 1)
@example(LEAVING, 28, 1, 1)
@example(LEAVING, 27, 8, 1)
@examples(16, 160)
def test_first_terms_of_ranges_bound_those_of_all_their_nodes(chain, node, steps, strides):
    search = QuiltSearch(chain, 10**6, 1.0)
    first, stride = search.supports.settled + node, search.supports.period * strides
    last = first + steps * stride
    found = search.nodes(first, last, stride)
    states = np.flatnonzero(search.supports.at(first)).tolist()
    bound = found.initial[np.ix_(states, states)]
    with flint.ctx.workprec(100):  # the distributions leave the range of floats
        step = flint.arb_mat(chain.transition_matrix.tolist())
        distribution = flint.arb_mat([chain.initial_distribution.tolist()])
        for i in range(1, last + 1):
            if i >= first and (i - first) % stride == 0:
                logs = np.array([float(distribution[0, x].log()) for x in states])
                exact = logs[None, :] - logs[:, None]
                assert (exact <= bound + 1e-12).all()
                if found.uniform:
                    assert (bound <= exact + 1e-9).all()
            distribution = distribution * step


@pytest.mark.parametrize("work", [1, 50, 1000])
def test_kernels_that_return_early_find_the_same(work, monkeypatch):
    chains = [pf.MarkovChain(MATRIX, [1, 0, 0]) for _ in range(2)]
    expected = [pf.mqm_exact(chains[0], 300, epsilon).scale for epsilon in (0.1, 1.0)]
    monkeypatch.setattr(quilts, "KERNEL_WORK", work)
    assert [pf.mqm_exact(chains[1], 300, epsilon).scale for epsilon in (0.1, 1.0)] == expected
