"""Times with units: ``30min``, ``1h``, ``7d``; a whole number counts steps of the time grid."""

from __future__ import annotations

import re
from fractions import Fraction

from pufferflow._util.checks import LONGEST, check_whole, shown
from pufferflow.errors import ParameterError

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TIME = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(s|min|h|d|w)", re.ASCII)


def exact_seconds(value: object, name: str) -> Fraction | None:
    """Return the seconds of a time with a unit, otherwise None."""
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    seconds = Fraction(found[1]) * SECONDS[found[2]]
    if not 0 < seconds <= LONGEST:
        raise ParameterError(f"{name} is {shown(value)}; give a time above 0, such as 30min or 1h")
    return seconds


def seconds_of(value: object, name: str) -> int:
    """Return whole seconds of a time such as ``30min``; a bare number is seconds."""
    seconds = exact_seconds(value, name)
    if seconds is None:
        return _whole(value, name, "give a time such as 30min, 1h or 1d")
    if seconds.denominator != 1:
        raise ParameterError(f"{name} is {shown(value)}; give whole seconds")
    return int(seconds)


def steps_of(value: object, step_seconds: int | None, name: str) -> int:
    """Return the steps of a time, rounded up; a whole number counts steps."""
    seconds = exact_seconds(value, name)
    if seconds is None:
        return _whole(value, name, "give a time such as 30min or 1h, or a whole number of steps")
    if step_seconds is None:
        known = "but no time step is known; give the step, or a whole number of steps"
        raise ParameterError(f"{name} is {shown(value)}, {known}")
    return check_whole(-(-seconds // step_seconds), name)


def _whole(value: object, name: str, advice: str) -> int:
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[0-9]{1,19}\s*", value):
            raise ParameterError(f"{name} is {shown(value)}; {advice}")
        value = int(value)
    return check_whole(value, name)


def text_of(seconds: int) -> str:
    """Return seconds in the largest unit that divides them: 1800 is ``30min``."""
    unit = next(u for u in ("d", "h", "min", "s") if seconds % SECONDS[u] == 0)
    return f"{seconds // SECONDS[unit]}{unit}"
