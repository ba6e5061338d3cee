"""The statistics, each with its Lipschitz constant and its public range.

A statistic turns readings into a table of integers, cells × columns. Cells (hours, weekdays,
months, groups) are functions of public facts. The Lipschitz constant L bounds the change of the
whole table, in L1 norm, by the value of one reading. An error is compared with the *public range*
of the values of a cell, which depends on options and public sizes alone.
"""

from __future__ import annotations

import calendar
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import pairwise, product
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.checks import LONGEST, check_choice, check_finite, check_list, check_whole
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.read import Steps
from pufferflow.records.states import StateSpace
from pufferflow.records.units import text_of

Marks: TypeAlias = Iterator[tuple[Ints, NDArray[np.integer] | int, Ints | int]]
LABELS: dict[str, tuple[str, ...]] = {
    "all": ("all",),
    "hour": tuple(f"{hour:02d}:00" for hour in range(24)),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": tuple(calendar.month_name[1:]),
}
"""Cells by time of day and by calendar."""
WHOLE, CELLS = ("all", "group"), (*LABELS, "group")
GRID = 1000
"""Steps of the grid between the bounds of means and sums."""
DURATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Default first lengths of the bins of durations, in steps."""
MAX_GROUPS, MAX_NUMBERS = 1000, 2**17
SMALLEST, LARGEST_BOUND = 1e-100, 1e100
"""Smallest distance of bounds, and largest bound, within the range of floating-point numbers."""


@dataclass(frozen=True)
class Column:
    """A column of a table; it counts values of at least ``low`` and below ``high``."""

    label: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, repr=False, eq=False)
class Table:
    """Exact integers of a statistic with its public facts; its repr shows no integer.

    Counts and public ranges (in the unit of the values) have the shape (cells, columns); sizes are
    the public numbers of readings (for transitions: pairs) in each cell.
    """

    statistic: Statistic
    cells: tuple[str, ...]
    columns: tuple[Column, ...]
    sizes: Ints
    counts: Ints
    ranges: Floats


@dataclass(frozen=True)
class Statistic(ABC):
    """A statistic, in cells; raises ParameterError: an option is out of range.

    ``unit`` is the value of 1 in the table, ``offset`` that of a reading that counts 0, and
    ``rounding`` the rounding error of a reading. ``edges`` are its thresholds, none if it counts
    states or values; ``detail`` follows its title in the statement.
    """

    by: str = "all"
    unit: float = field(init=False, default=1.0)
    offset: float = field(init=False, default=0.0)
    rounding: float = field(init=False, default=0.0)
    edges: tuple[float, ...] = field(init=False, default=())
    detail: str = field(init=False, default="")

    name: ClassVar[str]
    title: ClassVar[str]
    quantity: ClassVar[str]
    """Quantity of the values; :attr:`in_unit` if they have the unit of the readings."""
    lipschitz: ClassVar[int]
    """L: the largest change of the table, in L1 norm, by one value."""
    square: ClassVar[int] = 0
    """The square of that in L2 norm; 0 if Gaussian noise is not possible."""
    in_unit: ClassVar[bool] = False
    relative: ClassVar[bool] = False
    """Whether a value is per reading of its cell: a share, or in the unit of the readings."""
    cells: ClassVar[tuple[str, ...]] = CELLS
    """Cells in which it can be requested."""

    def __post_init__(self) -> None:
        check_choice(self.by, f"the cells of {self.name}", self.cells)

    def _settle(self, **values: Any) -> None:
        """Set fields derived from the options."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def full_name(self) -> str:
        """Name with the cells, as in the shell."""
        return self.name if self.by == "all" else f"{self.name}-by-{self.by}"

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """Return the columns; raises ParameterError: it counts states, and there are none."""
        return (Column(self.name, *self.edges),)

    @abstractmethod
    def _marks(self, steps: Steps) -> Marks:
        """Yield, in parts, the readings that count, their columns, and the addition of each."""

    def _sized(self, steps: Steps) -> Bools | None:
        """Return the readings that make the size of a cell; None for all of them."""
        return None

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """Return the public range of the values, shape (cells, 1) or (cells, columns).

        It is the largest change by one reading (HIGH − LOW, or 1; for k > 4 shares four times that
        of k equal ones), times the readings of the cell unless values are relative to them.
        ``sizes`` and ``stretches`` have shape (cells,): readings, and stretches without a gap.
        """
        each = (GRID * self.unit if self.in_unit else 1.0) * min(1.0, 4 / columns)
        ranges = np.full((len(sizes), 1), each)
        return ranges if self.relative else ranges * np.maximum(sizes, 1)[:, None]

    def values(self, sizes: Ints, counts: Ints) -> Floats:
        """Return the values of integers of the table, shape (cells, columns)."""
        total = self.offset * sizes[:, None] + self.unit * np.asarray(counts, dtype=np.float64)
        return total / np.maximum(sizes, 1)[:, None] if self.relative else total

    def table(
        self, cells: tuple[str, ...], columns: tuple[Column, ...], sizes: Ints, stretches: Ints
    ) -> Table:
        """Return the public facts of a table, with zeros for integers."""
        counts = np.zeros((len(cells), len(columns)), np.int64)
        ranges = np.broadcast_to(self.ranges(sizes, stretches, len(columns)), counts.shape)
        return Table(self, cells, columns, sizes, counts, ranges)

    def tabulate(self, steps: Steps) -> Table:
        """Count the readings.

        Raises DataError: there are too many groups.
        """
        cells = steps.groups if self.by == "group" else LABELS[self.by]
        columns = self.columns(steps.states, steps.step_seconds)
        if len(cells) > MAX_GROUPS or len(cells) * len(columns) > MAX_NUMBERS:
            raise DataError(
                f"{steps.where}: {self.full_name} has too many numbers; give fewer states or groups"
            )
        sizes, stretches = np.zeros((2, len(cells)), dtype=np.int64)
        for part in steps.parts(self._sized(steps)):
            np.add.at(sizes, self._cell(steps[part]), 1)
        for part in steps.parts(~steps.near):
            np.add.at(stretches, self._cell(steps[part]), 1)
        table = self.table(cells, columns, sizes, stretches)
        for which, column, amount in self._marks(steps):
            place = self._cell(steps[which]) * len(columns) + column
            np.add.at(table.counts.reshape(-1), place, amount)
        return table

    def _cell(self, steps: Steps) -> Ints:
        if self.by in WHOLE:
            group: Ints = (steps.group_of * (self.by == "group"))[steps.person].astype(np.int64)
            return group
        if steps.time_base == "none":
            raise ParameterError(f"{self.full_name} needs times; the table has none, leave it out")
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

    name, title, quantity = "histogram", "Histogram", "share of readings"
    lipschitz, square, relative = 2, 2, True

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """Return a column per state."""
        if states is None:
            raise ParameterError(f"{self.full_name} needs the number of states; give `states`")
        if states.edges is None:
            return tuple(map(Column, states.names))
        ends = pairwise((None, *states.edges, None))
        return tuple(Column(n, *e) for n, e in zip(states.names, ends, strict=True))

    def _marks(self, steps: Steps) -> Marks:
        state, _ = steps.coded
        yield from ((part, state[part], 1) for part in steps.parts())


