"""The fast search against its plain twins, and laws that every scale obeys."""

import itertools

import numpy as np
import plain_influence
import pytest
from cases import counts, examples
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from random_chains import chains

import pufferflow as pf
from pufferflow.influence import search
from pufferflow.influence._kernels import cut
from pufferflow.influence.tables import InfluenceTables

EPSILONS = st.floats(-6, 3).map(lambda power: 10.0**power)
CONVENTIONS = st.sampled_from(["exact", "published"])

MIXING = chains(3, st.floats(0.05, 1.0), permutations=False)


@pytest.fixture(autouse=True, scope="module")
def _remember_powers():
    """Spare the twin the same powers of P again and again."""
    plain, known = plain_influence.powers, {}

    def powers(P, count):
        if count >= len(known.get(id(P), (P, []))[1]):
            known[id(P)] = P, plain(P, count)  # holding P keeps its id its own
        return known[id(P)][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_influence, "powers", powers)
        yield


def twin(chain, length, epsilon, convention="exact"):
    start = "any" if chain.start == "any" else chain.initial_distribution.tolist()
    return plain_influence.noise_scale(chain.transition_matrix.tolist(), start, length, epsilon, convention)


def between(epsilon, plain, slack=1e-11):
    """Bounds for a scale whose influences are off by rounding, which acts as a change of ε does."""
    slack += 1e-12 * epsilon
    return plain(epsilon + slack) * (1 - 1e-12), plain(epsilon - slack) * (1 + 1e-12)


@examples(12, 120)
@given(chains(), st.integers(1, 14), EPSILONS, CONVENTIONS)
def test_search_equals_the_plain_twin(chain, length, epsilon, convention):
    scale = pf.mqm_exact(chain, length, epsilon, convention=convention).scale
    low, high = between(epsilon, lambda e: twin(chain, length, e, convention))
    assert low <= scale <= high


@examples(12, 120)
@given(MIXING, st.integers(1, 14), EPSILONS, CONVENTIONS)
def test_search_equals_the_plain_twin_on_mixing_chains(chain, length, epsilon, convention):
    scale = pf.mqm_exact(chain, length, epsilon, convention=convention).scale
    low, high = between(epsilon, lambda e: twin(chain, length, e, convention))
    assert low <= scale <= high


@examples(12, 120)
@given(chains(4), st.integers(2, 12), EPSILONS, st.integers(0, 5))
def test_few_leaves_still_give_an_upper_bound(chain, length, epsilon, leaves):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "LEAF_LIMIT", leaves)
        scale = pf.mqm_exact(chain, length, epsilon).scale
    low, _ = between(epsilon, lambda e: twin(chain, length, e))
    assert low <= scale <= length / epsilon * (1 + 1e-15)


@pytest.mark.parametrize("start", ["any", [1, 0], [0, 1], [0.5, 0.5]])
@pytest.mark.parametrize("stay", [(0.9, 0.6), (0.95, 0.95), (0.8, 0.97), (0.05, 0.1)])
@pytest.mark.parametrize(
    ("epsilons", "limits"),
    [
        ((0.5, 2.0), (0, 8)),
        pytest.param((0.2, 0.5, 1.0, 2.0, 5.0), (0, 1, 2, 3, 5, 8, 13, 21), marks=pytest.mark.long),
    ],
)
def test_few_leaves_still_give_an_upper_bound_where_early_nodes_decide(start, stay, epsilons, limits, monkeypatch):
    chain = pf.MarkovChain([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]], start)
    for epsilon in epsilons:
        scale = pf.mqm_exact(chain, 300, epsilon).scale
        for leaves in limits:
            with monkeypatch.context() as patch:
                patch.setattr(search, "LEAF_LIMIT", leaves)
                assert scale * (1 - 1e-12) <= pf.mqm_exact(chain, 300, epsilon).scale <= 300 / epsilon * (1 + 1e-15)


