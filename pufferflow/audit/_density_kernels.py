"""Compiled loops over densities: of histograms, and ratios over mixtures of two starts."""

from __future__ import annotations

import math

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.types import Floats, Ints

LARGEST_GAP = 150.0
"""Nats that the densities from two starts may be apart."""


@kernel
def convolve_places(
    where: Ints, first: Floats, where_other: Ints, other: Floats, out: Floats
) -> None:
    """Add the convolution of two distributions, given at the places of their support."""
    for i in range(len(first)):
        for j in range(len(other)):
            out[where[i] + where_other[j]] += first[i] * other[j]


@kernel
def smooth(values: Floats, decay: float) -> None:
    """Replace values[a, w, b] by Σ_n decay^|w − n| values[a, n, b], in place."""
    before, size, after = values.shape
    falling = np.empty((size, after))
    for a in range(before):
        block = values[a]
        falling[size - 1] = 0.0
        for w in range(size - 2, -1, -1):
            for b in range(after):
                falling[w, b] = decay * (falling[w + 1, b] + block[w + 1, b])
        for w in range(1, size):
            for b in range(after):
                block[w, b] += decay * block[w - 1, b]
        for w in range(size):
            for b in range(after):
                block[w, b] += falling[w, b]


@kernel
def _exceeds(bound: float, base: float, a: float, b: float, root: float) -> bool:
    """Whether (1 + Gt)(1 + κt) ≤ e^(bound − base) (1 + t)(1 + κHt) may fail for some t ≥ 0.

    ``a``, ``b`` and ``root`` are log G, log H and √κ.
    """
    m, g, h = math.exp(bound - base), math.exp(a), math.exp(b)
    d1, n1 = 1 / root + h * root, g / root + root
    margin = 2.0**-49
    c0 = m - 1 - margin * (m + 1)
    c1 = m * d1 - n1 - margin * (m * d1 + n1)
    c2 = m * h - g - margin * (m * h + g)
    return c0 < 0 or c2 < 0 or c1 < -2 * math.sqrt(c0) * math.sqrt(c2) * (1 - margin)


@kernel
def _best_mixture(base: float, a: float, b: float, root: float) -> float:
    """Return the largest log ratio at a stationary point in t; see :func:`_exceeds`."""
    g, h, kappa, best = math.exp(a), math.exp(b), root * root, -np.inf
    # stationary points in v = t √κ: quadratic q2 v² + 2 q1 v + q0
    q2 = math.expm1(a) * kappa * h - math.expm1(b) * g
    q1 = root * (g - h)
    q0 = math.expm1(a) - kappa * math.expm1(b)
    size = max(abs(q2), abs(q1), abs(q0))
    q2, q1, q0 = q2 / size, q1 / size, q0 / size
    inside = q1 * q1 - q2 * q0
    if inside >= 0:
        q = -(q1 + math.copysign(math.sqrt(inside), q1))
        for numerator, denominator in ((q, q2), (q0, q)):
            if denominator != 0 and numerator / denominator > 0:
                v = numerator / denominator
                t, kt = v / root, v * root
                value = math.log1p(g * t) + math.log1p(kt) - math.log1p(t) - math.log1p(h * kt)
                best = max(best, base + value)
    return best


@kernel
def mixed_start_gap(
    given: tuple[Floats, Floats],
    others: tuple[Floats, Floats],
    log_kappa: float,
    gaps: Floats,
    place: Ints,
) -> bool:
    """Raise ``gaps`` = (attained, bound) to the largest log ratio over mixtures and outputs.

    ``given`` are the log densities given x from either start, ``others`` those given x'. With t the
    odds of the second start given x, the ratio is e^(base) (1 + Gt)(1 + κt) / ((1 + t)(1 + κHt)).
    The bound holds for all t by the sign of a quadratic; the attained value is that of its
    stationary point. ``place[0]`` is where it is attained, if it rose. False where the densities
    from the two starts are too far apart for floats.
    """
    (first, second), (first_other, second_other) = given, others
    root, slack = math.exp(log_kappa / 2), 1e-13
    for w in range(len(first)):
        if max(first[w], second[w]) - min(first_other[w], second_other[w]) <= gaps[1]:
            continue
        base = first[w] - first_other[w]
        a, b = second[w] - first[w], second_other[w] - first_other[w]
        if abs(log_kappa) > 300 or abs(a) > LARGEST_GAP or abs(b) > LARGEST_GAP:
            return False
        best = max(base, second[w] - second_other[w])
        if _exceeds(max(best, gaps[1]) + slack, base, a, b, root):
            best = max(best, _best_mixture(base, a, b, root))
        if best > gaps[0]:
            gaps[0], place[0] = best, w
        gaps[1] = max(gaps[1], best)
        step = slack
        while _exceeds(gaps[1] + slack, base, a, b, root):
            gaps[1] += step
            step *= 2
    return True