@dataclass(frozen=True)
class MostFrequent(Histogram):
    """The ``top`` most frequent states of each cell, in order, without their counts.

    By Theorem T of docs/any_mechanism.md noise of scale s costs L/s here, too. An integer of the
    published table is the rank of a state, from 0 on, or −1 if it is not listed.
    """

    top: int = 1

    name, title, quantity = "most-frequent", "Most frequent states", "states in order"
    square = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        top = check_whole(self.top, "top")
        self._settle(detail=f" (the first {top})")

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """Return a column per state; raises ParameterError: ``top`` includes all of them."""
        columns = super().columns(states, step_seconds)
        if self.top >= len(columns):
            raise ParameterError(f"`top` is {self.top} of {len(columns)} states; give fewer")
        return columns

    def values(self, sizes: Ints, counts: Ints) -> Floats:
        """Return the ranks, from 1 on; NaN for states that are not listed."""
        return np.where(counts < 0, np.nan, counts + 1.0)


@dataclass(frozen=True)
class Transitions(Histogram):
    """Share of the pairs of readings one step apart with each pair of states.

    L = 4: a reading ends at most one pair and begins at most one; another value moves each of the
    two, which changes two counts by 1 each (Δ2² = 6: both may decrease the same count, or enter
    it). Which readings are one step apart is public.
    """

    name, title, quantity = "transitions", "Transitions", "share of transitions"
    lipschitz, square, cells = 4, 6, WHOLE

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """Return a column per pair of states, by the earlier and then the later one."""
        names = [column.label for column in super().columns(states, step_seconds)]
        return tuple(Column(f"{earlier} → {later}") for earlier, later in product(names, repeat=2))

    def _sized(self, steps: Steps) -> Bools:
        return steps.near

    def _marks(self, steps: Steps) -> Marks:
        state, k = steps.coded
        for later in steps.parts(steps.near):
            yield later, state[later - 1].astype(np.int64) * k + state[later], 1


