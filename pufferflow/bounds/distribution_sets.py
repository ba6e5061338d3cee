"""Sets of distributions of a node's neighbour given its value, and bounds of their leakage.

Each set bounds Φ for all pairs of values (``docs/leakage.md``): known rows by optimal couplings,
rows that side information or any start may reweight in closed form (Lemma 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.jit import constant, most_threads
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.bounds._step_kernels import beyond_stationary, couple, reweight
from pufferflow.models.bounded import RowSets

Arcs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], Floats]
"""The derivative of leakages by costs: pair, arc (both z · k + y) and weight."""

PORTION = 10**7
"""Approximate work of a call of a kernel: hundredths of a second."""
OFF = 1e-12
"""Relative tolerance for the potentials of a reused tree."""


class PairBound(Protocol):
    """A bound of the leakage of a node through one neighbour: a monotone map of costs."""

    limit: Floats
    """Bounds of the leakages of pairs for any costs, shape (k, k), ∞ without a bound."""

    def bound(self, costs: Floats) -> Floats:
        """Return a bound, rounded up, of Φ[x, x'] = max log (p·h)/(q·h).

        The maximum is over h > 0 with h(z) ≤ h(y) e^costs[z, y]; p and q are the distributions of
        the neighbour given x and x'.
        """

    def derivative(self) -> Arcs:
        """Return the derivative of the last values by the costs."""


class ExactRows:
    """Known distributions of the neighbour: optimal couplings of every pair.

    Parameters
    ----------
    rows : float array, shape (k, k)
        Distribution of the neighbour given each value of the node; 0 if it cannot have the value.
    error : float
        Bound on the relative error of each entry, beyond a few roundings; zeros are exact.
    spread : float
        Distance of the distribution of the neighbour, and of every node after it, from that of the
        rows; its addend (Lemma 7) depends on the largest cost.
    """

    def __init__(self, rows: Floats, error: float = 0.0, spread: float = 0.0) -> None:
        self.rows, self.error, self.spread = constant(rows), error, spread
        limit, self._margin = limits_of(rows, error), 4.1 * error + 4 * UNIT_ROUNDOFF
        self._distinct: Bools = limit > 0
        self._trees = no_trees(len(rows), flows=True)
        self.limit: Floats = limit + 2 * spread * (1 - np.eye(len(rows)))

    def bound(self, costs: Floats) -> Floats:
        """As :meth:`PairBound.bound`."""
        k, farthest = len(costs), float(costs.max())
        upper = np.zeros((k, k))
        given = self.rows, self._distinct, costs, self._trees, upper, OFF * farthest
        in_portions(lambda places: couple(*given, places), k**2, k**3)
        bound = np.where(self._distinct, upper + self._margin, 0.0)
        if self.spread:
            beyond = beyond_stationary(self.spread, self.spread, farthest)
            bound = np.where(np.eye(k), 0.0, bound + beyond)
        return bound

    def derivative(self) -> Arcs:
        """As :meth:`PairBound.derivative`."""
        _, _, arcs, flows = self._trees
        k, filled = len(flows), np.flatnonzero(flows)
        return filled // k, arcs.ravel()[filled].astype(np.int64) % k**2, flows.ravel()[filled]

    def parents(self) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the tree of every pair: each state's parent, from 1, and 0 for the root.

        The parent is negative if the arc leads from it to the state.
        """
        nodes, above, arcs, _ = self._trees
        k = len(nodes)
        for x, y in np.argwhere(nodes[:, :, 0] >= 0).tolist():
            line = nodes[x, y].tolist()
            parents = [line[0] + 1] * k  # of states that follow neither x nor y
            parents[line[0]] = 0
            for i in range(1, line.index(-1) if -1 in line else k):
                up = 1 if arcs[x, y, i] < k * k else -1
                parents[line[i]] = up * (line[above[x, y, i]] + 1)
            yield x, y, parents


class ReweightedRows:
    """Distributions of the neighbour that are known up to any reweighting: Lemma 6, Theorem I1.

    Parameters
    ----------
    log_ratios : float array, shape (k, k, k)
        By x, x' and a value y of the neighbour, bounds of the log ratio of the weight of y given x
        to that given x'; −∞ if y has no weight given x. Values without any weights do not occur.
    """

    def __init__(self, log_ratios: Floats) -> None:
        k, both = len(log_ratios), log_ratios.max(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            roots = np.exp(log_ratios / 2) * (1 + 8 * UNIT_ROUNDOFF)
            limit = (both + both.T) * (1 + 64 * UNIT_ROUNDOFF)
        self.roots: Floats = constant(np.where(log_ratios == -np.inf, -1.0, roots))
        self.limit: Floats = np.where(np.eye(k), 0.0, np.fmax(limit, 0.0))
        self._arcs, self._slopes = np.zeros((k, k), dtype=np.int64), np.zeros((k, k))

    def bound(self, costs: Floats) -> Floats:
        """As :meth:`PairBound.bound`, the largest over all reweightings."""
        k = len(costs)
        bound = np.where(np.eye(k), 0.0, np.inf)
        reweight(self.roots, costs, 0.0, (bound, self._arcs, self._slopes))
        return bound

    def derivative(self) -> Arcs:
        """As :meth:`PairBound.derivative`."""
        filled = np.flatnonzero(self._slopes)
        return filled, self._arcs.ravel()[filled], self._slopes.ravel()[filled]


def reweighted_rows(weights: Floats) -> ReweightedRows:
    """Return the distributions proportional to a row of ``weights`` times any positive factors.

    With rows of P these are the distributions of the next node if later records may be known, with
    rows of its transpose those of the node before under its every distribution. Rows need not sum
    to 1; rows of zeros belong to values that the node cannot have.
    """
    return ReweightedRows(RowSets(weights, ()).log_ratios())


Trees: TypeAlias = tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int32], Floats]
"""Trees of all pairs of values, in the format of ``read_tree``, perhaps without flows."""


