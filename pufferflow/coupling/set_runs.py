"""Sets of states that change with time, written as rows that repeat themselves."""

from __future__ import annotations

from bisect import bisect_left
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._types import Bools
from pufferflow.coupling.count_sides import Counts

Integers: TypeAlias = NDArray[np.int64]
Sets: TypeAlias = tuple[tuple[int, ...], ...]
Runs: TypeAlias = tuple[tuple[int, Sets], ...]
"""How often a row of sets is repeated, and the row; one after the other."""

_LONGEST_CYCLE = 8


def set_at(runs: Runs, distance: int) -> tuple[int, ...]:
    """Set at a distance from 1 on; empty beyond the last one."""
    for repeats, sets in runs:
        if distance <= repeats * len(sets):
            return sets[(distance - 1) % len(sets)]
        distance -= repeats * len(sets)
    return ()


def runs_of(counts: Counts, names: Integers) -> Runs:
    """Sets in a row as repeated rows of sets, in the names of states."""
    sets = counts.sets
    ends: list[list[int]] = []  # for each period, where it is broken
    runs: list[tuple[int, Sets]] = []

    def named(rows: Bools) -> Sets:
        return tuple(tuple(names[row].tolist()) for row in rows)

    def repeats(period: int, at: int) -> int:
        while len(ends) < period:
            p = len(ends) + 1
            broken = np.flatnonzero((sets[p:] != sets[:-p]).any(axis=1))
            ends.append([*broken.tolist(), max(len(sets) - p, 0)])
        broken_at = ends[period - 1]
        return (broken_at[bisect_left(broken_at, at)] - at) // period + 1

    at = 0
    while at < len(sets):
        best = repeats(1, at), 1
        for period in range(2, min(_LONGEST_CYCLE, (len(sets) - at) // 2) + 1):
            if best[0] * best[1] >= min(2 * _LONGEST_CYCLE, len(sets) - at):
                break
            again = repeats(period, at)
            if again > 1 and again * period > best[0] * best[1]:
                best = again, period
        runs.append((best[0], named(sets[at : at + best[1]])))
        at += best[0] * best[1]
    return (*runs, (counts.repeats, named(counts.cycle))) if counts.repeats else tuple(runs)
