"""A root of a leak as a function of c."""

from __future__ import annotations

import math
from collections.abc import Callable


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
