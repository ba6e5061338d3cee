"""Numbers as they are printed."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

NOT_APPLICABLE = "N/A"
UNDEFINED = "–"

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def missing(value: Any) -> bool:
    """Say whether a cell is empty: None, NaN or an empty text."""
    return value is None or value is pd.NA or value == "" or (isinstance(value, float) and math.isnan(value))


def significant(value: Any, digits: int = 4) -> str:
    """Format a number to ``digits`` significant digits; texts and empty cells stay what they are.

    >>> significant(0.0123456), significant(-1.5e-7, 2), significant(None), significant("X8")
    ('0.01235', '−1.5×10⁻⁷', '–', 'X8')
    """
    if missing(value):
        return UNDEFINED
    try:
        number = float(value)
    except ValueError:
        return str(value)
    if not math.isfinite(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 <= power < 6:
        text = f"{number:.{max(0, digits - 1 - power)}f}"
    else:
        text = f"{mantissa}×10{str(power).translate(_SUPERSCRIPTS)}"
    return text.replace("-", "−")


def shortest(value: Any, digits: int = 6) -> str:
    """Format as :func:`significant` does, without trailing zeros."""
    text = significant(value, digits)
    return re.sub(r"\.?0+(?=×|$)", "", text) if "." in text else text


def decimals(value: Any) -> str:
    """Format an error with four decimals as the paper does; two significant digits where that shows nothing."""
    if missing(value):
        return NOT_APPLICABLE
    number = float(value)
    return f"{number:.4f}" if abs(number) >= 0.0005 or number == 0 else significant(number, 2)


def with_error(mean: Any, standard_error: Any) -> str:
    """Format a mean ± its standard error, both to the error's second digit.

    >>> with_error(0.0085712, 0.00015), with_error(517.53, 7.6), with_error(None, None)
    ('0.00857 ± 0.00015', '517.5 ± 7.6', 'N/A')
    """
    if missing(mean):
        return NOT_APPLICABLE
    if missing(standard_error) or not standard_error > 0:
        return decimals(mean)
    places = max(0, 1 - math.floor(math.log10(standard_error)))
    return f"{mean:.{places}f} ± {standard_error:.{places}f}"


def yes_no(value: Any) -> str:
    """Format a truth value."""
    return UNDEFINED if missing(value) else "yes" if value else "no"


def count(value: Any) -> str:
    """Format a whole number with separators, for example ``"1,051,200"``."""
    return UNDEFINED if missing(value) else f"{int(value):,}"
