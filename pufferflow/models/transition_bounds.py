"""Bounds of every transition probability of a chain."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_positive, check_type
from pufferflow._util.rounding import SUM_TOLERANCE
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.row_sets import Masses, RowSets


class TransitionBounds:
    """What is known of a family of chains with low ≤ P ≤ high entrywise: the bounds, each as tight as the rows allow.

    Parameters and errors are those of :class:`pufferflow.IntervalFamily`.
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        lower, upper = _bounds(low, "low"), _bounds(high, "high")
        if lower.shape != upper.shape:
            raise ChainError(f"low has {len(lower)} rows and high {len(upper)}; give both for the same states")
        for i, j in np.argwhere(lower > upper):
            raise ChainError(
                f"row {i + 1}, column {j + 1}: low {lower[i, j]} is above high {upper[i, j]}; exchange or mend them"
            )
        for i in range(len(lower)):
            _tighten(lower[i], upper[i], i + 1)
        lower.flags.writeable = upper.flags.writeable = False
        self.low: Floats = lower
        """Smallest transition probabilities, shape (k, k), read-only."""
        self.high: Floats = upper
        """Largest transition probabilities, shape (k, k), read-only."""

    @property
    def states(self) -> int:
        """Number of states, k."""
        return len(self.low)

    @property
    def rows(self) -> RowSets:
        """What is known of each row."""
        left = np.array([math.fsum([1.0, *(-row)]) for row in self.low])
        return RowSets(self.low, (Masses(self.high - self.low, np.maximum(left, 0.0)),))

    def contains(self, chain: MarkovChain, tolerance: float = SUM_TOLERANCE) -> bool:
        """Whether the transition matrix of ``chain`` lies between the bounds, up to ``tolerance``.

        Raises ParameterError: ``chain`` is none, or ``tolerance`` is negative.
        """
        check_type(chain, "chain", MarkovChain)
        matrix, tolerance = chain.transition_matrix, check_positive(tolerance, "tolerance", or_zero=True)
        return matrix.shape == self.low.shape and bool(
            np.all((self.low - tolerance <= matrix) & (matrix <= self.high + tolerance))
        )


def _bounds(values: ArrayLike, what: str) -> Floats:
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ChainError(f"{what} must be numbers in rows of equal length") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ChainError(f"{what} must be a square matrix, not of shape {matrix.shape}; one row a state")
    for i, j in np.argwhere(~((matrix >= 0) & (matrix <= 1))):
        raise ChainError(f"{what} has no probability in row {i + 1}, column {j + 1}; each must lie between 0 and 1")
    return matrix + 0.0  # no negative zeros


def _tighten(low: Floats, high: Floats, row: int) -> None:
    """Make the bounds of one row as tight as its sum allows, in place, rounded outward."""
    least, most = math.fsum(low), math.fsum(high)
    if least > 1 + SUM_TOLERANCE:
        raise ChainError(f"row {row}: the lower bounds sum to {least:.12g}, above 1; lower some of them")
    if most < 1 - SUM_TOLERANCE:
        raise ChainError(f"row {row}: the upper bounds sum to {most:.12g}, below 1; raise some of them")
    # a distribution written as its own bounds may miss 1 by rounding
    if least > 1:
        low /= least * (1 + 1e-15)
    if most < 1:
        high /= most * (1 - 1e-15)
        np.minimum(high, 1.0, out=high)
    given_low, given_high = low.tolist(), high.tolist()
    for z in range(len(low)):
        # the sums are correctly rounded, so one step outward covers them and tightening twice changes nothing
        room = math.fsum([1.0, *(-p for p in given_low[:z] + given_low[z + 1 :])])
        need = math.fsum([1.0, *(-p for p in given_high[:z] + given_high[z + 1 :])])
        high[z] = max(min(given_high[z], math.nextafter(room, 2.0)), given_low[z])
        low[z] = min(max(given_low[z], math.nextafter(need, -1.0)), high[z])
