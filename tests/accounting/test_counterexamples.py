"""Each condition of docs/account.md left out once, enumerated exactly: more than ε = 1 is lost."""

from itertools import product
from math import comb, exp, expm1, inf, log

import numpy as np
import pytest
from scipy.optimize import brentq

approx = pytest.approx


def loss(worlds):
    """Largest log ratio given two secrets; a world: probability, secret, likelihood of outputs."""
    columns = ([np.ravel(one) for one in column] for column in zip(*worlds, strict=True))
    chance, secret, likely = (np.array(column, dtype=float) for column in columns)
    of = [secret[:, 0] == value for value in (0, 1)]
    one, other = ((chance * likely)[at].sum(axis=0) / chance[at].sum() for at in of)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nanmax(np.abs(np.log(one / other)))


def noisy(value, values, scale=1.0):
    """Likelihood of value + Laplace noise at all values of the query: ratios are extreme there."""
    return np.exp(-np.abs(np.asarray(values) - value) / scale)


def test_1_values_finer_than_the_states_may_remember_everything():
    """S_t fair and independent, values S_t + 0.9 S_0: at least 1 exactly where S_t = 1."""
    drawn = list(product((0, 1), range(48)))  # the first state, and how many later ones are 1
    sums = [n + (1 + 48 * 0.9) * first for first, n in drawn]
    both = zip(drawn, sums, strict=True)
    mean = loss((comb(47, n), s, noisy(value, sums, 2.0)) for (s, n), value in both)
    states = loss((comb(47, n), s, noisy(s + n, range(49))) for s, n in drawn)
    assert (mean, states) == approx((22.1, 1))


DETERMINED = {
    "2: a jump of the clock leaves out the hour at which a day's state is drawn": (47, 24),
    "2: a missing step does not end a record of which three readings are one state": (6, 3),
    "6: participants who do the same pay together": (5, 1),
    "8: a row in the far future removes all transitions that follow, where 4 are charged": (336, 4),
    "9: a day that is selected but not charged is used twice": (2, 1),
    "any length: one reading of a cycle determines all": (1000, 10),
}


@pytest.mark.parametrize(("readings", "charged"), DETERMINED.values(), ids=DETERMINED)
def test_readings_that_one_secret_determines(readings, charged):
    found = loss((1, s, noisy(readings * s, (0, readings), charged)) for s in (0, 1))
    assert found == approx(readings / charged)


@pytest.mark.parametrize(("filter_first", "most"), [(True, 1), (False, 5 / 3)])
def test_3_filtering_after_counting_lets_a_range_reach_into_another(filter_first, most):
    """Week A: steps 0 to 2, their ones. Week B: steps 3 to 5, durations; independent readings."""
    worlds = []
    for secret in (0, 1):
        readings = (1, 1, secret, 1, 0, 0)
        counted = (0, 0, 0, *readings[3:]) if filter_first else readings
        ended = "".join(map(str, counted)).split("0")  # the last stretches end in week B
        lengths = [len(ones) for ones in ended[-3:] if ones]
        both = noisy(sum(readings[:3]), (2, 3))
        for n in (1, 2, 3, 4):  # one reading changes the table by at most 3
            both = np.outer(both, noisy(lengths.count(n), (0, 1), 3.0))
        worlds.append((1, secret, both))
    assert loss(worlds) == approx(most)


def test_3_7_8_a_fact_that_one_record_changes_is_disclosed_when_it_is_printed():
    """Longest record, readings of a group, values within bounds, participants with a valid row."""
    rows = [(0, 1, 1), (1, 0)], [(0, 1, 1), (9, 9, 9, 9)]
    within = [[sum(x <= 1 for x in own) for own in table] for table in rows]
    pairs = zip(rows, within, strict=True)
    facts = [(len(a[1]), sum(a[1]), sum(b), np.count_nonzero(b)) for a, b in pairs]
    for printed in zip(*facts, strict=True):
        assert loss((1, s, [printed[s] == x for x in printed]) for s in (0, 1)) == inf


def test_4_columns_that_are_independent_one_by_one_are_not_together():
    """A_t fair, B_t = A_{t-1}: sums of either; the reading at step 2 is (1, 1) or (0, 0)."""
    worlds = []
    for a in product((0, 1), repeat=5):
        both = (noisy(sum(of), range(5), 2.0) for of in (a[1:], a[:-1]))
        worlds += [(1, a[2], np.outer(*both))] * (a[2] == a[1])
    assert loss(worlds) == approx(2)


def test_4_a_rolling_mean_is_a_value_of_three_times():
    """V_t = (S_t + S_{t+1} + S_{t+2})/3 of fair S; the middle one is 0 or 1."""
    known = [a for a in product((0, 1), repeat=7) if a[2] == a[3] == a[4]]
    sums = [sum(sum(a[t : t + 3]) / 3 for t in range(5)) for a in known]
    worlds = ((1, a[2], noisy(value, sums)) for a, value in zip(known, sums, strict=True))
    assert loss(worlds) == approx(3)


def test_5_a_reaction_reveals_the_past_again():
    """A fair coin is published with day 1; on tails the participant does the opposite on day 2."""
    worlds = []
    for first, coin in product((0, 1), repeat=2):
        published = np.zeros((2, 2, 2))
        published[coin] = np.outer(noisy(first, (0, 1)), noisy(first ^ coin, (0, 1)))
        worlds.append((1, first, published))
    assert loss(worlds) == approx(2)


def test_mixing_gives_no_bound_to_those_who_know_the_end():
    """States 0, 1, elsewhere, and an end hardly ever reached from there; every overlap is .4."""
    back, cost, length = 1e-30, 0.1, 40
    move = np.array([[0.6, 0, 0.4], [0, 0.6, 0.4], [back, back, 1 - 2 * back]])
    end = np.array([[0.6, 0.4], [0.6, 0.4], [2 * back, 1 - 2 * back]])
    stationary = np.array([back, back, 0.4]) / (0.4 + 2 * back)
    for joint in (stationary[:, None] * move, stationary[:, None] * end):
        for rows in (joint / joint.sum(1, keepdims=True), joint.T / joint.T.sum(1, keepdims=True)):
            assert min(np.minimum(p, q).sum() for p in rows for q in rows) > 0.4 - 1e-12
    ahead, weight = end[:, 0], np.exp(cost * np.array([0, 1, 0]))  # count of ones, far in the tail
    for _ in range(length - 1):
        ahead = move @ (weight * ahead)
    assert cost + log(ahead[1] / ahead[0]) == approx(cost * length, rel=1e-3)
    assert cost + 2 * log(0.4 / (1 - 0.6 * exp(cost))) < 0.45  # for those who know nothing


def test_shares_of_cost_and_of_whole_cost_do_not_add():
    """P = [[.9, .1], [.1, .9]] and ε = 5: half of C, and half of ε by whole cost, lose 6.06."""

    def counted(cost):
        """What a count with noise of scale 1/cost loses of its middle reading: both ways."""
        leak = 0.0
        for _ in range(1000):
            gain = expm1(cost + leak)
            leak = log((1 + 0.9 * gain) / (1 + 0.1 * gain))
        return cost + 2 * leak

    half = brentq(lambda cost: counted(cost) - 5, 0.1, 5) / 2
    assert counted(half) + 2.5 == approx(6.06, abs=5e-3)  # and 2.5-private noise on the reading
