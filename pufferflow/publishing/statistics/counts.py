"""How many records are in a state, above a threshold, or come from one state to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pufferflow._checks import check_finite
from pufferflow.errors import ParameterError
from pufferflow.publishing.statistics.base import Column, Statistic, bins
from pufferflow.records.format import StateSpace
from pufferflow.records.tally import Batch
from pufferflow.records.times import Integers


@dataclass(frozen=True)
class Histogram(Statistic):
    """How many records of each cell are in each state: a table of shape (cells, k), in records.

    L = 2: a record counts in one cell, which its value does not change, and there in one state. Another value takes 1
    from one count of that cell and adds 1 to another of the same. So 24 histograms by hour cost what one does.
    """

    name: ClassVar[str] = "histogram"
    title: ClassVar[str] = "Histogram"
    quantity: ClassVar[str] = "share of records"

    @property
    def lipschitz(self) -> int:
        """2."""
        return 2

    def columns(self, states: StateSpace) -> tuple[Column, ...]:
        """One a state."""
        return bins(states)

    def marks(self, batch: Batch, states: StateSpace) -> tuple[Any, Integers, Integers | None]:
        """Every record, in its state."""
        return slice(None), batch.state, None


@dataclass(frozen=True)
class Above(Statistic):
    """How many records of each cell have a value of at least ``threshold``; times the step that is how long.

    A table of shape (cells, 1), in records.

    L = 1: a record adds 0 or 1 to the count of its cell.

    Parameters
    ----------
    threshold : float
        In units of the data.
    """

    threshold: float | None = None

    name: ClassVar[str] = "above"
    title: ClassVar[str] = "Time above a threshold"
    quantity: ClassVar[str] = "share of records"
    numeric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", check_threshold(self.threshold, self.name))

    @property
    def lipschitz(self) -> int:
        """1."""
        return 1

    @property
    def said(self) -> str:
        """With the threshold."""
        return f"{self.full_name} (records of at least {self.threshold:g})"

    @property
    def edges(self) -> tuple[float, ...] | None:
        """The threshold."""
        assert self.threshold is not None
        return (self.threshold,)

    def columns(self, states: StateSpace) -> tuple[Column, ...]:
        """One."""
        return (Column(f">= {self.threshold:g}", self.threshold),)

    def marks(self, batch: Batch, states: StateSpace) -> tuple[Any, Integers, Integers | None]:
        """Every record, with 0 or 1."""
        assert self.threshold is not None
        above = (batch.numbers() >= self.threshold).astype(np.int64)
        return slice(None), np.zeros_like(above), above

    def to_dict(self) -> dict[str, Any]:
        """With the threshold."""
        return super().to_dict() | {"threshold": self.threshold}


@dataclass(frozen=True)
class Transitions(Statistic):
    """How often each state follows each other one, over records that are one step apart; cells by the later one.

    A table of shape (cells, k²), in transitions.

    L = 4: a record ends at most one transition and begins at most one. Another value moves each of the two from one
    pair of states to another, which changes two counts by 1 each. Which records are a step apart is public.
    """

    name: ClassVar[str] = "transitions"
    title: ClassVar[str] = "Transitions"
    quantity: ClassVar[str] = "share of transitions"
    cells: ClassVar[tuple[str, ...]] = ("all", "group")

    @property
    def lipschitz(self) -> int:
        """4."""
        return 4

    def columns(self, states: StateSpace) -> tuple[Column, ...]:
        """One for each pair of states, by the earlier one and then the later one."""
        return tuple(Column(f"{before} → {after}") for before in states.names for after in states.names)

    def check(self, states: StateSpace, timed: bool) -> None:
        """As for all, with a bound for the number of pairs."""
        if states.count > MOST_STATES_OF_PAIRS:
            raise ParameterError(
                f"transitions of {states.count} states are too many; give at most {MOST_STATES_OF_PAIRS} states"
            )
        super().check(states, timed)

    def marks(self, batch: Batch, states: StateSpace) -> tuple[Any, Integers, Integers | None]:
        """Every record that follows another by one step."""
        near = batch.near
        return near, batch.came_from[near] * states.count + batch.state[near], None


MOST_STATES_OF_PAIRS = 200


def check_threshold(threshold: object, name: str) -> float:
    """Return a threshold, in units of the data, as a finite number; raise :class:`ParameterError` where it is none."""
    if threshold is None:
        raise ParameterError(f"{name} needs a threshold; give one")
    return check_finite(threshold, "threshold")
