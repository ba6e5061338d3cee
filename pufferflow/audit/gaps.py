"""The largest ratio of two densities, over outputs and mixtures of initial distributions."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np

from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError

LARGEST_GAP = 150.0
"""Nats that the densities from two starts may be apart."""

SLACK = 1e-13
"""Nats by which a bound over mixtures may exceed what is attained."""


class GapSearch:
    """The largest gap of log densities seen, as an attained value and as a bound, with its place.

    ``where`` is the node, the two secrets and the place of the output; one is named only where it
    is worse than the one before by more than ``tolerance``.
    """

    def __init__(self, tolerance: float) -> None:
        self.attained = self.bound = self._placed = 0.0
        self.where: tuple[int, int, int, int] | None = None
        self._tolerance = tolerance

    def scan(self, node: int, sizes: Floats, values: Floats) -> None:
        """Raise the gap to that of one record.

        ``sizes`` are log2 P(secret) from each start, ``values`` the log densities, of shape
        (starts, secrets, outputs).
        """
        for row, size in zip(values, sizes, strict=True):
            secrets = np.flatnonzero(size > -np.inf)
            rows = row[secrets]
            gaps = rows.max(axis=0) - rows.min(axis=0)
            place = int(gaps.argmax())
            x, y = (int(secrets[at]) for at in (rows[:, place].argmax(), rows[:, place].argmin()))
            self._see(float(gaps[place]), node, x, y, place)
        if len(values) > 1:
            self._scan_starts(node, sizes, values)

    def _see(self, gap: float, node: int, x: int, y: int, place: int) -> None:
        self.attained = max(self.attained, gap)
        self.bound = max(self.bound, gap)
        if gap > self._placed + self._tolerance:
            self._placed, self.where = gap, (node, x, y, place)

    def _scan_starts(self, node: int, sizes: Floats, values: Floats) -> None:
        """Raise the gap to that of one record under mixtures of any two starts."""
        possible = (sizes > -np.inf)[..., None]
        high = np.where(possible, values, -np.inf).max(axis=0)
        low = np.where(possible, values, np.inf).min(axis=0)
        most = high[:, None] - low  # whatever the starts
        most[np.diag_indices(len(most))] = 0.0
        far = most > self.attained + self._tolerance
        self.bound = max(self.bound, float(np.where(far, 0.0, most).max()))
        x, y, place = np.nonzero(far)
        if not len(x):
            return
        first, other, p, q = values[:, x, place], values[:, y, place], sizes[:, x], sizes[:, y]
        gaps, reach, others = np.full(len(x), -np.inf), p > -np.inf, q > -np.inf
        for r, s in product(range(len(sizes)), repeat=2):
            # a start that cannot reach one secret leaves the weights of the other secret free
            free = reach[r] & others[s] & ~(others[r] & reach[s])
            gaps[free] = np.maximum(gaps, first[r] - other[s])[free]
        for r, s in combinations(range(len(sizes)), 2):
            at = np.flatnonzero((reach & others)[[r, s]].all(axis=0))
            if len(at):
                log_kappa = (q[s, at] - q[r, at] + p[r, at] - p[s, at]) * math.log(2)
                known, two = max(self.bound, float(gaps.max())), ([[r], [s]], at)
                mixed, self.bound = _mixtures(first[two], other[two], log_kappa, known)
                gaps[at] = np.maximum(gaps[at], mixed)
        best = int(gaps.argmax())
        self._see(float(gaps[best]), node, int(x[best]), int(y[best]), int(place[best]))


def _mixtures(
    first: Floats, other: Floats, log_kappa: Floats, known: float
) -> tuple[Floats, float]:
    """Log ratios attained by mixtures of two starts at each output, and a bound of all.

    ``first`` are the log densities given x from either start, ``other`` those given x'. With t the
    odds of the second start given x, the ratio is e^(base) (1 + Gt)(1 + κt) / ((1 + t)(1 + κHt)).
    The bound holds for all t by the sign of a quadratic; the attained value is that of its
    stationary point.
    """
    base, a, b = first[0] - other[0], first[1] - first[0], other[1] - other[0]
    if max(np.abs(part).max() for part in (a, b, log_kappa / 2)) > LARGEST_GAP:
        raise ChainError(
            "the loss over all initial distributions leaves the range of floats here; use a "
            "larger scale, a shorter length or a given initial distribution"
        )
    g, h, root = np.exp(a), np.exp(b), np.exp(log_kappa / 2)

    def may_exceed(bound: Floats | float) -> Bools:
        """Whether (1 + Gt)(1 + κt) ≤ e^(bound − base) (1 + t)(1 + κHt) may fail for some t ≥ 0."""
        m, margin = np.exp(bound - base), 2.0**-49
        sides = (m, 1.0), (m * (1 / root + h * root), g / root + root), (m * h, g)
        c0, c1, c2 = (more - less - margin * (more + less) for more, less in sides)
        roots = np.sqrt(np.maximum(c0, 0)) * np.sqrt(np.maximum(c2, 0))
        return np.asarray((c0 < 0) | (c2 < 0) | (c1 < -2 * roots * (1 - margin)))

    best = np.maximum(base, first[1] - other[1])
    inside = np.flatnonzero(may_exceed(np.maximum(best, known) + SLACK))
    base, a, b, g, h, root = (part[inside] for part in (base, a, b, g, h, root))
    # stationary points in v = t √κ: quadratic q2 v² + 2 q1 v + q0
    q2 = np.expm1(a) * root * root * h - np.expm1(b) * g
    q1, q0 = root * (g - h), np.expm1(a) - root * root * np.expm1(b)
    with np.errstate(all="ignore"):
        q2, q1, q0 = np.array([q2, q1, q0]) / np.max(np.abs([q2, q1, q0]), axis=0)
        q = -(q1 + np.copysign(np.sqrt(q1 * q1 - q2 * q0), q1))
        for v in (q / q2, q0 / q):
            t, kt = v / root, v * root
            value = base + np.log1p(g * t) + np.log1p(kt) - np.log1p(t) - np.log1p(h * kt)
            best[inside] = np.fmax(best[inside], np.where(v > 0, value, -np.inf))
    bound, step = max(known, float(best.max())), SLACK
    while may_exceed(bound + SLACK).any():
        bound, step = bound + step, 2 * step
    return best, bound
