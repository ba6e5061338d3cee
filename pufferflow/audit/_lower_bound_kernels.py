"""Compiled loops of the lower bound: products of matrices under an exponential tilt.

A side of a secret is a product K D_1 K D_2 … K D_n · end of a matrix K ≥ 0 and diagonal matrices:
D_t is 1 on the states that the query counts t records away and ``low`` = e^(−c) on the others.
Vectors are kept at a largest entry between 1/2 and 1.
"""

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel

TINY, LEAST = 1e-150, 1e-130
"""Smaller entries count as 0, or as twice this; nothing is known if the largest is below the other.

Products that underflow, at most 5e-324 each, are much smaller than the product of the two.
"""

_TIE = 1e-13


@kernel(inner=True)
def _step(rows: Any, values: Any, inside: Any, low: float, out: Any) -> int:
    """Fill ``out`` with Σ_y values[y] D[y] · rows[y] over a power of 2, and return its exponent."""
    k = len(out)
    out[:] = 0.0
    for y in range(k):
        factor = values[y] if inside[y] else low * values[y]
        if factor > 0:
            for z in range(k):
                out[z] += factor * rows[y, z]
    top = out.max()
    power = math.frexp(top)[1]
    for z in range(k):
        out[z] = math.ldexp(out[z], -power) if top > LEAST else np.nan
    return int(power)


@kernel()
def pull_back(transposed: Any, end: Any, sets: Any, low: float, least: float, values: Any) -> int:
    """Fill ``values[t]`` with K D_{t+1} … K D_n · end, over powers of 2, for t = n, …, 0.

    Entries that underflow become ``least``: 0, or 2 · TINY for an upper bound. Every other factor
    has a relative error of at most k + 6 roundings. The result is the exponent of ``values[0]``.
    """
    values[len(sets)], power = end / end.max(), 0
    for t in range(len(sets), -1, -1):
        for z in range(len(end)):
            if values[t, z] < TINY:
                values[t, z] = least
        if t > 0:
            power += _step(transposed, values[t], sets[t - 1], low, values[t - 1])
    return power


@kernel(inner=True)
def _choose(first: Any, second: Any, values: Any, low: float, inside: Any) -> None:
    """Maximise (first · D · values)/(second · D · values) over the set.

    The ratio R is largest if the set contains the states with a ratio above R (Dinkelbach).
    """
    moved, rounds = True, 0
    while moved and rounds <= len(values):
        moved, rounds = False, rounds + 1
        over, under = 0.0, 0.0
        for z in range(len(values)):
            weight = values[z] if inside[z] else low * values[z]
            over += first[z] * weight
            under += second[z] * weight
        for z in range(len(values)):
            better = first[z] * values[z] * under > second[z] * values[z] * over * (1 + _TIE)
            if better != inside[z]:
                inside[z] = better
                moved = True


@kernel()
def sweep(matrix: Any, sets: Any, low: float, pair: Any, tables: Any) -> None:
    """Improve the sets of all records in turn for one pair of values.

    If no single set can be improved no other query is better (Theorem 10 of docs/leakage.md).

    ``sets`` have shape (n, k), ``pair`` are the rows of K whose ratio is maximised. ``tables`` hold
    the products behind each record, from :func:`pull_back`, and those of the two rows before it, of
    shapes (n + 1, k), (n, k) and (n, k).
    """
    values, first, second = tables
    first[0], second[0] = matrix[pair[0]], matrix[pair[1]]
    for t in range(len(sets)):
        _choose(first[t], second[t], values[t + 1], low, sets[t])
        if t + 1 < len(sets):
            _step(matrix, first[t], sets[t], low, first[t + 1])
            _step(matrix, second[t], sets[t], low, second[t + 1])
