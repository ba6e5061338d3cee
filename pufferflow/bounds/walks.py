"""Recursions along nodes with given distributions of their neighbours."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.jit import constant
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.bounds._step_kernels import walk
from pufferflow.bounds.blocks import Block
from pufferflow.bounds.distribution_sets import PORTION, Trees, limits_of

Stored = NDArray[np.float32]

ALWAYS, SELDOM = (1, 1e-7), (8, 1e-3)
"""Number of nodes between checks of trees, and tolerance, in c, of their potentials."""


class EndedError(Exception):
    """The thread that waits for a recursion was interrupted."""


class Stretch:
    """Successive nodes, and the possible distributions of the neighbour of each.

    Parameters
    ----------
    possible : bool array, shape (n + 1, k)
        Values that the neighbour of the first node, and each of the n nodes, can have.
    rows : float array, shape (n, k, k) or (1, k, k), optional
        Known distributions, for each node or for all of them.
    error : float
        Bound on the relative error of each entry, beyond a few roundings.
    spreads : float array, shape (n + 1,), optional
        Distances of the distributions from those of the rows, from the neighbour of the first node
        on; ∞ if the rows do not apply to the following node. 0 by default.
    which : int array, shape (n,), or int
        For every node the number of the ``roots`` of its neighbour's distributions, if these may be
        reweighted in any way, otherwise −1.
    roots : sequence of float arrays, shape (k, k, k)
        As :attr:`ReweightedRows.roots`.
    blocks : sequence of Block
        Blocks to such distributions some steps away.
    """

    def __init__(
        self,
        possible: Bools,
        rows: Floats | None = None,
        error: float = 0.0,
        spreads: Floats | None = None,
        *,
        which: Ints | int = -1,
        roots: Sequence[Floats] = (),
        blocks: Sequence[Block] = (),
    ) -> None:
        self.count, k = len(possible) - 1, possible.shape[1]
        self.possible: Bools = constant(possible)
        self._limits: Floats = np.full((1, k, k), np.inf)
        if rows is None:
            rows, spreads = np.zeros((1, k, k)), np.full(self.count + 1, np.inf)
        elif spreads is None:
            spreads = np.zeros(self.count + 1)
            some = np.array_split(rows, 1 + len(rows) // 100)  # what fits into a cache
            self._limits = np.concatenate([limits_of(part, error) for part in some])
        error = 2 * error + 4 * UNIT_ROUNDOFF
        self._exact = constant(rows), error, constant(spreads)
        self._which = constant(np.full(self.count, which, dtype=np.int64))
        self._roots = constant(np.reshape(roots, (-1, k, k, k)))
        far = [block.rows.roots for block in blocks if block.rows is not None]
        self._steps = constant(np.array([block.steps for block in blocks], dtype=np.int64))
        self._far = constant(np.reshape(far, (-1, k, k, k)))

    def walk(
        self,
        start: Floats,
        costs: Floats,
        cap: Floats | float,
        trees: Trees,
        checks: tuple[int, float] = ALWAYS,
        ended: threading.Event | None = None,
    ) -> tuple[Stored, Floats]:
        """Return leakages of the first node's neighbour and all nodes, rounded up, and of the last.

        The first are ``start``; ``costs`` has c for values that a mechanism can distinguish. The
        kernel returns often enough for signals.
        """
        between = (self._steps - 1) * costs.max() * (1 + 4 * UNIT_ROUNDOFF)
        reweighted = self._which, self._roots, (self._steps, self._far, between)
        limits = costs, constant(np.minimum(cap, self._limits))
        now = np.empty_like(start)
        given = self._exact, reweighted, self.possible, (start, now), limits, trees, checks
        out, step = np.zeros((self.count + 1, *start.shape), dtype=np.float32), 0
        while step < self.count:
            if ended is not None and ended.is_set():
                raise EndedError
            step = walk(*given, out, (step, PORTION))
        return out, now
