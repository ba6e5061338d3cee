"""Times with units: ``30min``, ``1h``, ``7d``; a whole number counts steps of the time grid."""

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
    if (exact_seconds(value, name) or Fraction(1)).denominator != 1:
        raise ParameterError(f"{name} is {shown(value)}; give whole seconds")
    return steps_of(value, 1, name, "a time such as 30min, 1h or 1d")


def steps_of(
    value: object,
    step_seconds: int | None,
    name: str,
    known: str = "a time such as 30min or 1h, or a whole number of steps",
) -> int:
    """Return the steps of a time, rounded up; a whole number counts steps.

    Raises ParameterError: it is none of what is ``known``, or a time without a known step.
    """
    seconds = exact_seconds(value, name)
    if seconds is None:
        if isinstance(value, str) and not re.fullmatch(r"\s*[0-9]{1,19}\s*", value):
            raise ParameterError(f"{name} is {shown(value)}; give {known}")
        return check_whole(int(value) if isinstance(value, str) else value, name)
    if step_seconds is None:
        advice = "give the step, or a whole number of steps"
        raise ParameterError(f"{name} is {shown(value)}, but no time step is known; {advice}")
    return check_whole(-(-seconds // step_seconds), name)


def text_of(seconds: int) -> str:
    """Return seconds in the largest unit that divides them: 1800 is ``30min``."""
    unit = next(u for u in ("d", "h", "min", "s") if seconds % SECONDS[u] == 0)
    return f"{seconds // SECONDS[unit]}{unit}"
