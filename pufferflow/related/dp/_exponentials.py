"""Rational numbers against e^ε: comparisons that are decided, and bounds whose direction is said."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from pufferflow._rounding import float_up

_BITS = 128


def exp_reaches(epsilon: Fraction, factor: Fraction) -> bool:
    """Whether e^ε ≥ factor, exactly, for ε ≥ 0.

    The two are equal only where ε = 0, as e^ε is irrational for every other rational ε; so enough digits decide.
    """
    if epsilon == 0 or factor <= 1:
        return factor <= 1
    from flint import ctx

    bits = _BITS
    while True:
        with ctx.workprec(bits):
            exact, logarithm = _ball(epsilon), _ball(factor).log()
            if exact > logarithm or exact < logarithm:
                return bool(exact > logarithm)
        bits *= 2


def exp_down(epsilon: Fraction) -> Fraction:
    """Rational of at most e^ε, within one part in 2^120."""
    from flint import ctx

    if epsilon == 0:
        return Fraction(1)
    with ctx.workprec(_BITS + max(0, int(epsilon).bit_length())):
        mantissa, exponent = (int(part) for part in _ball(epsilon).exp().lower().man_exp())
        return Fraction(mantissa) * Fraction(2) ** exponent


def log_up(factor: Fraction | float) -> float:
    """Float of at least ln factor, factor ≥ 1, and so is the decimal that it prints; infinite for an infinite one."""
    from flint import ctx

    if isinstance(factor, float) or factor == 1:
        return math.inf if factor != 1 else 0.0
    with ctx.workprec(_BITS + factor.numerator.bit_length() + factor.denominator.bit_length()):
        mantissa, exponent = (int(part) for part in _ball(factor).log().upper().man_exp())
    logarithm = Fraction(mantissa) * Fraction(2) ** exponent
    nearest = float_up(logarithm)
    return nearest if Fraction(repr(nearest)) >= logarithm else math.nextafter(nearest, math.inf)


def _ball(number: Fraction) -> Any:
    from flint import arb, fmpq

    return arb(fmpq(number.numerator, number.denominator))
