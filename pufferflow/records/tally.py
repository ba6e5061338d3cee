"""Counting records into segments, states and transitions, chunk by chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pufferflow.errors import DataError
from pufferflow.records.format import RecordFormat
from pufferflow.records.rows import NEVER, Chunk, Records
from pufferflow.records.sample import Participant
from pufferflow.records.times import Integers

MOST_COUNTS = 2**27
"""Transition counts of all participants together at most (1 GB)."""


@dataclass(frozen=True, repr=False)
class Batch:
    """Records with a value that follow each other, those of each participant together; arrays of shape (n,)."""

    person: Integers
    """Index of the participant."""
    seconds: Integers
    """Time, as in :class:`Chunk`."""
    state: Integers
    came_from: Integers
    """State of the record before, where ``near``."""
    near: NDArray[np.bool_]
    """Whether the participant's record before is one step before."""
    records: Records | None = None
    """Where they come from; None of simulated ones."""
    chunk: Chunk | None = None
    rows: Integers | None = None
    """Place of each in the chunk."""

    def numbers(self) -> NDArray[np.float64]:
        """Values as numbers."""
        assert self.records is not None
        assert self.chunk is not None
        return self.records.numbers(self.chunk)[0][self.rows]


class Counter(Protocol):
    """Counts something else in the same pass."""

    def add(self, batch: Batch) -> None:
        """Count the records of a batch."""


