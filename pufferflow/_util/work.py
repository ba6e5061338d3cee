"""How much work a command takes on unless more is requested: one bound on an estimate made before.

Work is counted in operations, of which a usual core does some 2.5e9 a second; estimates are right
within a factor of three or so (:mod:`pufferflow.mechanisms.work`). They depend on what is public:
numbers of states and of records, and options. In Python nothing is bounded except within
:func:`allowing`, which the command line uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pufferflow.errors import ParameterError

MOST_WORK = 1.5e11
"""Operations that a command takes on unless more is requested: about a minute."""

A_SECOND = 2.5e9
"""Operations that take about a second."""

_UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_MORE = "or allow more (`most_work`)"
_most: ContextVar[float] = ContextVar("_most", default=math.inf)
_spent: ContextVar[float] = ContextVar("_spent", default=0.0)


@contextmanager
def allowing(most: float) -> Iterator[None]:
    """Bound the work of what is done within."""
    bound, count = _most.set(most), _spent.set(0.0)
    try:
        yield
    finally:
        _most.reset(bound)
        _spent.reset(count)


def is_allowed(work: float) -> bool:
    """Return whether so many operations are within the bound."""
    return work <= _most.get()


def estimate(work: float) -> str:
    """Return how long so many operations take, in words."""
    seconds = work / A_SECOND
    unit = next((u for u, length in _UNITS.items() if seconds >= 2 * length), "seconds")
    rounded = float(f"{seconds / _UNITS[unit]:.2g}")
    return f"would take about {rounded:g} {unit} ({work:.2g} operations)"


def afford(work: float, what: str, advice: str) -> None:
    """Raise :class:`ParameterError` with advice if so many operations are above the bound."""
    if not is_allowed(work):
        above = f"{estimate(work)}, above the {_most.get():.2g} that are taken on"
        raise ParameterError(f"{what} {above}; {advice}, {_MORE}")


def spend(work: float, what: str, advice: str) -> None:
    """Count operations of a search, which cannot be estimated, while it runs.

    Raises :class:`ParameterError` when all that was counted under one bound passes it: at the same
    point on every machine.
    """
    _spent.set(_spent.get() + work)
    if not is_allowed(_spent.get()):
        above = f"takes more than the {_most.get():.2g} operations that are taken on"
        raise ParameterError(f"{what} {above}; {advice}, {_MORE}")
