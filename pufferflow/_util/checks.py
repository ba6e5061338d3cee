"""Checks of arguments: each raises a ParameterError with the fault and the allowed values.

All take the value first and then its name.
"""

import math
import operator
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow.errors import DataError, ParameterError, PufferflowError

Lengths: TypeAlias = int | Sequence[int]
Limits: TypeAlias = tuple[float, float]

EPSILON_RANGE = (1e-90, 1e90)
"""Range of ε: no scale overflows, and ε stays below the +∞ of the influence tables."""

POSITIVE_FLOATS = (sys.float_info.min, sys.float_info.max)
"""The positive floats of full precision."""

LONGEST = 2**62
"""Longest segment: sums of two positions must fit 64 bits."""


def check_choice(value: object, name: str, allowed: Iterable[str]) -> None:
    """Raise unless the value is one of the ``allowed`` strings."""
    choices = tuple(allowed)
    if not (isinstance(value, str) and value in choices):
        raise _wrong(value, name, f"choose from {', '.join(choices)}")


def check_type(value: object, name: str, *kinds: type) -> None:
    """Raise unless the value is of one of these classes."""
    if not isinstance(value, kinds):
        wanted = " or a ".join(kind.__name__ for kind in kinds)
        raise ParameterError(f"{name} is {named_type(value)}; give a {wanted}")


def check_list(values: Any, name: str) -> list[Any]:
    """Return the entries of an iterable other than a string."""
    if not isinstance(values, str | bytes):
        with suppress(TypeError):
            return list(values)
    raise ParameterError(f"{name} is {shown_name(values)}; it must be a list")


def check_numbers(
    values: Any, name: str, error: type[PufferflowError] = DataError
) -> NDArray[np.float64]:
    """Return a new array of numbers of any shape, or raise ``error``, also for strings."""
    with suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        if array.dtype.kind in "iufO":
            return array.astype(np.float64)
    raise error(f"{name} must be numbers, in rows of equal length if there are several")


def check_path(value: Any, name: str) -> Path:
    """Return the name of a file as a path."""
    if not isinstance(value, str | os.PathLike):
        raise _wrong(value, name, "give a path")
    if any(sign in str(value) for sign in "\n\r\0"):
        problem = f"{shown(value)} with line ends or zeros in it"
        raise ParameterError(f"{name} is {problem}; give a path, not the content")
    return Path(value)


def check_text(value: object, name: str) -> None:
    """Raise unless the value is a string that UTF-8 can encode, without halves of characters."""
    check_type(value, name, str)
    try:
        str(value).encode()
    except UnicodeEncodeError as error:
        problem = f"is not Unicode text (character {error.start + 1} is half of one)"
        raise ParameterError(f"{name} {value!a} {problem}; correct it") from None


def check_whole(value: Any, name: str, least: int | None = 1, most: int | None = LONGEST) -> int:
    """Return an integer from ``least`` to ``most`` (None: no bound), not a truth value."""
    try:
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None or (least is not None and whole < least):
        bound = "" if least is None else f" of at least {least}"
        raise _wrong(value, name, f"it must be an integer{bound}")
    if most is not None and whole > most:
        raise _wrong(value, name, f"it must be an integer of at most {most}")
    return whole


def check_positive(
    value: object, name: str, limits: Limits = POSITIVE_FLOATS, *, or_zero: bool = False
) -> float:
    """Return a positive number within ``limits``, or with ``or_zero`` 0, as a float."""
    number = _number(value)
    if or_zero and number == 0:
        return 0.0
    if not 0 < number < math.inf:
        raise _wrong(value, name, f"it must be {'0 or ' * or_zero}a positive number")
    if not limits[0] <= number <= limits[1]:
        raise _wrong(value, name, f"it must lie between {limits[0]} and {limits[1]}")
    return number


def check_finite(value: object, name: str) -> float:
    """Return a finite number as a float; messages show nan and inf alone, which are no records."""
    number = _number(value)
    if not math.isfinite(number):
        what = str(value) if isinstance(value, float) else named_type(value)
        raise ParameterError(f"{name} is {what}; it must be a finite number")
    return number


def check_epsilon(epsilon: object) -> float:
    """Return ε as a float; it must be positive and within ``EPSILON_RANGE``."""
    return check_positive(epsilon, "epsilon", EPSILON_RANGE)


def check_confidence(value: object, name: str) -> float:
    """Return a probability as a float; it must be neither 0 nor 1."""
    number = _number(value)
    if not 0 < number < 1:
        raise _wrong(value, name, "it must be above 0 and below 1")
    return number


def several_epsilons(epsilon: Iterable[object]) -> list[float]:
    """Return all ε of a list; its entries are not shown, as it may be one of records."""
    with suppress(ParameterError):
        if found := [check_epsilon(one) for one in epsilon]:
            return found
    raise _wrong(epsilon, "epsilon", "it must be a positive number, or a list of such")


def longest(length: Lengths) -> int:
    """Return the longest segment; all lengths must be integers from 1 to ``LONGEST``."""
    with suppress(ParameterError, TypeError, ValueError):  # also if it is empty
        lengths = check_list(length, "length") if isinstance(length, Iterable) else [length]
        return max(check_whole(each, "length") for each in lengths)
    raise _wrong(length, "length", f"it must be an integer from 1 to {LONGEST}, or a list of such")


def _wrong(value: object, name: str, wanted: str) -> ParameterError:
    return ParameterError(f"{name} is {shown(value)}; {wanted}")


def shown(value: object) -> str:
    """Return ``value`` for messages: a number or a short string, otherwise its type."""
    if isinstance(value, str):
        short = len(value) <= 80 and value.isprintable()
        return repr(value) if short else f"a string of {len(value)} characters"
    if not isinstance(value, Real | Decimal):
        return named_type(value)
    try:
        text = str(value)
    except ValueError:  # an integer of thousands of digits
        return "an integer of thousands of digits"
    return text if len(text) <= 80 else text[:79] + "…"


def shown_name(value: object) -> str:
    """Return the name of a part of a model for messages."""
    return shown(value) if isinstance(value, str) else named_type(value)


def named_type(value: object) -> str:
    """Return the type of ``value`` with its article; messages reveal no more of records."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _number(value: object) -> float:
    """Return the value as a float: ∞ if too large, NaN for truth values, strings and the like."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return math.nan
    try:
        return float(value)
    except (OverflowError, ValueError):
        return math.inf
