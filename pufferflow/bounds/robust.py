"""Leakage through a side of a node with bounded distributions; proofs: ``docs/leakage.md``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats, Ints
from pufferflow.bounds._robust_kernels import couple_ascending, couple_vertices
from pufferflow.bounds.distribution_sets import entries_of, no_trees, portions
from pufferflow.models.row_sets import RowSets

MOST_ORDERED_STATES = 6
"""Largest number of states whose k! orders are all looked at."""


class _TreesRows:
    """A side on sets of distributions, whose pairs of values have a tree each."""

    def __init__(self, rows: RowSets) -> None:
        k = self._states = rows.states
        self._trees = no_trees(k)
        self._filled = np.zeros((k, k)), np.full((k, k, k), -1, dtype=np.int32), np.zeros((k, k, k))
        self.limit = largest_leakages(rows)
        """As :attr:`PairBound.limit`."""

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """As :meth:`PairBound.derivative`."""
        return entries_of(*self._filled[1:])


class VertexRows(_TreesRows):
    """The largest leakage over distributions that are any of given sets (Lemma I2).

    Parameters
    ----------
    rows : RowSets
        Distributions of the neighbour given each value of the node, of at most
        :data:`MOST_ORDERED_STATES` states.
    """

    def __init__(self, rows: RowSets) -> None:
        super().__init__(rows)
        k = self._states
        largest, smallest = ([rows.vertices(x, up) for x in range(k)] for up in (True, False))
        self._laws, where = np.unique(
            np.concatenate([*largest, *smallest]), axis=0, return_inverse=True
        )
        # of the distributions, by largest or smallest, value and order
        index = where.reshape(2, k, -1)
        listed = [
            np.unique(np.stack([index[0, x], index[1, y]], axis=1), axis=0)
            if x != y
            else np.empty((0, 2), dtype=int)
            for x in range(k)
            for y in range(k)
        ]
        self._pairs: Ints = np.concatenate(listed).astype(np.int64)
        self._offsets: Ints = np.cumsum([0, *map(len, listed)])
        self._margin = 4.1 * rows.error + 32 * (k + 4) * UNIT_ROUNDOFF

    @property
    def work(self) -> int:
        """Operations of :meth:`bound`, about."""
        return int(len(self._pairs) * self._states**2)

    def bound(self, costs: Floats) -> Floats:
        """As :meth:`PairBound.apply`, the largest over all distributions."""
        k = self._states
        for places in portions(k, self.work // k**2 + 1):
            couple_vertices(
                self._laws, self._pairs, self._offsets, costs, self._trees, self._filled, places
            )
        return np.asarray(self._filled[0] + self._margin * (1 - np.eye(k)))


class AscendingRows(_TreesRows):
    """As :class:`VertexRows`, for any number of states, but from below: of some distributions."""

    def __init__(self, rows: RowSets) -> None:
        super().__init__(rows)
        widths = np.array([part.widths for part in rows.parts])
        totals = np.array([part.totals for part in rows.parts])
        sums = widths.sum(axis=2)
        shares = np.divide(totals, sums, out=np.zeros_like(sums), where=sums > 0)
        centres = rows.base + (shares[:, :, None] * widths).sum(axis=0)
        self._sets = rows.base.copy(), widths, totals, centres

    @property
    def work(self) -> int:
        """Operations of :meth:`bound`, about."""
        return 10 * self._states**5

    def bound(self, costs: Floats) -> Floats:
        """Values that some distributions attain."""
        k = self._states
        for places in portions(k, 10 * k**3):
            couple_ascending(self._sets, costs, self._trees, self._filled, places)
        return self._filled[0].copy()


def largest_leakages(rows: RowSets) -> Floats:
    """Bound, rounded up, of what pairs reveal at any costs, from their largest ratios."""
    margin = 4.1 * rows.error + 32 * (rows.states + 4) * UNIT_ROUNDOFF
    limit = np.maximum(rows.log_ratios().max(axis=2), 0.0) + margin
    np.fill_diagonal(limit, 0.0)
    return np.asarray(limit)
