"""What the classical mechanisms share: checks of parameters, scales rounded to more noise, and OpenDP."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from pufferflow.errors import ParameterError


def open_dp() -> Any:
    """OpenDP with its contributed mechanisms on; it takes long to import, so only where it is used."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def positive(name: str, value: float) -> float:
    """Return a positive finite number, or say what is wrong."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < math.inf:
        raise ParameterError(f"{name} is {value!r}; it must be a positive finite number")
    return float(value)


def round_up_quotient(numerator: float, denominator: float) -> float:
    """Quotient of two positive numbers, never below the exact one."""
    return math.nextafter(numerator / denominator, math.inf)
