"""The root of a loss as a function of c."""

import math
from collections.abc import Callable
from typing import NamedTuple

from pufferflow._util.rounding import divide_up

SMALLEST_EPSILON = 1e-11
"""Smallest c; below it rounding would exceed the leakage."""

TOLERANCE = 1e-7
"""Relative tolerance of the loss at the returned cost, below ε."""


class Loss(NamedTuple):
    """Largest loss of a window, in nats and rounded up, with its first node, 1-based."""

    value: float
    node: int


def crossing(
    value: Callable[[float], float],
    target: float,
    cost: float,
    most: float,
    tolerance: float,
    *,
    above: bool,
) -> tuple[float, float]:
    """Return costs between which a growing function crosses its target, within the tolerance.

    The first is the largest one found with value(c) ≤ target, 0 for none; the second the smallest
    with a larger value, at first ``most``. The search ends when the second one (if ``above``, else
    the first) has a value within three tolerances of the target. It takes secant steps for log
    value over log c; if they converge slowly, every other step is a bisection.
    """
    low, high = 0.0, most
    aim = tolerance / 2 if above else -1.5 * tolerance
    points: list[tuple[float, float]] = []
    for _ in range(60):
        found = value(cost)
        more = found > target if above else not found <= target  # NaN proves nothing
        low, high = (low, min(high, cost)) if more else (max(low, cost), high)
        beyond = found / target - 1 if above else 1 - found / target
        if (0 <= beyond <= 3 * tolerance and more == above) or high <= low * (1 + tolerance):
            break
        slope, guess = 1.0, math.inf
        if 0 < found < math.inf:
            x, y = math.log(cost), math.log(found / target)
            if points and points[-1][0] != x:
                slope = (y - points[-1][1]) / (x - points[-1][0])
            points.append((x, y))
            slope = slope if 0.05 < slope < 20 else 1.0
            guess = math.exp(min(max(x + (aim - y) / slope, -700.0), 700.0))
        if not low < guess < high or (len(points) > 8 and len(points) % 2):
            guess = math.sqrt(low * high) if low else high / 2
        cost = guess
    return low, high


def scale_below(
    loss: Callable[[float], Loss], epsilon: float, upper: float, cost: float, tolerance: float
) -> tuple[float, int] | None:
    """Return the smallest scale with loss ≤ ε, rounded up, and a node; None if ≥ ``upper``.

    The search starts from ``cost``. No c is above ε, as the loss of one record alone is c.
    """
    found: dict[float, Loss] = {}

    def value(cost: float) -> float:
        found[cost] = loss(cost)
        return found[cost].value

    most = epsilon * (1 + tolerance)
    below, _ = crossing(value, epsilon, min(cost, epsilon), most, tolerance, above=False)
    if not below:
        return None
    scale = divide_up(1.0, below)
    return (scale, found[below].node) if scale < upper else None
