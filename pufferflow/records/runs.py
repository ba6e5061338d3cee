"""Counts of three successive records, and of steps by the hour of the day.

They suffice to fit chains of order 2 and chains that change with the clock, as transition counts do for chains.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pufferflow._types import Ints
from pufferflow.errors import DataError
from pufferflow.records.format import RecordFormat
from pufferflow.records.rows import HOUR, NEVER, Records

HOURS = 24
MOST_RUNS = 2**24
"""Most counts of a group."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Counts of a group.

    Attributes
    ----------
    triples : int array, shape (k, k, k)
        How often three records one step apart were in these states, in the order of time.
    hourly : int array, shape (24, k, k)
        Steps from state to state, by the hour of the day (on the clock of the table) in which they begin.
    """

    triples: Ints
    hourly: Ints

    def __repr__(self) -> str:
        return f"Runs({self.triples.shape[0]} states, as private as the data)"


def count_runs(records: Records, form: RecordFormat) -> dict[str, Runs]:
    """Count the runs of each group of participants.

    Parameters
    ----------
    records : Records
    form : RecordFormat
        States and time step of the records.

    Raises
    ------
    DataError
        The table is malformed, as for :class:`pufferflow.records.tally.Tally`, or there are too many states.
    """
    k, step = form.states.count, form.step_seconds or 1
    if k**3 > MOST_RUNS:
        raise DataError(f"{k} states have {k**3:,} runs of three; merge states")
    names: dict[str, int] = {}
    triples = np.zeros((0, k, k, k), dtype=np.int64)
    hourly = np.zeros((0, HOURS, k, k), dtype=np.int64)
    # of each participant: step and state of the last record, and the state one step before it (−1: none)
    carry = np.empty((3, 0), dtype=np.int64)
    for chunk in records.chunks("counting runs"):
        for group in records.groups:
            names.setdefault(group, len(names))
        triples, hourly = (
            np.concatenate((table, np.zeros((len(names) - len(table), *table.shape[1:]), dtype=np.int64)))
            for table in (triples, hourly)
        )
        fresh = len(records.people) - carry.shape[1]
        carry = np.concatenate((carry, np.array([[NEVER], [0], [-1]]).repeat(fresh, axis=1)), axis=1)
        group_of = np.array([names[group] for group in records.groups], dtype=np.int64)
        states = records.encode(chunk, form.states)
        order = np.argsort(chunk.person, kind="stable")
        order = order[states[order] >= 0]
        if not order.size:
            continue
        person, state, at = chunk.person[order], states[order], chunk.seconds[order] // step
        first = np.concatenate(([True], person[1:] != person[:-1]))
        last = np.concatenate((first[1:], [True]))

        def previous(now: Ints, known: Ints, first: Any = first, person: Any = person) -> Ints:
            shifted = np.empty_like(now)
            shifted[1:] = now[:-1]
            shifted[first] = known[person[first]]
            return shifted

        came_at, came_from = previous(at, carry[0]), previous(state, carry[1])
        near = (came_at != NEVER) & (at - np.where(came_at == NEVER, at, came_at) == 1)
        before = np.where(near, came_from, -1)
        earlier = previous(before, carry[2])
        hour = came_at[near] * step // HOUR % HOURS
        np.add.at(hourly, (group_of[person[near]], hour, came_from[near], state[near]), 1)
        three = near & (earlier >= 0)
        np.add.at(triples, (group_of[person[three]], earlier[three], came_from[three], state[three]), 1)
        carry[:, person[last]] = at[last], state[last], before[last]
    return {group: Runs(triples[i], hourly[i]) for group, i in names.items()}


def runs_json(runs: Mapping[str, Runs]) -> str:
    """Return the counts as JSON text, one group a line (stable bytes)."""
    lines = [
        f"{json.dumps(group)}: "
        + json.dumps({"triples": of.triples.tolist(), "hourly": of.hourly.tolist()}, separators=(",", ":"))
        for group, of in runs.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load_runs(path: str | Path) -> dict[str, Runs]:
    """Read what :func:`runs_json` wrote."""
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    return {
        group: Runs(np.array(of["triples"], dtype=np.int64), np.array(of["hourly"], dtype=np.int64))
        for group, of in document.items()
    }
