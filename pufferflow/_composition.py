"""What several Laplace releases amount to, and the smallest ε that pays for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

PRECISION = 1e-10
"""Relative width to which ε is found; the upper end is returned."""


def entrywise_loss(scales: Iterable[float]) -> float:
    """Sum of 1/σ_k, rounded up: by how much all releases change, in nats, when one record changes."""
    total = math.fsum(1 / scale for scale in scales)
    return total + 3 * math.ulp(total)  # fsum rounds once, as does each quotient


def joint_scale(scales: Iterable[float]) -> float:
    """Scale of the one release that all of them amount to, rounded down."""
    return math.nextafter(1 / entrywise_loss(scales), 0.0)


def least_epsilon(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Smallest ε from ``low`` to ``high`` that is enough, at most :data:`PRECISION` above it.

    Only one that was tried and is enough is returned; infinity if ``high`` is not enough.
    """
    if not enough(high):
        return math.inf
    if enough(low):
        return low
    while high > low * (1 + PRECISION):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
