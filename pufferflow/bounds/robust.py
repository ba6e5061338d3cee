"""Leakage through neighbours with bounded distributions; proofs: ``docs/leakage.md``."""

import numpy as np

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.bounds.distribution_sets import Couplings, ExactRows
from pufferflow.models.bounded import RowSets

MAX_ORDERED_STATES = 6
"""Largest number of states for all k! orders."""


class VertexRows(Couplings):
    """The largest leakage over all distributions of given sets (Lemma I2).

    Parameters
    ----------
    rows : RowSets
        Distributions of the neighbour given each value of the node, of at most
        :data:`MAX_ORDERED_STATES` states.
    """

    def __init__(self, rows: RowSets) -> None:
        k, apart = rows.states, ~np.eye(rows.states, dtype=np.bool_)
        largest, smallest = ([rows.vertices(x, up) for x in range(k)] for up in (True, False))
        vertices, where = np.unique(
            np.concatenate([*largest, *smallest]), axis=0, return_inverse=True
        )
        index = where.reshape(2, k, -1)  # by largest or smallest, value and order
        listed = [np.unique(index[[0, 1], [x, y]].T, axis=0) for x in range(k) for y in range(k)]
        super().__init__(
            vertices,
            np.concatenate(listed).astype(np.int64),
            np.cumsum([0, *map(len, listed)]),
            apart,
            rows.high() > 0,
            4.1 * rows.error + 32 * (k + 4) * UNIT_ROUNDOFF,
        )
        self.limit, self.centre = largest_leakages(rows), centre(rows)


def largest_leakages(rows: RowSets) -> Floats:
    """Return bounds, rounded up, of the leakages of pairs at any costs, by their largest ratios."""
    margin = 4.1 * rows.error + 32 * (rows.states + 4) * UNIT_ROUNDOFF
    limit = np.maximum(rows.log_ratios().max(axis=2), 0.0) + margin
    np.fill_diagonal(limit, 0.0)
    return np.asarray(limit)


def centre(rows: RowSets) -> ExactRows:
    """Return a row of each set, with parts distributed in proportion to their widths."""
    found: Floats = rows.base.copy()
    for widths, totals in rows.parts:
        sums = widths.sum(axis=1)
        shares = np.divide(totals, sums, out=np.zeros_like(sums), where=sums > 0)
        found += shares[:, None] * widths
    return ExactRows(found / found.sum(axis=1, keepdims=True))