@dataclass(frozen=True, kw_only=True)
class Sum(Statistic):
    """Sum of the readings of each cell, clipped to ``bounds`` and rounded to a grid of 1000 steps.

    L = 1000, in steps of the grid: a reading adds a whole number from 0 to 1000 to one cell. The
    sum is LOW·n + grid·(table), n the readings of the cell, which are public.
    """

    bounds: tuple[float, float]

    name, title, quantity = "sum", "Sum", "sum"
    lipschitz, square, in_unit = GRID, GRID**2, True

    def __post_init__(self) -> None:
        super().__post_init__()
        ends = [check_finite(bound, "one of bounds") for bound in check_list(self.bounds, "bounds")]
        if len(ends) != 2 or not SMALLEST <= ends[1] - ends[0] <= LARGEST_BOUND:
            raise ParameterError("`bounds` must be two finite numbers, the lower one first")
        low, high = ends
        unit = (high - low) / GRID
        detail = f" (values clipped to {low:g} to {high:g}, in steps of {unit:g})"
        self._settle(bounds=(low, high), unit=unit, offset=low, rounding=unit / 2, detail=detail)

    def _marks(self, steps: Steps) -> Marks:
        values, (low, high) = _numbers(steps, self), self.bounds
        for part in steps.parts():
            # even after rounding it is an integer from 0 to 1000 that depends on this value alone
            scaled = (np.clip(values[part], low, high) - low) * (GRID / (high - low))
            yield part, 0, np.clip(np.rint(scaled), 0, GRID).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Mean(Sum):
    """Mean of the readings of each cell: the sum over the number of readings, which is public."""

    name, title, quantity = "mean", "Mean", "mean"
    relative = True


@dataclass(frozen=True, kw_only=True)
class Exceedances(Statistic):
    """Number of readings of each cell of at least ``threshold``; L = 1."""

    threshold: float

    name, title = "exceedances", "Readings at or above a threshold"
    quantity, lipschitz, square = "number of readings", 1, 1

    def __post_init__(self) -> None:
        super().__post_init__()
        least = check_finite(self.threshold, "threshold")
        self._settle(threshold=least, edges=(least,), detail=f" (readings of at least {least:g})")

    def _marks(self, steps: Steps) -> Marks:
        yield from ((part, 0, 1) for part in steps.parts(self._above(steps)))

    def _above(self, steps: Steps) -> Bools:
        above: Bools = _numbers(steps, self) >= self.threshold
        return above


