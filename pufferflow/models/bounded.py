"""Families with bounds of the rows: intervals of the entries, or distances of the rows."""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_numbers, check_type
from pufferflow._util.rounding import SUM_TOLERANCE, UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError
from pufferflow.models.chain import ANY, MarkovChain, checked_matrix
from pufferflow.models.families import Family, common_states


class Masses(NamedTuple):
    """All e with 0 ≤ e ≤ ``widths`` and Σ e = ``totals``, one row per state."""

    widths: Floats
    totals: Floats


class RowSets:
    """The row of state x is a sum of ``base[x]`` and of one element of each of ``parts``.

    Intervals have one part, balls in total variation two. Floats have a relative error of a few
    roundings, totals an absolute one of k.
    """

    def __init__(self, base: Floats, parts: tuple[Masses, ...]) -> None:
        self.base, self.parts = base, parts
        self.states = len(base)
        """Number of states, k."""
        self.error = 4 * (1 + len(parts)) * UNIT_ROUNDOFF
        """Bound of the relative error of the entries of rows."""
        self._tolerance = 8 * self.states * UNIT_ROUNDOFF
        """Bound of the error of a sum of widths."""

    @cached_property
    def high(self) -> Floats:
        """Upper bounds of the entries, shape (k, k)."""
        total = self.base.copy()
        for widths, totals in self.parts:
            total += np.minimum(widths, totals[:, None] + self._tolerance)
        return np.minimum(total * (1 + self.error), 1.0)

    @cached_property
    def distances(self) -> Floats:
        """Bounds of the total variation distance of rows of x and x' ≠ x, rounded up."""
        excess = self.high[:, None, :] - self.base[None, :, :]
        one_way = np.maximum(excess, 0.0).sum(axis=2)
        both = np.maximum(excess, excess.transpose(1, 0, 2)).sum(axis=2) / 2  # Σ |p − q| / 2
        distances = np.minimum(np.minimum(one_way, one_way.T), both) * (1 + self._tolerance)
        np.fill_diagonal(distances, 0.0)
        return np.asarray(np.minimum(distances, 1.0))

    def log_ratios(self, *, columns: bool = False) -> Floats:
        """Return bounds of log p(z)/q(z), rows p of x and q of x', by x, x', z; −∞ for p(z) = 0.

        With ``columns`` those of log p(x)/p(x') over the rows p of z.
        """
        above, below = (bound.T if columns else bound for bound in (self.high, self.base))
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = np.log(above), np.log(below)
            one += 8 * UNIT_ROUNDOFF * (1 + np.abs(one))
            table = one[:, None] - (other - 8 * UNIT_ROUNDOFF * np.abs(other))
        return np.where(above[:, None] == 0, -np.inf, table)


def greedy(widths: Floats, totals: Floats, values: Floats, largest: bool) -> Floats:
    """Return the largest or smallest Σ_z e(z)·values(z, y), 0 ≤ e ≤ widths with these sums, by y.

    Shapes are (…, k), (…) and (…, k, m), the result is (…, m).
    """
    order = np.argsort(-values if largest else values, axis=-2, kind="stable")
    slack = 8 * widths.shape[-1] * UNIT_ROUNDOFF * (1 if largest else -1)
    wide = np.take_along_axis(widths[..., None], order, axis=-2)
    before = np.cumsum(wide, axis=-2) - wide
    taken = np.minimum(wide, np.maximum(totals[..., None, None] + slack - before, 0.0))
    return np.asarray((taken * np.take_along_axis(values, order, axis=-2)).sum(axis=-2))


def between(low: Floats, high: Floats) -> RowSets:
    """Return the distributions between two bounds, with one part."""
    left = np.array([math.fsum([1.0, *(-row)]) for row in low])
    return RowSets(low, (Masses(high - low, np.maximum(left, 0.0)),))


class BoundedFamily(Family):
    """All chains with rows in given sets, one per state, possibly other rows at each step."""

    def __init__(self, rows: RowSets, backward: Self | None) -> None:
        self.rows = rows
        """The sets of rows."""
        self.states: int = rows.states
        if backward is not None:
            check_type(backward, "backward", type(self))
            if backward.states != self.states or backward.backward is not None:
                wanted = f"for the same {self.states} states, without backward ones themselves"
                raise ChainError(f"backward must be bounds {wanted}")
        self.backward: Self | None = backward
        """Sets of the distributions of a record given the next one, or None."""

    def description(self) -> str:
        """Return a description of these chains."""
        which = "read forwards and backwards" if self.backward else "from any start"
        return f"any chain on these {self.states} states between the bounds of the model, {which}"


