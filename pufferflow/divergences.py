"""Distances between laws on finitely many points."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._checks import POSITIVE_FLOATS, check_numbers
from pufferflow._numbers import held_numbers
from pufferflow._rounding import float_up
from pufferflow.errors import ParameterError

Number: TypeAlias = int | float | Fraction


def max_divergence(p: ArrayLike, q: ArrayLike) -> float:
    """D∞(p‖q) = max over x with p(x) > 0 of log p(x)/q(x), in nats (Song et al., section 2).

    Raises DataError: they are not numbers; ParameterError: their shapes differ, or p has no mass or either a number
    that is no probability.

    Parameters
    ----------
    p, q : array_like, shape (n,)
        Two laws on the same points.

    Returns
    -------
    float
        Infinite where p puts mass outside the support of q; rounded to nearest.
    """
    first, second = check_numbers(p, "p"), check_numbers(q, "q")
    if first.shape != second.shape:
        raise ParameterError(f"p has shape {first.shape} and q {second.shape}; give two laws on the same points")
    if not all(np.isfinite(law).all() and (law >= 0).all() for law in (first, second)) or not first.any():
        raise ParameterError("p and q must be finite numbers of at least 0, those of p not all 0")
    inside = first > 0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        ratios = first[inside] / second[inside]
        held = (ratios >= POSITIVE_FLOATS[0]) & (ratios < np.inf)  # of the others, the logarithms hold more digits
        return float(np.where(held, np.log(ratios), np.log(first[inside]) - np.log(second[inside])).max())


def wasserstein_infinity(points: Iterable[Number], p: Iterable[Number], q: Iterable[Number]) -> float:
    """W∞ of two laws on the line: the largest gap between their quantile functions (Algorithm 1).

    Exact: numbers are taken for the rationals they are, so the smallest mass counts, as it does for privacy. Laws that
    should agree but were rounded differently have a larger W∞ than was meant; give them as fractions then.

    Raises ParameterError: the lengths differ, the points do not increase, or weights are negative, not finite or all 0.

    Parameters
    ----------
    points : sequence of numbers, shape (n,)
        Increasing support points.
    p, q : sequences of numbers, shape (n,)
        Weights of the points, non-negative; each law is divided by its sum.

    Returns
    -------
    float
        In units of ``points``, rounded up.
    """
    places, first, second = (held_numbers(values, name) for values, name in ((points, "points"), (p, "p"), (q, "q")))
    if not len(places) == len(first) == len(second):
        raise ParameterError(
            f"{len(places)} points with {len(first)} and {len(second)} weights; give one weight a point"
        )
    if any(a >= b for a, b in pairwise(places)):
        raise ParameterError("the points must increase; sort them and add up the weights of equal ones")
    for weights in (first, second):
        if any(weight < 0 for weight in weights) or not any(weights):
            raise ParameterError("the weights of a law must be non-negative and not all 0")
    # the same total on both sides, then the quantile coupling, piece by piece
    left = [weight * sum(second) for weight in first]
    right = [weight * sum(first) for weight in second]
    i = j = 0
    largest = Fraction(0)
    while i < len(places) and j < len(places):
        if not left[i]:
            i += 1
        elif not right[j]:
            j += 1
        else:
            largest = max(largest, abs(places[i] - places[j]))
            moved = min(left[i], right[j])
            left[i] -= moved
            right[j] -= moved
    return float_up(largest)
