"""Families known by bounds of their rows, by counts, binary intervals, those that mix."""

from itertools import pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import example, given
from hypothesis import strategies as st
from processes import around, chains, corner, filled, overlap, transition_counts
from scipy.sparse.csgraph import shortest_path
from scipy.stats import betabinom, binom
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow.bounds.distribution_sets import ExactRows
from pufferflow.bounds.robust import AffineRows
from pufferflow.models import confidence_family, mixing_from_counts, mixing_of
from pufferflow.models.mixing import _variations


def holds(family, matrix, tolerance=1e-9):
    return ((family.low - tolerance <= matrix) & (matrix <= family.high + tolerance)).all()


# -- the binary interval ---------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [(0.25, 0.75), (0.2, 0.6), (0.4, 0.9), (0.8, 0.9), (0.1, 0.1)])
def test_one_chain_dominates_and_its_corners_have_the_smallest_numbers(ends):
    low, high = ends
    stay = max(high, low, key=lambda end: abs(end - 0.5))
    family = pf.BinaryInterval(low, high)
    (chain,) = family.chains
    assert chain.start == "any"
    assert chain.transition_matrix == pytest.approx(np.array([[stay, 1 - stay], [1 - stay, stay]]))
    corners = [pf.MarkovChain([[p, 1 - p], [1 - r, r]]) for p in (low, high) for r in (low, high)]
    inside = pf.ChainFamily(corners)
    smallest = inside.smallest_stationary_probability()
    assert family.smallest_stationary_probability() == pytest.approx(smallest)
    for kind in ("general", "reversible", "auto"):
        assert family.eigengap(kind) == pytest.approx(inside.eigengap(kind), abs=1e-11)


# -- families between bounds -----------------------------------------------------------------------


def test_bounds_are_made_as_tight_as_the_row_sums_allow():
    family = pf.IntervalFamily([[0.6, 0.0], [0.0, 0.0]], [[1, 1], [0.3, 1]])
    assert family.low == pytest.approx(np.array([[0.6, 0], [0, 0.7]]))
    assert family.high == pytest.approx(np.array([[1, 0.4], [0.3, 1]]))
    assert family.high[0, 1] >= 0.4
    assert family.low[1, 1] <= 0.7
    with pytest.raises(ValueError, match="read-only"):
        family.low[0, 0] = 0.1
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        centre, less, more = rng.dirichlet(np.ones(k), size=k), *rng.random((2, k, k))
        once = pf.IntervalFamily(centre * less, np.minimum(centre + more, 1))
        assert pf.IntervalFamily(once.low, once.high) == once
    row = [0.1] * 10  # misses 1 by rounding
    assert pf.IntervalFamily([row] * 10, [row] * 10).low.sum() == pytest.approx(10)


def test_a_ball_lies_in_a_box_and_needs_less_noise():
    matrix = 0.1 + 0.6 * np.eye(4)
    ball = pf.TotalVariationFamily(matrix, 0.02)
    for order in permutations(range(4)):
        vertex = filled(ball.rows, 0, order)
        assert vertex.sum() == pytest.approx(1)
        assert np.abs(vertex - matrix[0]).sum() / 2 == pytest.approx(0.02)
        assert np.abs(vertex - matrix[0]).max() <= 0.02 + 1e-9
    box = pf.IntervalFamily(matrix - 0.02, matrix + 0.02)
    assert pf.leakage(ball, 500, 1.0).scale < pf.leakage(box, 500, 1.0).scale


@given(st.integers(0, 2**32 - 1))
@example(245)  # no program has a solution
@examples(10, 200)
def test_flows_bound_the_leakage_of_all_rows(seed):
    """The worst rows fill the states by decreasing and by increasing h, whose order is any."""
    rng = np.random.default_rng(seed)
    k, radius = int(rng.integers(2, 5)), rng.choice([0.0, 0.03, 0.3])
    matrix = rng.dirichlet(np.full(k, 0.7), k)
    intervals = pf.IntervalFamily(*around(rng, [matrix], radius))
    costs = shortest_path(rng.choice([0.1, 1.0, 5.0]) * rng.random((k, k)))
    for family in (intervals, pf.TotalVariationFamily(matrix, radius)):
        sets = AffineRows(family.rows)
        found = np.min([sets.bound(n * costs) for n in (5, 10, 1)], axis=0)  # leakages grow with n
        for x, y in permutations(range(k), 2):
            most = 0.0
            for order in permutations(range(k)):
                rows = matrix.copy()
                rows[x], rows[y] = (
                    filled(family.rows, *at) for at in ((x, order), (y, order[::-1]))
                )
                most = max(most, ExactRows(rows).bound(costs)[x, y])
            assert most <= found[x, y] * (1 + 1e-12) + 1e-12


def test_seven_states_are_bounded_by_flows_or_without_any_by_ratios(monkeypatch):
    """Flows bound less; a linear program that is not solved ends no computation."""
    matrix = 0.6 * np.eye(7) + 0.4 / 7
    family = pf.IntervalFamily(0.9 * matrix, 1.1 * matrix)
    with_flows = pf.leakage_loss(family, 100, 20.0)
    unsolved = SimpleNamespace(name="kUnknown")
    monkeypatch.setattr("highspy.Highs.run", lambda _: None)
    monkeypatch.setattr("highspy.Highs.getModelStatus", lambda *_: unsolved)
    assert 1.4 * with_flows < pf.leakage_loss(family, 100, 20.0) < 5


