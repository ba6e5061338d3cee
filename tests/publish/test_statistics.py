"""Each statistic against a reference implementation, and its L against any change of a reading.

Estimates of shares: the nearest possible ones, and what they gain on bundled data.
"""

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import examples, seeds
from hypothesis import given
from hypothesis import strategies as st
from shipped_counts import electricity_transitions
from test_release_page import noisy

from pufferflow.errors import ParameterError
from pufferflow.publish import statistics
from pufferflow.publish.noise import Noise
from pufferflow.publish.result import NoisyTable, nearest_shares
from pufferflow.publish.statistics import CATALOGUE, check_covered
from pufferflow.records import read as reader
from pufferflow.records.read import Steps, read
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace
from reproduction.data.discretise import discretise
from reproduction.data.sample import pooled

NHANES = Path(__file__).parents[2] / "workflow/data/activity_nhanes2003_minutes.csv.xz"
STEP, EDGES = 1800, (-1.0, 0.5, 2.0)
OPTIONS = {"bounds": (-1, 3), "threshold": 0.5, "duration_edges": (1, 2, 4), "top": 2}
CASES = [(name, by) for name, kind in CATALOGUE.items() for by in kind.cells]


def some_steps(rng):
    """Readings of a few participants in two groups, with gaps, half an hour apart."""
    person, seconds = [], []
    for who in range(3):
        waits = rng.choice([1, 1, 1, 2, 9], size=rng.integers(1, 12))
        seconds += (STEP * (rng.integers(0, 5000) + np.cumsum(waits))).tolist()
        person += [who] * len(waits)
    value = rng.choice([-9.0, -1.0, 0.0, 0.5, 1.9999, 2.0, 7.5, 1e300], size=len(person))
    return with_values(np.array(person), np.array(seconds), value)


def with_values(person, seconds, value):
    space = StateSpace.numeric(EDGES)
    public = {"states": space, "step_seconds": STEP, "time_base": "utc", "groups": ("a", "b")}
    public |= {"people": ("a", "b", "c"), "group_of": np.array([0, 1, 0], dtype=np.int32)}
    state = space.encode_numbers(value)
    return Steps.of(seconds, person=person, value=value, state=state, **public)


def statistic_of(name, by="all"):
    own = {key: OPTIONS[key] for key in CATALOGUE[name].__dataclass_fields__ if key in OPTIONS}
    return statistics.parse_statistics([name if by == "all" else f"{name}-by-{by}"], **own)[0]


def plain(name, by, steps):
    """The same table by loops: {(cell, column): integer}, {cell: size}."""
    counts, sizes, run = {}, {}, 0
    values, people, seconds = (a.tolist() for a in (steps.value, steps.person, steps.seconds))

    def follows(i):
        known = 0 < i < len(values) and people[i] == people[i - 1]
        return known and seconds[i] - seconds[i - 1] == STEP

    for i, value in enumerate(values):
        moment = np.datetime64(seconds[i], "s").item()
        cell = {"hour": moment.hour, "weekday": moment.weekday(), "month": moment.month - 1}
        cell = (cell | {"all": 0, "group": people[i] % 2})[by]
        before, state = (sum(of >= edge for edge in EDGES) for of in (values[i - 1], value))
        run = 0 if value < 0.5 else run + 1 if follows(i) else 1
        ends = run and not (follows(i + 1) and values[i + 1] >= 0.5)
        shifted = 0, round((min(max(value, -1), 3) + 1) * 250)
        column, amount = {
            "histogram": (state, 1),
            "most-frequent": (state, 1),
            "mean": shifted,
            "sum": shifted,
            "exceedances": (0, int(value >= 0.5)),
            "transitions": (4 * before + state, int(follows(i))),
            "durations": (2 if run >= 4 else int(run >= 2), int(bool(ends))),
        }[name]
        if name != "transitions" or follows(i):
            sizes[cell] = sizes.get(cell, 0) + 1
        counts[cell, column] = counts.get((cell, column), 0) + amount
    return counts, sizes


@pytest.mark.parametrize(("name", "by"), CASES)
@pytest.mark.parametrize("seed", seeds(3, 200))
def test_tables_are_those_of_loops_and_change_by_at_most_the_constant(name, by, seed, monkeypatch):
    """And nothing but their integers: cells, sizes and public ranges stay."""
    monkeypatch.setattr(reader, "ROWS", (2**15, 3, 4)[seed % 3])  # readings counted at once
    steps, statistic = some_steps(np.random.default_rng(seed)), statistic_of(name, by)
    table, (counts, sizes) = statistic.tabulate(steps), plain(name, by, steps)
    wanted = np.zeros_like(table.counts)
    for place, amount in counts.items():
        wanted[place] = amount
    np.testing.assert_array_equal(table.counts, wanted)
    assert {j: n for j, n in enumerate(table.sizes) if n} == sizes
    for i in range(len(steps.person)):
        for value in (-1e300, -1.0, 0.49, 0.5, 2.0, 1e300):
            changed = steps.value.copy()
            changed[i] = value
            after = statistic.tabulate(with_values(steps.person, steps.seconds, changed))
            change = after.counts - table.counts
            assert np.abs(change).sum() <= statistic.lipschitz
            assert (change**2).sum() <= (statistic.square or np.inf)
            assert after.cells == table.cells
            assert (after.sizes == table.sizes).all()
            assert (after.ranges == table.ranges).all()


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_chain_on_states_covers_no_finer_statistic(name):
    """S_t fair coins, value S_t + .9·S_0: independent states, values that remember everything."""
    states = name in ("histogram", "transitions", "most-frequent")
    for edges, covered in (([0.25, 1.0], states), (EDGES, name not in ("mean", "sum"))):
        if covered:
            check_covered([statistic_of(name)], StateSpace.numeric(edges))
            continue
        with pytest.raises(ParameterError, match=f"{name} depends on .*this chain does not cover"):
            check_covered([statistic_of(name)], StateSpace.numeric(edges))


