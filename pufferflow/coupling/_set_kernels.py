"""Kernel of the leakage of blocks: in closed form over sets of states."""

from __future__ import annotations

import math
from typing import Any

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF


@kernel
def _raised(p: Any, q: Any, growth: float, excess: float) -> float:
    """One step of Dinkelbach's iteration: v − 1 of the set that is best at v, from ``excess`` = v − 1.

    The best set at value v holds the states with p(z) > v q(z); v rises to the maximum.
    """
    more, mass = 0.0, 0.0
    for z in range(len(p)):
        difference = p[z] - q[z]
        if difference > excess * q[z]:
            more += difference
            mass += q[z]
    return growth * more / (1 + growth * mass)


@kernel(steps=lambda rows, *others: (others[-1] - others[-2]) * 20 * len(rows))
def set_leakages(rows: Any, secret: Any, growth: float, out: Any, start: int, stop: int) -> None:
    """Fill ``out[x, x']`` with the largest log (1 + growth · P(x, S)) / (1 + growth · P(x', S)) over sets S of states.

    For the pairs x · k + x' from ``start`` to ``stop``.
    """
    k = len(rows)
    for pair in range(start, stop):
        x, y = pair // k, pair % k
        out[x, y] = 0.0
        if x == y or not (secret[x] and secret[y]):
            continue
        excess = 0.0  # v − 1
        for _ in range(2 * k + 4):
            reached = _raised(rows[x], rows[y], growth, excess)
            if not reached > excess * (1 + 4 * UNIT_ROUNDOFF):
                break
            excess = reached
        out[x, y] = math.log1p(excess)


@kernel(steps=lambda rows, *others: (others[-1] - others[-2]) * 20 * len(rows))
def sets_leak(rows: Any, secret: Any, growth: float, least: Any, start: int, stop: int) -> bool:
    """Whether the largest value of :func:`set_leakages` is at least ``least[x, x']``, shape (k, k), for all pairs.

    It need not be found: sets that reach so much will do.
    """
    k = len(rows)
    for pair in range(start, stop):
        x, y = pair // k, pair % k
        if x == y or not least[x, y] > 0:
            continue
        if not (secret[x] and secret[y]):
            return False
        needed = math.expm1(least[x, y])
        excess = 0.0
        for _ in range(2 * k + 4):
            reached = _raised(rows[x], rows[y], growth, excess)
            if reached >= needed or not reached > excess * (1 + 4 * UNIT_ROUNDOFF):
                excess = max(excess, reached)
                break
            excess = reached
        if excess < needed:
            return False
    return True
