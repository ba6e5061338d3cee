"""Exact numbers, and their canonical strings."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pufferflow._util.checks import shown
from pufferflow._util.json import kind
from pufferflow.errors import ParameterError, PufferflowError

if TYPE_CHECKING:
    from flint import arb

Exact: TypeAlias = Fraction | int | str | float
"""A fraction, an integer or a string such as "1/3"; a float stands for its shortest decimal."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_WRITTEN = re.compile(r"\s*[+-]?(\d+(/\d+)?|(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d{1,3})?)\s*", re.ASCII)
_MOST_CHARACTERS = 2000


def written_number(
    value: object, name: str, error: type[PufferflowError] = ParameterError
) -> Fraction:
    """Return the number that is written: an integer, a fraction, or a string such as "1/3".

    A float stands for its shortest decimal. Raises ``error``: it is not finite, or too long.
    """
    if type(value) is Fraction:  # already exact, as in large matrices
        return value
    if isinstance(value, Rational) and not isinstance(value, bool):  # also NumPy's integers
        return Fraction(int(value.numerator), int(value.denominator))
    text = value
    if isinstance(value, float | np.floating | Decimal):
        if not math.isfinite(value):
            raise error(f"{name} is {value}; it must be a finite number")
        text = str(value)
    if not isinstance(text, str):
        raise error(f'{name} must be a number or a string such as "1/3", not {kind(value)}')
    if len(text) > _MOST_CHARACTERS:
        most = f"give a number of at most {_MOST_CHARACTERS}"
        raise error(f"{name} has {len(text)} characters; {most}")
    if not _WRITTEN.fullmatch(text):
        raise error(f'{name} is not an exact number; write it as "1/3", "0.2" or 2')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise error(f"{name} is {shown(text.strip())}, a division by zero") from None


def shortest(text: str) -> str | None:
    """Return the short string of the same number: "0" for "0.0"; None if it is not finite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    number = Decimal(text).normalize(Context(prec=len(text)))  # this precision is exact
    if not number:
        return "0"
    return f"{number:f}" if -7 < number.adjusted() < 21 else str(number)


def ball(number: Fraction) -> arb:
    """Return an interval around a number, of the current precision."""
    from flint import arb, fmpq  # takes a tenth of a second

    return arb(fmpq(number.numerator, number.denominator))


def log_bound(number: Fraction) -> Fraction:
    """Return an upper bound of ln ``number``, for a number of at least 1, within 2^-120."""
    from flint import ctx

    with ctx.workprec(128 + number.numerator.bit_length()):
        bound = ball(number).log().upper().fmpq()
    return Fraction(int(bound.p), int(bound.q))
