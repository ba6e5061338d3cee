"""Sets of rows of a transition matrix: polytopes of distributions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats

MAX_SETS = 8
"""Largest number of states for a search over all sets of states."""


class Masses(NamedTuple):
    """All e with 0 ≤ e ≤ ``widths`` and Σ e = ``totals``, one row per state."""

    widths: Floats
    totals: Floats


@dataclass(frozen=True)
class RowSets:
    """The row of state x is a sum of ``base[x]`` and of one element of each of ``parts``.

    Intervals have one part: the mass above the lower bounds. Balls in total variation have two: the
    mass that stays and the mass that moves. For h ≥ 0 and a row p of the set, p·h is largest
    (smallest) if every part fills the states with the largest (smallest) h first; so these
    *vertices* depend on the order of h alone. Floats have a relative error of a few roundings,
    totals an absolute one of k.
    """

    base: Floats
    parts: tuple[Masses, ...]

    @property
    def states(self) -> int:
        """Number of states, k."""
        return len(self.base)

    @property
    def error(self) -> float:
        """Bound of the relative error of the entries of vertices."""
        return 4 * (1 + len(self.parts)) * UNIT_ROUNDOFF

    @property
    def _tolerance(self) -> float:
        """Bound of the error of a sum of widths."""
        return 8 * self.states * UNIT_ROUNDOFF

    def low(self) -> Floats:
        """Lower bounds of the entries, shape (k, k)."""
        return self.base

    def high(self) -> Floats:
        """Upper bounds of the entries, shape (k, k)."""
        total = self.base.copy()
        for widths, totals in self.parts:
            total += np.minimum(widths, totals[:, None] + self._tolerance)
        return np.minimum(total * (1 + self.error), 1.0)

    def vertex(self, row: int, order: Sequence[int], largest: bool) -> Floats:
        """Return the row whose parts fill the states in this order, up to :attr:`error`.

        Entries are rounded up if ``largest``, otherwise down.
        """
        found: Floats = self.base[row].copy()
        slack = self._tolerance if largest else -self._tolerance
        for widths, totals in self.parts:
            gone = [-float(totals[row]), -slack]
            for z in order:
                width = float(widths[row, z])
                # rounded once, so that orders with the same vertex give the same numbers
                found[z] += min(max(-math.fsum(gone), 0.0), width)
                gone.append(width)
        return found

    def vertices(self, row: int, largest: bool) -> Floats:
        """Return vertices for all orders of the states, shape (k!, k)."""
        orders = permutations(range(self.states))
        return np.array([self.vertex(row, o if largest else o[::-1], largest) for o in orders])

    def kept_apart(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two disjoint sets of states that a chain may never leave, if there are any.

        Beyond :data:`MAX_SETS` states only sets of one or two states are searched.
        """
        k = self.states

        def keeps(states: tuple[int, ...]) -> bool:
            inside = np.isin(np.arange(k), states)
            rooms = (w[inside][:, inside].sum(axis=1) - t[inside] for w, t in self.parts)
            leaves = self.base[inside][:, ~inside].any()
            return not leaves and all((room >= -self._tolerance).all() for room in rooms)

        sizes = range(1, k if k <= MAX_SETS else 3)
        kept = [s for size in sizes for s in filter(keeps, combinations(range(k), size))]
        apart = [(s, t) for s, t in combinations(kept, 2) if not set(s) & set(t)]
        return min(apart, key=lambda pair: len(pair[0]) + len(pair[1]), default=None)

    def distances(self) -> Floats:
        """Return bounds of the total variation distance of rows of x and x' ≠ x, rounded up."""
        excess = self.high()[:, None, :] - self.low()[None, :, :]
        one_way = np.maximum(excess, 0.0).sum(axis=2)
        both = np.maximum(excess, excess.transpose(1, 0, 2)).sum(axis=2) / 2  # Σ |p − q| / 2
        apart = np.minimum(np.minimum(one_way, one_way.T), both) * (1 + self._tolerance)
        np.fill_diagonal(apart, 0.0)
        return np.asarray(np.minimum(apart, 1.0))

    def log_ratios(self) -> Floats:
        """Return bounds of log p(z)/q(z), rows p of x and q of x', by x, x', z; −∞ for p(z) = 0."""
        return _logs(self.high()[:, None, :], self.low()[None, :, :])

    def log_column_ratios(self) -> Floats:
        """Return bounds of log p(x) / p(x') over the rows p of z, by x, x', z, as above."""
        return _logs(self.high().T[:, None, :], self.low().T[None, :, :])


def between(low: Floats, high: Floats) -> RowSets:
    """Return the distributions between two bounds, with one part."""
    left = np.array([math.fsum([1.0, *(-row)]) for row in low])
    return RowSets(low, (Masses(high - low, np.maximum(left, 0.0)),))


def _logs(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = np.log(above), np.log(below)
        table = one - other + 8 * UNIT_ROUNDOFF * (1 + np.abs(one) + np.abs(other))
    return np.where(np.broadcast_to(above == 0, table.shape), -np.inf, table)
