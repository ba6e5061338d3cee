"""How long values stay above a threshold without a break."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from pufferflow._checks import LONGEST, check_finite, check_list
from pufferflow.errors import ParameterError
from pufferflow.publishing.statistics.base import Column, Counter, Scaling, Statistic, Table
from pufferflow.publishing.statistics.counts import check_threshold
from pufferflow.records.format import MOST_STATES, StateSpace
from pufferflow.records.tally import Batch
from pufferflow.records.times import Integers

DURATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""First steps of the bins of durations, where none are given: public rounding."""


@dataclass(frozen=True)
class Runs(Statistic):
    """How many runs of records above a threshold there are, by how many steps they last.

    A table of shape (cells, bins of durations), in runs.

    A run is a longest stretch of records of one participant, each one step after the one before, whose values are at
    least ``threshold``. Its last record decides nothing about its cell but the participant's group.

    L = 3: let a record fall below the threshold. It was in one run, of a + 1 + b records with a before it and b after
    it; that is one run less, and the a and the b records are a run more each where there are any. So at most three
    counts change by 1, or one by 2 and one by 1. To rise above it is the same backwards, and any other change of a
    value changes nothing. Where runs must end because records are missing is public.

    Parameters
    ----------
    threshold : float
        In units of the data.
    durations : sequence of int, optional
        First lengths of the bins, in steps; the first is 1, and the last bin is open.
    """

    threshold: float | None = None
    durations: tuple[int, ...] = DURATIONS

    name: ClassVar[str] = "runs"
    title: ClassVar[str] = "Durations above a threshold"
    quantity: ClassVar[str] = "number of runs"
    cells: ClassVar[tuple[str, ...]] = ("all", "group")
    numeric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", check_threshold(self.threshold, self.name))
        given = [check_finite(n, "a duration") for n in check_list(self.durations, "durations")]
        firsts = tuple(int(n) for n in given if n.is_integer() and n < LONGEST)
        if (
            len(firsts) < len(given)
            or not firsts
            or firsts[0] != 1
            or any(b <= a for a, b in pairwise(firsts))
            or len(firsts) > MOST_STATES
        ):
            raise ParameterError("durations must be whole numbers that begin with 1 and grow")
        object.__setattr__(self, "durations", firsts)

    @property
    def lipschitz(self) -> int:
        """3."""
        return 3

    @property
    def said(self) -> str:
        """With the threshold."""
        return f"{self.full_name} (of records of at least {self.threshold:g})"

    @property
    def edges(self) -> tuple[float, ...] | None:
        """The threshold."""
        assert self.threshold is not None
        return (self.threshold,)

    @property
    def scaling(self) -> Scaling:
        """Counts as they are: how many runs there are is no public number."""
        return Scaling(relative=False)

    def columns(self, states: StateSpace) -> tuple[Column, ...]:
        """One a bin of durations, in steps; each holds low ≤ steps < high."""
        ends: tuple[int | None, ...] = (*self.durations[1:], None)
        labels = (
            f"{low} steps" if high == low + 1 else f"{low} to {high - 1} steps" if high else f"{low} steps or more"
            for low, high in zip(self.durations, ends, strict=True)
        )
        bounds = zip(labels, self.durations, ends, strict=True)
        return tuple(Column(label, float(low), None if high is None else float(high)) for label, low, high in bounds)

    def counter(self, states: StateSpace) -> Counter:
        """One that remembers the runs that have not ended."""
        return _RunCounter(self, states)

    def marks(self, batch: Batch, states: StateSpace) -> tuple[Any, Integers, Integers | None]:
        """All records, for the sizes of the cells; runs are counted where they end."""
        raise NotImplementedError("runs end in other batches than they begin; see counter")

    def to_dict(self) -> dict[str, Any]:
        """With the threshold."""
        return super().to_dict() | {"threshold": self.threshold}


class _RunCounter(Counter):
    """Counts runs where they end; memory grows with the number of participants."""

    def __init__(self, statistic: Runs, states: StateSpace) -> None:
        super().__init__(statistic, states)
        assert statistic.threshold is not None
        self.threshold = statistic.threshold
        self.firsts = np.array(statistic.durations)
        self.open = np.zeros(0, dtype=np.int64)  # length of the run that each participant is in
        self.home = np.zeros(0, dtype=np.int64)  # and its cell

    def add(self, batch: Batch) -> None:
        """Count the runs that end before a record of this batch; remember those that do not."""
        person, cell = batch.person, self.cell(batch)
        if (more := int(person.max()) + 1 - len(self.open)) > 0:
            self.open, self.home = (np.concatenate((old, np.zeros(more, np.int64))) for old in (self.open, self.home))
        above = batch.numbers() >= self.threshold
        first = np.concatenate(([True], person[1:] != person[:-1]))
        last = np.concatenate((person[1:] != person[:-1], [True]))
        carried = np.where(first & batch.near & above, self.open[person], 0)
        before_above = np.concatenate(([False], above[:-1])) & ~first
        # a run goes on from the record before in this batch, or from an earlier batch
        goes_on = above & batch.near & (before_above | (carried > 0))
        begins = above & (~goes_on | first)
        run = np.cumsum(begins) - 1
        lengths = np.bincount(run[above], minlength=int(begins.sum()))
        lengths = lengths + carried[begins]
        ended = first & (self.open[person] > 0) & (carried == 0)  # those of earlier batches that do not go on
        self._count(self.home[person[ended]], self.open[person[ended]])
        self.open[person[first]] = 0
        closes = above & ~last
        closes[:-1] &= ~(goes_on[1:] & ~first[1:])
        self._count(cell[closes], lengths[run[closes]])
        still = above & last
        self.open[person[still]] = lengths[run[still]]
        self.home[person] = cell
        self.sizes += np.bincount(cell, minlength=len(self.sizes))

    def _count(self, cell: Integers, lengths: Integers) -> None:
        self.put(cell, np.searchsorted(self.firsts, lengths, side="right") - 1, sized=False)

    def finished(self) -> Table:
        """Return what was counted, the last runs with it."""
        standing = self.open > 0
        self._count(self.home[standing], self.open[standing])
        self.open[:] = 0
        return super().finished()
