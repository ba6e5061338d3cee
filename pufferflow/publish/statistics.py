"""What can be published: six statistics, each with its Lipschitz constant and its public range.

A statistic turns readings into a table of integers, cells × columns. Cells (hours, weekdays,
months, groups) are functions of what is public, so a reading counts in one cell whatever its value
is. The Lipschitz constant L bounds how much the whole table changes, in L1 norm, when the value of
one reading does; with d readings changed it changes by at most L·d, one after the other.

*Several at once.* Noise of scale s_i on the table of a statistic with constant L_i changes the
probability of all tables by a factor of at most e^{Σ L_i/s_i} for each changed reading: the cost c.

*Public range.* How far apart two values of a cell can sensibly be, from the user's words and public
sizes alone; an error is judged against it (release.md, "Usefulness").
"""

from __future__ import annotations

import calendar
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np

from pufferflow._checks import LONGEST, check_choice, check_finite, check_list
from pufferflow._types import Floats, Ints
from pufferflow._units import text_of
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.read import Steps
from pufferflow.records.states import StateSpace

LABELS: dict[str, tuple[str, ...]] = {
    "all": ("all",),
    "hour": tuple(f"{hour:02d}:00" for hour in range(24)),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": tuple(calendar.month_name[1:]),
}
"""Cells of the clock and the calendar."""
CELLS = (*LABELS, "group")
GRID = 1000
"""Steps of the grid between the bounds of means and sums."""
DURATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""First lengths of the bins of durations, in steps, where none are given."""
MOST_GROUPS, MOST_NUMBERS = 1000, 2**17
SMALLEST, LARGEST_BOUND = 1e-100, 1e100
"""Bounds are so far apart, or the grid would leave what floating-point numbers hold."""


@dataclass(frozen=True)
class Column:
    """What a column of a table counts: what lies at or above ``low`` and below ``high``."""

    label: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Exact integers of a statistic with what is public of it; its text shows none of them.

    Attributes
    ----------
    statistic : Statistic
    cells : tuple of str
    columns : tuple of Column
    sizes : int array, shape (cells,)
        Readings (of transitions: pairs) that count in each cell, whatever their values are: public.
    counts : int array, shape (cells, columns)
    ranges : float array, shape (cells, columns)
        Public range of each value, in its unit.
    """

    statistic: Statistic
    cells: tuple[str, ...]
    columns: tuple[Column, ...]
    sizes: Ints
    counts: Ints = field(repr=False)
    ranges: Floats

    def __repr__(self) -> str:
        return "Table(…)"


