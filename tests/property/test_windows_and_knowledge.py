"""Windows of records, adversaries who know others: linear programs, plain twins, certificates true and forged."""

import json
import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import plain_influence
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from random_chains import chains as random_chains
from shipped_counts import electricity_transitions

import pufferflow as pf
from pufferflow.audit import CountQuery, HistogramQuery
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS, compute_scale

KNOWS = st.sampled_from(["none", "any"])
EPSILONS = st.sampled_from([0.05, 0.5, 2.0, 10.0])
SPARSE = st.sampled_from([0.0, 0.0, 0.05, 0.3, 1.0])
POSITIVE = st.sampled_from([0.05, 0.2, 0.5, 1.0])


def chains(most=4):
    return random_chains(most, SPARSE) | random_chains(most, POSITIVE, permutations=False)


# -- leakage -----------------------------------------------------------------------------------------


@given(chains(), st.integers(1, 9), st.integers(1, 11), KNOWS, st.sampled_from([0.05, 0.7, 4.0]))
@examples(10, 80)
def test_longer_windows_and_more_knowledge_never_cost_less(chain, length, window, side_information, cost):
    asked = {"window": window, "side_information": side_information}
    loss = pf.leakage_loss(chain, length, 1 / cost, **asked)
    assert pf.leakage_loss(chain, length, 1 / cost, window=window + 1, side_information=side_information) >= loss * (
        1 - 2e-6
    )
    assert pf.leakage_loss(chain, length, 1 / cost, window=window, side_information="any") >= loss * (1 - 2e-6)
    assert min(window, length) * cost * (1 - 1e-9) <= loss <= length * cost * (1 + 1e-9)
    if window >= length:
        assert loss == pytest.approx(length * cost, rel=1e-12)


@pytest.mark.parametrize("side_information", ["none", "any"])
@pytest.mark.parametrize("window", [1, 3])
def test_small_epsilon_has_the_limit_that_losses_tend_to(side_information, window):
    chain = pf.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    asked = {"window": window, "side_information": side_information}
    for length in (4, 10**6):
        limit = 1e-6 * pf.leakage(chain, length, 1e-6, **asked).scale
        assert 1e-3 * pf.leakage(chain, length, 1e-3, **asked).scale == pytest.approx(limit, rel=1e-2)
        assert pf.leakage_loss(chain, length, limit / 1e-6, **asked) <= 1e-6 * (1 + 1e-6)


@pytest.mark.parametrize(("bins", "more"), [(17, 1.5), pytest.param(51, 1.4, marks=pytest.mark.long)])
def test_electricity_hides_an_hour_for_little_more_than_a_minute(bins, more):
    counted, first = electricity_transitions(), range(0, 51, 51 // bins)
    joined = np.add.reduceat(np.add.reduceat(counted, first, axis=0), first, axis=1)
    chain, _ = pf.fit_chain(joined)
    minute, hour = (pf.leakage(chain, 1_051_200, 1.0, window=window).scale for window in (1, 60))
    assert hour <= more * minute


def test_who_knows_records_learns_more_and_no_more_than_the_bound():
    """Theory 7b: .187 nats with the records 10 steps away known, .112 with none."""
    P, c = np.array([[0.99, 0.01], [0.3, 0.7]]), 0.02
    grown, plain = P[:, 1], P[:, 1]  # of what follows until a known record in state 1
    for _ in range(9):
        grown, plain = P @ (np.array([1, math.exp(c)]) * grown), P @ plain
    ratios = np.log(grown / plain)
    learnt = c + 2 * (ratios[1] - ratios[0])  # the chain is reversible
    assert learnt == pytest.approx(0.187, abs=5e-4)
    chain = pf.MarkovChain(P)
    assert pf.leakage_loss(chain, 1000, 1 / c) == pytest.approx(0.112, abs=5e-4)
    assert learnt <= pf.leakage_loss(chain, 1000, 1 / c, side_information="any") < 0.31


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.integers(1, 4), KNOWS, st.data())
@examples(8, 60)
def test_the_chain_that_stands_for_a_binary_class_does_so_for_windows_and_knowledge(
    a, b, window, side_information, data
):
    low, high = min(a, b), max(a, b)
    stay = [data.draw(st.floats(low, high)) for _ in range(2)]
    member = pf.MarkovChain([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]], "any")
    asked = {"window": window, "side_information": side_information}
    for length, cost in ((3, 0.7), (30, 0.1)):
        whole = pf.leakage_loss(pf.BinaryInterval(low, high), length, 1 / cost, **asked)
        assert pf.leakage_loss(member, length, 1 / cost, **asked) <= whole * (1 + 1e-6)
    if side_information == "none":
        class_scale = pf.mqm_exact(pf.BinaryInterval(low, high), 20, 2.0, window=window).scale
        assert pf.mqm_exact(member, 20, 2.0, window=window).scale <= class_scale * (1 + 1e-12)


# -- other mechanisms --------------------------------------------------------------------------------


