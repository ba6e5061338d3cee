"""Limits on the work of commands, applied to an estimate made before.

Work is counted in operations, about 2.5e9 per second on a usual core; estimates are right within a
factor of about three (:mod:`pufferflow.mechanisms.registry`). They depend on public facts: numbers
of states and of records, and options. Python has no limit except within :func:`allowing`, which the
command line uses.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pufferflow.errors import ParameterError

MAX_WORK = 1.5e11
"""Default limit on the operations of a command: about a minute."""

A_SECOND = 2.5e9
"""Operations that take about a second."""

_MORE = "or allow more (`most_work`)"
_limit: ContextVar[tuple[float, float]] = ContextVar("_limit", default=(math.inf, 0.0))
"""The most operations, and those of searches so far."""


@contextmanager
def allowing(most: float) -> Iterator[None]:
    """Limit the work within the block."""
    before = _limit.set((most, 0.0))
    try:
        yield
    finally:
        _limit.reset(before)


def is_allowed(work: float) -> bool:
    """Return whether this number of operations is within the limit."""
    return work <= _limit.get()[0]


def estimate(work: float) -> str:
    """Return the time of this number of operations, as a phrase."""
    seconds = work / A_SECOND
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    unit = next((u for u, length in units.items() if seconds >= 2 * length), "seconds")
    rounded = float(f"{seconds / units[unit]:.2g}")
    return f"would take about {rounded:g} {unit} ({work:.2g} operations)"


def afford(work: float, subject: str, advice: str) -> None:
    """Raise :class:`ParameterError` with advice if the operations exceed the limit."""
    if not is_allowed(work):
        above = f"{estimate(work)}, above the {_limit.get()[0]:.2g} that are taken on"
        raise ParameterError(f"{subject} {above}; {advice}, {_MORE}")


def spend(work: float, subject: str, advice: str) -> None:
    """Count operations of a search, which cannot be estimated, while it runs.

    Raises :class:`ParameterError` when the sum of all counts exceeds the limit, at the same point
    on every machine.
    """
    most, spent = _limit.get()
    _limit.set((most, spent + work))
    if spent + work > most:
        above = f"takes more than the {most:.2g} operations that are taken on"
        raise ParameterError(f"{subject} {above}; {advice}, {_MORE}")