@pytest.fixture
def coarse(monkeypatch):
    """So few distances of quilt nodes an octave, so few ranges of nodes told apart exactly."""

    def coarse_(spaces, close=10**6, within=search.CLOSE):
        monkeypatch.setattr(search, "SPACES", spaces)
        monkeypatch.setattr(search, "CLOSE_LIMIT", close)
        monkeypatch.setattr(search, "CLOSE", within)

    return coarse_


SPACES = st.sampled_from([1, 2, 8])
TAME = [*settings().suppress_health_check, HealthCheck.function_scoped_fixture]


@given(chains(4) | MIXING, st.integers(1, 40), EPSILONS, CONVENTIONS, SPACES, st.integers(0, 3))
@examples(8, 270, suppress_health_check=TAME)
def test_few_distances_and_close_nodes_raise_the_scale_by_what_is_said(
    coarse, chain, length, epsilon, convention, spaces, close
):
    low, high = between(epsilon, lambda e: twin(chain, length, e, convention))
    within = 0.1
    coarse(spaces, close, within)
    scale = pf.mqm_exact(chain, length, epsilon, convention=convention).scale
    assert low <= scale <= high * (1 + 1 / spaces) * (1 + within)


SYMMETRIC = pf.MarkovChain([[0.9, 0.1], [0.1, 0.9]], [0.1, 0.9])


@given(chains(4) | MIXING, st.integers(1, 60), EPSILONS, st.floats(1.01, 10), SPACES)
@example(chain=SYMMETRIC, length=37, epsilon=1.0, factor=2.0, spaces=1)  # 36.03, and 35.53 for 44 nodes
@examples(12, 120, suppress_health_check=TAME)
def test_scales_from_few_distances_rise_with_epsilon_and_fall_with_the_length_by_no_more_than_is_said(
    coarse, chain, length, epsilon, factor, spaces
):
    coarse(spaces)
    scale = pf.mqm_exact(chain, length, epsilon).scale
    low, _ = between(epsilon * factor, lambda e: pf.mqm_exact(chain, length, e).scale)
    assert low <= scale * (1 + 1 / spaces)
    low, _ = between(epsilon, lambda e: pf.mqm_exact(chain, length, e).scale)
    _, high = between(epsilon, lambda e: pf.mqm_exact(chain, length + 7, e).scale)
    assert low <= high * (1 + 1 / spaces)


@pytest.mark.parametrize("spaces", [1, 4, 64])
def test_the_distances_that_are_looked_at(spaces, coarse):
    """As many an octave as are said; the search rounds to them what it keeps, and cuts intervals at them alone."""
    coarse(spaces)
    high = 40 * spaces
    wanted = [n for n in range(1, high + 1) if search.spaced(n) == n]
    assert wanted[: 2 * spaces] == list(range(1, 2 * spaces + 1))
    assert len([n for n in wanted if 8 * spaces <= n < 16 * spaces]) == spaces
    found, pending = set(), [(1, high)]
    while pending:
        a, b = pending.pop()
        found.add(b)
        middle = cut(a, b, spaces)
        if middle < b:
            pending += [(a, middle), (middle + 1, b)]
    assert found == {*wanted, high}


SLOWING = [(2, "any", 1e-7), (4, "stationary", 1e-7), (2, "some", 1e-7)]


@pytest.mark.parametrize(
    ("states", "start", "rate"),
    [
        pytest.param(*case, marks=() if case in SLOWING else pytest.mark.long)
        for case in itertools.product((2, 3, 4), ("any", "stationary", "first", "some"), (1e-6, 1e-7))
    ],
)
@pytest.mark.parametrize("name", ["mqm-exact", "leakage"])
def test_work_does_not_grow_as_a_chain_slows_down(name, rate, start, states, monkeypatch):
    """Tables of k² logarithms and looks at them, not seconds; both grew with the square root and the size of quilts."""
    tables, looks = [], []
    fill, look = InfluenceTables._fill, search.search_quilts
    monkeypatch.setattr(InfluenceTables, "_fill", lambda self, *a, **k: (tables.append(1), fill(self, *a, **k))[1])
    monkeypatch.setattr(search, "search_quilts", lambda *a: (looks.append(1), look(*a))[1])
    monkeypatch.setattr(search, "KERNEL_WORK", 10**5)
    rng = np.random.default_rng(states)
    leave = rate * rng.uniform(0.3, 3, (states, states))
    np.fill_diagonal(leave, 0)
    matrix = np.diag(1 - leave.sum(axis=1)) + leave
    laws = {"first": np.eye(states)[0], "some": rng.dirichlet(np.ones(states))}
    chain = pf.MarkovChain(matrix, laws.get(start, start))
    for length in (10**9, 10**12):
        scale = pf.MECHANISMS[name](chain, length, 0.1).scale
        assert 1 / rate < scale < length / 0.1
    assert len(tables) < 3000
    assert len(looks) < 2000


