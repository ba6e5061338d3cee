"""Running counts: the noise of a tree of counts, its stated errors, and one row in the ledger."""

import math
from fractions import Fraction
from functools import partial
from itertools import accumulate

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.accounting.account import whole
from pufferflow.accounting.ledger import Ledger
from pufferflow.publish.running_count import PARTS, RunningCount, tree


@examples(10, 25)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.data())
def test_the_noise_is_that_of_a_sum_of_noisy_node_counts(length, seed, data):
    """With the counts themselves for noise the sum is twice the count: weights and nodes fit."""
    stream = np.random.default_rng(seed).integers(0, 2, length).tolist()
    shapes = [tree(length), (2,) * max(1, (length - 1).bit_length()), (3, 4, -(-length // 12))]
    counter = with_nodes(stream, data.draw(st.sampled_from(shapes)))
    for t in range(1, length + 1):
        counter.level = 0
        assert counter.add(stream[t - 1]) == 2 * sum(stream[:t])


def with_nodes(stream, arities):
    """A counter on that tree whose noise is the counts of its nodes, drawn from the leaves up."""
    counter, begun = RunningCount(len(stream), 1.0), [0] * len(arities)
    counter.arities, counter.level = arities, 0

    def drawn(arity):
        size, first = math.prod(arities[: counter.level]), begun[counter.level]
        begun[counter.level] += arity
        counter.level += 1
        nodes = (sum(stream[i * size : (i + 1) * size]) for i in range(first, first + arity))
        return [*accumulate(nodes, initial=0)]

    counter._drawn, counter._sums = drawn, [*map(drawn, arities)]
    return counter


@given(st.integers(1, 2**40))
def test_trees_hold_every_reading_once_a_level(length):
    counter = RunningCount(length, 0.5)
    assert math.prod(counter.arities) >= length
    assert Fraction(0.499) < counter.cost <= Fraction(0.5)
    assert counter.cost == len(counter.arities) / Fraction(counter.scale)


@pytest.mark.parametrize("times", counts(300, 1000))
def test_errors_are_as_stated_and_half_widths_hold(times):
    length, errors = 40, []
    for _ in range(times):
        counter = RunningCount(length, 0.5)
        errors.append([counter.add(1) - t for t in range(1, length + 1)])
    errors = np.array(errors)
    weights = np.array([counter._squares(t) for t in range(1, length + 1)])
    stated = np.sqrt(weights / 2) / math.sinh(0.5 / counter.scale)  # 2p/(1 − p)², p = e^(−1/s)
    found = np.sqrt((errors**2).mean(axis=0))
    # a fourth moment of at most 6 times the square
    assert np.abs(found / stated - 1).max() < 6 * math.sqrt(5 / times)
    assert np.abs(errors.mean(axis=0) / stated).max() < 6 / math.sqrt(times)
    widths = np.array([counter.half_width(t) for t in range(1, length + 1)])
    assert (np.abs(errors) <= widths).mean(axis=0).min() > 0.95
    assert (widths < 5 * stated).all()


def test_what_cannot_be_counted():
    counter = RunningCount(1, 0.1)
    for value in (2, -1, 0.5, True):
        with pytest.raises(pf.ParameterError, match="value is"):
            counter.add(value)
    assert PARTS * counter.add(1) % 1 == 0
    with pytest.raises(pf.ParameterError, match="all 1 readings were counted"):
        counter.add(0)


MINUTES = {"value": "door", "step": "1min", "first": "2024-01-01", "timezone": "UTC"}
HOUR, CHAIN = pf.mixing("1h", 0.4), pf.MarkovChain([[0.7, 0.3], [0.3, 0.7]])


def test_a_stream_is_one_row_for_its_whole_horizon(tmp_path):
    ledger = tmp_path / "ledger"
    ask = partial(RunningCount.in_ledger, ledger, epsilon=1.0)
    halves = [ask(10_080, HOUR, share="1/2", **MINUTES) for _ in range(2)]
    book, cost = Ledger(ledger).book, halves[0].cost
    [promise] = book.promises.values()
    for charge in book.charges:
        assert (charge.cost, charge.whole) == (cost, 10_080 * cost)
        assert (charge.first, charge.last) == (1704067200, 1704067200 + 7 * 86_400 - 1)
    assert promise.cost * Fraction(999, 1000) < 2 * cost <= promise.cost
    assert 0.999 < halves[1].paid.spent <= 1
    with pytest.raises(pf.BudgetError):
        ask(60, HOUR, **(MINUTES | {"first": "2024-01-07T23:59"}))
    ask(60, HOUR, **(MINUTES | {"first": "2024-01-08"}))


def test_streams_of_participants_and_of_states(tmp_path):
    RunningCount.in_ledger(tmp_path / "people", 100, None, 1.0, protect="participant", **MINUTES)
    assert 0.99 < whole(Ledger(tmp_path / "people").book.charges) <= 1
    RunningCount.in_ledger(tmp_path / "chain", 100, CHAIN, 1.0, states=["off", "on"])
    assert Ledger(tmp_path / "chain").book.states == ["off", "on"]


FITTED = pf.fit(pd.Series([*"aababba"]), states=[*"ab"])
REFUSED = {
    "a stream in time needs": {"first": None},
    "never forgets": {"side_information": "any"},
    "what the states are": {"theta": CHAIN},
    "nothing shows that the chain was fitted": {"theta": FITTED},
    "length is 10000001": {"length": 10**7 + 1},
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_refused_leaves_no_ledger(said, tmp_path):
    given = {"length": 9, "theta": HOUR} | MINUTES | REFUSED[said]
    with pytest.raises(pf.PufferflowError, match=said):
        RunningCount.in_ledger(tmp_path / "ledger", **given)
    assert list(tmp_path.iterdir()) == []
