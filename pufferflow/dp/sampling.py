"""Exact draws from random bits, without rounding."""

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.types import Bools, Floats


def bernoulli(source: random.Random, probability: Fraction, count: int) -> Bools:
    """Return ``count`` independent events of a rational probability.

    64 bits decide unless they equal the first ones of the probability; then the next bits decide.
    """
    if probability == 1:
        return np.ones(count, bool)
    leading, rest = divmod(probability.numerator << 64, probability.denominator)
    drawn = np.frombuffer(source.randbytes(8 * count), "<u8")
    events: Bools = drawn < np.uint64(leading)
    for i in np.flatnonzero(drawn == np.uint64(leading)):
        events[i] = bernoulli(source, Fraction(rest, probability.denominator), 1)[0]
    return events


def exp_event(source: random.Random, exponent: Fraction) -> bool:
    """Return an event of probability exp(−exponent), exponent ≥ 0.

    For x ≤ 1 the first failure of events of probability x, x/2, x/3, … has an odd index with
    probability exp(−x) (Canonne, Kamath, Steinke, NeurIPS 2020, Algorithm 1).
    """
    while exponent > 1:
        if not exp_event(source, Fraction(1)):
            return False
        exponent -= 1
    index = 1
    while source.randrange(index * exponent.denominator) < exponent.numerator:
        index += 1
    return index % 2 == 1


def choice(source: random.Random, costs: Sequence[Fraction]) -> int:
    """Return an index drawn with Pr ∝ exp(−cost), by rejection."""
    least = min(costs)
    while True:
        index = source.randrange(len(costs))
        if exp_event(source, costs[index] - least):
            return index


def discrete_laplace(source: random.Random, scale: Fraction) -> int:
    """Return an integer z drawn with Pr ∝ exp(−|z|/scale) (the same source, Algorithm 2)."""
    while True:
        part, whole = source.randrange(scale.numerator), 0
        if not exp_event(source, Fraction(part, scale.numerator)):
            continue
        while exp_event(source, Fraction(1)):
            whole += 1
        size = (part + scale.numerator * whole) // scale.denominator
        negative = source.randrange(2) == 1
        if size or not negative:
            return -size if negative else size


def laplace_probability(noise: ArrayLike, scale: float) -> Floats:
    """Return the probability (1 − p)/(1 + p)·p^|z| of each integer z, p = exp(−1/scale)."""
    decay = np.exp(-np.abs(np.asarray(noise, np.float64)) / scale)
    return np.asarray(math.tanh(0.5 / scale) * decay)
