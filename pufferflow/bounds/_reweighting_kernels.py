"""Closed-form kernels where any start or side information may reweight a distribution.

For a pair of values x, x' of a node the weights that its neighbour's values y have given x and
given x' are known up to a common factor each y may have. The leakage is the largest 2 log((1 +
√(RH)) / (√R + √H)) over ordered pairs y, y', R the cross ratio of the weights and H = e^{w(y, y')}
(Lemma 6).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF

UNWEIGHED = 1400.0
"""A cost beyond is as good as ∞: half of it is beyond the exponents of floats."""


@kernel
def reweighed(a: float, cost: float) -> Any:
    """Largest 2 log((1 + √(RH)) / (√R + √H)), and its derivative in the cost.

    ``a`` is √R > 1 and H = e^cost.
    """
    if cost != cost:  # nothing is known of it
        cost = np.inf
    if a == np.inf:
        return cost, 1.0
    if cost > UNWEIGHED:
        return min(cost, 2 * math.log(a)), 1.0
    b = math.exp(cost / 2)
    value = 2 * math.log1p((a - 1) * math.expm1(cost / 2) / (a + b))
    return value, a * b / (1 + a * b) - b / (a + b)


@kernel
def halve(w: Any, halves: Any) -> None:
    """Fill in √H and √H − 1 of H = e^w, each of shape (k, k).

    Of costs that ``reweighed`` takes otherwise nothing is filled in.
    """
    for y in range(len(w)):
        for other in range(len(w)):
            if w[y, other] <= UNWEIGHED:
                halves[0, y, other], halves[1, y, other] = (
                    math.exp(w[y, other] / 2),
                    math.expm1(w[y, other] / 2),
                )


@kernel
def let_through(above: Any, below: Any, w: Any, halves: Any) -> tuple[float, int, float]:
    """Leakage of one pair of values x, x', rounded up; the binding arc y · k + y'; its derivative.

    ``above[y]`` bounds the root of the weight of y given x over that given x', ``below[y]`` the
    other way round; −1 where y has no weight given the first. ``halves`` are those of w: of most
    arcs what grows with :func:`reweighed` is enough to find the largest.
    """
    k = len(w)
    most, largest, at = 0.0, 0.0, 0
    best, arc, slope = 0.0, -1, 0.0
    for y in range(k):
        if above[y] < 0:
            continue
        for other in range(k):
            if other == y or below[other] < 0:
                continue
            a = above[y] * below[other]
            if not a > 1:
                continue
            if a == np.inf or not w[y, other] <= UNWEIGHED:
                value, share = reweighed(a, w[y, other])
                if value > best:
                    best, arc, slope = value, y * k + other, share
            else:
                grows = (a - 1) * halves[1, y, other] / (a + halves[0, y, other])
                if grows > most:
                    most, largest, at = grows, a, y * k + other
    if most > 0:
        value, share = reweighed(largest, w[at // k, at % k])
        if value > best:
            best, arc, slope = value, at, share
    if arc >= 0:
        best = best * (1 + 80 * UNIT_ROUNDOFF) + 8 * UNIT_ROUNDOFF
    return best, arc, slope


@kernel(steps=lambda roots, w, extra, filled, places: (places[1] - places[0]) * 5 * len(w) ** 2)
def reweight(roots: Any, w: Any, extra: float, filled: Any, places: tuple[int, int]) -> None:
    """Lower the bounds of the pairs of values x · k + x' in ``places``, where this one is smaller.

    Parameters
    ----------
    roots : float array, shape (k, k, k)
        By x, x' and y bounds of the root of the weight of y given x over that given x'; −1 where it
        has none given x.
    w : float array, shape (k, k)
        Costs, zero on the diagonal.
    extra : float
        What is added: that of the records between.
    filled : tuple of arrays, shape (k, k)
        Bounds, rounded up; where they become smaller the arc that binds, −1 for none, and the
        derivative there.
    places : tuple of int
    """
    upper, arcs, slopes = filled
    k = len(w)
    halves = np.empty((2, k, k))
    halve(w, halves)
    for pair in range(places[0], places[1]):
        x, z = pair // k, pair % k
        if x != z:
            value, arc, slope = let_through(roots[x, z], roots[z, x], w, halves)
            if value + extra < upper[x, z]:
                upper[x, z], arcs[x, z], slopes[x, z] = value + extra, arc, slope
