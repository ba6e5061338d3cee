"""Any mechanism on correlated records: budgets, OpenDP measurements, running counts."""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.publishing.running_count import PARTS, tree

dp.enable_features("contrib")
HOUR = pf.ForgettingFamily(60, 0.4)
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
FAMILIES = [HOUR, CHAIN, pf.BinaryInterval(0.3, 0.7)]
WHOLE = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("options", [{}, {"window": 5}, {"knows": "any records"}])
@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(epsilon, marks=pytest.mark.long) for epsilon in (0.01, 7.0))])
def test_a_budget_is_what_leakage_allows(family, options, epsilon):
    event = pf.entry_epsilon(family, 500, epsilon, **options)
    needed = pf.leakage(family, 500, epsilon, **options).scale
    assert event * needed == pytest.approx(1, rel=1e-6)  # couplings start from those found last
    assert epsilon / 500 * (1 - 1e-12) <= event <= epsilon
    if family is HOUR:
        assert Fraction(event) * Fraction(needed) <= 1
        assert pf.leakage_loss(family, 500, 1 / event, **options) == pytest.approx(epsilon, rel=1e-12)


def laplace(scale):
    return dp.m.make_laplace(*WHOLE, scale=scale)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_measurements_lose_what_their_privacy_map_says(family):
    wrapped = pf.wrap(laplace(5.0), family, 300, d_in=1, window=3)
    assert wrapped.event_epsilon == pytest.approx(0.2)
    assert wrapped.event_epsilon >= 0.2 - 1e-16
    assert wrapped.scale <= 5.0
    assert wrapped.loss == pytest.approx(pf.leakage_loss(family, 300, 5.0, window=3), rel=1e-9)
    assert wrapped.loss >= pf.leakage_loss(family, 300, 5.0, window=3) * (1 - 1e-12)
    assert isinstance(wrapped(10), int)
    twice = pf.wrap(laplace(5.0), family, 300, d_in=2, window=3)
    assert twice.event_epsilon == pytest.approx(0.4)
    account = pf.Accountant(family, 300)
    account.add(wrapped.scale)
    account.add(pf.wrap(laplace(5.0), family, 300, d_in=1).scale)
    assert account.cost().leakage == pytest.approx(pf.leakage_loss(family, 300, 2.5), rel=1e-6)


def test_data_sets_that_differ_in_one_record():
    """A record goes and one comes: two changes of the symmetric distance."""
    data = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    counted = data >> dp.t.then_count() >> dp.m.then_laplace(scale=4.0)
    wrapped = pf.wrap(counted, HOUR, 100)
    assert wrapped.event_epsilon == pytest.approx(counted.map(2))
    assert isinstance(wrapped([1, 2, 3]), int)
    with pytest.raises(pf.ParameterError, match="d_in is 1; data sets that differ in one record are 2 apart"):
        pf.wrap(counted, HOUR, 100, d_in=1)


def test_what_cannot_be_wrapped():
    with pytest.raises(pf.ParameterError, match="measurement is of type function; give a Measurement of OpenDP"):
        pf.wrap(laplace, HOUR, 100)
    with pytest.raises(pf.ParameterError, match="only pure differential privacy"):
        pf.wrap(dp.m.make_gaussian(*WHOLE, scale=4.0), HOUR, 100, d_in=1)
    with pytest.raises(pf.ParameterError, match=r"AbsoluteDistance.*give d_in"):
        pf.wrap(laplace(5.0), HOUR, 100)
    for wrong in (0, -1, math.nan, "1"):
        with pytest.raises(pf.ParameterError, match="d_in"):
            pf.wrap(laplace(5.0), HOUR, 100, d_in=wrong)
    with pytest.raises(pf.ParameterError, match="the measurement has no privacy loss at d_in"):
        pf.wrap(laplace(5.0), HOUR, 100, d_in=0.5)
    with pytest.raises(pf.ParameterError, match="finite factor"):
        pf.wrap(laplace(0.0), HOUR, 100, d_in=1)


# -- running counts --------------------------------------------------------------------------------------


