"""Distances between distributions on finitely many points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._checks import POSITIVE_FLOATS, check_numbers
from pufferflow._numbers import held_numbers
from pufferflow._rounding import float_up, log_up
from pufferflow.errors import ParameterError

Number: TypeAlias = int | float | Fraction

MOST_BITS = 10**8
"""Size of all numbers of a distribution together, with one denominator."""


def max_divergence(p: ArrayLike, q: ArrayLike) -> float:
    """D∞(p‖q) = max over x with p(x) > 0 of log p(x)/q(x), in nats (Song et al., section 2).

    Raises DataError: they are not numbers; ParameterError: their shapes differ, or p has no mass or either a number
    that is no probability.

    Parameters
    ----------
    p, q : array_like, shape (n,)
        Two distributions on the same points.

    Returns
    -------
    float
        Infinite where p puts mass outside the support of q; rounded to nearest.
    """
    first, second = check_numbers(p, "p"), check_numbers(q, "q")
    if first.shape != second.shape:
        raise ParameterError(f"p has shape {first.shape} and q {second.shape}; give both on the same points")
    if not all(np.isfinite(law).all() and (law >= 0).all() for law in (first, second)) or not first.any():
        raise ParameterError("p and q must be finite numbers of at least 0, those of p not all 0")
    inside = first > 0
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        ratios = first[inside] / second[inside]
        held = (ratios >= POSITIVE_FLOATS[0]) & (ratios < np.inf)  # of the others, the logarithms hold more digits
        return float(np.where(held, np.log(ratios), np.log(first[inside]) - np.log(second[inside])).max())


def wasserstein_infinity(points: Iterable[Number], p: Iterable[Number], q: Iterable[Number]) -> float:
    """W∞ of two distributions on the line: the largest gap between their quantile functions (Algorithm 1).

    Exact: numbers are taken for the rationals they are, so the smallest mass counts, as it does for privacy.
    Distributions that should agree but were rounded differently have a larger W∞ than was meant; give them as fractions
    then.

    Raises ParameterError: the lengths differ, the points do not increase, or weights are negative, not finite or all 0.

    Parameters
    ----------
    points : sequence of numbers, shape (n,)
        Increasing support points.
    p, q : sequences of numbers, shape (n,)
        Weights of the points, non-negative; each distribution is divided by its sum.

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
            raise ParameterError("the weights of a distribution must be non-negative and not all 0")
    laws = (Law.of(dict(zip(places, weights, strict=True)), "the weights") for weights in (first, second))
    return float_up(quantile_gap(*laws))


@dataclass(frozen=True)
class Law:
    """A distribution on finitely many rational numbers, exactly.

    Attributes
    ----------
    values : tuple of Fraction
        Those of positive probability, increasing.
    masses : tuple of int
        Positive; the probability of a value is its mass divided by ``total``.
    total : int
        Sum of the masses.
    """

    values: tuple[Fraction, ...]
    masses: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, weights: Mapping[Fraction, Fraction], what: str) -> Law:
        """Return the distribution with these weights, of which some are positive and none negative.

        Raises ParameterError: their common denominator is too large to compute with.
        """
        return cls.counted(dict(zip(weights, whole_multiples(weights.values(), what), strict=True)))

    @classmethod
    def counted(cls, masses: Mapping[Fraction, int]) -> Law:
        """Return the distribution with these masses, of which some are positive and none negative."""
        values = tuple(sorted(value for value, mass in masses.items() if mass))
        positive = tuple(masses[value] for value in values)
        return cls(values, positive, sum(positive))

    @property
    def pairs(self) -> Iterator[tuple[Fraction, int]]:
        """Each value with its mass."""
        return zip(self.values, self.masses, strict=True)

    def __repr__(self) -> str:
        return f"Law({len(self.values)} values)"


def whole_multiples(numbers: Iterable[Fraction], what: str) -> list[int]:
    """Return numbers as multiples of one over their common denominator.

    Raises ParameterError: with that they would take more than ``MOST_BITS``.
    """
    given = list(numbers)
    unit = common_denominator(given, what)
    return [number.numerator * (unit // number.denominator) for number in given]


def common_denominator(numbers: Sequence[Fraction], what: str) -> int:
    """Return the least common denominator; raises as :func:`whole_multiples`."""
    unit = 1
    for denominator in {number.denominator for number in numbers}:
        unit = math.lcm(unit, denominator)
        if unit.bit_length() * len(numbers) > MOST_BITS:
            raise ParameterError(
                f"{what} have no common denominator of a size to compute with; write fractions of one denominator, or "
                "decimals"
            )
    return unit


def quantile_gap(first: Law, second: Law) -> Fraction:
    """W∞ exactly: the largest gap between the quantile functions."""
    left, right = first.masses[0] * second.total, second.masses[0] * first.total
    i = j = 0
    largest = abs(first.values[0] - second.values[0])
    while True:  # the quantile coupling, piece by piece, with the same total on both sides
        moved = min(left, right)
        left, right = left - moved, right - moved
        if not left:
            i += 1
        if not right:
            j += 1
        if i == len(first.values):  # so is the other
            return largest
        left = left or first.masses[i] * second.total
        right = right or second.masses[j] * first.total
        largest = max(largest, abs(first.values[i] - second.values[j]))


def largest_log_ratio(p: Law, q: Law) -> float:
    """D∞(p‖q) in nats, rounded up; infinite where p has a value that q has not."""
    known = dict(q.pairs)
    if not known.keys() >= set(p.values):
        return math.inf
    # every ratio is compared as an exact one; that of the totals is the same for all
    largest = max(Fraction(mass, known[value]) for value, mass in p.pairs)
    return log_up(largest * Fraction(q.total, p.total))
