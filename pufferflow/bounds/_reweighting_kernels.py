"""Closed-form kernels for distributions reweighted by any start or side information.

For a pair of values x, x' of a node the weights that its neighbour's values y have given x and
given x' are known up to a common factor each y may have. The leakage is the largest 2 log((1 +
√(RH)) / (√R + √H)) over ordered pairs y, y', R the cross ratio of the weights and H = e^{w(y, y')}
(Lemma 6). With a = 1/√R and b = 1/√H that is 2 log(1 + (1 − a)(1 − b) / (a + b)), where nothing
overflows.
"""

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF

_UNWEIGHED = 1400.0
"""Larger costs, and NaN, count as ∞: half of them exceeds the exponents of floats."""


@kernel(inner=True)
def _largest(above: Any, below: Any, falls: Any) -> tuple[float, int, float]:
    """Return the leakage of a pair x, x', rounded up, the binding arc y · k + y', its derivative.

    ``above[y]`` bounds the root of the weight of y given x over that given x', ``below[y]`` the
    reverse; −1 if y has no weight given the first. ``falls`` are b and 1 − b.
    """
    k = len(above)
    most, arc, at = 0.0, -1, 1.0
    for y in range(k):
        if above[y] < 0:
            continue
        for other in range(k):
            root = above[y] * below[other]
            if root > 1 and other != y and below[other] >= 0:
                a = 1 / root
                grows = (1 - a) * falls[1, y, other] / (a + falls[0, y, other])
                if grows > most:
                    most, arc, at = grows, y * k + other, a
    if arc < 0:
        return 0.0, -1, 0.0
    b = falls[0, arc // k, arc % k]
    value = 2 * math.log1p(most) * (1 + 80 * UNIT_ROUNDOFF) + 8 * UNIT_ROUNDOFF
    return value, arc, 1 / (1 + at * b) - at / (at + b)


@kernel(steps=lambda roots, w, *_: 5 * len(w) ** 4)
def reweight(roots: Any, w: Any, extra: float, filled: Any) -> None:
    """Replace the bounds of pairs of values by smaller ones.

    Parameters
    ----------
    roots : float array, shape (k, k, k)
        By x, x' and y bounds of the root of the weight of y given x over that given x'; −1 if it
        has none given x.
    w : float array, shape (k, k)
        Costs, zero on the diagonal.
    extra : float
        Addend: the leakage of the records between.
    filled : tuple of arrays, shape (k, k)
        Bounds, rounded up; for replaced ones the binding arc, −1 for none, and its derivative.
    """
    upper, arcs, slopes = filled
    k = len(w)
    falls = np.empty((2, k, k))
    for y in range(k):
        for other in range(k):
            half = w[y, other] / 2 if w[y, other] <= _UNWEIGHED else np.inf
            falls[0, y, other], falls[1, y, other] = math.exp(-half), -math.expm1(-half)
    for x in range(k):
        for z in range(k):
            if x != z:
                value, arc, slope = _largest(roots[x, z], roots[z, x], falls)
                if value + extra < upper[x, z]:
                    upper[x, z], arcs[x, z], slopes[x, z] = value + extra, arc, slope
