"""What every statistic says of itself, and how records are told apart by hour, weekday, month or group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_choice, check_positive
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.format import StateSpace
from pufferflow.records.rows import Records
from pufferflow.records.tally import Batch
from pufferflow.records.times import Integers

By: TypeAlias = Literal["all", "hour", "weekday", "month", "group"]
BY: tuple[str, ...] = get_args(By)

LABELS: dict[str, tuple[str, ...]] = {
    "all": ("all",),
    "hour": tuple(f"{hour:02d}:00" for hour in range(24)),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
}
"""Cells of the clock and the calendar."""

MOST_CELLS = 1000
"""Groups at most."""

MOST_ENTRIES = 2**17
"""Entries of the table of a statistic at most."""


@dataclass(frozen=True)
class Column:
    """A column of the table: what it counts, and between which values where that can be said.

    Attributes
    ----------
    label : str
    low, high : float or None
        It counts what lies at or above ``low`` and below ``high``, in units of the data (of runs: in steps); None
        where there is no bound.
    """

    label: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scaling:
    """How a noisy integer z of a cell of n records becomes a value: offset·n + unit·z, over n where it is relative.

    Attributes
    ----------
    unit, offset : float
        Of the public grid that records were rounded to, in units of the data; 1 and 0 for counts.
    relative : bool
        Whether the value is per record of the cell; otherwise it is in units of the data, or a number of runs.
    rounding : float
        By how much rounding to the grid may have changed a record, in units of the data.
    """

    unit: float = 1.0
    offset: float = 0.0
    relative: bool = True
    rounding: float = 0.0


@dataclass(frozen=True)
class Statistic(ABC):
    """A statistic that is asked for.

    Attributes
    ----------
    by : {"all", "hour", "weekday", "month", "group"}
        Cells by which records are told apart; a record is in one of them, whatever its value is.
    weight : float
        Of the statistics that are released together, relative to the others: one of twice the weight has half the
        noise for its constant.

    Raises ParameterError: an option is out of range.
    """

    by: By = "all"
    weight: float = 1.0

    name: ClassVar[str]
    title: ClassVar[str]
    """For figures."""
    quantity: ClassVar[str]
    """What the values are, with their unit."""
    cells: ClassVar[tuple[str, ...]] = BY
    """By what its records may be told apart."""
    numeric: ClassVar[bool] = False
    """Whether values have to be numbers."""
    numeric_steps: ClassVar[bool] = False
    """Whether its integers are steps of a grid."""

    def __post_init__(self) -> None:
        check_choice(self.by, f"by of {self.name}", self.cells)
        object.__setattr__(self, "weight", check_positive(self.weight, f"weight of {self.name}"))

    @property
    @abstractmethod
    def lipschitz(self) -> int:
        """L: by how much the table changes at most, in L1 norm, when the value of one record changes.

        In the integers of the table: records, transitions, runs, or steps of the grid.
        """

    @property
    def edges(self) -> tuple[float, ...] | None:
        """Numbers at which what it counts changes, in units of the data; None where it counts states."""
        return None

    @abstractmethod
    def columns(self, states: StateSpace) -> tuple[Column, ...]:
        """What the columns count, one a column of the table."""

    @property
    def scaling(self) -> Scaling:
        """How the integers of the table become values."""
        return Scaling()

    @property
    def full_name(self) -> str:
        """Name with the cells, as the shell writes it."""
        return self.name if self.by == "all" else f"{self.name}-by-{self.by}"

    @property
    def said(self) -> str:
        """What the statement says of it."""
        return self.full_name

    def check(self, states: StateSpace, timed: bool) -> None:
        """Raise :class:`ParameterError` where it cannot be had from such records; looks at no record."""
        if self.numeric and states.edges is None:
            raise ParameterError(f"{self.full_name} needs numbers, but the states are categories; leave it out")
        if self.by in ("hour", "weekday", "month") and not timed:
            raise ParameterError(f"{self.full_name} needs times, and the records have none; leave it out")
        if len(self.columns(states)) * len(LABELS.get(self.by, ())) > MOST_ENTRIES:
            raise ParameterError(f"{self.full_name} has too many numbers; give fewer states")

    def counter(self, states: StateSpace) -> Counter:
        """Return what counts it, from nothing."""
        return Counter(self, states)

    @abstractmethod
    def marks(self, batch: Batch, states: StateSpace) -> tuple[Any, Integers, Integers | None]:
        """Say which records of a batch count, in which column, and how much.

        Parameters
        ----------
        batch : Batch
            Of n records.
        states : StateSpace

        Returns
        -------
        which : slice or bool array, shape (n,)
            The m records that count.
        column : int array, shape (m,)
        amount : int array, shape (m,), or None
            What is added to the table, in its integers; None adds 1 for each.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return its options as plain JSON types."""
        return {"name": self.name, "by": self.by, "weight": self.weight, "lipschitz": self.lipschitz}


@dataclass(frozen=True, repr=False)
class Table:
    """Exact integers of a statistic with what is public of it; its text shows none of them.

    Attributes
    ----------
    statistic : Statistic
    cells : tuple of str
    columns : tuple of Column
    sizes : tuple of int
        Records that count in each cell, whatever their values are: public.
    counts : ndarray of int64, shape (cells, columns)
        In records, transitions, runs, or steps of the grid.
    """

    statistic: Statistic
    cells: tuple[str, ...]
    columns: tuple[Column, ...]
    sizes: tuple[int, ...]
    counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return "Table(…)"


class Counter:
    """Counts a statistic, batch by batch; memory grows with the size of its table only.

    Attributes
    ----------
    counts : int array, shape (cells, columns)
    sizes : int array, shape (cells,)
        Records that count in each cell.
    """

    def __init__(self, statistic: Statistic, states: StateSpace) -> None:
        self.statistic, self.states = statistic, states
        self.columns = statistic.columns(states)
        self.cells: list[str] = list(LABELS.get(statistic.by, ()))
        self.counts = np.zeros((len(self.cells), len(self.columns)), dtype=np.int64)
        self.sizes = np.zeros(len(self.cells), dtype=np.int64)

    def add(self, batch: Batch) -> None:
        """Count the records of a batch."""
        which, column, amount = self.statistic.marks(batch, self.states)
        self.put(self.cell(batch)[which], column, amount)

    def put(self, cell: Integers, column: Integers, amount: Integers | None = None, *, sized: bool = True) -> None:
        """Count amounts in cells and columns, each of shape (m,); None adds 1 for each.

        A record that is ``sized`` counts in the size of its cell.
        """
        # sums of whole numbers below 2^53 are exact in floats, and those of a batch are
        added = np.bincount(cell * len(self.columns) + column, amount, self.counts.size)
        self.counts += added.astype(np.int64).reshape(self.counts.shape)
        if sized:
            self.sizes += np.bincount(cell, minlength=len(self.sizes))

    def cell(self, batch: Batch) -> Integers:
        """Cell of each record, shape (n,)."""
        by = self.statistic.by
        if by == "all":
            return np.zeros(len(batch.person), dtype=np.int64)
        if by == "group":
            return self._groups(batch)
        times = local_times(batch.records, batch.seconds)
        if by == "hour":
            return times // 3600 % 24
        days = times // 86400
        if by == "weekday":
            return (days + 3) % 7  # 1970 began on a Thursday
        return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12

    def _groups(self, batch: Batch) -> Integers:
        names = ["all"] if batch.records is None else batch.records.groups
        places = {name: place for place, name in enumerate(self.cells)}
        for name in names:
            if name not in places:
                places[name] = len(places)
        if len(places) > MOST_CELLS:
            raise DataError(f"more than {MOST_CELLS} groups; name the right column (group), or leave it out")
        if len(places) * len(self.columns) > MOST_ENTRIES:
            raise DataError(f"{self.statistic.full_name} has too many numbers; give fewer states or groups")
        if more := len(places) - len(self.cells):
            self.cells = list(places)
            self.counts = np.concatenate((self.counts, np.zeros((more, len(self.columns)), dtype=np.int64)))
            self.sizes = np.concatenate((self.sizes, np.zeros(more, dtype=np.int64)))
        return np.array([places[name] for name in names], dtype=np.int64)[batch.person]

    def finished(self) -> Table:
        """Return what was counted."""
        return Table(self.statistic, tuple(self.cells), self.columns, tuple(self.sizes.tolist()), self.counts)


def local_times(records: Records | None, seconds: Integers) -> Integers:
    """Times on the clock that the records were read by: local where that or its zone is known, otherwise UTC.

    ``seconds`` since 1970 of shape (n,), in and out.
    """
    zone = None if records is None else records.reading.timezone
    if zone is None or records is None or records.clock != "local":
        return seconds
    times = pd.DatetimeIndex(seconds.astype("datetime64[s]"), tz="UTC").tz_convert(zone).tz_localize(None)
    return np.asarray(times.as_unit("s").asi8, dtype=np.int64)


def bins(states: StateSpace) -> tuple[Column, ...]:
    """One column a state; the first and the last bin of numbers are open."""
    if states.edges is None:
        return tuple(Column(name) for name in states.names)
    ends = (None, *states.edges, None)
    return tuple(Column(name, low, high) for name, low, high in zip(states.names, ends[:-1], ends[1:], strict=True))
