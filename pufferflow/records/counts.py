"""Counts of steps: states, transitions, runs of three, and transitions by the hour of the day."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pufferflow.errors import DataError
from pufferflow.records.read import Steps
from pufferflow.records.times import HOUR

By = Literal["all", "group", "person"]
Ints = NDArray[np.int64]

HOURS = 24
MOST_COUNTS = 2**27
"""Counts at most (1 GB)."""


def state_counts(steps: Steps, by: By = "all") -> Ints:
    """Return how many readings are in each state, of all, of each group or of each person.

    Shape (k,), (groups, k) or (people, k).
    """
    state, k = steps.coded
    return _count(steps, by, (k,), lambda part: (state[part],))


def transition_counts(steps: Steps, by: By = "all", *, most: int | None = None) -> Ints:
    """Return how often a reading in one state (row) is one step before one in another (column).

    ``most``: of each participant only the first so many count. Shape (k, k), (groups, k, k) or
    (people, k, k).
    """
    state, k = steps.coded
    near = steps.near
    if most is not None:
        for own in steps.owned:
            near[own] &= np.cumsum(near[own], dtype=np.int32) <= most
    return _count(steps, by, (k, k), lambda part: (state[part - 1], state[part]), near)


def triple_counts(steps: Steps, by: By = "all") -> Ints:
    """Return how often three readings one step apart are in these states, in the order of time.

    Shape (k, k, k), (groups, k, k, k) or (people, k, k, k).
    """
    state, k = steps.coded
    near = steps.near
    near[1:] &= near[:-1].copy()
    return _count(steps, by, (k, k, k), lambda i: (state[i - 2], state[i - 1], state[i]), near)


def hourly_counts(steps: Steps, by: By = "all") -> Ints:
    """Return the transitions by the local hour of the day in which they begin.

    Shape (24, k, k), (groups, 24, k, k) or (people, 24, k, k).
    """
    state, k = steps.coded

    def at(part: Ints) -> tuple[NDArray[np.integer], ...]:
        hour = steps[part - 1].local_seconds // HOUR % HOURS
        return hour, state[part - 1], state[part]

    return _count(steps, by, (HOURS, k, k), at, steps.near)


def spans(steps: Steps, longest_gap: float = math.inf) -> tuple[NDArray[np.int32], Ints]:
    """Return the participant and the length of every stretch of steps, by participant and time.

    A gap of more than ``longest_gap`` missing steps begins another; lengths are in steps from the
    first reading to the last one, missing ones included. Shape (s,) each.
    """
    first = np.flatnonzero(~steps.follow(longest_gap + 1))
    last = np.append(first[1:], len(steps.person))[: len(first)] - 1
    seconds = steps.seconds[last] - steps.seconds[first]
    return steps.person[first], seconds // (steps.step_seconds or 1) + 1


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
    counts = np.zeros(size, dtype=np.int64)
    for part in steps.parts(counted):
        person = steps.person[part]
        whose = {"all": (), "group": (steps.group_of[person],), "person": (person,)}[by]
        cell = np.ravel_multi_index((*whose, *at(part)), shape)
        np.add.at(counts, cell, 1)
    return counts.reshape(shape)
