"""Rounding to more noise."""

from __future__ import annotations

import math
from fractions import Fraction


def float_up(number: Fraction) -> float:
    """Smallest float that is no smaller than ``number``."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def divide_up(numerator: float, denominator: float) -> float:
    """Quotient of two floats, never below the exact one; exact where it can be."""
    quotient = numerator / denominator
    if math.isinf(quotient):
        return quotient
    if Fraction(quotient) * Fraction(denominator) < Fraction(numerator):
        return math.nextafter(quotient, math.inf)
    return quotient
