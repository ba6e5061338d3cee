"""Rounding to more noise, and tolerances."""

import math
import sys
from fractions import Fraction

UNIT_ROUNDOFF = 2.0**-53

SAFE_MINIMUM = 1e-290
"""Smallest probability whose relative rounding error is trusted."""

SUM_TOLERANCE = 1e-9
"""Largest distance of a row's sum from 1 that counts as rounding."""


def float_up(number: Fraction) -> float:
    """Return the smallest float of at least ``number``; infinite if there is none."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf if number > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def divide_up(numerator: float, denominator: float) -> float:
    """Return a quotient of two floats, never below the exact one; exact if possible."""
    quotient = numerator / denominator
    if math.isinf(quotient):
        return quotient
    if Fraction(quotient) * Fraction(denominator) < Fraction(numerator):
        return math.nextafter(quotient, math.inf)
    return quotient


def divide_down(numerator: float, denominator: float) -> float:
    """Return a quotient of two floats, never above the exact one; exact if possible."""
    quotient = numerator / denominator
    if math.isinf(quotient) or Fraction(quotient) * Fraction(denominator) > Fraction(numerator):
        return math.nextafter(quotient, 0.0)
    return quotient
