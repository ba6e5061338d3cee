"""What several Laplace releases amount to."""

from __future__ import annotations

import math
from collections.abc import Iterable

PRECISION = 1e-10
"""Relative width to which ε is found; the upper end is returned."""


def entrywise_loss(scales: Iterable[float]) -> float:
    """Sum of 1/σ_k, rounded up: how much all releases change, in nats, with one record."""
    total = math.fsum(1 / scale for scale in scales)
    return total + 3 * math.ulp(total)  # fsum rounds once, as does each quotient


def joint_scale(scales: Iterable[float]) -> float:
    """Scale of the one release that all of them amount to, rounded down."""
    return math.nextafter(1 / entrywise_loss(scales), 0.0)
