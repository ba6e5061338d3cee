"""Leakage between pairs of values through one side of a node, by optimal couplings.

The proofs are in ``docs/leakage.md``; (c) and the numbers of its statements are meant below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.jit import constant, most_threads
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.coupling._pair_kernels import couple, staircase
from pufferflow.coupling._reweighting_kernels import reweight

SLACK = 1e-7
"""Relative excess asked of a post-fixed point, so that rounding cannot spoil it."""

_SWEEPS = 40
_DENSE = 16
_FINE = 1e-10  # tolerance of iterative solutions
PORTION = 10**7
"""Work of a call of a kernel, about: hundredths of a second."""


class Side(Protocol):
    """What a node's value x tells through one neighbour: a monotone map from costs to leakages of pairs."""

    limit: Floats
    """Bound of every leakage of a pair, shape (k, k), ∞ where there is none."""

    def apply(self, costs: Floats) -> Floats:
        """Bound, rounded up, of Φ[x, x'] = max log (p·h)/(q·h) over h > 0 with h(z) ≤ h(y) e^costs[z, y].

        p and q are the distributions of the neighbour given x and x'.
        """

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Derivative of the last values by the costs: pair, arc (both z · k + y) and weight of each entry."""


def scattered(states: int) -> Floats:
    """Leakages to start from where nothing is known, in units of c, shape (k, k).

    They are distinct: plans between equal ones are degenerate, which costs time.
    """
    return np.random.default_rng(0).random((states, states)) / 2


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
        self._rows: Floats = constant(rows)
        self._support = self._rows > 0
        self._secret = np.ones(k, dtype=np.bool_) if secret is None else secret
        self._mirror = False  # whether pairs start from the trees of those turned round
        self._margin = 4.1 * error + 4 * UNIT_ROUNDOFF
        differ = (self._rows[:, None, :] != self._rows[None, :, :]).any(axis=-1) | (error > 0)  # equal after rounding?
        self._apart: Bools = differ & self._secret[:, None] & self._secret[None, :] & ~np.eye(k, dtype=np.bool_)
        self.limit = largest_log_ratios(rows, self._secret) + self._margin

    @cached_property
    def _trees(self) -> Trees:
        """Those that the plans found last grew on; these tables of k³ entries are made where plans are."""
        return no_trees(len(self._rows))

    @cached_property
    def _arcs(self) -> NDArray[np.int32]:
        return np.full((len(self._rows),) * 3, -1, dtype=np.int32)

    @cached_property
    def _flows(self) -> Floats:
        return np.zeros((len(self._rows),) * 3)

    def apply(self, costs: Floats) -> Floats:
        """As :meth:`Side.apply`."""
        k = len(costs)
        solved = self._values, self._upper, self._arcs, self._flows
        mirror, self._mirror = self._mirror, False
        law = self._rows, self._support

        def solve(pairs: tuple[int, int]) -> None:
            couple(*law, costs, self._secret, self._trees, mirror, solved, pairs)

        for_all_pairs(solve, k, k**3)
        return np.where(self._apart, self._upper + self._margin, 0.0)

    def start(self) -> Floats:
        """Leakages in units of c, for small c, of couplings that are monotone along a line, shape (k, k).

        The line is that of the slowest eigenvector, along which differences are forgotten last. They are an upper bound
        but for rounding; the best couplings are looked for from these on.
        """
        k = len(self._rows)
        values, vectors = np.linalg.eig(self._rows)
        slowest = np.argsort(-values.real)[min(1, k - 1)]
        line = np.argsort(vectors[:, slowest].real, kind="stable")
        filled = self._arcs, self._flows
        law = self._rows, self._support, self._secret

        def couple_pairs(pairs: tuple[int, int]) -> None:
            staircase(*law, line, self._trees, filled, pairs)

        for_all_pairs(couple_pairs, k, 10 * k)
        self._mirror = True
        moved = self._flows.sum(axis=-1, where=self._arcs >= 0)
        return _newton_step(self, np.zeros((k, k)), moved, np.zeros((k, k), dtype=np.bool_), 1e-3)

    @property
    def law(self) -> tuple[Any, ...]:
        """What ``leak_along`` takes: the law, room for plans, which pairs are told apart, a margin and a limit."""
        filled = self._values, self._upper, self._arcs, self._flows
        return (self._rows, self._support, self._secret), self._trees, filled, self._apart, self._margin, self.limit

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """As :meth:`Side.derivative`."""
        return entries_of(self._arcs, self._flows)


class RatioSide:
    """A side whose distributions are known up to any reweighting, from bounds of their ratios: Lemma 6, Theorem I1.

    Parameters
    ----------
    log_ratios : float array, shape (k, k, k)
        By x, x' and a value y of the neighbour, bounds of log of the weight of y given x to that given x'; −∞ where y
        has no weight given x.
    """

    def __init__(self, log_ratios: Floats) -> None:
        both = log_ratios.max(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            roots = np.where(log_ratios == -np.inf, -1.0, np.exp(log_ratios / 2) * (1 + 8 * UNIT_ROUNDOFF))
            limit = both + both.T
        limit = np.maximum(np.where(np.isnan(limit), 0.0, limit), 0.0) * (1 + 64 * UNIT_ROUNDOFF)
        clear_diagonal(limit)
        self._begin(roots, limit)

    def _begin(self, roots: Floats, limit: Floats) -> None:
        k = len(limit)
        self.roots: Floats = constant(roots)
        """As ``reweight`` takes them."""
        self.limit = limit
        self._filled = np.zeros((k, k)), np.full((k, k, 1), -1, dtype=np.int32), np.zeros((k, k, 1))

    def start(self) -> Floats:
        """Leakages to start from, as those of a :class:`CouplingSide`; no couplings are known that are close."""
        return scattered(len(self.limit))

    @property
    def work(self) -> int:
        """Operations of :meth:`apply`, about."""
        return int(len(self.limit) ** 4)

    def apply(self, costs: Floats) -> Floats:
        """As :meth:`Side.apply`, the largest over all reweightings."""
        k = len(costs)
        for pairs in portions(k, k**2):
            reweight(self.roots, costs, self._filled, pairs)
        return self._filled[0].copy()

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """As :meth:`Side.derivative`."""
        return entries_of(*self._filled[1:])


class ForgettingSide(RatioSide):
    """The past of a node when the distribution of the node before it is not known: the largest leakage over all.

    What lies ahead of a node whose next node has an unknown distribution, because later records may be known, is the
    past under the transposed matrix: the distribution of the next node is proportional to a row of P times anything.

    Parameters
    ----------
    transition_matrix : float array, shape (k, k)
        Its rows need not sum to 1; those of zeros are of states that the node before cannot take.
    """

    def __init__(self, transition_matrix: Floats) -> None:
        rows = np.ascontiguousarray(transition_matrix.T)
        secret: Bools = np.asarray(rows.any(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(rows)
            roots = root[:, None, :] / root[None, :, :]
        roots[~((rows[:, None, :] > 0) & secret[:, None, None] & secret[None, :, None])] = -1.0
        self._begin(roots, largest_log_cross_ratios(rows, secret))


ChainSide: TypeAlias = CouplingSide | RatioSide
"""A side of a node of a known chain."""


Trees: TypeAlias = tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int32]]
"""Those of all pairs of values, as ``read_tree`` takes them."""


def no_trees(k: int) -> Trees:
    """Room for the trees of all pairs."""
    return np.full((k, k, k), -1, np.int16), np.zeros((k, k, k), np.int16), np.zeros((k, k, k), np.int32)


def portions(k: int, work: int) -> Iterator[tuple[int, int]]:
    """Cut the k² pairs of states, of so much ``work`` each, so that kernels return before a signal has waited long."""
    return ranges(k * k, work)


def ranges(count: int, work: int) -> Iterator[tuple[int, int]]:
    """Cut so many things, of so much ``work`` each."""
    size = max(1, PORTION // work)
    for start in range(0, count, size):
        yield start, min(start + size, count)


def for_all_pairs(kernel: Callable[[tuple[int, int]], None], k: int, work: int) -> None:
    """Call ``kernel`` with ranges of the k² pairs of states, of so much ``work`` each, on the threads of numba.

    A kernel that fills only the places of its pairs gives the same on any number of threads.
    """
    if k * k * work <= PORTION:
        kernel((0, k * k))
        return
    parts, threads = list(portions(k, work)), most_threads()
    if threads == 1 or len(parts) < 2 * threads:
        for part in parts:
            kernel(part)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        list(pool.map(kernel, parts))
    finally:
        pool.shutdown(cancel_futures=True)


def largest_log_ratios(rows: Floats, secret: Bools) -> Floats:
    """Max over z of log rows[x, z] / rows[x', z], rounded up; 0 for pairs that are not both secrets."""
    table = largest_logs(rows)
    if not secret.all():
        table = np.where(secret[:, None] & secret[None, :], table, 0.0)
    return np.where(table > 0, table * (1 + 8 * UNIT_ROUNDOFF) + 2000 * UNIT_ROUNDOFF, 0.0)


def largest_log_cross_ratios(rows: Floats, secret: Bools) -> Floats:
    """Max over z, z' of log rows[x, z] rows[x', z'] / (rows[x', z] rows[x, z']), rounded up; as above."""
    table = largest_logs(rows)
    with np.errstate(invalid="ignore"):
        both = table + table.T
        rounding = 8 * UNIT_ROUNDOFF * (np.abs(table) + np.abs(table.T)) + 4000 * UNIT_ROUNDOFF
        both = np.where(np.isfinite(both), np.maximum(both, 0.0) + rounding, np.inf)
    both[~(secret[:, None] & secret[None, :])] = 0.0
    np.fill_diagonal(both, 0.0)
    return both


def largest_logs(rows: Floats) -> Floats:
    """Max over z of log rows[x, z] / rows[x', z], shape (k, k), rows being any numbers of at least 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        logs = np.log(rows)
        if len(logs) <= _DENSE:
            return np.asarray(np.fmax.reduce(logs[:, None, :] - logs, axis=2, initial=-np.inf))
        return np.array([np.fmax.reduce(row - logs, axis=1, initial=-np.inf) for row in logs])


def reached(states: Bools, matrix: Floats) -> Bools:
    """States that can follow one of ``states``, shape (k,)."""
    return np.asarray((matrix[states] > 0).any(axis=0))


def clear_diagonal(table: Floats) -> None:
    """Set the diagonal to 0, in a third of the time that ``np.fill_diagonal`` takes."""
    if table.flags.forc:  # a view, whichever of the two orders it lies in
        table.reshape(-1, order="A")[:: len(table) + 1] = 0.0
    else:
        np.fill_diagonal(table, 0.0)


def costs_of(leakage: Floats, cost: Floats | float) -> Floats:
    """w(z, y) = c·1[z ≠ y] + A[z, y]; or c only where ``cost`` has it."""
    w = leakage + cost
    clear_diagonal(w)
    return w


class LeakageEquation:
    """A = max(min(Φ_c(A) + extra, cap), floor), for a floor below the cap.

    ``cost`` is c (or a matrix, c where values are told apart). ``cap`` bounds the leakages otherwise.
    """

    def __init__(
        self, side: Side, cost: Floats | float, cap: Floats, *, extra: Floats | float = 0.0, floor: Floats | float = 0.0
    ) -> None:
        self._side, self._cost, self._extra, self._floor = side, cost, extra, floor
        self.cap: Floats = np.minimum(cap, np.maximum(side.limit + extra, floor))
        """The largest leakages there can be."""
        clear_diagonal(self.cap)

    def image(self, now: Floats) -> Floats:
        """The right side."""
        image = self._side.apply(costs_of(now, self._cost)) + self._extra
        image = np.fmin(np.maximum(image, self._floor), self.cap)  # what is no number proves nothing
        clear_diagonal(image)
        return np.asarray(image)

    def newton_step(self, now: Floats, wanted: Floats, image: Floats) -> Floats:
        """How far to go from ``now``, with this image, to where the right side is about ``wanted``."""
        return _newton_step(self._side, now, wanted, (image >= self.cap) | (image <= self._floor), _FINE)


def post_fixed_point(equation: LeakageEquation, start: Floats) -> Floats:
    """A ≥ ``floor`` with min(Φ_c(A), cap) ≤ A, close to the least one: a bound for every node of at most ``length``.

    Newton's method on A = Φ_c(A) from ``start``, whose derivative is the matrix of the tilted flows: policy iteration
    over plans.
    """
    cap, now = equation.cap, np.fmin(start, equation.cap)
    for _ in range(_SWEEPS):
        image = equation.image(now)
        wanted = np.minimum(image * (1 + SLACK), cap)
        if (image <= now).all() and (now <= wanted * (1 + SLACK) + 1e-300).all():
            return now
        now = np.clip(now + equation.newton_step(now, wanted, image), 0.0, cap)
        if np.isnan(now).any():  # a system that floats cannot solve
            break
    # slower and sure: from above, where every iterate is a post-fixed point
    now = cap
    for _ in range(_SWEEPS):
        now = np.minimum(now, equation.image(now))
    return now


def _newton_step(side: Side, now: Floats, wanted: Floats, fixed: Bools, tolerance: float) -> Floats:
    """Solve (I − J) d = wanted − now, J the derivative, zero in the rows of ``fixed`` pairs.

    ``tolerance`` is that of an iterative solution, which many states get, relative to the right side.
    """
    k = len(now)
    pairs, arcs, weights = side.derivative()
    if fixed.any():
        keep = ~fixed.ravel()[pairs]
        pairs, arcs, weights = pairs[keep], arcs[keep], weights[keep]
    weights = weights * (1 - 1e-10)
    right = (wanted - now).ravel()
    if k <= _DENSE:
        system = np.eye(k * k)
        np.subtract.at(system, (pairs, arcs), weights)
        return np.asarray(np.linalg.solve(system, right), dtype=np.float64).reshape(k, k)
    from scipy.sparse import csc_array, csr_array, eye_array
    from scipy.sparse.linalg import LinearOperator, bicgstab, spsolve

    ends = np.searchsorted(pairs, np.arange(k * k + 1))
    jacobian = csr_array((weights, arcs, ends), shape=(k * k, k * k))
    # unscaled, states of different pace take thousands of steps, or it breaks down
    shares = 1 / np.maximum(1 - jacobian.diagonal(), 1e-10)
    operator = LinearOperator((k * k, k * k), matvec=lambda d: shares * (d - jacobian @ d), dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # of an iteration that diverges
        least = 1e-13 * float(np.linalg.norm(shares * wanted.ravel()))  # rounding
        solution, status = bicgstab(operator, shares * right, rtol=tolerance, atol=least, maxiter=2000)
    if status or not np.isfinite(solution).all():
        solution = spsolve(csc_array(eye_array(k * k) - jacobian), right)
    return np.asarray(solution).reshape(k, k)


def entries_of(arcs: NDArray[Any], flows: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Pairs of values, arcs that bind them and flows along these: the derivative of what a side tells."""
    filled = np.flatnonzero(arcs >= 0)
    return filled // arcs.shape[-1], arcs.ravel()[filled].astype(np.int64), flows.ravel()[filled]
