"""Counts of readings, transitions and longer paths by their states, and spans of readings."""

import math

import numpy as np
from numpy.typing import NDArray

from pufferflow.errors import DataError
from pufferflow.records.read import Steps
from pufferflow.records.times import HOUR

Ints = NDArray[np.int64]

HOURS = 24
MAX_COUNTS = 2**27
"""Largest number of counts (1 GB)."""


def path_counts(
    steps: Steps,
    length: int = 2,
    *,
    each: bool = False,
    hourly: bool = False,
    most: int | None = None,
) -> Ints:
    """Return the number of each sequence of states of ``length`` readings one step apart.

    Counts of each group, or with ``each`` of each person, as first axis, have one axis per reading:
    of transitions the shape is (groups, k, k) or (people, k, k). With ``hourly`` another one of 24
    before these is the local hour of the next to last reading. ``most``: of each participant only
    the first ones count.
    """
    ends = np.ones(len(steps.person), dtype=bool)
    for _ in range(1, length):  # a path ends one step after a shorter one
        ends[1:] &= ends[:-1].copy()
        ends &= steps.near
    if most is not None:
        ends = steps.first(ends, most)
    state, k = steps.coded
    rows = len(steps.people if each else steps.groups)
    shape = (rows, *[HOURS] * hourly, *[k] * length)
    size = math.prod(shape)
    if size > MAX_COUNTS:
        problem = f"{size:,} counts ({' x '.join(map(str, shape))}) are more than can be kept"
        raise DataError(f"{steps.where}: {problem}; use fewer states or fewer participants")
    counts = np.zeros(size, dtype=np.int64)
    for part in steps.parts(ends):
        person = steps.person[part]
        whose = person if each else steps.group_of[person]
        hour = [steps[part - 1].local_seconds // HOUR % HOURS] if hourly else []
        states = [state[part - back] for back in reversed(range(length))]
        cell = np.ravel_multi_index((whose, *hour, *states), shape)
        np.add.at(counts, cell, 1)
    return counts.reshape(shape)


def spans(steps: Steps, longest_gap: float = math.inf) -> tuple[NDArray[np.int32], Ints]:
    """Return the participant and the length of every stretch of steps, by participant and time.

    A gap of more than ``longest_gap`` missing steps begins another; lengths are in steps from the
    first reading to the last one, missing ones included. Shape (s,) each.
    """
    first = np.flatnonzero(~steps.follow(longest_gap + 1))
    last = np.append(first[1:], len(steps.person))[: len(first)] - 1
    seconds = steps.seconds[last] - steps.seconds[first]
    return steps.person[first], seconds // (steps.step_seconds or 1) + 1
