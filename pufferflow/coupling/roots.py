"""The root of a loss as a function of c."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

SMALLEST_EPSILON = 1e-11
"""Below it rounding would count for more than what is told."""

TOLERANCE = 1e-7
"""How far below ε, relatively, the loss at the cost that is returned may be."""


class Loss(NamedTuple):
    """Largest loss of a window, in nats and rounded up, with its first node, 1-based."""

    value: float
    node: int


def largest_cost(
    loss: Callable[[float], Loss], epsilon: float, cost: float, tolerance: float = TOLERANCE
) -> tuple[float, Loss] | None:
    """A c with ε (1 − 3 tolerance) ≤ loss(c) ≤ ε, in as few losses as can be; None where none was found.

    ``cost`` is where to start from. Secant steps for log loss over log c, between the largest c known to suffice and
    the smallest that does not; where they do not lead there soon, as where the loss rises steeply, every other one
    halves what lies between. No c is above ε, as one record alone loses c.
    """
    below: tuple[float, Loss] | None = None
    above, cost = epsilon * (1 + tolerance), min(cost, epsilon)
    points: list[tuple[float, float]] = []
    for _ in range(60):
        found = loss(cost)
        if found.value <= epsilon:
            below = cost, found
            if found.value >= epsilon * (1 - 3 * tolerance) or cost >= epsilon:
                break
        else:
            above = min(above, cost)
        if below is not None and above <= below[0] * (1 + tolerance):
            break
        points.append((math.log(cost), math.log(found.value / epsilon)))
        (x, y), slope = points[-1], 1.0
        if len(points) > 1 and points[-2][0] != x:
            slope = (y - points[-2][1]) / (x - points[-2][0])
        slope = slope if 0.2 < slope < 5 else 1.0
        cost = min(math.exp(min(x - (y + 1.5 * tolerance) / slope, 700.0)), epsilon)
        astray = cost >= above or (below is not None and cost <= below[0]) or (len(points) > 8 and len(points) % 2 == 1)
        if astray:
            cost = above / 2 if below is None else math.sqrt(above * below[0])
    return below


def rounded_scale(cost: float) -> float:
    """Smallest scale whose inverse, as a float, is at most c."""
    scale = math.nextafter(1 / cost, math.inf)
    while 1 / scale > cost:
        scale = math.nextafter(scale, math.inf)
    return scale


def scale_below(
    loss: Callable[[float], Loss], epsilon: float, upper: float, cost: float | None = None, tolerance: float = TOLERANCE
) -> tuple[float, int] | None:
    """Smallest scale whose loss is at most ε, rounded up, with a node that decides; None if not below ``upper``."""
    if epsilon < SMALLEST_EPSILON:
        return None
    found = largest_cost(loss, epsilon, 1 / upper if cost is None else cost, tolerance)
    if found is None or (scale := rounded_scale(found[0])) >= upper:
        return None
    return scale, found[1].node


def least_cost(leak: Callable[[float], float], epsilon: float, cost: float, largest: float, tolerance: float) -> float:
    """A c, close to the least one, at which the leak is more than ε: at most ``largest``, which is enough anyway.

    Secant steps for log leak over log c, between the largest c that leaks too little and the least that leaks enough.
    """
    below, above = 0.0, largest
    last: tuple[float, float] | None = None
    slope = 1.0
    for _ in range(60):
        value = leak(cost)
        if value > epsilon:
            above = cost
        else:
            below = cost
        if above <= below * (1 + tolerance) or epsilon < value <= epsilon * (1 + tolerance):
            break
        guess = math.inf
        if value > 0:
            x, y = math.log(cost), math.log(value / epsilon)
            if last is not None and x != last[0]:
                slope = (y - last[1]) / (x - last[0])
            slope = slope if 0.05 < slope < 20 else 1.0
            last = x, y
            guess = cost * math.exp(min(max((tolerance / 2 - y) / slope, -700.0), 700.0))
        if not below < guess < above:
            guess = math.sqrt(below * above) if below > 0 else above / 2
        cost = guess
    return above
