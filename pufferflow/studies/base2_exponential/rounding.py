"""What rounding utilities at random does to the law of the exponential mechanism: bounds, and the law itself.

The bounds are those of the author's code (cilvento/b2_exponential_mechanism, python/accuracy_comparison.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferflow._types import Floats
from pufferflow.related.dp.base2_exponential import Eta

ETA = Eta(1, 2, 1)
"""The author's comparison has weights e^(−εu) with ε = 2 ln 2, that is 4^−u."""
NEAR = 3
"""Farther outcomes together have a weight of 4^−3 of the nearer ones."""


class Rounding(NamedTuple):
    """Weight of an outcome whose utility u is rounded up with probability ``up`` = u − ⌊u⌋."""

    down: Fraction
    """2^(−η⌊u⌋)"""
    above: Fraction
    """2^(−η(⌊u⌋ + 1))"""
    up: Fraction

    @property
    def mean(self) -> Fraction:
        """Expected weight."""
        return (1 - self.up) * self.down + self.up * self.above

    def chances(self) -> Iterator[tuple[Fraction, Fraction]]:
        """Pairs (probability, weight) of positive probability."""
        yield 1 - self.up, self.down
        if self.up:
            yield self.up, self.above


def roundings(eta: Eta, utilities: Sequence[Fraction]) -> list[Rounding]:
    """Weights of the outcomes once rounded."""
    floors = [math.floor(u) for u in utilities]
    return [Rounding(eta.base**k, eta.base ** (k + 1), u - k) for u, k in zip(utilities, floors, strict=True)]


def rounding_bounds(eta: Eta, utilities: Sequence[Fraction]) -> tuple[list[Fraction], Fraction]:
    """Lower bounds on the law with utilities rounded at random, and the width by which upper ones lie above them.

    w/(w + s) is convex in the sum s of the other weights, so its mean is at least its value at the mean of s (Jensen);
    what the lower bounds lack to 1 is the most that any one of them can lack.
    """
    weights = roundings(eta, utilities)
    total = sum((weight.mean for weight in weights), Fraction(0))
    lower = [sum((p * w / (w + total - one.mean) for p, w in one.chances()), Fraction(0)) for one in weights]
    return lower, 1 - sum(lower, Fraction(0))


def unrounded_law(eta: Eta, utilities: Sequence[Fraction]) -> Floats:
    """Pr ∝ 2^(−ηu) of the utilities as they are, in doubles."""
    weights = np.exp2(-eta.value * np.array([float(u) for u in utilities]))
    return np.asarray(weights / weights.sum())


def rounded_law(eta: Eta, utilities: Sequence[Fraction]) -> Floats:
    """Law with utilities rounded at random: the exact law of the sum of all other weights, summed up in doubles.

    The weights are integers in units of the smallest one's last place, so their sum has a generating polynomial, a
    product of one factor (1 − p)·x^a + p·x^b per outcome; divided by the own factor it is that of the others. The time
    grows with outcomes times sum, not with the 2^n ways to round.
    """
    weights = roundings(eta, utilities)
    unit = max(value.denominator for weight in weights for value in (weight.down, weight.above))
    whole = math.lcm(*(weight.up.denominator for weight in weights))
    factors = [_Factor(int(w.above * unit), int((w.down - w.above) * unit), int(w.up * whole), whole) for w in weights]
    every = np.array([1], dtype=object)
    for factor in factors:
        every = factor.times(every)
    offset = sum(factor.least for factor in factors)
    known: dict[Rounding, float] = {}
    for weight, factor in zip(weights, factors, strict=True):
        if weight not in known:
            others = factor.divided(every) / whole ** (len(factors) - 1)
            sums = offset - factor.least + np.arange(len(others))
            known[weight] = math.fsum(
                float(p) * math.fsum(others.astype(np.float64) * (int(w * unit) / (int(w * unit) + sums)))
                for p, w in weight.chances()
            )
    return np.array([known[weight] for weight in weights])


class _Factor(NamedTuple):
    """(``up`` + (``whole`` − ``up``)·x^``more``)·x^``least`` / ``whole``; the power x^least is left out."""

    least: int
    more: int
    up: int
    whole: int

    def times(self, polynomial: NDArray[Any]) -> NDArray[Any]:
        """Coefficients of the product with a polynomial, whose lowest one comes first."""
        product = np.zeros(len(polynomial) + self.more, dtype=object)
        product[: len(polynomial)] += self.up * polynomial
        product[self.more :] += (self.whole - self.up) * polynomial
        return product

    def divided(self, product: NDArray[Any]) -> NDArray[Any]:
        """Undo :meth:`times`: coefficients from the highest one down, ``more`` of them at a time."""
        length = len(product) - self.more
        quotient = np.zeros(length, dtype=object)
        for stop in range(length, 0, -self.more):
            start = max(0, stop - self.more)
            above = np.zeros(stop - start, dtype=object)
            beyond = quotient[start + self.more : stop + self.more]
            above[: len(beyond)] = beyond
            quotient[start:stop] = (product[start + self.more : stop + self.more] - self.up * above) // (
                self.whole - self.up
            )
        return quotient


def grid_utilities(bound: int, granularity: Fraction) -> list[Fraction]:
    """|o| of the outcomes o from −``bound`` to ``bound``."""
    count = int(2 * bound / granularity)
    return [abs(i * granularity - bound) for i in range(count + 1)]


def rounding_rows(granularities: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Laws of a Laplace-like release of 0 with and without rounding: how far apart they are, and could be.

    Outcomes to ±10, as in the author's comparison, for the bounds; to ±:data:`NEAR` for the law itself.
    """
    for granularity in map(Fraction, granularities):
        row = {"panel": "rounding", "granularity": float(granularity)}
        lower, width = rounding_bounds(ETA, grid_utilities(10, granularity))
        low, unrounded = _doubles(lower), unrounded_law(ETA, grid_utilities(10, granularity))
        most = np.maximum(np.abs(low - unrounded), np.abs(low + float(width) - unrounded)).max()
        utilities = grid_utilities(NEAR, granularity)
        law, (inner, between) = rounded_law(ETA, utilities), rounding_bounds(ETA, utilities)
        outside = np.maximum(_doubles(inner) - law, law - _doubles(inner) - float(between)).max()
        for name, share in (
            ("width", float(width)),
            ("bound", float(most)),
            ("error", float(np.abs(law - unrounded_law(ETA, utilities)).max())),
            ("outside", max(0.0, float(outside))),
        ):
            yield row | {"mechanism": name, "share": share}
        series = {"rounded": law, "unrounded": unrounded_law(ETA, utilities), "lower": _doubles(inner)}
        series["upper"] = series["lower"] + float(between)
        for name, probabilities in series.items():
            for i, p in enumerate(probabilities.tolist()):
                outcome = str(float(i * granularity - NEAR))
                yield row | {"panel": "rounding law", "mechanism": name, "outcome": outcome, "probability": p}


def _doubles(numbers: Sequence[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])
