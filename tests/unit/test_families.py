"""Finite families, the binary interval, and families known by bounds of their rows, both ways."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.audit import CountQuery
from pufferflow.bounds.of_families import MOST_RATIO_STATES
from pufferflow.bounds.process import MOST_ROBUST_STATES
from pufferflow.mechanisms import compute_scale
from pufferflow.models import confidence_family
from pufferflow.models.families import as_family

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
IRREVERSIBLE = pf.MarkovChain([[0.1, 0.6, 0.3], [0.5, 0.25, 0.25], [0.2, 0.1, 0.7]])
LOW = [[0.2, 0.1, 0.0], [0.1, 0.3, 0.1], [0.25, 0.25, 0.25]]
HIGH = [[0.9, 0.5, 0.2], [0.6, 0.6, 0.6], [0.5, 0.5, 0.5]]
BOX = pf.IntervalFamily(LOW, HIGH)


# -- finitely many chains, and the binary interval -------------------------------------------------


def test_smallest_probability_and_gaps_of_the_running_example():
    family = pf.ChainFamily([THETA_1, THETA_2])
    assert family.chains == (THETA_1, THETA_2)
    assert 0.2 * (1 - 1e-13) < family.smallest_stationary_probability() <= 0.2
    assert family.eigengap("general") == pytest.approx(0.75)
    assert family.eigengap("reversible") == family.eigengap("auto") == pytest.approx(1)
    line = pf.MarkovChain([[0.9, 0.1, 0], [0.05, 0.9, 0.05], [0, 0.1, 0.9]])
    mixed = pf.ChainFamily([line, IRREVERSIBLE])
    assert mixed.eigengap("auto") == min(
        line.eigengap("reversible"), IRREVERSIBLE.eigengap("general")
    )
    assert as_family(mixed) is mixed
    assert as_family(THETA_1).chains == (THETA_1,)


@pytest.mark.parametrize(
    ("low", "high", "stay"),
    [(0.25, 0.75, 0.75), (0.2, 0.6, 0.2), (0.4, 0.9, 0.9), (0.8, 0.9, 0.9), (0.1, 0.1, 0.1)],
)
def test_dominating_chain(low, high, stay):
    (chain,) = pf.BinaryInterval(low, high).chains
    assert chain.start == "any"
    assert chain.transition_matrix == pytest.approx(np.array([[stay, 1 - stay], [1 - stay, stay]]))


@pytest.mark.parametrize(
    ("low", "high"), [(0.3, 0.7), (0.2, 0.6), (0.4, 0.9), (0.5, 0.5), (0.1, 0.2)]
)
def test_interval_numbers_are_minima_over_a_grid(low, high):
    family = pf.BinaryInterval(low, high)
    inside = pf.ChainFamily(
        [pf.MarkovChain([[p, 1 - p], [1 - r, r]]) for p in (low, high) for r in (low, high)]
    )
    assert family.smallest_stationary_probability() == pytest.approx(
        inside.smallest_stationary_probability()
    )
    for kind in ("general", "reversible", "auto"):
        assert family.eigengap(kind) == pytest.approx(inside.eigengap(kind), abs=1e-11)


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.36])
def test_class_of_the_synthetic_experiment(alpha):
    family = pf.BinaryInterval(alpha, 1 - alpha)
    assert family.smallest_stationary_probability() == pytest.approx(alpha)
    assert family.eigengap("reversible") == pytest.approx(4 * alpha)


def test_intervals_of_the_smallest_numbers_and_of_one_chain():
    smallest, one = pf.BinaryInterval(5e-324, 0.5), pf.BinaryInterval(0.5, 0.5)
    assert smallest.eigengap("reversible") == 0
    assert pf.mqm_approx(smallest, 10, 1.0).scale == pf.mqm_exact(smallest, 10, 1.0).scale == 10
    assert pf.privacy_loss(one, 5, 3.0, CountQuery({1})).loss == pytest.approx(1 / 3)
    assert pf.wasserstein(one, 5, 1.0).scale == pytest.approx(1.0)
    assert pf.audit.close_adversary(one, pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]), 5).delta < 1e-12


# -- families between bounds -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["entry-dp", "group-dp", "mqm-exact", "mqm-approx", "gk16", "wasserstein"]
)
def test_which_mechanisms_serve_families_between_bounds(name):
    found, other = (
        compute_scale(name, theta, 10, 1.0) for theta in (BOX, pf.BinaryInterval(0.3, 0.7))
    )
    if name.endswith("-dp"):
        assert found == other
    else:
        assert (found.status, found.scale) == ("not applicable", None)
        assert "finitely many chains" in found.reason


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
        centre = rng.dirichlet(np.ones(k), size=k)
        once = pf.IntervalFamily(
            centre * rng.random((k, k)), np.minimum(centre + rng.random((k, k)), 1)
        )
        assert pf.IntervalFamily(once.low, once.high) == once
    row = [0.1] * 10  # misses 1 by rounding
    assert pf.IntervalFamily([row] * 10, [row] * 10).low.sum() == pytest.approx(10)


def test_a_ball_lies_in_a_box_and_needs_less_noise():
    matrix = 0.1 + 0.6 * np.eye(4)
    ball = pf.TotalVariationFamily(matrix, 0.02)
    for vertex in ball.rows.vertices(0, largest=True):
        assert vertex.sum() == pytest.approx(1)
        assert np.abs(vertex - matrix[0]).sum() / 2 == pytest.approx(0.02)
        assert holds(ball, np.vstack([vertex, matrix[1:]]))
    assert (
        pf.leakage(ball, 500, 1.0).scale
        < pf.leakage(pf.IntervalFamily(ball.low, ball.high), 500, 1.0).scale
    )


def holds(family, matrix, tolerance=1e-9):
    return ((family.low - tolerance <= matrix) & (matrix <= family.high + tolerance)).all()


def test_short_chains_one_state_and_states_reached_in_the_end():
    for length in (1, 2, 3, 10):
        assert 1 <= pf.leakage(BOX, length, 1.0).scale <= length
    assert pf.leakage(pf.IntervalFamily([[0.5]], [[1]]), 100, 0.5).scale == pytest.approx(2)
    low = [[0.3, 0.3, 0], [0.2, 0.2, 0.2], [0, 0.3, 0.3]]
    high = [[0.7, 0.7, 0.1], [0.6, 0.6, 0.6], [0.1, 0.7, 0.7]]
    assert pf.leakage(pf.IntervalFamily(low, high), 10**9, 1.0).scale < 1000


def test_states_that_may_be_kept_for_ever_are_named():
    seen = np.array([[50, 9, 4, 1], [8, 40, 5, 0], [3, 4, 6, 0], [0, 0, 0, 0]])
    # one state that may be kept is met in the end
    assert not pf.leakage(confidence_family(seen), 1000, 1.0).reason
    seen[2] = 0, 0, 3, 0
    found = pf.leakage(confidence_family(seen), 1000, 1.0)
    assert (
        "may stay for ever in state 3, and for ever in state 4, so it need not mix" in found.reason
    )
    assert found.scale == pytest.approx(1000)
    assert pf.leakage(confidence_family(seen), 20, 1.0).scale <= 20 * (1 + 1e-9)
    swapped = pf.IntervalFamily(np.zeros((4, 4)), np.kron([[1, 0], [0, 1]], np.ones((2, 2))))
    assert "state 1, and for ever in state 2" in pf.leakage(swapped, 9, 1.0).reason
    # in the end, as often as it may be kept
    left = pf.IntervalFamily(np.zeros((3, 3)), 1 - np.eye(3) / 2)
    assert not pf.leakage(left, 9, 1.0).reason
    pairs = pf.IntervalFamily(
        np.kron(np.eye(2), np.full((2, 2), 0.4)), np.kron(np.eye(2), np.full((2, 2), 0.6))
    )
    assert "states 1 and 2, and for ever in states 3 and 4" in pf.leakage(pairs, 9, 1.0).reason


def test_many_states_are_bounded_by_ratios_alone():
    k = MOST_ROBUST_STATES + 1
    matrix = np.random.default_rng(0).dirichlet(np.ones(k), k)
    family = pf.IntervalFamily(matrix * 0.99, np.minimum(matrix * 1.01, 1))
    found = pf.leakage(family, 30, 1.0)
    assert found.scale < 15
    assert found.scale == pytest.approx(
        pf.leakage(family, 30, 1.0, side_information="any").scale, rel=1e-5
    )
    assert found.reason == f"couplings are computed for at most 12 states, not for {k}"
    proved = pf.certify(family, 30, 1.0, mechanism="leakage")
    assert pf.verify_certificate(proved).loss <= 1
    assert float(proved["scale"]) <= 1.05 * found.scale
    many = MOST_RATIO_STATES + 1
    simplex = pf.leakage(pf.IntervalFamily(np.zeros((many, many)), np.ones((many, many))), 30, 1.0)
    assert simplex.scale == 30
    assert f"of {many} states no other bound is computed" in simplex.reason


# -- confidence ------------------------------------------------------------------------------------


def test_confidence_intervals_by_their_definition():
    two, three = (
        confidence_family([[30, 10], [0, 7]], 0.9),
        confidence_family([[30, 10, 0]] * 3, 0.9),
    )
    from scipy.stats import betabinom, binom

    ends = [(30, 40, two.high[0, 0], 2), (30, 40, two.low[0, 0], 2), (0, 7, two.high[1, 0], 2)]
    ends += [(30, 40, three.high[0, 0], 9), (10, 40, three.low[0, 1], 9)]
    for s, n, end, intervals in ends:
        evidence = betabinom.pmf(s, n, 0.5, 0.5) / binom.pmf(s, n, end)
        assert evidence == pytest.approx(intervals / 0.1, rel=1e-6)
    assert two.low[1, 0] == 0
    assert two.high[1, 1] == 1


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
        states = chain.simulate(200, rng)
        seen = np.zeros((3, 3), dtype=np.int64)
        np.add.at(seen, (states[:-1], states[1:]), 1)
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
    family = pf.fit(table, states=[*"abc"], coverage=0.95).model.family
    assert holds(family, chain.transition_matrix)
    assert holds(family.backward, chain.time_reversal)
    from_any = pf.fit(table, states=[*"abc"], coverage=0.95, start="any").model.family
    assert from_any.backward is None
    scale, known = (pf.leakage(theta, 4000, 1.0).scale for theta in (family, chain))
    assert known <= scale < pf.leakage(from_any, 4000, 1.0).scale