def no_trees(k: int, *, flows: bool = False) -> Trees:
    """Return empty arrays for the trees of all pairs."""
    shape = (k, k, k)
    nodes, above, arcs = np.full(shape, -1, np.int16), np.zeros(shape, np.int16), np.zeros(shape)
    return nodes, above, arcs.astype(np.int32), np.zeros(shape if flows else (0, 0, 0))


def in_portions(kernel: Callable[[tuple[int, int]], object], count: int, work: int) -> None:
    """Call ``kernel`` with ranges of places, of ``work`` operations each, on numba's threads.

    A kernel that fills only the entries of its places gives the same on any number of threads.
    """
    if count * work <= PORTION:
        kernel((0, count))
        return
    size, threads = max(1, PORTION // work), most_threads()  # so that a signal never waits long
    parts = [(start, min(start + size, count)) for start in range(0, count, size)]
    pool = ThreadPoolExecutor(threads)
    try:
        list(pool.map(kernel, parts))
    finally:
        pool.shutdown(cancel_futures=True)


def limits_of(rows: Floats, error: float) -> Floats:
    """Return bounds of the leakages of pairs at any costs, shape (…, k, k); 0 for equal rows."""
    there: Bools = np.asarray(rows.any(axis=-1))
    distinct = there[..., None] & there[..., None, :] & ~np.eye(rows.shape[-1], dtype=np.bool_)
    if not error:  # otherwise they may be equal by rounding
        distinct &= (rows[..., None, :] != rows[..., None, :, :]).any(axis=-1)
    limits = largest_log_ratios(rows, distinct) + 4.1 * error + 4 * UNIT_ROUNDOFF
    return np.where(distinct, limits, 0.0)


def largest_log_ratios(rows: Floats, distinct: Bools) -> Floats:
    """Return max_z log rows[x, z] / rows[x', z], rounded up; 0 unless the pair is ``distinct``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(rows)
        largest = np.fmax.reduce(logs[..., None, :] - logs[..., None, :, :], axis=-1)
    table = np.where(distinct, largest, 0.0)
    return np.where(table > 0, table * (1 + 8 * UNIT_ROUNDOFF) + 2000 * UNIT_ROUNDOFF, 0.0)


def conditional(joint: Floats) -> Floats:
    """Return the last axis of joint distributions given the others; 0 if these never occur."""
    totals = joint.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(joint, totals, out=np.zeros_like(joint), where=totals > 0))
