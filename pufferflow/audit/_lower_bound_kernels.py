"""Compiled loops of the bound from below: products of matrices under an exponential tilt.

A side of a secret is a product K D_1 K D_2 … K D_n · end of a matrix K ≥ 0 and diagonal matrices:
D_t is 1 on the states that the query counts t records away and e^{-c} on the others. Vectors are
kept at a largest entry of 1; only ratios of their entries are used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel

TINY = 1e-270
"""Entries below it count as 0, or as twice this: errors of underflow are far below."""

_TIE = 1e-13


@kernel
def _step(rows: Any, values: Any, inside: Any, low: float, out: Any) -> None:
    """Fill ``out`` with Σ_y values[y] D[y] · rows[y], over its largest entry."""
    k = len(out)
    out[:] = 0.0
    for y in range(k):
        factor = values[y] if inside[y] else low * values[y]
        if factor > 0:
            for z in range(k):
                out[z] += factor * rows[y, z]
    top = out.max()
    if top > 0:
        for z in range(k):
            out[z] /= top


@kernel
def pull_back(transposed: Any, end: Any, sets: Any, cost: float, values: Any) -> None:
    """Fill ``values[t]`` with what stands behind record t, for t from n down to 1."""
    values[len(sets)] = end / end.max()
    for t in range(len(sets) - 1, 0, -1):
        _step(transposed, values[t + 1], sets[t], math.exp(-cost), values[t])


@kernel
def tilted(transposed: Any, end: Any, sets: Any, cost: float, upper: bool, values: Any) -> None:
    """Fill ``values`` with K D_1 … K D_n · end, over its largest entry.

    What is too small for floats is left out, or for a bound from above taken for 2 · TINY; every
    other factor has a relative error of at most k + 6 roundings.
    """
    before = end / end.max()
    for t in range(len(sets) - 1, -2, -1):
        for z in range(len(before)):
            if before[z] < TINY:
                before[z] = 2 * TINY if upper else 0.0
        if t >= 0:
            _step(transposed, before, sets[t], math.exp(-cost), values)
            before[:] = values
    values[:] = before


@kernel
def _means(first: Any, second: Any, values: Any, low: float, inside: Any) -> tuple[float, float]:
    """Return first · D · values and second · D · values."""
    over, under = 0.0, 0.0
    for z in range(len(values)):
        weight = values[z] if inside[z] else low * values[z]
        over += first[z] * weight
        under += second[z] * weight
    return over, under


@kernel
def _choose(first: Any, second: Any, values: Any, low: float, inside: Any) -> bool:
    """Make (first · D · values)/(second · D · values) largest; whether the set changed.

    That ratio R is largest where the set holds the states whose own ratio is above R (Dinkelbach).
    """
    changed = False
    for _ in range(len(values) + 1):
        over, under = _means(first, second, values, low, inside)
        moved = False
        for z in range(len(values)):
            better = first[z] * values[z] * under > second[z] * values[z] * over * (1 + _TIE)
            if better != inside[z]:
                inside[z] = better
                moved = True
        if not moved:
            break
        changed = True
    return changed


@kernel
def sweep(
    matrices: Any, sets: Any, cost: float, pair: Any, tables: Any, begin: int
) -> tuple[float, int]:
    """Change the sets of one record after another, there and back, so that two values differ more.

    Where no single set can be improved no query at all is better (Theorem 10 of docs/leakage.md).

    Parameters
    ----------
    matrices : tuple of float arrays, shape (k, k)
        K and its transpose.
    sets : bool array, shape (n, k)
        Changed in place.
    cost : float
        c.
    pair : pair of int
        Rows of K whose ratio is to be large.
    tables : tuple of float arrays, shapes (n + 1, k), (n, k) and (n, k)
        What stands behind each record, from :func:`pull_back`, and what the two rows give there.
    begin : int
        The record to begin with: 0, then what the last sweep returned.

    Returns
    -------
    value : float
        Logarithm of the ratio, not rounded in any direction.
    begin : int
        Where the way back changed a set last; −1 where it changed none.
    """
    (matrix, transposed), (values, first, second) = matrices, tables
    low, n = math.exp(-cost), len(sets)
    if begin == 0:
        first[0], second[0] = matrix[pair[0]], matrix[pair[1]]
    last = -1
    for t in range(begin, n):
        if _choose(first[t], second[t], values[t + 1], low, sets[t]):
            last = t
        if t + 1 < n:
            _step(matrix, first[t], sets[t], low, first[t + 1])
            _step(matrix, second[t], sets[t], low, second[t + 1])
    changed = -1
    for t in range(last, -1, -1):
        if _choose(first[t], second[t], values[t + 1], low, sets[t]):
            changed = t
        if t > 0:
            _step(transposed, values[t + 1], sets[t], low, values[t])
    over, under = _means(matrix[pair[0]], matrix[pair[1]], values[1], low, sets[0])
    return (math.log(over / under) if over > 0 and under > 0 else -np.inf), changed


@kernel
def differences(sets: Any, cost: float, tables: Any, distance: Any, gains: Any) -> None:
    """Fill the total variation between the tilted distributions of each record.

    To ``gains``, shape (k,), their differences are added: the derivative of the logarithm of the
    ratio as the weight of a state grows at all records.
    """
    values, first, second = tables
    low = math.exp(-cost)
    for t in range(len(sets)):
        over, under = _means(first[t], second[t], values[t + 1], low, sets[t])
        distance[t] = 0.0
        for z in range(sets.shape[1]):
            weight = values[t + 1, z] if sets[t, z] else low * values[t + 1, z]
            difference = (first[t, z] / over - second[t, z] / under) * weight
            distance[t] += abs(difference) / 2
            gains[z] += difference
