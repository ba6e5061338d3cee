"""Leakages that a step maps to or below themselves: bounds of every node if steps are equal."""

from __future__ import annotations

import numpy as np

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import (
    DENSE,
    DistributionSet,
    PairBound,
    clear_diagonal,
    costs_of,
)

SLACK = 1e-7
"""Relative excess asked of a post-fixed point, so that rounding cannot spoil it."""

ZERO = np.zeros(())
_SWEEPS = 40
_FINE = 1e-10  # tolerance of iterative solutions


def beginning(rows: DistributionSet) -> Floats:
    """Leakages to start from where none are known, in units of c, (k, k); the same every time."""
    states, centre = len(rows.limit), rows.centre
    if centre is not None:
        now, still = np.zeros((states,) * 2), np.zeros((states,) * 2, np.bool_)
        return newton_step(centre, now, centre.staircases(), still, 1e-3)
    # distinct: plans between equal ones are degenerate, which costs time
    return np.random.default_rng(0).random((states, states)) / 2


class LeakageEquation:
    """A = max(min(Φ_c(A) + extra, cap), floor), for a floor below the cap.

    ``cost`` is c (or a matrix, c where values are distinguishable). ``cap`` bounds the leakages
    otherwise.
    """

    def __init__(
        self,
        side: PairBound,
        cost: Floats | float,
        cap: Floats,
        *,
        extra: Floats = ZERO,
        floor: Floats = ZERO,
    ) -> None:
        self._side, self._cost, self._extra, self._floor = side, cost, extra, floor
        self.cap: Floats = np.minimum(cap, np.maximum(side.limit + extra, floor))
        """The largest leakages there can be."""
        clear_diagonal(self.cap)

    def image(self, now: Floats) -> Floats:
        """The right side."""
        image = self._side.bound(costs_of(now, self._cost)) + self._extra
        # what is no number proves nothing
        image = np.fmin(np.maximum(image, self._floor), self.cap)
        clear_diagonal(image)
        return np.asarray(image)

    def newton_step(self, now: Floats, wanted: Floats, image: Floats) -> Floats:
        """How far to go from ``now``, with this image, until the right side is about ``wanted``."""
        return newton_step(
            self._side, now, wanted, (image >= self.cap) | (image <= self._floor), _FINE
        )


def post_fixed_point(equation: LeakageEquation, start: Floats) -> Floats:
    """A ≥ ``floor`` with min(Φ_c(A), cap) ≤ A, close to the least one.

    It bounds every node of at most ``length``.

    Newton's method on A = Φ_c(A) from ``start``, whose derivative is the matrix of the tilted
    flows: policy iteration over plans.
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


def newton_step(
    side: PairBound, now: Floats, wanted: Floats, fixed: Bools, tolerance: float
) -> Floats:
    """Solve (I − J) d = wanted − now, J the derivative, zero in the rows of ``fixed`` pairs.

    ``tolerance`` is that of an iterative solution, which many states get, relative to the right
    side.
    """
    k = len(now)
    pairs, arcs, weights = side.derivative()
    if fixed.any():
        keep = ~fixed.ravel()[pairs]
        pairs, arcs, weights = pairs[keep], arcs[keep], weights[keep]
    weights = weights * (1 - 1e-10)
    right = (wanted - now).ravel()
    if k <= DENSE:
        system = np.eye(k * k)
        np.subtract.at(system, (pairs, arcs), weights)
        return np.asarray(np.linalg.solve(system, right), dtype=np.float64).reshape(k, k)
    from scipy.sparse import csc_array, csr_array, eye_array
    from scipy.sparse.linalg import LinearOperator, bicgstab, spsolve

    ends = np.searchsorted(pairs, np.arange(k * k + 1))
    jacobian = csr_array((weights, arcs, ends), shape=(k * k, k * k))
    # unscaled, states of different pace take thousands of steps, or it breaks down
    shares = 1 / np.maximum(1 - jacobian.diagonal(), 1e-10)
    operator = LinearOperator(
        (k * k, k * k), matvec=lambda d: shares * (d - jacobian @ d), dtype=np.float64
    )
    with np.errstate(over="ignore", invalid="ignore"):  # of an iteration that diverges
        least = 1e-13 * float(np.linalg.norm(shares * wanted.ravel()))  # rounding
        solution, status = bicgstab(
            operator, shares * right, rtol=tolerance, atol=least, maxiter=2000
        )
    if status or not np.isfinite(solution).all():
        solution = spsolve(csc_array(eye_array(k * k) - jacobian), right)
    return np.asarray(solution).reshape(k, k)