class IntervalFamily(BoundedFamily):
    """All chains with low ≤ P ≤ high entrywise, and every initial distribution; immutable.

    Unlike ``BinaryInterval`` it has no dominating chain: :func:`pufferflow.leakage` bounds the loss
    of all chains (``docs/leakage.md``), also of time-inhomogeneous ones.

    Parameters
    ----------
    low, high : array_like, shape (k, k)
        Bounds of the transition probabilities, tightened by the row sums: an upper bound is at most
        1 minus the other lower bounds of its row, and vice versa.
    backward : IntervalFamily, optional
        Bounds of the distribution of a record given the *next* one: the family is smaller, it has
        the chains within both bounds, and :func:`pufferflow.leakage` needs less noise.
    """

    kind, fields = "interval", ("low", "high", "backward?")

    def __init__(
        self, low: ArrayLike, high: ArrayLike, *, backward: IntervalFamily | None = None
    ) -> None:
        lower, upper = checked_matrix(low, "low"), checked_matrix(high, "high")
        common_states((len(lower), len(upper)), "bounds low and high")
        for i, j in np.argwhere(lower > upper):
            ends = f"low {lower[i, j]} is above high {upper[i, j]}"
            raise ChainError(f"row {i + 1}, column {j + 1}: {ends}; exchange or correct them")
        self.low, self.high = _tightened(lower, upper)
        """Bounds of the transition probabilities, as tight as the row sums allow; read-only."""
        self.low.flags.writeable = self.high.flags.writeable = False
        super().__init__(between(self.low, self.high), backward)


class TotalVariationFamily(BoundedFamily):
    """All chains whose rows are within a total variation distance of given ones, from any start.

    Time-inhomogeneous chains are among them. The distance of two distributions is
    ½ Σ_z |p(z) − q(z)|, the largest difference in the probability of an event. Immutable.

    Parameters
    ----------
    transition_matrix : array_like, shape (k, k)
    radius : float or array_like, shape (k,)
        Largest distance, for all rows or for each.
    backward : TotalVariationFamily, optional
        As for :class:`IntervalFamily`.
    """

    kind, fields = "total_variation", ("transition_matrix", "radius", "backward?")

    def __init__(
        self,
        transition_matrix: ArrayLike,
        radius: float | ArrayLike,
        *,
        backward: TotalVariationFamily | None = None,
    ) -> None:
        matrix = MarkovChain(transition_matrix, ANY).transition_matrix
        self.transition_matrix: Floats = matrix
        """The rows at the centres, shape (k, k), read-only."""
        radii = check_numbers(radius, "radius", ChainError)
        if radii.shape not in ((), (len(matrix),)) or not ((radii >= 0) & (radii <= 1)).all():
            each = f"or one for each of the {len(matrix)} states"
            raise ChainError(f"radius must be a number from 0 to 1, {each}")
        self.radius: Floats = np.broadcast_to(radii, (len(matrix),))
        """Largest distance of each row, shape (k,), read-only."""
        away = np.broadcast_to(self.radius[:, None], matrix.shape)
        low, stays = np.maximum(matrix - away, 0.0), np.minimum(matrix, away)
        # the centre loses mass up to the radius, and gains it anywhere
        kept = np.maximum(stays.sum(axis=1) - self.radius, 0.0)
        parts = Masses(stays, kept), Masses(away.copy(), self.radius)
        super().__init__(RowSets(low, parts), backward)


def _tightened(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return bounds that are tightened by the sums of the rows, rounded outward."""
    least, most = (np.array([[math.fsum(row)] for row in bound]) for bound in (low, high))
    for i in np.flatnonzero((least - SUM_TOLERANCE > 1) | (most + SUM_TOLERANCE < 1)):
        sums = f"lower bounds sum to {least[i, 0]:.12g} and the upper ones to {most[i, 0]:.12g}"
        raise ChainError(f"row {i + 1}: the {sums}, and 1 is not between; correct them")
    # bounds equal to a distribution may have a sum off 1 by rounding
    low = low / np.where(least > 1, least * (1 + 1e-15), 1.0)
    high = np.minimum(high / np.where(most < 1, most * (1 - 1e-15), 1.0), 1.0)
    # the sums of all others are correctly rounded, so one step outward covers them
    rest, need = (
        np.array([[math.fsum([1.0, entry, *-row]) for entry in row] for row in bound])
        for bound in (low, high)
    )
    high = np.maximum(np.minimum(high, np.nextafter(rest, 2.0)), low)
    return np.minimum(np.maximum(low, np.nextafter(need, -1.0)), high), high
