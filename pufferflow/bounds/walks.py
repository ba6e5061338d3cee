"""Walks along nodes one after another, each with what is known of its neighbour."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.jit import constant
from pufferflow._util.types import Bools, Floats
from pufferflow.bounds._step_kernels import walk
from pufferflow.bounds.blocks import Block
from pufferflow.bounds.distribution_sets import (
    PORTION,
    ReweightedRows,
    Trees,
    each_pair,
    no_trees,
)

Stored = NDArray[np.float32]

ALWAYS, SELDOM = (1, 1e-7), (8, 1e-3)
"""Nodes between checks of trees, and how far, in c, their potentials may leave the polytope."""


class EndedError(Exception):
    """The thread that waits for a walk was interrupted."""


class Stretch:
    """Nodes one after another, and the distributions of the neighbour of each that are possible.

    Parameters
    ----------
    possible : bool array, shape (n + 1, k)
        Values that the neighbour of the first node, and each of the n nodes, can have.
    rows : float array, shape (n, k, k) or (1, k, k), optional
        Known distributions, of each node or of all of them.
    error : float
        By how much one differs from the true one at most, in total variation.
    alike : bool array, shape (k, k), optional
        Pairs of values with surely the same distribution, at every node.
    spreads : float array, shape (n + 1,), optional
        How far the distributions are from those that rows are of, from the neighbour of the first
        node on; ∞ where rows say nothing of the node that follows. 0 by default.
    reweighted : sequence of ReweightedRows or None, of n or of 1
        Those that may be reweighted in any way, where these are known; one serves all nodes.
    blocks : sequence of Block
        Of such distributions some steps away.
    every : bool
        Whether blocks are taken at every node, or at every so many as they have steps.
    limits : float array, shape (n, k, k) or (1, k, k), optional
        Bounds of the leakages at any c.
    """

    def __init__(
        self,
        possible: Bools,
        rows: Floats | None = None,
        error: float = 0.0,
        *,
        alike: Bools | None = None,
        spreads: Floats | None = None,
        reweighted: Sequence[ReweightedRows | None] = (),
        blocks: Sequence[Block] = (),
        every: bool = True,
        limits: Floats | None = None,
    ) -> None:
        self.count, k = len(possible) - 1, possible.shape[1]
        self.possible: Bools = constant(possible)
        if spreads is None:
            spreads = np.full(self.count + 1, np.inf if rows is None else 0.0)
        alike = np.zeros((k, k), dtype=np.bool_) if alike is None else alike
        rows = np.zeros((1, k, k)) if rows is None else rows
        pairs, starts = map(constant, each_pair(k))
        self._exact = constant(rows), error, constant(alike), constant(spreads), (pairs, starts)
        tables = list(dict.fromkeys(table for table in reweighted if table is not None))
        which = np.array(
            [-1 if table is None else tables.index(table) for table in reweighted or [None]]
        )
        which = np.broadcast_to(which, (self.count,))
        roots = np.array([table.roots for table in tables]) if tables else np.zeros((0, k, k, k))
        self._which, self._roots = constant(which), constant(roots)
        self._blocks = list(blocks)
        steps = np.array([block.steps for block in blocks], dtype=np.int64)
        block_roots = [block.rows.roots for block in blocks if block.rows is not None]
        self._stacked: tuple[Any, ...] = (
            constant(steps),
            constant(np.ones_like(steps) if every else steps),
            constant(np.array(block_roots) if block_roots else np.zeros((0, k, k, k))),
        )
        self.limits: Floats = np.full((1, k, k), np.inf) if limits is None else limits

    def walk(
        self,
        start: Floats,
        costs: Floats,
        cap: Floats | float,
        trees: Trees,
        checks: tuple[int, float] = ALWAYS,
        ended: threading.Event | None = None,
    ) -> tuple[Stored, Floats]:
        """Leakages of the first node's neighbour and of all nodes, rounded up, and of the last.

        The first are ``start``; ``costs`` has c where a mechanism sees a difference. In calls that
        return before a signal has waited long.
        """
        tables = start, start.copy(), np.empty_like(start), np.empty_like(start)
        extra = np.array([block.extra(float(costs.max())) for block in self._blocks])
        reweighted = self._which, self._roots, (*self._stacked, extra)
        limits = costs, constant(np.minimum(cap, self.limits))
        out, place = np.zeros((self.count + 1, *start.shape), dtype=np.float32), 0
        while place < out[1:].size:
            if ended is not None and ended.is_set():
                raise EndedError
            portion = (place, PORTION)
            place = walk(
                self._exact, reweighted, self.possible, tables, limits, trees, checks, out, portion
            )
        return out, tables[1]


def tree_parents(trees: Trees) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the tree of every pair: each node's parent, from 1, and 0 for the root.

    The parent is negative where the arc leads from there to the node.
    """
    nodes, above, arcs, _ = trees
    k = len(nodes)
    for x, y in np.argwhere(nodes[:, :, 0] >= 0).tolist():
        line = nodes[x, y].tolist()
        parents = [line[0] + 1] * k  # of states that follow neither x nor y
        parents[line[0]] = 0
        for i in range(1, line.index(-1) if -1 in line else k):
            parents[line[i]] = (1 if arcs[x, y, i] < k * k else -1) * (line[above[x, y, i]] + 1)
        yield x, y, parents


def walk_once(
    rows: Floats, possible: Bools, leakages: Floats, costs: Floats
) -> tuple[float, Trees]:
    """Largest Φ of pairs of distributions, rounded up, and the trees that prove it."""
    there, trees = np.array([np.ones_like(possible), possible]), no_trees(len(rows))
    _, now = Stretch(there, rows[None]).walk(leakages, costs, np.inf, trees)
    return float(now.max()), trees