@examples(10, 25)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.data())
def test_the_noise_is_that_of_a_sum_of_noisy_node_counts(length, seed, data):
    """With the counts themselves for noise the sum is the running count, exactly: weights and nodes fit."""
    rng = np.random.default_rng(seed)
    arities = data.draw(st.sampled_from([tree(length), _binary(length), (3, 4, max(1, -(-length // 12)))]))
    stream = rng.integers(0, 2, length).tolist()
    counter = _with_nodes(stream, arities)
    for t in range(1, length + 1):
        assert counter.add(stream[t - 1]) == 2 * sum(stream[:t])


def _binary(length):
    return (2,) * max(1, (length - 1).bit_length()) if length > 1 else (1,)


def _with_nodes(stream, arities):
    """A counter on that tree whose noise is the counts of its nodes."""
    counter = pf.RunningCount(len(stream), 1.0, rng=np.random.default_rng(0))
    counter.arities = arities
    sizes = [math.prod(arities[:level]) for level in range(len(arities))]
    nodes = [[sum(stream[i : i + n]) for i in range(0, n * math.prod(arities[lv:]), n)] for lv, n in enumerate(sizes)]
    begun = [0] * len(arities)

    def children(level):
        first = begun[level]
        begun[level] += arities[level]
        counts = nodes[level][first : begun[level]]
        return np.concatenate([[0], np.cumsum(counts + [0] * (arities[level] - len(counts)))]).astype(int).tolist()

    counter._sums = [children(level) for level in range(len(arities))]
    drawn = iter(())

    def add(value, original=counter.add):
        nonlocal drawn
        step, wanted = counter._records + 1, []
        for level, arity in enumerate(arities[:-1]):
            if step % arity:
                break
            wanted.append(level)
            step //= arity
        drawn = iter(wanted)
        return original(value)

    counter._drawn = lambda arity: children(next(drawn))
    counter.add = add
    return counter


@pytest.mark.parametrize("times", counts(300, 1000))
def test_errors_are_as_stated(times):
    rng, length = np.random.default_rng(1), 40
    errors = np.zeros((times, length))
    for i in range(times):
        counter = pf.RunningCount(length, 0.5, rng=rng)
        errors[i] = [counter.add(1) - t for t in range(1, length + 1)]
    stated = np.array([counter.standard_error(t) for t in range(1, length + 1)])
    found = np.sqrt((errors**2).mean(axis=0))
    assert np.abs(found / stated - 1).max() < 6 * math.sqrt(5 / times)  # a fourth moment of at most 6 times the square
    assert np.abs(errors.mean(axis=0) / stated).max() < 6 / math.sqrt(times)


def test_a_million_records_cost_less_than_their_logarithm():
    """Root mean square over time, in errors of one count under the same budget."""
    length, event = 10**6, pf.entry_epsilon(HOUR, 10**6, 1.0)
    counter = pf.RunningCount(length, event)
    single = 1 / (math.sqrt(2) * math.sinh(event / 2))
    times = np.random.default_rng(0).integers(1, length + 1, 20_000)
    squares = np.array([counter.standard_error(int(t)) for t in times]) ** 2
    assert math.sqrt(squares.mean()) / single < math.log2(length)
    assert math.sqrt(squares.max()) / single < 25


def test_private_counts_of_a_short_stream():
    counter = pf.RunningCount(50, 1e9)  # noise that is hardly ever there
    assert [counter.add(t % 2) for t in range(50)] == [(t + 1) // 2 for t in range(50)]
    with pytest.raises(pf.ParameterError, match="all 50 records were counted"):
        counter.add(0)
    assert pf.RunningCount(1, 1.0).scale == 1.0
    assert {type(pf.RunningCount(9, 0.1).add(1)) for _ in range(5)} == {float}
    assert PARTS * pf.RunningCount(9, 0.1).add(1) % 1 == 0


def test_what_cannot_be_counted():
    for wrong in (2, -1, 0.5, True, None, "1"):
        with pytest.raises(pf.ParameterError, match="value is"):
            pf.RunningCount(5, 1.0).add(wrong)
    for wrong in (0, 2**41, 1.5):
        with pytest.raises(pf.ParameterError, match="length is"):
            pf.RunningCount(wrong, 1.0)
    for wrong in (0, -1, math.inf, "1"):
        with pytest.raises(pf.ParameterError, match="event_epsilon is"):
            pf.RunningCount(5, wrong)
    with pytest.raises(pf.ParameterError, match="rng"):
        pf.RunningCount(5, 1.0, rng=3)
    with pytest.raises(pf.ParameterError, match="hides every count"):
        pf.RunningCount(5, 1e-12)
    with pytest.raises(pf.ParameterError, match="records is"):
        pf.RunningCount(5, 1.0).standard_error(6)
    assert "NOT PRIVATE" in repr(pf.RunningCount(5, 1.0, rng=np.random.default_rng(1)))


@given(st.integers(1, 2**40))
def test_trees_hold_every_record(length):
    arities = tree(length)
    assert math.prod(arities) >= length
    assert len(arities) <= length.bit_length()