class Tally:
    """Counts of all participants; memory grows with their number and that of their segments, not with the rows.

    Parameters
    ----------
    transitions : bool
        Whether to count transitions, which only fitting needs.
    counters : sequence of Counter
        What else is counted in the same pass.
    """

    def __init__(
        self,
        form: RecordFormat,
        *,
        transitions: bool,
        most_transitions: int | None = None,
        counters: Sequence[Counter] = (),
    ) -> None:
        self.form = form
        self.most_transitions = most_transitions
        self.counters = counters
        self.k = form.states.count
        self.state_counts = np.zeros((0 if transitions else 1, self.k), dtype=np.int64)
        """Of each participant; without transitions one row for all together."""
        self.transition_counts = np.zeros((0, self.k, self.k), dtype=np.int64) if transitions else None
        self.start = np.empty(0, dtype=np.int64)  # of the open segment of each participant
        self.last_step = np.empty(0, dtype=np.int64)
        self.last_state = np.empty(0, dtype=np.int64)
        self.closed: list[NDArray[np.int64]] = []  # pairs (participant, length)
        self.met = np.empty(0, dtype=np.bool_)  # participants with a row
        self.late = False
        """Whether the first row of some participant has no value, so that a segment begins later."""
        self.first_step = np.empty(0, dtype=np.int64)
        self.shortest_wait: int | None = None
        """Steps between the two closest records of a participant; None where each has one."""
        self.rows = 0
        self.first = self.last = 0  # time of the earliest and of the latest record

    def read(self, records: Records, work: str = "counting") -> None:
        """Count all records.

        Raises DataError: names the first line that is wrong.
        """
        step = self.form.step_seconds or 1
        guessed = records.columns["value"] if records.reading.value is None else None
        if self.form.states.edges is None and guessed in self.form.states.names:  # a record: it would be lost, and said
            raise DataError(
                f"{records.table.where}: a column has the name of a state, so this seems to be data, not a header; add "
                "a line of names such as time,value, or name the column (value)"
            )
        for chunk in records.chunks(work):
            known = chunk.before != NEVER
            wait = np.where(known, chunk.seconds - np.where(known, chunk.before, 0), 0)
            if (wait % step).any():
                at = int((wait % step != 0).argmax())
                but = f", but {wait[at]} s" if records.reading.show_values else ""
                raise DataError(
                    f"{records.table.where}, {records.table.place(int(chunk.rows[at]))}: the time is not a whole "
                    f"number of steps of {step} s after the row before{but}; resample the records, or fit with another "
                    "step"
                )
            jump = records.spring_jump(chunk.before, chunk.seconds, step)
            if jump.any():
                raise records.refuse_spring_jump(int(chunk.rows[jump.argmax()]))
            states = records.encode(chunk, self.form.states)
            seen = states >= 0
            low, high = int(chunk.seconds.min()), int(chunk.seconds.max())
            self.first, self.last = (min(self.first, low), max(self.last, high)) if self.rows else (low, high)
            self.rows += len(states)
            self.add(records, chunk, seen, states, step)

    def add(self, records: Records, chunk: Chunk, seen: NDArray[np.bool_], states: Integers, step: int) -> None:
        """Count the observed records of a chunk."""
        self._grow(len(records.people))
        here, first_rows = np.unique(chunk.person, return_index=True)
        self.late |= bool((~self.met[here] & ~seen[first_rows]).any())
        self.met[here] = True
        order = np.argsort(chunk.person[seen], kind="stable")
        if not order.size:
            return
        person, state = chunk.person[seen][order], states[seen][order]
        at = chunk.seconds[seen][order] // step
        first = np.concatenate(([True], person[1:] != person[:-1]))
        final = np.concatenate((person[1:] != person[:-1], [True]))
        before, came_from = np.empty_like(at), np.empty_like(state)
        before[1:], came_from[1:] = at[:-1], state[:-1]
        before[first], came_from[first] = self.last_step[person[first]], self.last_state[person[first]]
        started = before != NEVER
        if started.any():
            wait = int((at[started] - before[started]).min())
            self.shortest_wait = wait if self.shortest_wait is None else min(self.shortest_wait, wait)
        self.first_step[person[~started]] = at[~started]
        gap = np.where(started, at - np.where(started, before, 0) - 1, 0)
        cut = started & (gap > self.form.longest_gap)
        fresh = ~started | cut
        # where the segment of each record began, and that of the record before it
        base = np.where(fresh, at, self.start[person])
        index = np.maximum.accumulate(np.where(fresh | first, np.arange(len(at)), 0))
        began = base[index]
        began_before = np.empty_like(began)
        began_before[1:] = began[:-1]
        began_before[first] = self.start[person[first]]
        if cut.any():
            self.closed.append(np.stack((person[cut], before[cut] - began_before[cut] + 1)))
        near = started & (gap == 0)
        if self.counters:
            rows = np.flatnonzero(seen)[order]
            batch = Batch(person, chunk.seconds[rows], state, came_from, near, records, chunk, rows)
            for counter in self.counters:
                counter.add(batch)
        if self.transition_counts is None:
            self.state_counts[0] += np.bincount(state, minlength=self.k)
        else:
            np.add.at(self.state_counts, (person, state), 1)
            if self.most_transitions is not None:
                near[near] = self._among_first(person[near], self.most_transitions)
            np.add.at(self.transition_counts, (person[near], came_from[near], state[near]), 1)
        owner = person[final]
        self.start[owner], self.last_step[owner], self.last_state[owner] = began[final], at[final], state[final]

    def _among_first(self, person: Integers, most: int) -> NDArray[np.bool_]:
        """Mark those of further transitions, sorted by participant, that are among the first so many of theirs."""
        assert self.transition_counts is not None
        owners, begin, number = np.unique(person, return_index=True, return_counts=True)
        counted = self.transition_counts[owners].sum(axis=(1, 2))
        among: NDArray[np.bool_] = np.arange(len(person)) - np.repeat(begin - counted, number) < most
        return among

    def segments(self) -> tuple[Integers, Integers]:
        """Owner and length of every segment, by owner and then in time; shape (s,) each."""
        owners = np.flatnonzero(self.last_step != NEVER)
        still_open = np.stack((owners, self.last_step[owners] - self.start[owners] + 1))
        owner, length = np.concatenate([*self.closed, still_open], axis=1)
        order = np.argsort(owner, kind="stable")
        return owner[order], length[order]

    def are_in_turn(self) -> bool:
        """Whether there are several participants, and no two of them have records at the same time."""
        seen = self.last_step != NEVER
        first, last = self.first_step[seen], self.last_step[seen]
        order = np.argsort(first, kind="stable")
        return bool(len(first) > 1 and (first[order][1:] > last[order][:-1]).all())

    def participants(self, records: Records) -> tuple[Participant, ...]:
        """Return the participants with at least one observation."""
        assert self.transition_counts is not None
        owner, lengths = self.segments()
        names = list(records.people)
        own, starts = np.unique(owner, return_index=True)
        return tuple(
            Participant(
                names[i] or "all",
                records.groups[i],
                tuple(of.tolist()),
                self.state_counts[i],
                self.transition_counts[i],
            )
            for i, of in zip(own.tolist(), np.split(lengths, starts[1:]), strict=True)
        )

    def _grow(self, people: int) -> None:
        have = len(self.start)
        if people <= have:
            return
        more = max(people, 2 * have) - have
        if self.transition_counts is not None:
            if people * self.k**2 > MOST_COUNTS:
                raise DataError(
                    f"{people} participants with {self.k} states each are more than can be counted here; use fewer "
                    "states, or fit to fewer participants"
                )
            more = min(more, MOST_COUNTS // self.k**2 - have)
            extra = np.zeros((more, self.k, self.k), dtype=np.int64)
            self.transition_counts = np.concatenate((self.transition_counts, extra))
            self.state_counts = np.concatenate((self.state_counts, np.zeros((more, self.k), dtype=np.int64)))
        self.met = np.concatenate((self.met, np.zeros(more, dtype=np.bool_)))
        never = np.full(more, NEVER, dtype=np.int64)
        self.start, self.first_step, self.last_step, self.last_state = (
            np.concatenate((old, never)) for old in (self.start, self.first_step, self.last_step, self.last_state)
        )