def plain_quilts(chain, length, epsilon, window):
    """Smallest scores of all windows over all quilts, from laws of pairs of windows; the largest of them."""
    P, k = chain.transition_matrix, chain.states
    hidden = min(window, length)
    starts = np.eye(k) if chain.start == "any" else [chain.initial_distribution]
    ends = np.linalg.matrix_power(P, hidden - 1) > 0
    worst = 0.0
    for i in range(1, length - hidden + 2):
        best = length / epsilon
        for a, b in product([None, *range(1, i)], [None, *range(1, length - i - hidden + 2)]):
            if a is None and b is None:
                continue
            e = _influence(P, starts, chain.start, i, a, b, ends)
            left = length - i + 1 if a is None and b is None else 0
            card = hidden + (i - 1 if a is None else a - 1) + (length - i - hidden + 1 if b is None else b - 1) + left
            if e < epsilon:
                best = min(best, card / (epsilon - e))
        worst = max(worst, best)
    return worst


def _influence(P, starts, start, i, a, b, ends):
    k = len(P)
    ahead = np.linalg.matrix_power(P, b) if b else np.ones((k, 1))
    if a is None:
        backs = [(np.array([q @ np.linalg.matrix_power(P, i - 1) for q in starts]).max(axis=0) > 0, None)]
    elif start == "any":
        # any law of the left node: the worst is a mixture, bounded as in C.4 by the worst pairs of rows
        rows, first = np.linalg.matrix_power(P, a), np.linalg.matrix_power(P, i - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            law = np.array([[np.nanmax(first[:, y] / first[:, x], initial=0) for y in range(k)] for x in range(k)])
            seen = np.linalg.matrix_power(P, i - a - 1).max(axis=0) > 0
            back = np.array(
                [[np.nanmax((rows[:, x] / rows[:, y])[seen], initial=0) for y in range(k)] for x in range(k)]
            )
            both = np.nan_to_num(law * back, nan=0.0, posinf=np.inf)  # 0 · ∞ is of values that do not occur
        backs = [(first.max(axis=0) > 0, both)]
    else:
        before = starts[0] @ np.linalg.matrix_power(P, i - a - 1)
        joint = before[:, None] * np.linalg.matrix_power(P, a)
        m = joint.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            given = joint / m
            back = np.array([[np.nanmax(given[:, x] / given[:, y], initial=0) for y in range(k)] for x in range(k)])
        backs = [(m > 0, back)]
    largest = 0.0
    for possible, back in backs:
        for (x, u), (y, v) in product(
            [(x, u) for x, u in zip(*np.nonzero(ends), strict=True) if possible[x]], repeat=2
        ):
            if (x, u) != (y, v):
                with np.errstate(divide="ignore", invalid="ignore"):
                    value = np.nanmax(ahead[u] / ahead[v], initial=0) * (1.0 if back is None else back[x, y])
                    largest = max(largest, math.log(value) if value > 0 else 0.0)
    return largest


@given(chains(3), st.integers(1, 6), st.integers(2, 4), EPSILONS)
@examples(10, 80)
def test_quilts_of_windows_equal_their_enumeration(chain, length, window, epsilon):
    result = pf.mqm_exact(chain, length, epsilon, window=window)
    plain = plain_quilts(chain, length, epsilon, window)
    assert result.scale >= plain * (1 - 1e-9)
    if chain.start != "any":
        assert result.scale == pytest.approx(plain, rel=1e-9)
    proved = result.certified(chain)
    assert proved.scale == pytest.approx(result.scale, rel=1e-9)
    assert pf.verify_certificate(json.loads(json.dumps(proved.certificate))).loss <= Fraction(repr(epsilon))


def test_one_record_is_what_the_plain_quilts_give():
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    law = [Fraction(p) for p in ("4/5", "1/5")]
    P = [[Fraction(p) for p in row] for row in (("0.9", "0.1"), ("0.4", "0.6"))]
    plain = plain_influence.noise_scale(plain_influence.quilts(P, law, 12), 1.0)
    assert plain_quilts(chain, 12, 1.0, 1) == pytest.approx(plain)


@given(random_chains(4, POSITIVE, permutations=False), st.integers(1, 40), st.integers(1, 3), st.floats(0.1, 60))
@examples(10, 80)
def test_leakage_is_never_above_the_bound_of_extreme_probabilities(chain, length, window, epsilon):
    """Theorem K3, of "Balancing Privacy and Utility in Correlated Data"."""
    ours = pf.leakage(chain, length, epsilon, window=window, side_information="any")
    matrix = chain.transition_matrix
    spread = 4 * math.log(matrix.max() / matrix.min()) if window < length else 0.0
    if epsilon > spread:
        assert ours.scale <= min(window, length) / (epsilon - spread) * (1 + 1e-6)
    assert ours.scale <= length / epsilon * (1 + 1e-12)


def test_what_a_mechanism_has_no_bound_for_is_not_applicable():
    chain = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
    for name, asked in product(MECHANISMS, ({"window": 3}, {"side_information": "any"})):
        result = compute_scale(name, chain, 50, 5.0, **asked)
        fits = {
            "window": {"gk16", "wasserstein"},
            "side_information": {"gk16", "wasserstein", "mqm-exact", "mqm-approx"},
        }
        assert (result.scale is None) == (name in fits[next(iter(asked))])
        assert result.to_dict() | asked == result.to_dict()
        if result.scale is None:
            assert len(result.reason) > 20
            with pytest.raises(ParameterError, match=f"no certificate for '?{name}"):
                pf.certify(chain, 50, 5.0, mechanism=name, **asked)
    assert pf.group_dp(chain, 50, 5.0, window=9, side_information="any").scale == 10
    assert pf.mechanisms.entry_dp(chain, 50, 5.0, window=10).scale == 2


@pytest.mark.parametrize("side_information", ["none", "any"])
def test_guarantee_and_accountant_state_what_is_asked(side_information):
    chain = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
    asked = {"window": 4, "side_information": side_information}
    scale = pf.leakage(chain, 9, 1.0, **asked).scale
    guarantee = pf.Accountant.guarantee
    assert guarantee(chain, 9, scale, "leakage", **asked) == pytest.approx(1.0, rel=1e-6)
    assert math.isinf(guarantee(chain, 9, scale, "gk16", **asked))
    account, narrow = pf.Accountant(chain, 9, **asked), pf.Accountant(chain, 9)
    for one in (account, narrow):
        one.add(scale)
        one.add(scale)
    assert account.cost().leakage == pytest.approx(pf.leakage_loss(chain, 9, scale / 2, **asked), rel=1e-9)
    assert account.cost().epsilon > narrow.cost().epsilon


def plain_exact_loss(matrix, laws, length, scale, counted, window):
    """Largest log ratio of the densities of a noisy count given two windows, over all sequences and whole outputs."""
    k, worst = len(matrix), 0.0
    for law, i in product(laws, range(length - min(window, length) + 1)):
        densities = {}
        for s in product(range(k), repeat=length):
            p = law[s[0]] * math.prod(matrix[x][y] for x, y in pairwise(s))
            if p:
                noisy = np.exp(-np.abs(np.arange(length + 1) - sum(x in counted for x in s)) / scale)
                total, density = densities.get(s[i : i + window], (0.0, 0.0))
                densities[s[i : i + window]] = total + p, density + p * noisy
        for (p, one), (q, other) in product(densities.values(), repeat=2):
            worst = max(worst, float(np.log((one / p) / (other / q)).max()))
    return worst


@given(chains(3), st.integers(1, 5), st.integers(1, 4), st.sampled_from([0.3, 1.0, 4.0]))
@examples(10, 170)
def test_exact_losses_of_windows_equal_their_enumeration(chain, length, window, scale):
    found = pf.privacy_loss(chain, length, scale, CountQuery({0}), window=window)
    if chain.start == "any":  # attained at mixtures of two starts
        k = chain.states
        laws = [a * np.eye(k)[x] + (1 - a) * np.eye(k)[y] for x, y in product(range(k), repeat=2) for a in (1e-9, 0.5)]
        assert found.loss >= plain_exact_loss(chain.transition_matrix, laws, length, scale, {0}, window) - 1e-9
    else:
        plain = plain_exact_loss(chain.transition_matrix, [chain.initial_distribution], length, scale, {0}, window)
        assert found.loss == pytest.approx(plain, rel=1e-9, abs=1e-11)
        assert found.lower <= found.loss
    assert found.loss <= pf.leakage_loss(chain, length, scale, window=window) * (1 + 1e-9) + 1e-12
    if found.pair is not None and window > 1 and length > 1:
        assert all(len(states) == min(window, length) for states in found.pair)
        assert json.loads(json.dumps(found.to_dict()))["window"] == window


def test_exact_losses_of_windows_are_of_counts():
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    least = pf.audit.smallest_scale(chain, 8, 1.0, CountQuery({1}), window=2)
    assert pf.audit.smallest_scale(chain, 8, 1.0, CountQuery({1})).scale < least.scale
    assert least.scale <= pf.leakage(chain, 8, 1.0, window=2).scale * 1.001
    with pytest.raises(ParameterError, match="window is 2"):
        pf.privacy_loss(pf.MarkovChain([[0.5, 0.5]] * 2), 5, 1.0, HistogramQuery(), window=2)


# -- certificates ------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["stationary", "any", [0.3, 0.3, 0.4]])
@pytest.mark.parametrize("side_information", ["none", "any"])
def test_leakage_certificates_hold_for_what_they_name(start, side_information):
    chain = pf.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]], start)
    for window in (1, 3, 60):
        result = pf.leakage(chain, 50, 1.0, window=window, side_information=side_information)
        proved = result.certified(chain)
        assert (proved.window, proved.side_information) == (window, side_information)
        assert result.scale * (1 - 1e-6) <= proved.scale <= 1.3 * result.scale
        said = pf.verify_certificate(json.loads(json.dumps(proved.certificate))).subject
        assert ("single records" if window == 1 else f"any {window} records in a row") in said
        assert said.endswith(f"side information {side_information}")
