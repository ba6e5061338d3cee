"""Exact noise for a query with rational values: on the lattice of its values there are no low bits to tell it by.

All values of the query are F_0 + g·n with whole n, F_0 and g known to everybody. Discrete noise Z with
P(Z = z) ∝ exp(−|z|/s), s = W/(gε), is added to n: its probabilities change by at most e^(ε d/W) between two values of
the query at distance d, as the densities of Laplace noise of scale W/ε do, so Algorithm 1's proof holds word for word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from pufferflow._noise import vector_laplace
from pufferflow._rounding import float_up
from pufferflow.divergences import common_denominator
from pufferflow.errors import ParameterError

LARGEST = 2**60
"""Noise and values on the lattice at most: the sampler's integers have 64 bits."""


def lattice_step(values: Sequence[Fraction]) -> Fraction:
    """Return the largest g of which all differences of the values are multiples; 0 for a single value."""
    unit = common_denominator(values, "the values of the query")
    wholes = [value.numerator * (unit // value.denominator) for value in values]
    return Fraction(math.gcd(*(whole - wholes[0] for whole in wholes)), unit)


def add_lattice_noise(value: Fraction, values: Sequence[Fraction], scale: Fraction) -> Fraction:
    """Return ``value``, one of ``values``, with exact noise of a positive ``scale`` from the operating system.

    Sums beyond 64 bits are cut to the largest integer, which is post-processing.

    Raises ParameterError: the values are too fine or too far apart, or the scale too large, for the lattice.
    """
    step, first = lattice_step(values), min(values)
    if step == 0:
        return value  # the query is known to everybody
    on_lattice = float_up(scale / step)
    if on_lattice > LARGEST or (max(values) - first) / step > LARGEST:
        raise ParameterError(
            "the values of the query are multiples of a step so small that noise on them passes 64 bits; round the "
            "query, or raise epsilon"
        )
    (noisy,) = vector_laplace(on_lattice, whole=True)([int((value - first) / step)])
    return first + step * int(noisy)
