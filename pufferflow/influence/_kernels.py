"""Compiled inner loops: pure functions of arrays that fill ``out``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pufferflow._jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def max_ratios(rows: Floats, inverse: Floats, out: Floats) -> None:
    """Fill out[x, x'] with max over z of rows[x, z] * inverse[z, x'].

    ``inverse[z, x']`` is 1 / rows[x', z], infinite where that is zero. Then 0 · ∞ is NaN, which no
    comparison lets through: an event that happens under neither secret does not count.
    """
    k, width = rows.shape
    for x in range(k):
        for y in range(k):
            out[x, y] = 0.0
        for z in range(width):
            numerator = rows[x, z]
            for y in range(k):
                ratio = numerator * inverse[z, y]
                if ratio > out[x, y]:
                    out[x, y] = ratio


@kernel
def max_influences(
    laws: Floats, lefts: Floats, rights: Floats, law: Ints, left: Ints, right: Ints, limit: float, out: Floats
) -> None:
    """Fill out[r] with max over x, x' of laws[law[r]] + lefts[left[r]] + rights[right[r]] (eq. 5).

    The three stacks have shape (slots, k, k) and hold large finite numbers in place of infinities,
    so no NaN arises. The search stops once ``limit`` is reached: such a quilt is of no use.
    """
    k = laws.shape[1]
    for r in range(len(out)):
        first = laws[law[r]]
        second = lefts[left[r]]
        third = rights[right[r]]
        largest = 0.0
        for x in range(k):
            for y in range(k):
                value = first[x, y] + second[x, y] + third[x, y]
                largest = max(largest, value)
            if largest >= limit:
                break
        out[r] = largest
