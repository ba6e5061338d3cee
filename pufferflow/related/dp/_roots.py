"""Rational roots that err on one side."""

from __future__ import annotations

from fractions import Fraction


def root_up(number: Fraction, degree: int) -> Fraction:
    """Rational of at least the root of a number in [0, 1], exact where that is rational.

    The error is below 2^-64 of the root and of its distance from 1: a root of a/b is at least 1/b, and differs from 1
    by at least 1/(b · degree), so as many more bits are taken as these have.
    """
    numerator, denominator = (_floor_root(part, degree) for part in (number.numerator, number.denominator))
    if numerator**degree == number.numerator and denominator**degree == number.denominator:
        return Fraction(numerator, denominator)
    bits = 64 + number.denominator.bit_length() + degree.bit_length()
    return Fraction(_floor_root((number.numerator << bits * degree) // number.denominator, degree) + 1, 1 << bits)


def _floor_root(number: int, degree: int) -> int:
    """Largest integer whose power is at most ``number``, by Newton's method from above."""
    if number < 2 or degree == 1:
        return number
    root = 1 << -(-number.bit_length() // degree)
    while True:
        lower = ((degree - 1) * root + number // root ** (degree - 1)) // degree
        if lower >= root:
            return root
        root = lower
