"""Leakage between pairs of values through one side of a node, by optimal couplings.

The proofs are in ``docs/leakage.md``; (c) and the numbers of its statements are meant below.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling._pair_kernels import couple, forget

SLACK = 1e-6
"""Relative excess asked of a post-fixed point, so that rounding cannot spoil it."""

_SWEEPS = 40
_NONE = np.zeros((0, 0, 0))
_DENSE = 16
_SLOW = 1e-2
_PORTION = 10**7


class Side(Protocol):
    """What a node's value x tells through one neighbour: a monotone map from costs to leakages of pairs."""

    limit: Floats
    """Bound of every leakage of a pair, shape (k, k), ∞ where there is none."""

    def apply(self, costs: Floats, linear: bool = False) -> Floats:
        """Bound, rounded up, of Φ[x, x'] = max log (p·h)/(q·h) over h > 0 with h(z) ≤ h(y) e^costs[z, y].

        p and q are the laws of the neighbour given x and x'. ``linear``: of the limit Φ_{tw}/t for t → 0.
        """

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Derivative of the last values by the costs: pair, arc (both z · k + y) and weight of each entry."""


class CouplingSide:
    """A side with known laws of the neighbour.

    Parameters
    ----------
    rows : float array, shape (k, k)
        Law of the neighbour given each value of the node.
    error : float
        Bound on the relative error of each entry, beyond a few roundings; zeros are exact.
    secret : bool array, shape (k,), optional
        Values the node can take; other rows are left out.
    """

    def __init__(self, rows: Floats, error: float = 0.0, secret: Bools | None = None) -> None:
        k = len(rows)
        self._values = np.zeros((k, k))
        self._upper = np.zeros((k, k))
        self._rows = np.ascontiguousarray(rows)
        self._support = self._rows > 0
        self._secret = np.ones(k, dtype=np.bool_) if secret is None else secret
        self._margin = 4.1 * error + 4 * UNIT_ROUNDOFF
        differ = (self._rows[:, None, :] != self._rows[None, :, :]).any(axis=-1) | (error > 0)  # equal after rounding?
        self._apart: Bools = differ & self._secret[:, None] & self._secret[None, :] & ~np.eye(k, dtype=np.bool_)
        self.limit = largest_log_ratios(rows, self._secret) + self._margin
        self.distances: Floats = (
            np.array([np.maximum(row - self._rows, 0.0).sum(axis=-1) for row in self._rows]) + self._margin
        )
        """Total variation distances of the rows, rounded up."""

    @cached_property
    def _trees(self) -> NDArray[np.int16]:
        """Those that the plans found last grew on; these tables of k³ entries are made where plans are."""
        return np.full((len(self._rows),) * 3, -2, dtype=np.int16)

    @cached_property
    def _arcs(self) -> NDArray[np.int32]:
        return np.full((len(self._rows),) * 3, -1, dtype=np.int32)

    @cached_property
    def _flows(self) -> Floats:
        return np.zeros((len(self._rows),) * 3)

    def apply(self, costs: Floats, linear: bool = False) -> Floats:
        """As :meth:`Side.apply`."""
        self._couple(costs, linear, _NONE)
        added = self._margin * (float(costs.max()) if linear else 1.0)
        return np.where(self._apart, self._upper + added, 0.0)

    def _couple(self, costs: Floats, linear: bool, plain: Floats) -> None:
        solved = self._values, self._upper, self._arcs, self._flows, plain
        k = len(costs)
        for pairs in portions(k, k**3):
            couple(self._rows, self._support, costs, self._secret, self._trees, linear, solved, pairs)

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """As :meth:`Side.derivative`."""
        return _entries(self._arcs, self._flows)

    def plans(self, costs: Floats) -> tuple[NDArray[Any], Floats]:
        """Arcs z · k + y (−1: none) and flows g of optimal plans for all pairs, shape (k, k, k)."""
        plain = np.zeros_like(self._flows)
        self._couple(costs, False, plain)
        return self._arcs, plain


class ForgettingSide:
    """The past of a node when the law of the node before it is not known: the largest leakage over all laws.

    Parameters
    ----------
    transition_matrix : float array, shape (k, k)
    """

    def __init__(self, transition_matrix: Floats) -> None:
        k = len(transition_matrix)
        self._rows = np.ascontiguousarray(transition_matrix.T)
        self._secret: Bools = np.asarray(self._rows.any(axis=1))
        self._upper = np.zeros((k, k))
        self._arcs = np.full((k, k, 1), -1, dtype=np.int32)
        self._flows = np.zeros((k, k, 1))
        self.limit = largest_log_cross_ratios(self._rows, self._secret)

    def apply(self, costs: Floats, linear: bool = False) -> Floats:
        """As :meth:`Side.apply`, the largest over all laws of the node before."""
        k = len(costs)
        filled = self._upper, self._arcs, self._flows
        for pairs in portions(k, k**2):
            forget(self._rows, costs, self._secret, linear, filled, pairs)
        return self._upper * (1 + 8 * UNIT_ROUNDOFF)

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """As :meth:`Side.derivative`."""
        return _entries(self._arcs, self._flows)


def portions(k: int, work: int) -> Iterator[tuple[int, int]]:
    """Cut the k² pairs of states, of so much ``work`` each, so that kernels return before a signal has waited long."""
    size = max(1, _PORTION // work)
    for start in range(0, k * k, size):
        yield start, min(start + size, k * k)


def largest_log_ratios(rows: Floats, secret: Bools) -> Floats:
    """Max over z of log rows[x, z] / rows[x', z], rounded up; 0 for pairs that are not both secrets."""
    table = np.where(secret[:, None] & secret[None, :], _largest_logs(rows), 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(table > 0, table * (1 + 8 * UNIT_ROUNDOFF) + 2000 * UNIT_ROUNDOFF, 0.0)


def largest_log_cross_ratios(rows: Floats, secret: Bools) -> Floats:
    """Max over z, z' of log rows[x, z] rows[x', z'] / (rows[x', z] rows[x, z']), rounded up; as above."""
    table = _largest_logs(rows)
    with np.errstate(invalid="ignore"):
        both = table + table.T
        rounding = 8 * UNIT_ROUNDOFF * (np.abs(table) + np.abs(table.T)) + 4000 * UNIT_ROUNDOFF
        both = np.where(np.isfinite(both), np.maximum(both, 0.0) + rounding, np.inf)
    both[~(secret[:, None] & secret[None, :])] = 0.0
    np.fill_diagonal(both, 0.0)
    return both


def _largest_logs(rows: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        logs = np.log(rows)
        return np.array([np.nanmax(row[None, :] - logs, axis=1, initial=-np.inf) for row in logs])


def reached(states: Bools, matrix: Floats) -> Bools:
    """States that can follow one of ``states``, shape (k,)."""
    return np.asarray((matrix[states] > 0).any(axis=0))


def costs_of(leakage: Floats, cost: float) -> Floats:
    """w(z, y) = c·1[z ≠ y] + A[z, y]."""
    w = leakage + cost
    np.fill_diagonal(w, 0.0)
    return w


def post_fixed_point(
    side: Side, cost: float, cap: Floats, start: Floats, *, linear: bool = False, extra: Floats | float = 0.0
) -> Floats:
    """A with min(Φ_c(A), cap) ≤ A, close to the least one, so a bound for every node of at most ``length`` ones.

    Newton's method on A = Φ_c(A), whose derivative is the matrix of the tilted flows: policy iteration over plans.
    ``cost`` is c, 1 where ``linear``: then the limit of small c is taken, in units of c. ``cap`` bounds the leakages
    otherwise, ``start`` is where to start, and ``extra`` is added to Φ.
    """
    cap = cap.copy() if linear else np.minimum(cap, side.limit)
    np.fill_diagonal(cap, 0.0)
    now = np.minimum(start, cap)
    for _ in range(_SWEEPS):
        image = np.minimum(side.apply(costs_of(now, cost), linear) + extra, cap)
        np.fill_diagonal(image, 0.0)
        wanted = np.minimum(image * (1 + SLACK), cap)
        if (image <= now).all() and (now <= wanted * (1 + SLACK) + 1e-300).all():
            return now
        now = np.clip(now + _solve(side, wanted - now, image >= cap), 0.0, cap)
    # slower and sure: from above, where every iterate is a post-fixed point
    now = cap
    for _ in range(_SWEEPS):
        image = np.minimum(side.apply(costs_of(now, cost), linear) + extra, cap)
        np.fill_diagonal(image, 0.0)
        now = np.minimum(now, image)
    return now


def _solve(side: Side, residual: Floats, capped: Bools) -> Floats:
    """Solve (I − J) d = residual, J the derivative, zero in the rows of capped pairs."""
    k = len(residual)
    pairs, arcs, weights = side.derivative()
    keep = ~capped.ravel()[pairs]
    pairs, arcs, weights = pairs[keep], arcs[keep], weights[keep] * (1 - 1e-10)
    right = residual.ravel()
    if k <= _DENSE:
        system = np.eye(k * k)
        np.subtract.at(system, (pairs, arcs), weights)
        return np.asarray(np.linalg.solve(system, right), dtype=np.float64).reshape(k, k)
    from scipy.sparse import csc_array, csr_array, diags_array, eye_array
    from scipy.sparse.linalg import bicgstab, spsolve

    sparse = csr_array(eye_array(k * k) - csr_array((weights, (pairs, arcs)), shape=(k * k, k * k)))
    diagonal = sparse.diagonal()
    if diagonal.min() < _SLOW:  # unscaled, states of different pace take thousands of steps, or it breaks down
        shares = 1 / np.maximum(diagonal, 1e-10)
        sparse, right = csr_array(diags_array(shares) @ sparse), shares * right
    with np.errstate(over="ignore", invalid="ignore"):  # of an iteration that diverges
        solution, status = bicgstab(sparse, right, rtol=1e-10, maxiter=2000)
    if status or not np.isfinite(solution).all():
        solution = spsolve(csc_array(sparse), right)
    return np.asarray(solution).reshape(k, k)


def _entries(arcs: NDArray[Any], flows: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    x, y, v = np.nonzero(arcs >= 0)
    return x * len(arcs) + y, arcs[x, y, v].astype(np.int64), flows[x, y, v]