def test_many_states_are_bounded_by_ratios_alone():
    matrix = np.random.default_rng(0).dirichlet(np.ones(13), 13)
    family = pf.IntervalFamily(matrix * 0.99, np.minimum(matrix * 1.01, 1))
    found = pf.leakage(family, 30, 1.0)
    informed = pf.leakage(family, 30, 1.0, side_information="any")
    assert found.scale < 15
    assert found.scale == pytest.approx(informed.scale, rel=1e-5)
    assert found.reason == "couplings are computed for at most 12 states, not for 13"
    proved = pf.certify(family, 30, 1.0, mechanism="leakage")
    assert pf.verify_certificate(proved).loss <= 1
    assert float(proved["scale"]) <= 1.05 * found.scale


# -- confidence ------------------------------------------------------------------------------------


def test_confidence_intervals_by_their_definition():
    two, three = (confidence_family(rows, 0.9) for rows in ([[30, 10], [0, 7]], [[30, 10, 0]] * 3))
    ends = [(30, 40, two.high[0, 0], 2), (30, 40, two.low[0, 0], 2), (0, 7, two.high[1, 0], 2)]
    ends += [(30, 40, three.high[0, 0], 9), (10, 40, three.low[0, 1], 9)]
    for s, n, end, intervals in ends:
        evidence = betabinom.pmf(s, n, 0.5, 0.5) / binom.pmf(s, n, end)
        assert evidence == pytest.approx(intervals / 0.1, rel=1e-6)
    assert (two.low[1, 0], two.high[1, 1]) == (0, 1)


def test_more_counts_narrow_and_more_coverage_widens():
    seen = np.array([[30, 10, 5], [3, 8, 1], [4, 4, 4]])
    asked = ((10, 0.9), (1, 0.9), (1, 0.99), (1, 0.9999))
    widths = [confidence_family(times * seen, coverage) for times, coverage in asked]
    for inner, outer in pairwise(widths):
        assert (outer.high - outer.low > inner.high - inner.low).all()
    never_left = confidence_family([[5, 1, 0], [0, 0, 0], [2, 2, 2]])
    assert (never_left.low[1].tolist(), never_left.high[1].tolist()) == ([0, 0, 0], [1, 1, 1])
    large = confidence_family([[10**9, 10**3], [10**6, 10**9]])
    assert large.low[0, 1] < 1e-6 < large.high[0, 1] < 1.5e-6


@pytest.mark.parametrize("records", counts(100, 400))
@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_coverage_on_simulated_chains(coverage, records):
    """At least the stated share of records (a binomial test at four standard deviations)."""
    rng = np.random.default_rng(3)
    chain = pf.MarkovChain([[0.9, 0.08, 0.02], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]], [1, 0, 0])
    hits = narrow = 0
    for _ in range(records):
        seen = transition_counts(chain.simulate(200, rng), 3)
        hits += holds(confidence_family(seen, coverage), chain.transition_matrix)
        narrow += holds(confidence_family(seen * 20, coverage), chain.transition_matrix)
    assert hits / records >= coverage - 4 * np.sqrt(coverage * (1 - coverage) / records)
    assert narrow / records < 0.5  # overstated counts miss it, so the test can fail


def test_one_confidence_for_both_readings():
    seen = np.array([[900, 60, 3], [50, 700, 90], [8, 80, 800]])
    both = confidence_family(seen, 0.95, backward=True)
    assert confidence_family(seen, 0.95).backward is None
    for found, counted in ((both, seen), (both.backward, seen.T)):
        np.testing.assert_allclose(found.low, confidence_family(counted, 0.975).low)
        np.testing.assert_allclose(found.high, confidence_family(counted, 0.975).high)


def test_fit_bounds_both_readings_of_stationary_records():
    rng = np.random.default_rng(2)
    chain = pf.MarkovChain([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.25, 0.7]])
    table = pd.DataFrame({"value": np.array(list("abc"))[chain.simulate(4000, rng)]})
    asked = {"states": [*"abc"], "coverage": 0.95}
    family = pf.fit(table, **asked).model.family
    assert holds(family, chain.transition_matrix)
    assert holds(family.backward, chain.time_reversal)
    from_any = pf.fit(table, **asked, start="any").model.family
    assert from_any.backward is None
    scale, known = (pf.leakage(theta, 4000, 1.0).scale for theta in (family, chain))
    assert known <= scale < pf.leakage(from_any, 4000, 1.0).scale


# -- which mixing families a chain lies in ---------------------------------------------------------


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
        counts = transition_counts(chain.simulate(length, rng), 3)
        for found in mixing_from_counts(counts, [1, 3, 10, 30]):
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
    # rows that are equal in the counts may differ in the chain: the overlap is never all of 1
    assert mixing_from_counts([[9000, 3000], [3000, 1000]], 48).overlap < 1


def test_overlaps_that_floats_beyond_their_range_decide_count_as_0():
    rare = 1e-200
    # the third state follows two steps of 1e-200; then the first record was surely in state 1
    matrix = [[0.5, rare, 0, 0.5], [0.5, 0, rare, 0.5], [0.5, 0, 0, 0.5], [0.5, 0, 0, 0.5]]
    for start in ("any", [0.25] * 4):
        assert mixing_of(pf.MarkovChain(matrix, start), 2).backward == 0.0
    # exactly 2.6e-54: the second state is entered with 3.5e-323, a float of one digit
    matrix = [[7e-291, 1.8e-309, 1], [2.5e-151, 1, 6e-41], [0.43, 3.5e-323, 0.57]]
    assert mixing_of(pf.MarkovChain(matrix), 1).backward == 0.0