@pytest.mark.parametrize("length", [40, 200, 10**6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_given_stationary_law_is_the_stationary_start(length, epsilon):
    """Nodes that count as alike once the start is forgotten must really be."""
    matrix = [[0.7, 0.3, 0], [0.2, 0.5, 0.3], [0.1, 0.4, 0.5]]
    start = pf.MarkovChain(matrix)
    given_ = pf.MarkovChain(matrix, start.initial_distribution)
    assert pf.mqm_exact(given_, length, epsilon).scale == pytest.approx(
        pf.mqm_exact(start, length, epsilon).scale, rel=1e-9
    )


@examples(12, 120)
@given(chains(4) | MIXING, st.integers(2, 12), EPSILONS)
def test_node_quilt_and_influence_explain_the_scale(chain, length, epsilon):
    result = pf.mqm_exact(chain, length, epsilon)
    a, b = result.quilt
    assert a is None or 1 <= a < result.node
    assert b is None or 1 <= b <= length - result.node
    card = search.quilt_card(length, result.node, a, b)
    assert result.scale == pytest.approx(card / (epsilon - result.influence), rel=1e-9)


@examples(12, 120)
@given(chains(4) | MIXING, st.integers(1, 10), EPSILONS)
def test_the_longest_of_several_segments_decides(chain, length, epsilon):
    lengths = list(range(1, length + 1))
    scale = pf.mqm_exact(chain, lengths, epsilon).scale
    low, high = between(epsilon, lambda e: max(twin(chain, t, e) for t in lengths))
    assert low <= scale <= high


@examples(12, 120)
@given(chains(4) | MIXING, st.integers(1, 60), EPSILONS, st.floats(1.01, 10))
def test_order_of_the_scales(chain, length, epsilon, factor):
    exact = pf.mqm_exact(chain, length, epsilon).scale
    assert 1 / epsilon <= exact <= pf.group_dp(chain, length, epsilon).scale
    assert exact <= pf.mqm_exact(chain, length, epsilon, convention="published").scale * (1 + 1e-9)
    assert exact >= pf.mqm_exact(chain, length, epsilon * factor).scale
    assert exact <= pf.mqm_exact(chain, length + 7, epsilon).scale * (1 + 1e-9)


@examples(12, 120)
@given(chains(4), st.integers(1, 40), EPSILONS, st.data())
def test_names_of_the_states_do_not_matter(chain, length, epsilon, data):
    order = data.draw(st.permutations(range(chain.states)))
    start = chain.start if chain.start != "given" else chain.initial_distribution[order]
    renamed = pf.MarkovChain(chain.transition_matrix[np.ix_(order, order)], start)
    low, high = between(epsilon, lambda e: pf.mqm_exact(chain, length, e).scale)
    assert low <= pf.mqm_exact(renamed, length, epsilon).scale <= high


@examples(12, 120)
@given(chains(4) | MIXING, st.integers(1, 60), EPSILONS)
def test_approximation_is_never_below_the_exact_scale(chain, length, epsilon):
    assume(chain.is_aperiodic)
    approximate = pf.mqm_approx(chain, length, epsilon).scale
    assert pf.mqm_exact(chain, length, epsilon).scale <= approximate * (1 + 1e-12)
    assert approximate <= pf.group_dp(chain, length, epsilon).scale


@examples(12, 120)
@given(MIXING, st.integers(1, 45), EPSILONS, st.sampled_from(["general", "auto"]))
def test_approximation_equals_its_plain_twin(chain, length, epsilon, kind):
    family = pf.ChainFamily([chain])
    smallest, gap = family.smallest_stationary_probability(), family.eigengap(kind)
    scale = pf.mqm_approx(chain, length, epsilon, eigengap=kind).scale
    low, high = between(
        epsilon, lambda e: plain_influence.approximate_noise_scale(length, e, smallest, gap), slack=1e-12 * epsilon
    )
    assert low <= scale <= high


@examples(12, 120)
@given(
    st.floats(0.02, 0.98),
    st.floats(0.02, 0.98),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(["any", "stationary", "given"]),
    st.integers(1, 40),
    EPSILONS,
)
def test_binary_interval_covers_the_chains_inside(end, other, zero, one, start, length, epsilon):
    low, high = sorted([end, other])
    family = pf.BinaryInterval(low, high)
    stay = low + (high - low) * zero, low + (high - low) * one
    matrix = [[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]]
    chain = pf.MarkovChain(matrix, [zero, 1 - zero] if start == "given" else start)
    for mechanism in (pf.mqm_exact, pf.mqm_approx):
        whole, inside = mechanism(family, length, epsilon).scale, mechanism(chain, length, epsilon).scale
        assert inside <= whole * (1 + 1e-9)
    whole, inside = pf.gk16(family, length, epsilon).scale, pf.gk16(chain, length, epsilon).scale
    assert whole is None or inside <= whole * (1 + 1e-9)


@pytest.mark.parametrize("interval", [(0.05, 0.3), (0.2, 0.6), (0.4, 0.9), (0.3, 0.7), (0.6, 0.95)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("points", counts(3, 7))
def test_binary_interval_is_the_largest_over_a_grid(interval, epsilon, points):
    family = pf.BinaryInterval(*interval)
    whole = {m: m(family, 30, epsilon).scale for m in (pf.mqm_exact, pf.mqm_approx)}
    grid = np.linspace(*interval, points)
    chains = [pf.MarkovChain([[p, 1 - p], [1 - r, r]], "any") for p in grid for r in grid]
    for mechanism, scale in whole.items():
        inside = max(mechanism(chain, 30, epsilon).scale for chain in chains)
        assert inside <= scale * (1 + 1e-9)
        if mechanism is pf.mqm_exact:
            assert scale == pytest.approx(inside, rel=1e-9)  # attained at a corner


@pytest.mark.parametrize("start", ["any", "stationary", [1, 0, 0]])
@pytest.mark.parametrize("convention", ["exact", "published"])
def test_a_billion_records_cost_no_more_than_a_million(start, convention):
    chain = pf.MarkovChain([[0.9, 0.1, 0], [0.2, 0.7, 0.1], [0.3, 0, 0.7]], start)
    long, longer, longest = (
        pf.mqm_exact(chain, length, 0.5, convention=convention).scale for length in (10**6, 10**9, 10**18)
    )
    assert 2 < long < 1000
    assert longer == pytest.approx(long, rel=1e-9)
    assert longest == pytest.approx(long, rel=1e-9)


@pytest.mark.parametrize("name", ["mqm-approx", "gk16"])
def test_baselines_take_a_billion_records(name):
    chain = pf.MarkovChain([[0.6, 0.4], [0.35, 0.65]], "any")
    long, longer = (pf.MECHANISMS[name](chain, length, 0.5).scale for length in (10**6, 10**9))
    assert longer == pytest.approx(long, rel=1e-9)


def test_a_chain_that_hardly_mixes_takes_a_billion_records():
    for leave in (0.0, 1e-16, 1e-9):
        chain = pf.MarkovChain([[1 - leave, leave], [0.5 * leave, 1 - 0.5 * leave]], [0.5, 0.5])
        assert pf.mqm_exact(chain, 10**9, 1.0).scale <= 1e9
