"""Post-fixed points: leakages of at least their image, bounds of every node for equal steps."""

import numpy as np

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import (
    DENSE,
    DistributionSet,
    PairBound,
    clear_diagonal,
    costs_of,
)

SLACK, _ROUNDING = 1e-7, 1e-14
"""Excess of a post-fixed point over rounding errors: relative, and per state."""

ZERO = np.zeros(())
_SWEEPS = 40
_FINE = 1e-10  # tolerance of iterative solutions


def beginning(rows: DistributionSet) -> Floats:
    """Return initial leakages in units of c, (k, k), the same in every search."""
    states, centre = len(rows.limit), rows.centre
    if centre is not None:
        now, still = np.zeros((states,) * 2), np.zeros((states,) * 2, np.bool_)
        return newton_step(centre, now, centre.staircases(), still, 1e-3)
    # distinct: couplings of equal ones are degenerate and slow
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
        """The largest possible leakages."""
        clear_diagonal(self.cap)

    def image(self, now: Floats) -> Floats:
        """Return the right side."""
        image = self._side.bound(costs_of(now, self._cost)) + self._extra
        # NaN proves nothing
        image = np.fmin(np.maximum(image, self._floor), self.cap)
        clear_diagonal(image)
        return np.asarray(image)

    def newton_step(self, now: Floats, wanted: Floats, image: Floats) -> Floats:
        """Return the Newton step from ``now``, with this image, to a right side of ``wanted``."""
        return newton_step(
            self._side, now, wanted, (image >= self.cap) | (image <= self._floor), _FINE
        )


def post_fixed_point(equation: LeakageEquation, start: Floats) -> Floats:
    """Return A ≥ ``floor`` with min(Φ_c(A), cap) ≤ A, close to the smallest one.

    It bounds every node of at most ``length``.

    Newton's method on A = Φ_c(A) from ``start``, whose derivative is the matrix of the tilted
    flows: policy iteration over couplings.
    """
    cap, now = equation.cap, np.fmin(start, equation.cap)
    more = _ROUNDING * (len(now) + 8)
    for _ in range(_SWEEPS):
        image = equation.image(now)
        wanted = np.minimum(image * (1 + SLACK) + more, cap)
        if (image <= now).all() and (now <= wanted * (1 + SLACK) + more).all():
            return now
        now = np.clip(now + equation.newton_step(now, wanted, image), 0.0, cap)
        if np.isnan(now).any():  # a numerically singular system
            break
    # slower and reliable: from above every iterate is a post-fixed point
    now = cap
    for _ in range(_SWEEPS):
        now = np.minimum(now, equation.image(now))
    return now


def newton_step(
    side: PairBound, now: Floats, wanted: Floats, fixed: Bools, tolerance: float
) -> Floats:
    """Return d with (I − J) d = wanted − now, J the derivative, zero in rows of ``fixed`` pairs.

    ``tolerance`` is relative to the right side, for the iterative solution of many states.
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
    # unscaled systems may take thousands of steps, or break down
    shares = 1 / np.maximum(1 - jacobian.diagonal(), 1e-10)
    operator = LinearOperator(
        (k * k, k * k), matvec=lambda d: shares * (d - jacobian @ d), dtype=np.float64
    )
    with np.errstate(over="ignore", invalid="ignore"):  # if the iteration diverges
        least = 1e-13 * float(np.linalg.norm(shares * wanted.ravel()))  # rounding
        solution, status = bicgstab(
            operator, shares * right, rtol=tolerance, atol=least, maxiter=2000
        )
    if status or not np.isfinite(solution).all():
        solution = spsolve(csc_array(eye_array(k * k) - jacobian), right)
    return np.asarray(solution).reshape(k, k)
