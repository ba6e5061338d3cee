"""Exact numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pufferflow._util.checks import named_type
from pufferflow.errors import ParameterError, PufferflowError

if TYPE_CHECKING:
    from flint import arb

Exact: TypeAlias = Fraction | int | str | float
"""A fraction, an integer or a string such as "1/3"; a float stands for its shortest decimal."""

_WRITTEN = re.compile(r"\s*[+-]?(\d+/0*[1-9]\d*|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?)\s*", re.ASCII)
_MAX_CHARACTERS = 2000


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
    text = str(value) if isinstance(value, float | np.floating | Decimal) else value
    if not isinstance(text, str):
        raise error(f'{name} must be a number or a string such as "1/3", not {named_type(value)}')
    long = len(text) > _MAX_CHARACTERS
    if long or not _WRITTEN.fullmatch(text):
        most = f" of at most {_MAX_CHARACTERS} characters" * long
        raise error(f'{name} is not an exact number{most}; write it as "1/3", "0.2" or 2')
    return Fraction(text)


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