def test_reading_and_counting_take_24_bytes_a_row_at_their_peak():
    count, rng = 500_000, np.random.default_rng(0)
    frame = pd.DataFrame({"time": 60 * rng.permutation(count), "value": rng.normal(size=count)})
    schema = Schema(states=StateSpace.numeric(EDGES), step_seconds=60)
    read(frame.head(99), schema)
    tracemalloc.start()
    steps = read(frame, schema)
    for name in CATALOGUE:
        statistic_of(name).tabulate(steps)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 * count + 1e6


def test_impact_is_the_error_over_the_public_range():
    steps = some_steps(np.random.default_rng(3))
    found = NoisyTable(**vars(statistic_of("mean").tabulate(steps)), noise=Noise(100.0))
    half = 0.004 * Noise(100.0).quantile(0.95) / len(steps.person) + 0.002
    assert found.middle == (pytest.approx(half), pytest.approx(half / 4))


@given(st.integers(0, 10**6))
@examples(60, 2_000)
def test_the_nearest_shares_against_bisection(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 8))
    exact, row = rng.dirichlet(np.full(k, 0.3)), rng.normal(0, 10.0 ** rng.integers(-3, 3), k)
    if seed % 3:
        row += exact
    low, high = row.min() - 1, row.max()
    for _ in range(200):  # the shift after which the positive parts sum to 1
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(row - middle, 0).sum() > 1 else (low, middle)
    (found,) = nearest_shares(row[None])
    scale = 1 + np.abs(row).max()
    np.testing.assert_allclose(found, np.maximum(row - high, 0), rtol=0, atol=1e-12 * scale)
    assert found.min() >= 0
    assert np.linalg.norm(found - exact) <= np.linalg.norm(row - exact) + 1e-12 * scale
    half = np.abs(row - exact).max()  # in every band that contains the exact shares
    assert (np.abs(found - row) <= half + 1e-12 * scale).all()


@pytest.mark.parametrize(("name", "by"), [case for case in CASES if case[0] != "most-frequent"])
def test_exact_values_are_possible_and_their_own_estimates(name, by):
    for seed in range(10):
        exact = statistic_of(name, by).tabulate(some_steps(np.random.default_rng(seed)))
        table = NoisyTable(**vars(exact), noise=Noise(1.0))
        np.testing.assert_allclose(table.estimates, table.values, rtol=0, atol=1e-12)
        low, high = table.band
        used = table.sizes > 0
        assert np.less_equal(low, table.values)[used].all()
        assert np.less_equal(table.values, high)[used].all()


def men():
    sample = discretise(NHANES, {"kind": "activity", "step_minutes": 1}, "activity", "bundled")
    return pooled(sample.group("men_18_54")).state_counts


DATA = {
    "household": (lambda: electricity_transitions().sum(axis=0), 315.0, 0.89, 0.80),
    "activity": (men, 10.4, 0.89, 1.0),
}
"""Counts, the scale of their noise at ε = 1 (leakage), and the largest ratios that may be left: of
root mean square errors, and of widths of the band."""


@pytest.mark.parametrize("name", DATA)
def test_a_tenth_is_gained_and_the_band_contains_as_often_what_is_exact(name):
    counts, scale, *most = DATA[name]
    counts, rng = counts().astype(int), np.random.default_rng(1)
    exact, columns = counts / counts.sum(), [statistics.Column(str(j)) for j in range(len(counts))]
    errors, widths, covered = [], [], []
    for _ in range(1000):
        drawn = Noise(scale).add(counts, rng)
        table = noisy(statistics.Histogram(), ["all"], columns, [counts.sum()], drawn, scale)
        half, (low, high) = table.half_width, table.band
        errors.append(np.stack([np.array(table.values), table.estimates]) - exact)
        widths.append(((high - low) / (2 * half)).mean())
        clipped = ((low <= exact) & (exact <= high)).all()
        covered.append((clipped, (abs(errors[-1][0]) <= half).all()))
    value, estimate = np.sqrt(np.square(errors).mean(axis=(0, 2, 3)))
    assert estimate / value <= most[0]
    assert np.mean(widths) <= most[1]
    assert all(one == other for one, other in covered)
    assert np.mean(covered) > 0.93
