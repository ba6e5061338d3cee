"""What is known of the rows of a transition matrix, each on its own: a polytope of distributions a state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats

MOST_SETS = 8
"""Most states whose sets are all looked at."""


class Masses(NamedTuple):
    """All e with 0 ≤ e ≤ ``widths`` and Σ e = ``totals``, one row a state; shapes (k, k) and (k,)."""

    widths: Floats
    totals: Floats


@dataclass(frozen=True)
class RowSets:
    """The row of state x is a sum of ``base[x]`` and of one element of each of ``parts``.

    Intervals have one part: what is left above the lower bounds. Balls in total variation have two: what may stay and
    what comes. For h ≥ 0 and a row p of the set, p·h is largest (smallest) where every part fills the states with the
    largest (smallest) h first; so these *vertices* depend on the order of h alone.

    Attributes
    ----------
    base : float array, shape (k, k)
    parts : tuple of Masses
        Floats with a relative error of a few roundings, totals with an absolute one of k.
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

    def low(self) -> Floats:
        """Lower bounds of the entries, shape (k, k)."""
        return self.base

    def high(self) -> Floats:
        """Upper bounds of the entries, shape (k, k)."""
        slack = 8 * self.states * UNIT_ROUNDOFF
        added = [np.minimum(part.widths, part.totals[:, None] + slack) for part in self.parts]
        total: Floats = (self.base + sum(added, np.zeros_like(self.base))) * (1 + self.error)
        return np.minimum(total, 1.0)

    def vertex(self, row: int, order: Sequence[int], largest: bool) -> Floats:
        """The row whose parts fill the states in this order; entrywise no smaller if ``largest``, otherwise no larger.

        That is but for :attr:`error`.
        """
        law: Floats = self.base[row].copy()
        slack = 8 * self.states * UNIT_ROUNDOFF * (1 if largest else -1)
        for part in self.parts:
            gone = [-float(part.totals[row]), -slack]
            for z in order:
                width = float(part.widths[row, z])
                left = -math.fsum(gone)  # rounded once, so that orders with the same vertex give the same numbers
                law[z] += min(max(left, 0.0), width)
                gone.append(width)
        return law

    def vertices(self, row: int, largest: bool) -> Floats:
        """Vertices for all orders of the states, by what h favours (or, unless ``largest``, spares), shape (k!, k)."""
        k = self.states
        return np.array([self.vertex(row, o if largest else o[::-1], largest) for o in permutations(range(k))])

    def keeps(self, states: Sequence[int]) -> bool:
        """Whether a chain may stay within these states for ever."""
        inside = np.isin(np.arange(self.states), states)
        slack = 8 * self.states * UNIT_ROUNDOFF
        room = [part.widths[inside][:, inside].sum(axis=1) + slack >= part.totals[inside] for part in self.parts]
        return not self.base[inside][:, ~inside].any() and bool(np.all(room))

    def kept_apart(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Two disjoint sets of few states within each of which a chain may stay for ever; None if there are none.

        Beyond :data:`MOST_SETS` states only sets of one or two states are looked at.
        """
        k = self.states
        largest = k - 1 if k <= MOST_SETS else 2
        kept = [s for size in range(1, largest + 1) for s in combinations(range(k), size) if self.keeps(s)]
        apart = [(s, t) for s, t in combinations(kept, 2) if not set(s) & set(t)]
        return min(apart, key=lambda pair: len(pair[0]) + len(pair[1]), default=None)

    def distances(self) -> Floats:
        """Bound of the total variation distance of a row of x and one of x', rounded up, shape (k, k); 0 for x = x'."""
        high, low = self.high(), self.low()
        excess = high[:, None, :] - low[None, :, :]
        apart = np.maximum(excess, 0.0).sum(axis=2)
        apart = np.minimum(apart, np.maximum(excess, excess.transpose(1, 0, 2)).sum(axis=2) / 2)  # Σ |p − q| / 2
        bound: Floats = np.minimum(np.minimum(apart, apart.T) * (1 + 8 * self.states * UNIT_ROUNDOFF), 1.0)
        np.fill_diagonal(bound, 0.0)
        return bound

    def log_ratios(self) -> Floats:
        """Bound of log p(z) / q(z) over rows p of x and q of x', by x, x' and z, rounded up; −∞ where p(z) is 0."""
        return _logs(self.high()[:, None, :], self.low()[None, :, :])

    def log_column_ratios(self) -> Floats:
        """Bound of log p(x) / p(x') over the rows p of z, by x, x' and z, as above."""
        high, low = self.high().T, self.low().T
        return _logs(high[:, None, :], low[None, :, :])


def between(low: Floats, high: Floats) -> RowSets:
    """Return the distributions between two bounds, which differ by a part of one mass."""
    left = np.array([math.fsum([1.0, *(-row)]) for row in low])
    return RowSets(low, (Masses(high - low, np.maximum(left, 0.0)),))


def _logs(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.log(above) - np.log(below)
        table += 8 * UNIT_ROUNDOFF * (1 + np.abs(np.log(above)) + np.abs(np.log(below)))
    empty = np.broadcast_to(above == 0, table.shape)
    return np.where(empty, -np.inf, table)
