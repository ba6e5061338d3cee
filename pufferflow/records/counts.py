"""Counts of steps: states, transitions, runs of three, and transitions by the hour of the day."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferflow._numbers import shortest
from pufferflow.errors import DataError
from pufferflow.records.read import Rows, Steps
from pufferflow.records.schema import Schema
from pufferflow.records.states import DEFAULT_BINS, FEW_NUMBERS, MOST_STATES, StateSpace
from pufferflow.records.table import Source, Table, open_table
from pufferflow.records.times import HOUR

By = Literal["all", "group", "person"]
Ints = NDArray[np.int64]

HOURS = 24
MOST_NAMES = 200
MOST_COUNTS = 2**27
"""Counts at most (1 GB)."""


def state_counts(steps: Steps, by: By = "all") -> Ints:
    """Return how many readings are in each state, of all, of each group or of each person.

    Shape (k,), (groups, k) or (people, k).
    """
    state, k = _states(steps)
    return _count(steps, by, (k,), lambda part: (state[part],))


def transition_counts(steps: Steps, by: By = "all", *, most: int | None = None) -> Ints:
    """Return how often a reading in one state (row) is one step before one in another (column).

    ``most``: of each participant only the first so many count. Shape (k, k), (groups, k, k) or
    (people, k, k).
    """
    state, k = _states(steps)
    near = steps.near
    if most is not None:
        number = np.cumsum(near)
        first = np.unique(steps.person, return_index=True)[1]
        before = np.zeros(len(steps.people), dtype=np.int64)
        before[steps.person[first]] = number[first]  # a first reading ends no transition
        near &= number - before[steps.person] <= most
    return _count(steps, by, (k, k), lambda part: (state[part - 1], state[part]), near)


def triple_counts(steps: Steps, by: By = "all") -> Ints:
    """Return how often three readings one step apart are in these states, in the order of time.

    Shape (k, k, k), (groups, k, k, k) or (people, k, k, k).
    """
    state, k = _states(steps)
    near = steps.near
    near[1:] &= near[:-1].copy()
    return _count(steps, by, (k, k, k), lambda i: (state[i - 2], state[i - 1], state[i]), near)


def hourly_counts(steps: Steps, by: By = "all") -> Ints:
    """Return the transitions by the local hour of the day in which they begin.

    Shape (24, k, k), (groups, 24, k, k) or (people, 24, k, k).
    """
    state, k = _states(steps)
    hour = (steps.local_seconds // HOUR % HOURS).astype(np.int8)
    cells = (HOURS, k, k)
    return _count(steps, by, cells, lambda i: (hour[i - 1], state[i - 1], state[i]), steps.near)


def spans(steps: Steps, longest_gap: float = math.inf) -> tuple[NDArray[np.int32], Ints]:
    """Return the participant and the length of every stretch of steps, by participant and time.

    A gap of more than ``longest_gap`` missing steps begins another; lengths are in steps from the
    first reading to the last one, missing ones included. Shape (s,) each.
    """
    fresh = np.diff(steps.step) - 1 > longest_gap
    fresh |= steps.person[1:] != steps.person[:-1]
    first = np.append(0, np.flatnonzero(fresh) + 1)[: len(steps.person)]
    last = np.append(first[1:], len(steps.person))[: len(first)] - 1
    return steps.person[first], steps.step[last].astype(np.int64) - steps.step[first] + 1


def _states(steps: Steps) -> tuple[NDArray[np.int32], int]:
    assert steps.state is not None
    assert steps.states is not None
    return steps.state, steps.states.count


def _count(
    steps: Steps,
    by: By,
    cells: tuple[int, ...],
    at: Callable[[Ints], tuple[NDArray[np.integer], ...]],
    counted: NDArray[np.bool_] | None = None,
) -> Ints:
    """Count the readings, or those that are marked, in the cells ``at`` them."""
    rows = {"all": (), "group": (len(steps.groups),), "person": (len(steps.people),)}[by]
    shape = (*rows, *cells)
    size = math.prod(shape)
    if size > MOST_COUNTS:
        what = f"{size:,} counts ({' x '.join(map(str, shape))}) are more than can be kept"
        raise DataError(f"{steps.where}: {what}; use fewer states or fewer participants")
    part = np.arange(len(steps.person)) if counted is None else np.flatnonzero(counted)
    person = steps.person[part]
    whose = {"all": (), "group": (steps.group_of[person],), "person": (person,)}[by]
    cell = np.ravel_multi_index((*whose, *at(part)), shape)
    return np.bincount(cell, minlength=size).reshape(shape)


def find_states(source: Source | Table, schema: Schema) -> StateSpace:
    """Return states for the values of a table, where none are given.

    Texts and few different numbers are categories, others get about 20 bins of a round width, so
    that the edges reveal little more than the order of the range.
    Raises DataError: the table is malformed, or its values make no states.
    """
    rows = Rows(open_table(source, schema.separator), replace(schema, states=None))
    where, names = rows.table.where, dict[str, bool]()
    low, high, stray = math.inf, -math.inf, None
    for values, texts in rows.different():
        for row, value, text in zip(values.index, map(rows.number, values), texts, strict=True):
            if value is None:
                stray = row if stray is None else stray
            elif math.isfinite(value):
                low, high = min(low, value), max(high, value)
            if (value is None or not math.isnan(value)) and len(names) <= MOST_STATES:
                names[shortest(text) or text] = value is None
    most_are_numbers = 2 * sum(names.values()) < len(names)
    if stray is not None and (most_are_numbers or len(names) > MOST_NAMES):
        what = "is not a number; correct it, leave it empty if it is missing, or name the states"
        raise rows.fail(stray, "value", what)
    if not names:
        raise DataError(f"{where}: all values are missing; check the column of the values")
    if stray is None and len(names) > FEW_NUMBERS:
        return StateSpace.numeric(_edges(where, low, high))
    return StateSpace.categories(sorted(names, key=float if stray is None else str))


def _edges(where: str, low: float, high: float) -> list[float]:
    """Multiples of a round width between the smallest and the largest value."""
    width = (high - low) / DEFAULT_BINS
    if not 0 < width < math.inf:
        raise DataError(f"{where}: the values reach too far for bins of equal width; give edges")
    power = math.floor(math.log10(width))
    widths = [float(f"{m}e{power + e}") for e in (-1, 0, 1) for m in (1, 2, 5)]
    at = next(i for i, w in enumerate(widths) if w >= width * (1 - 1e-9))
    for width in (widths[at], widths[at - 1]):
        begin, end = math.floor(low / width) + 1, math.floor(high / width)
        edges = [float(Fraction(repr(width)) * j) for j in range(begin, end + 1)]
        if edges:
            return edges
    raise DataError(f"{where}: the values differ too little for their size; give edges")
