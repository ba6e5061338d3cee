"""Counts of steps: states, transitions, runs of three, and transitions by the hour of the day."""

from __future__ import annotations

import math
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
"""Largest number of counts (1 GB)."""


def state_counts(steps: Steps, by: By = "all") -> Ints:
    """Return the number of readings in each state, of all, of each group or of each person.

    Shape (k,), (groups, k) or (people, k).
    """
    return _count(steps, by, 1)


def transition_counts(steps: Steps, by: By = "all", *, most: int | None = None) -> Ints:
    """Return the number of steps from each state (row) to each state (column).

    Only the first ``most`` per participant count. Shape (k, k), (groups, k, k) or (people, k, k).
    """
    near = steps.near
    return _count(steps, by, 2, near if most is None else steps.first(near, most))


def triple_counts(steps: Steps, by: By = "all") -> Ints:
    """Return the number of each triple of states of consecutive readings, in the order of time.

    Shape (k, k, k), (groups, k, k, k) or (people, k, k, k).
    """
    near = steps.near
    near[1:] &= near[:-1].copy()
    return _count(steps, by, 3, near)


def hourly_counts(steps: Steps, by: By = "all") -> Ints:
    """Return the transitions by the local hour of the day in which they begin.

    Shape (24, k, k), (groups, 24, k, k) or (people, 24, k, k).
    """
    return _count(steps, by, 2, steps.near, hourly=True)


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
    length: int,
    counted: NDArray[np.bool_] | None = None,
    *,
    hourly: bool = False,
) -> Ints:
    """Count the readings, or those that are marked, by their state and the ones before it.

    There are ``length`` states in all; ``hourly`` adds the hour of the reading before.
    """
    state, k = steps.coded
    rows = {"all": (), "group": (len(steps.groups),), "person": (len(steps.people),)}[by]
    shape = (*rows, *[HOURS] * hourly, *[k] * length)
    size = math.prod(shape)
    if size > MOST_COUNTS:
        what = f"{size:,} counts ({' x '.join(map(str, shape))}) are more than can be kept"
        raise DataError(f"{steps.where}: {what}; use fewer states or fewer participants")
    counts = np.zeros(size, dtype=np.int64)
    for part in steps.parts(counted):
        person = steps.person[part]
        whose = {"all": (), "group": (steps.group_of[person],), "person": (person,)}[by]
        hour = [steps[part - 1].local_seconds // HOUR % HOURS] if hourly else []
        states = [state[part - back] for back in reversed(range(length))]
        cell = np.ravel_multi_index((*whose, *hour, *states), shape)
        np.add.at(counts, cell, 1)
    return counts.reshape(shape)
