"""Each statistic against a plain twin, and its Lipschitz constant against every change of a reading."""

from fractions import Fraction

import numpy as np
import pytest
from cases import seeds

from pufferflow.errors import ParameterError
from pufferflow.publish.noise import DiscreteLaplace, cost_of, noise_scale, table_error
from pufferflow.publish.statistics import CELLS, check_covered, parse_statistics
from pufferflow.records.read import Steps
from pufferflow.records.states import StateSpace

NAMES = ("histogram", "mean", "sum", "exceedances", "durations", "transitions")
EDGES = (-1.0, 0.5, 2.0)


def some_steps(rng, people=3):
    """Readings of a few participants in two groups, with gaps, half an hour apart."""
    person, seconds = [], []
    for who in range(people):
        waits = rng.choice([1, 1, 1, 2, 9], size=rng.integers(1, 12))
        seconds += (1800 * (rng.integers(0, 5000) + np.cumsum(waits))).tolist()
        person += [who] * len(waits)
    value = rng.choice([-9.0, -1.0, 0.0, 0.5, 1.9999, 2.0, 7.5, 1e300], size=len(person))
    return with_values(np.array(person), np.array(seconds), value, people)


def with_values(person, seconds, value, people=3):
    space = StateSpace.numeric(EDGES)
    return Steps.of(
        seconds,
        person=person,
        value=value,
        state=space.encode_numbers(value),
        states=space,
        step_seconds=1800,
        clock="utc",
        people=tuple(f"p{i}" for i in range(people)),
        groups=("a", "b"),
        group_of=np.arange(people, dtype=np.int32) % 2,
    )


def statistic_of(name, by):
    needs = {"mean": ["bounds"], "sum": ["bounds"], "exceedances": ["threshold"]}
    options = {"bounds": (-1, 3), "threshold": 0.5, "duration_edges": (1, 2, 4)}
    own = {"durations": ["threshold", "duration_edges"]} | needs
    given = {k: options[k] if k in own.get(name, []) else None for k in options}
    return parse_statistics([name if by == "all" else f"{name}-by-{by}"], **given)[0]


def cases():
    for name in NAMES:
        for by in CELLS:
            if by in ("all", "group") or name not in ("durations", "transitions"):
                yield name, by


def plain(name, by, steps):
    """The same table by loops: {(cell, column): integer}, {cell: size}."""
    counts, sizes = {}, {}

    def cell_of(i):
        moment = np.datetime64(int(steps.seconds[i]), "s").item()
        place = {
            "all": 0,
            "hour": moment.hour,
            "weekday": moment.weekday(),
            "month": moment.month - 1,
            "group": int(steps.group_of[steps.person[i]]),
        }
        return place[by]

    def add(cell, column, amount=1):
        counts[cell, column] = counts.get((cell, column), 0) + amount

    run = 0
    for i in range(len(steps.person)):
        value = steps.value[i]
        follows = (
            i > 0
            and steps.person[i] == steps.person[i - 1]
            and steps.seconds[i] - steps.seconds[i - 1] == 1800
        )
        goes_on = (
            i + 1 < len(steps.person)
            and steps.person[i + 1] == steps.person[i]
            and steps.seconds[i + 1] - steps.seconds[i] == 1800
            and steps.value[i + 1] >= 0.5
        )
        state = sum(value >= edge for edge in EDGES)
        if name != "transitions" or follows:
            sizes[cell_of(i)] = sizes.get(cell_of(i), 0) + 1
        if name == "histogram":
            add(cell_of(i), state)
        elif name in ("mean", "sum"):
            add(cell_of(i), 0, round((min(max(value, -1), 3) + 1) * 250))
        elif name == "exceedances":
            add(cell_of(i), 0, int(value >= 0.5))
        elif name == "transitions" and follows:
            add(cell_of(i), 4 * sum(steps.value[i - 1] >= edge for edge in EDGES) + state)
        elif name == "durations" and value >= 0.5:
            run = run + 1 if follows and run else 1
            if not goes_on:
                add(cell_of(i), sum(run >= first for first in (1, 2, 4)) - 1)
                run = 0
        if value < 0.5:
            run = 0
    return counts, sizes


@pytest.mark.parametrize(("name", "by"), list(cases()))
@pytest.mark.parametrize("seed", seeds(4, 200))
def test_tables_are_those_of_plain_loops(name, by, seed):
    steps = some_steps(np.random.default_rng(seed))
    table = statistic_of(name, by).tabulate(steps)
    counts, sizes = plain(name, by, steps)
    wanted = np.zeros_like(table.counts)
    for place, amount in counts.items():
        wanted[place] = amount
    np.testing.assert_array_equal(table.counts, wanted)
    assert {j: n for j, n in enumerate(table.sizes) if n} == sizes


@pytest.mark.parametrize(("name", "by"), list(cases()))
@pytest.mark.parametrize("seed", seeds(2, 100))
def test_one_reading_changes_a_table_by_at_most_its_constant(name, by, seed):
    """And nothing but its integers: cells, sizes and public ranges stay."""
    rng = np.random.default_rng(1000 + seed)
    steps, statistic = some_steps(rng), statistic_of(name, by)
    before = statistic.tabulate(steps)
    for i in range(len(steps.person)):
        for value in (-1e300, -1.0, 0.49, 0.5, 2.0, 1e300):
            changed = steps.value.copy()
            changed[i] = value
            after = statistic.tabulate(with_values(steps.person, steps.seconds, changed))
            assert np.abs(after.counts - before.counts).sum() <= statistic.lipschitz
            assert after.cells == before.cells
            assert (after.sizes == before.sizes).all()
            assert (after.ranges == before.ranges).all()


@pytest.mark.parametrize("name", ["exceedances", "durations", "mean", "sum"])
def test_a_chain_on_states_covers_no_finer_statistic(name):
    """S_t fair coins, value S_t + .9·S_0: the states are independent, values remember everything."""
    with pytest.raises(ParameterError, match=r"states of the chain|within a state"):
        check_covered([statistic_of(name, "all")], StateSpace.numeric([0.25, 1.0]))


def test_thresholds_on_edges_are_covered():
    check_covered(
        [statistic_of(n, "all") for n in ("exceedances", "durations")], StateSpace.numeric(EDGES)
    )


def test_scales_never_cost_more_than_is_allowed():
    rng = np.random.default_rng(5)
    statistics = [statistic_of(name, "all") for name in NAMES]
    for _ in range(300):
        cost = Fraction(float(np.exp(rng.uniform(-20, 5))))
        chosen = [statistics[j] for j in rng.choice(6, size=rng.integers(1, 7), replace=False)]
        scales = [noise_scale(cost, s.lipschitz, len(chosen)) for s in chosen]
        assert 0.998 * cost < cost_of(chosen, scales) <= cost


def test_impact_is_the_error_over_the_public_range():
    steps = some_steps(np.random.default_rng(3))
    table = statistic_of("mean", "all").tabulate(steps)
    found = table_error(table, 100.0)
    size = len(steps.person)
    half = DiscreteLaplace(100.0).quantile(0.95)
    assert found.half_width[0, 0] == pytest.approx(0.004 * half / size + 0.002)
    assert found.impact[0, 0] == pytest.approx(found.half_width[0, 0] / 4)
    assert not table_error(table, 0.1).is_useless
