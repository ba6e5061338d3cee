"""Sums and means of bounded values: a load curve is the mean by hour."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pufferflow._checks import check_finite, check_list, check_positive
from pufferflow.errors import ParameterError
from pufferflow.publishing.statistics.base import Column, Scaling, Statistic
from pufferflow.records.format import StateSpace
from pufferflow.records.tally import Batch
from pufferflow.records.times import Integers

STEPS = 1000
"""Of the grid between the bounds, where none is given."""

MOST_STEPS = 10**6
NEAREST = Fraction(1, 10**100)
"""Distance of the bounds, at least, and at most one over it."""


@dataclass(frozen=True)
class Sum(Statistic):
    """Sum of the values of each cell, each clipped to ``bounds`` and rounded to a public grid between them.

    A table of shape (cells, 1), in steps of the grid.

    With low ≤ high the bounds and g the grid, (high − low)/g = m whole steps, a record adds the whole number
    round((clip(x) − low)/g) from 0 to m to one cell. L = m in units of g: another value changes that number, of a cell
    that it does not change, by at most m. The sum is low·n + g·(table), n the number of records of the cell, which is
    public. Bounds and grid come from options, never from the data.

    Parameters
    ----------
    bounds : pair of float
        Low and high, in units of the data.
    grid : float, optional
        In units of the data (default: a thousandth of the distance of the bounds).
    """

    bounds: tuple[float, float] | None = None
    grid: float | None = None

    name: ClassVar[str] = "sum"
    title: ClassVar[str] = "Sum"
    quantity: ClassVar[str] = "sum of clipped values"
    numeric: ClassVar[bool] = True
    numeric_steps: ClassVar[bool] = True
    relative: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bounds is None:
            raise ParameterError(f"{self.name} needs bounds to which values are clipped; give them")
        ends = [check_finite(bound, "one of bounds") for bound in check_list(self.bounds, "bounds")]
        if len(ends) != 2 or not ends[0] < ends[1] or not math.isfinite(ends[1] - ends[0]):
            raise ParameterError("bounds must be two finite numbers, the lower one first")
        object.__setattr__(self, "bounds", (ends[0], ends[1]))
        if not NEAREST <= self._range <= 1 / NEAREST:  # beyond, steps of the grid would leave what floats hold
            raise ParameterError(
                f"bounds are {ends[0]:g} and {ends[1]:g}; they must be between {float(NEAREST):g} and "
                f"{float(1 / NEAREST):g} apart, so take another unit"
            )
        if self.grid is not None:
            object.__setattr__(self, "grid", check_positive(self.grid, "grid"))
            steps = self._range / Fraction(repr(self.grid))
            if steps.denominator != 1 or not 1 <= steps <= MOST_STEPS:
                raise ParameterError(
                    f"grid {self.grid:g} does not divide the distance of the bounds into 1 to {MOST_STEPS} steps; give "
                    "one that does"
                )

    @property
    def _range(self) -> Fraction:
        assert self.bounds is not None
        low, high = (Fraction(repr(bound)) for bound in self.bounds)
        return high - low

    @property
    def lipschitz(self) -> int:
        """m, the number of steps of the grid between the bounds."""
        return STEPS if self.grid is None else int(self._range / Fraction(repr(self.grid)))

    @property
    def edges(self) -> tuple[float, ...] | None:
        """The bounds."""
        return self.bounds

    @property
    def unit(self) -> float:
        """Step of the grid, in units of the data."""
        return float(self._range / self.lipschitz)

    @property
    def said(self) -> str:
        """With bounds and grid."""
        assert self.bounds is not None
        return (
            f"{self.full_name} (values clipped to {self.bounds[0]:g} to {self.bounds[1]:g} and rounded to steps of "
            f"{self.unit:g})"
        )

    @property
    def scaling(self) -> Scaling:
        """From steps of the grid to values."""
        assert self.bounds is not None
        return Scaling(self.unit, self.bounds[0], self.relative, self.unit / 2)

    def columns(self, states: StateSpace) -> tuple[Column, ...]:
        """One."""
        return (Column(self.name),)

    def marks(self, batch: Batch, states: StateSpace) -> tuple[Any, Integers, Integers | None]:
        """Every record, with its steps of the grid."""
        assert self.bounds is not None
        low, high = self.bounds
        # whatever floats make of it, it is a whole number from 0 to m, and a function of this value alone
        scaled = (np.clip(batch.numbers(), low, high) - low) * (self.lipschitz / math.fsum((high, -low)))
        steps = np.clip(np.rint(scaled), 0, self.lipschitz).astype(np.int64)
        return slice(None), np.zeros_like(steps), steps

    def to_dict(self) -> dict[str, Any]:
        """With bounds and grid."""
        return super().to_dict() | {"bounds": list(self.bounds or ()), "grid": self.unit}


@dataclass(frozen=True)
class Mean(Sum):
    """Mean of the values of each cell, in units of the data: the sum over the number of records, which is public.

    L as of :class:`Sum`: the same table.
    """

    name: ClassVar[str] = "mean"
    title: ClassVar[str] = "Mean"
    quantity: ClassVar[str] = "mean of clipped values"
    relative: ClassVar[bool] = True
