"""Post-fixed points: leakages of at least their image, bounds of every node for equal steps."""

import numpy as np

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import PairBound

SLACK, _ROUNDING = 1e-7, 1e-14
"""Excess of a post-fixed point over rounding errors: relative, and per state."""

_SWEEPS, _DENSE = 40, 16
_SMALL = 1e-3
_FINE = 1e-10  # tolerance of iterative solutions


def beginning(rows: PairBound, most: int) -> Floats:
    """Return rough leakages at small costs in units of c, (k, k), the same in every search.

    They are at most ``most``. Sets are represented by their ``middle``.
    """
    rows = getattr(rows, "middle", rows)
    costs = _SMALL * (1 - np.eye(len(rows.limit)))
    # distinct: couplings of equal ones are degenerate and slow
    now = np.random.default_rng(0).random(costs.shape) * _SMALL / 2
    for _ in range(2):
        step = newton_step(rows, now, rows.bound(now + costs), costs == 0)
        now = np.maximum(np.fmin(now + step, most * costs), 0.0)
    return now / _SMALL


def post_fixed_point(
    side: PairBound,
    costs: Floats,
    cap: Floats,
    start: Floats,
    *,
    extra: Floats | float = 0.0,
    floor: Floats | float = 0.0,
) -> Floats:
    """Return A ≥ ``floor`` with min(Φ(costs + A) + ``extra``, cap) ≤ A, close to the smallest one.

    ``costs`` has c where values are distinguishable. ``cap`` bounds the leakages otherwise, with
    zeros on the diagonal; ``floor`` is below it.

    Newton's method on A = max(min(Φ + extra, cap), floor) from ``start``, whose derivative is the
    matrix of the tilted flows: policy iteration over couplings.
    """

    def image_of(now: Floats) -> Floats:
        # NaN proves nothing
        return np.fmin(np.maximum(side.bound(now + costs) + extra, floor), cap)

    cap = np.minimum(cap, np.maximum(side.limit + extra, floor))
    now, more = np.fmin(start, cap), _ROUNDING * (len(cap) + 8)
    for _ in range(_SWEEPS):
        image = image_of(now)
        wanted = np.minimum(image * (1 + SLACK) + more, cap)
        if (image <= now).all() and (now <= wanted * (1 + SLACK) + more).all():
            return now
        fixed = (image >= cap) | (image <= floor)
        now = np.clip(now + newton_step(side, now, wanted, fixed), 0.0, cap)
        if np.isnan(now).any():  # a numerically singular system
            break
    # slower and reliable: from above every iterate is a post-fixed point
    now = cap
    for _ in range(_SWEEPS):
        now = np.minimum(now, image_of(now))
    return now


def newton_step(side: PairBound, now: Floats, wanted: Floats, fixed: Bools) -> Floats:
    """Return d with (I − J) d = wanted − now, J the derivative, zero in rows of ``fixed`` pairs."""
    k = len(now)
    pairs, arcs, weights = side.derivative()
    keep = ~fixed.ravel()[pairs]
    pairs, arcs, weights = pairs[keep], arcs[keep], weights[keep] * (1 - 1e-10)
    right = (wanted - now).ravel()
    if k <= _DENSE:
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
        solution, status = bicgstab(operator, shares * right, rtol=_FINE, atol=least, maxiter=2000)
    if status or not np.isfinite(solution).all():
        solution = spsolve(csc_array(eye_array(k * k) - jacobian), right)
    return np.asarray(solution).reshape(k, k)