@dataclass(frozen=True, kw_only=True)
class Durations(Exceedances):
    """Number of runs of readings at or above ``threshold``, by how many steps they last.

    A run is a longest stretch of readings of one participant, each one step after the one before.

    L = 3: let a reading fall below the threshold. Its run of a + 1 + b readings disappears, and the
    a before and the b after it become runs if a, b > 0: at most three counts change by 1, or one by
    2 and one by 1. A rise is the reverse. Gaps, which end runs, are public.
    """

    duration_edges: tuple[int, ...] = DURATIONS

    name, title = "durations", "Durations at or above a threshold"
    quantity, lipschitz, square, cells = "number of runs", 3, 5, WHOLE

    def __post_init__(self) -> None:
        super().__post_init__()
        given = check_list(self.duration_edges, "duration_edges")
        numbers = [check_finite(steps, "a duration") for steps in given]
        whole = all(n.is_integer() and 1 <= n < LONGEST for n in numbers)
        if not whole or numbers[:1] != [1] or any(b <= a for a, b in pairwise(numbers)):
            raise ParameterError(
                "`duration_edges` must be whole numbers that begin with 1 and grow"
            )
        self._settle(duration_edges=tuple(map(int, numbers)))

    def columns(self, states: StateSpace | None, step_seconds: int | None) -> tuple[Column, ...]:
        """Return a column per bin of lengths, in steps; labels are times if there is a step."""

        def label(steps: int) -> str:
            return f"{steps} steps" if step_seconds is None else text_of(steps * step_seconds)

        longest = self.duration_edges[-1]
        ends = pairwise(self.duration_edges)
        columns = [Column(f"{label(a)} to under {label(b)}", float(a), float(b)) for a, b in ends]
        return (*columns, Column(f"{label(longest)} or more", float(longest)))

    def ranges(self, sizes: Ints, stretches: Ints, columns: int) -> Floats:
        """Return the largest number of runs of each bin in the stretches of the readings."""
        fitting: Floats = (sizes + stretches)[:, None] / (np.array(self.duration_edges) + 1)
        return np.maximum(np.floor(fitting), 1.0)

    def _marks(self, steps: Steps) -> Marks:
        above, goes_on = self._above(steps), steps.near
        goes_on[1:] &= above[:-1]
        goes_on &= above
        last = above.copy()
        last[:-1] &= ~goes_on[1:]
        above &= ~goes_on
        open_ = np.zeros(0, dtype=np.int64)
        for begin, end in zip(steps.parts(above), steps.parts(last), strict=True):
            begin = np.append(open_, begin)
            begin, open_ = begin[: len(end)], begin[len(end) :]  # one run may end in the next part
            lengths = end - begin + 1
            yield begin, np.searchsorted(self.duration_edges, lengths, side="right") - 1, 1


CATALOGUE: dict[str, type[Statistic]] = {
    kind.name: kind
    for kind in (Histogram, Mean, Sum, Exceedances, Durations, Transitions, MostFrequent)
}


def parse_statistics(asked: Sequence[str], **options: Any) -> tuple[Statistic, ...]:
    """Return statistics by their names, ``NAME`` or ``NAME-by-CELLS``; options may be None.

    Raises ParameterError: one is unknown or given twice, an option is out of range or used by none.
    """
    given = {name: value for name, value in options.items() if value is not None}
    statistics: dict[str, Statistic] = {}
    for place, entry in enumerate(check_list(asked, "statistics"), 1):
        name, _, by = str(entry).strip().partition("-by-")
        if name not in CATALOGUE:  # not shown: with a table by mistake it is a record
            known = ", ".join(CATALOGUE)
            raise ParameterError(f"statistic {place} has no known name; choose from {known}")
        own = {f.name: f.default for f in fields(CATALOGUE[name]) if f.name in options}
        for key in (key for key in own if own[key] is MISSING and key not in given):
            raise ParameterError(f"{name} needs `{key}`; give it")
        made = CATALOGUE[name](by=by or "all", **{key: given[key] for key in own if key in given})
        if made.full_name in statistics:
            raise ParameterError(f"statistic {place} repeats an earlier one; name each once")
        statistics[made.full_name] = made
    taken = {f.name for statistic in statistics.values() for f in fields(statistic)}
    for name in sorted(given.keys() - taken):
        raise ParameterError(f"no requested statistic takes `{name}`; leave it out")
    if not statistics:
        raise ParameterError("there must be some `statistics`; name one")
    return tuple(statistics.values())


def check_covered(statistics: Sequence[Statistic], states: StateSpace) -> None:
    """Raise unless statistics are functions of the states of Θ.

    A Θ on states does not cover values within a state: they may depend on all records. With
    fair coins S_t and values S_t + .9·S_0 the mean of 48 at ε = 1 loses 22.1.
    """
    for statistic in statistics:
        if isinstance(statistic, Sum):
            finer, instead = "values within a state", "a histogram of the states"
        elif not set(statistic.edges) <= set(states.edges or ()):
            finer, instead = "a threshold that is not an edge between states", "one of the edges"
        else:
            continue
        raise ParameterError(
            f"{statistic.full_name} depends on {finer}, which this chain does not "
            f"cover; take {instead}, or use `mixing`"
        )


def _numbers(steps: Steps, statistic: Statistic) -> Floats:
    if steps.value is None:
        raise DataError(
            f"{steps.where}: {statistic.full_name} needs numbers; name their column (`value`)"
        )
    return steps.value
