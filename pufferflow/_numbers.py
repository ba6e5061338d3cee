"""Exact numbers: what counts as one, and the one text that stands for all ways of writing it."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

from pufferflow._checks import named_type, shown
from pufferflow._json import kind
from pufferflow.errors import ParameterError, PufferflowError

Exact: TypeAlias = Fraction | int | str | float
"""A number given exactly: a fraction, an integer or a string such as "1/3"; a float is its shortest decimal."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_WRITTEN = re.compile(r"\s*[+-]?(\d+(/\d+)?|(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d{1,3})?)\s*", re.ASCII)
_MOST_CHARACTERS = 2000


def written_number(value: object, name: str, error: type[PufferflowError] = ParameterError) -> Fraction:
    """Return the number that is written: an integer, a fraction, or a text such as "1/3", "0.2" or "2e-3".

    A float stands for its shortest decimal. Raises ``error``: it is no finite number, or one too long to be meant.
    """
    if type(value) is Fraction:  # what is exact already: large matrices consist of it
        return value
    if isinstance(value, Rational) and not isinstance(value, bool):  # NumPy's integers are such numbers too
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float | np.floating | Decimal) and not math.isfinite(value):
        raise error(f"{name} is {value}; it must be a finite number")
    text = str(value) if isinstance(value, float | np.floating | Decimal) else value
    if not isinstance(text, str):
        raise error(f'{name} must be a number or a text such as "1/3", not {kind(value)}')
    if len(text) > _MOST_CHARACTERS:
        raise error(f"{name} has {len(text)} characters; give a number of at most {_MOST_CHARACTERS}")
    if not _WRITTEN.fullmatch(text):
        raise error(f'{name} is not an exact number; write it as "1/3", "0.2" or 2')
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise error(f"{name} is {shown(text.strip())}, a division by zero") from None


def held_number(value: object, name: str) -> Fraction:
    """Return the number that is held: of a float the binary number, of anything else what is written.

    Raises ParameterError: it is no finite number.
    """
    plain = value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value
    try:
        return Fraction(plain) if isinstance(plain, float) else written_number(plain, name)
    except (ValueError, OverflowError):
        what = named_type(value) if isinstance(value, str) else shown(value)
        raise ParameterError(f"{name} is {what}; it must be a finite number") from None


def held_numbers(values: Any, name: str) -> list[Fraction]:
    """Return :func:`held_number` of every entry of a list; raises ParameterError where one has none."""
    try:
        return [held_number(value, "an entry") for value in values]
    except (TypeError, ParameterError):
        raise ParameterError(f"{name} must consist of finite numbers") from None


def shortest(text: str) -> str | None:
    """Return the one short text of the same number, exactly: "0" for "0.0"; None where the text is no finite number."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    if zeros == len(digits):
        return "0"
    number = Decimal((sign, digits[: len(digits) - zeros], exponent + zeros))  # normalize() would round
    return f"{number:f}" if -7 < number.adjusted() < 21 else str(number)