@dataclass(frozen=True)
class Statistic(ABC):
    """A statistic, in cells.

    Attributes
    ----------
    by : {"all", "hour", "weekday", "month", "group"}

    Raises ParameterError: an option is out of range.
    """

    by: str = "all"

    name: ClassVar[str]
    title: ClassVar[str]
    quantity: ClassVar[str]
    """What the values are; those in the unit of the readings say so by :attr:`in_unit`."""
    in_unit: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    """Whether a value is per reading of its cell."""
    by_group_only: ClassVar[bool] = False
    lipschitz: ClassVar[int]
    """L: how much the table changes at most, in L1 norm, when one value changes."""
    unit: ClassVar[float] = 1.0
    """Value of 1 in the table."""
    offset: ClassVar[float] = 0.0
    """Value of a reading that counts 0."""

    def __post_init__(self) -> None:
        cells = ("all", "group") if self.by_group_only else CELLS
        check_choice(self.by, f"the cells of {self.name}", cells)

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Numbers at which what it counts changes; None where it counts states or values."""
        return None

    @property
    def full_name(self) -> str:
        """Name with the cells, as the shell writes it."""
        return self.name if self.by == "all" else f"{self.name}-by-{self.by}"

    @property
    def words(self) -> str:
        """What the statement says of it."""
        return self.full_name

    @property
    def rounding(self) -> float:
        """By how much rounding to the grid may change a reading."""
        return 0.0

    @abstractmethod
    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """What the columns count."""

    @abstractmethod
    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """Public range of the values, shape (cells, 1) or (cells, columns).

        ``sizes`` and ``stretches`` have shape (cells,): readings, and stretches of them without a
        gap.
        """

    @abstractmethod
    def marks(self, steps: Steps) -> tuple[Ints, Ints, Ints | None]:
        """Return which readings count, shape (m,), their columns, and what each adds (None: 1)."""

    def sized(self, steps: Steps) -> Ints:
        """Return the readings that make the size of a cell, whatever their values are."""
        return np.arange(len(steps.person))

    def values(self, sizes: Ints, counts: Ints) -> Floats:
        """Return the values that integers of the table stand for, shape (cells, columns)."""
        total = self.offset * sizes[:, np.newaxis] + self.unit * np.asarray(
            counts, dtype=np.float64
        )
        return total / np.maximum(sizes, 1)[:, np.newaxis] if self.relative else total

    def tabulate(self, steps: Steps) -> Table:
        """Count the readings.

        Raises DataError: there are too many groups.
        """
        cells = steps.groups if self.by == "group" else LABELS[self.by]
        columns = self.columns(steps.states, steps.step_seconds)
        if len(cells) > MOST_GROUPS or len(cells) * len(columns) > MOST_NUMBERS:
            raise DataError(
                f"{steps.where}: {self.full_name} has too many numbers; give fewer states or groups"
            )
        cell = self._cell(steps)
        which, column, amount = self.marks(steps)
        # sums of whole numbers below 2^53 are exact in floating point
        flat = np.bincount(
            cell[which] * len(columns) + column, amount, minlength=len(cells) * len(columns)
        )
        sized = cell[self.sized(steps)]
        sizes = np.bincount(sized, minlength=len(cells))
        stretches = np.bincount(cell[~steps.near], minlength=len(cells))
        return Table(
            self,
            tuple(cells),
            columns,
            sizes,
            flat.astype(np.int64).reshape(len(cells), len(columns)),
            np.broadcast_to(
                self.ranges(sizes, stretches, len(columns)), (len(cells), len(columns))
            ),
        )

    def _cell(self, steps: Steps) -> Ints:
        if self.by == "all":
            return np.zeros(len(steps.person), dtype=np.int64)
        if self.by == "group":
            return steps.group_of[steps.person].astype(np.int64)
        if steps.clock == "none":
            raise ParameterError(
                f"{self.full_name} needs times, and the table has none; leave it out"
            )
        local = steps.local_seconds
        if self.by == "hour":
            return local // 3600 % 24
        days = local // 86_400
        if self.by == "weekday":
            return (days + 3) % 7  # 1970 began on a Thursday
        months: Ints = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        return months % 12


@dataclass(frozen=True)
class Histogram(Statistic):
    """Share of the readings of each cell in each state.

    L = 2: another value takes 1 from one count of a cell and adds 1 to another of the same cell.
    """

    name: ClassVar[str] = "histogram"
    title: ClassVar[str] = "Histogram"
    quantity: ClassVar[str] = "share of readings"
    relative: ClassVar[bool] = True
    lipschitz: ClassVar[int] = 2

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """One a state."""
        assert states is not None
        if states.edges is None:
            return tuple(Column(name) for name in states.names)
        ends = (None, *states.edges, None)
        return tuple(Column(n, *e) for n, e in zip(states.names, pairwise(ends), strict=True))

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """Of k states four times the share of one of k equal ones, at most 1."""
        return np.full((len(sizes), 1), min(1.0, 4 / columns))

    def marks(self, steps: Steps) -> tuple[Ints, Ints, Ints | None]:
        """Every reading, in its state."""
        return np.arange(len(steps.person)), _states(steps), None


@dataclass(frozen=True)
class Transitions(Statistic):
    """Share of the pairs of readings one step apart that go from each state to each.

    L = 4: a reading ends at most one pair and begins at most one; another value moves each of the
    two, which changes two counts by 1 each. Which readings are one step apart is public.
    """

    name: ClassVar[str] = "transitions"
    title: ClassVar[str] = "Transitions"
    quantity: ClassVar[str] = "share of transitions"
    relative: ClassVar[bool] = True
    by_group_only: ClassVar[bool] = True
    lipschitz: ClassVar[int] = 4

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """One a pair of states, by the earlier and then the later one."""
        assert states is not None
        return tuple(Column(f"{a} → {b}") for a in states.names for b in states.names)

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """Of k² pairs four times the share of one of as many equal ones, at most 1."""
        return np.full((len(sizes), 1), min(1.0, 4 / columns))

    def sized(self, steps: Steps) -> Ints:
        """Return the later reading of each pair."""
        return np.flatnonzero(steps.near)

    def marks(self, steps: Steps) -> tuple[Ints, Ints, Ints | None]:
        """Return every reading that follows another by one step."""
        state, later = _states(steps), np.flatnonzero(steps.near)
        assert steps.states is not None
        return later, state[later - 1] * steps.states.count + state[later], None


@dataclass(frozen=True)
class Sum(Statistic):
    """Sum of the readings of each cell, clipped to ``bounds`` and rounded to a grid of 1000 steps.

    L = 1000, in steps of the grid: a reading adds a whole number from 0 to 1000 to one cell. The
    sum is LOW·n + grid·(table), n the readings of the cell, which are public.
    """

    bounds: tuple[float, float] | None = None

    name: ClassVar[str] = "sum"
    title: ClassVar[str] = "Sum"
    quantity: ClassVar[str] = "sum"
    in_unit: ClassVar[bool] = True
    lipschitz: ClassVar[int] = GRID

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is None:
            raise ParameterError(
                f"{self.name} needs bounds, to which values are clipped; give them"
            )
        ends = [check_finite(bound, "one of bounds") for bound in check_list(self.bounds, "bounds")]
        if len(ends) != 2 or not SMALLEST <= ends[1] - ends[0] <= LARGEST_BOUND:
            raise ParameterError("bounds must be two finite numbers, the lower one first")
        object.__setattr__(self, "bounds", (ends[0], ends[1]))

    @property
    def _ends(self) -> tuple[float, float]:
        assert self.bounds is not None
        return self.bounds

    @property
    def unit(self) -> float:  # type: ignore[override]
        """Step of the grid."""
        return (self._ends[1] - self._ends[0]) / GRID

    @property
    def offset(self) -> float:  # type: ignore[override]
        """The lower bound."""
        return self._ends[0]

    @property
    def rounding(self) -> float:
        """Half a step of the grid."""
        return self.unit / 2

    @property
    def words(self) -> str:
        """With the bounds."""
        low, high = self._ends
        return (
            f"{self.full_name} (values clipped to {low:g} to {high:g}, in steps of {self.unit:g})"
        )

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """One."""
        return (Column(self.name),)

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """HIGH − LOW, times the readings of the cell."""
        return np.maximum(sizes, 1)[:, np.newaxis] * (self._ends[1] - self._ends[0])

    def marks(self, steps: Steps) -> tuple[Ints, Ints, Ints | None]:
        """Return every reading with its steps of the grid."""
        low, high = self._ends
        # whatever rounding makes of it, it is a whole number from 0 to 1000 of this value alone
        scaled = (np.clip(_numbers(steps, self), low, high) - low) * (GRID / (high - low))
        amount = np.clip(np.rint(scaled), 0, GRID).astype(np.int64)
        return np.arange(len(amount)), np.zeros_like(amount), amount


@dataclass(frozen=True)
class Mean(Sum):
    """Mean of the readings of each cell: the sum over the number of readings, which is public."""

    name: ClassVar[str] = "mean"
    title: ClassVar[str] = "Mean"
    quantity: ClassVar[str] = "mean"
    relative: ClassVar[bool] = True

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """HIGH − LOW."""
        return np.full((len(sizes), 1), self._ends[1] - self._ends[0])


@dataclass(frozen=True)
class Exceedances(Statistic):
    """Number of readings of each cell of at least ``threshold``; L = 1."""

    threshold: float | None = None

    name: ClassVar[str] = "exceedances"
    title: ClassVar[str] = "Readings at or above a threshold"
    quantity: ClassVar[str] = "number of readings"
    lipschitz: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is None:
            raise ParameterError(f"{self.name} needs a threshold; give one")
        object.__setattr__(self, "threshold", check_finite(self.threshold, "threshold"))

    @property
    def edges(self) -> tuple[float, ...] | None:
        """The threshold."""
        return (self._least,)

    @property
    def _least(self) -> float:
        assert self.threshold is not None
        return self.threshold

    @property
    def words(self) -> str:
        """With the threshold."""
        return f"{self.full_name} (readings of at least {self.threshold:g})"

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """One."""
        return (Column(f">= {self.threshold:g}", self.threshold),)

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """As many as there are readings."""
        return np.maximum(sizes, 1).astype(np.float64)[:, np.newaxis]

    def marks(self, steps: Steps) -> tuple[Ints, Ints, Ints | None]:
        """Return the readings at or above the threshold."""
        above = np.flatnonzero(_numbers(steps, self) >= self._least)
        return above, np.zeros_like(above), None


@dataclass(frozen=True)
class Durations(Exceedances):
    """Number of runs of readings at or above ``threshold``, by how many steps they last.

    A run is a longest stretch of readings of one participant, each one step after the one before.

    L = 3: let a reading fall below the threshold. Its run of a + 1 + b readings is gone, and the a
    before and the b after it are a run more each where there are any: at most three counts change
    by 1, or one by 2 and one by 1. Rising is the same backwards. Gaps, which end runs, are public.
    """

    lengths: tuple[int, ...] = DURATIONS

    name: ClassVar[str] = "durations"
    title: ClassVar[str] = "Durations at or above a threshold"
    quantity: ClassVar[str] = "number of runs"
    by_group_only: ClassVar[bool] = True
    lipschitz: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [check_finite(n, "a duration") for n in check_list(self.lengths, "duration_edges")]
        whole = all(n.is_integer() and 1 <= n < LONGEST for n in given)
        if not given or not whole or given[0] != 1 or any(b <= a for a, b in pairwise(given)):
            raise ParameterError(
                "duration_edges must be whole numbers of steps that begin with 1 and grow"
            )
        object.__setattr__(self, "lengths", tuple(int(n) for n in given))

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """One a bin of lengths, in steps; labels are times where the step is known."""

        def said(steps: int) -> str:
            return f"{steps} steps" if step_seconds is None else text_of(steps * step_seconds)

        ends: tuple[int | None, ...] = (*self.lengths[1:], None)
        return tuple(
            Column(
                f"{said(low)} or more" if high is None else f"{said(low)} to under {said(high)}",
                float(low),
                None if high is None else float(high),
            )
            for low, high in zip(self.lengths, ends, strict=True)
        )

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """As many runs of the bin's first length as fit into the stretches of the readings."""
        places = (sizes + stretches)[:, np.newaxis]
        fitting: Floats = (places // (np.array(self.lengths) + 1)).astype(np.float64)
        return np.maximum(fitting, 1.0)

    def marks(self, steps: Steps) -> tuple[Ints, Ints, Ints | None]:
        """Return the first reading of each run, in the bin of its length."""
        above = _numbers(steps, self) >= self._least
        goes_on = steps.near.copy()
        goes_on[1:] &= above[:-1]
        first = np.flatnonzero(above & ~goes_on)
        run = np.cumsum(above & ~goes_on) - 1
        lengths = np.bincount(run[above], minlength=len(first))
        return first, np.searchsorted(self.lengths, lengths, side="right") - 1, None


CATALOGUE: dict[str, type[Statistic]] = {
    kind.name: kind for kind in (Histogram, Mean, Sum, Exceedances, Durations, Transitions)
}
RENAMED = {"above": "exceedances", "runs": "durations"}


def parse_statistics(
    asked: Sequence[str | Statistic],
    bounds: Sequence[float] | None,
    threshold: float | None,
    duration_edges: Sequence[int] | None,
) -> tuple[Statistic, ...]:
    """Return statistics by their names, ``NAME`` or ``NAME-by-CELLS``.

    Raises ParameterError: one is unknown or given twice, an option is out of range or used by none.
    """
    given = {"bounds": bounds, "threshold": threshold, "lengths": duration_edges}
    unused = {name for name, value in given.items() if value is not None}
    statistics = []
    for place, entry in enumerate(check_list(asked, "statistics"), 1):
        if isinstance(entry, Statistic):
            statistics.append(entry)
            continue
        name, _, by = str(entry).strip().partition("-by-")
        if name in RENAMED:
            raise ParameterError(f"statistic {place}: {name} is now called {RENAMED[name]}")
        if name not in CATALOGUE:
            raise ParameterError(
                f"statistic {place} has no known name; choose from {', '.join(CATALOGUE)}"
            )
        kind = CATALOGUE[name]
        own = {key: given[key] for key in kind.__dataclass_fields__ if given.get(key) is not None}
        unused -= own.keys()
        statistics.append(kind(by=by or "all", **own))
    if unused:
        words = " or ".join(sorted(unused)).replace("lengths", "duration_edges")
        raise ParameterError(f"no statistic that is asked for takes {words}; leave it out")
    names = [statistic.full_name for statistic in statistics]
    if not names or len(set(names)) < len(names):
        raise ParameterError("statistics must be different, and there must be some; name each once")
    return tuple(statistics)


def check_covered(statistics: Sequence[Statistic], states: StateSpace) -> None:
    """Raise unless statistics are functions of the states that Θ is about.

    Of values within a state a Θ on states says nothing: they may remember everything. S_t fair
    coins, value S_t + .9·S_0: the states are independent, the mean of 48 at ε = 1 loses 22.1.
    """
    for statistic in statistics:
        if isinstance(statistic, Sum):
            raise ParameterError(
                f"{statistic.full_name} depends on values within a state, of which this chain says "
                "nothing; use --mixing, or a histogram of the states"
            )
        if statistic.edges is not None and not set(statistic.edges) <= set(states.edges or ()):
            raise ParameterError(
                f"the threshold {statistic.edges[0]:g} of {statistic.full_name} is no edge between "
                "states of the chain, which says nothing of finer values; take one of its edges, "
                "or use --mixing"
            )


def _states(steps: Steps) -> Ints:
    assert steps.state is not None
    return steps.state.astype(np.int64)


def _numbers(steps: Steps, statistic: Statistic) -> Floats:
    if steps.value is None:
        raise DataError(
            f"{steps.where}: {statistic.full_name} needs numbers; name their column (value)"
        )
    return steps.value
