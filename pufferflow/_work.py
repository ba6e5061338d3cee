"""How much work a command takes on without being asked: one bound, held against an estimate made beforehand.

Work is counted in operations, of which a usual core does some 2.5e9 a second; estimates are right within a factor of
three or so (:mod:`pufferflow.mechanisms.work`). They are made from what is public: numbers of states and of records,
and what the user said. In Python nothing is bounded unless :func:`allowing` says so; the command line does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pufferflow.errors import ParameterError

MOST_WORK = 1.5e11
"""Operations that a command takes on without being asked: about a minute."""

A_SECOND = 2.5e9
"""Operations that take about a second."""


@dataclass
class _Account:
    most: float
    spent: float = 0.0


_account: ContextVar[_Account] = ContextVar("_account", default=_Account(math.inf))  # noqa: B039


@contextmanager
def allowing(most: float) -> Iterator[None]:
    """Bound the work of what is done within."""
    token = _account.set(_Account(most))
    try:
        yield
    finally:
        _account.reset(token)


def is_allowed(work: float) -> bool:
    """Whether so many operations are within the bound."""
    return work <= _account.get().most


def afford(work: float, what: str, advice: str) -> None:
    """Raise :class:`ParameterError`, saying what to change, where so many operations are above the bound."""
    if not is_allowed(work):
        raise ParameterError(
            f"{what} {said(work)}, above the {_account.get().most:.2g} that are taken on; {advice}, or allow more "
            "(`most_work`)"
        )


def said(work: float) -> str:
    """Return what so many operations take, in words."""
    seconds = work / A_SECOND
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")):
        if seconds >= 2 * unit or unit == 1:
            return f"would take about {float(f'{seconds / unit:.2g}'):g} {name} ({work:.2g} operations)"
    raise AssertionError


def spend(work: float, what: str, advice: str) -> None:
    """Count operations of what nobody can tell beforehand, such as a search, while it is done.

    Raises :class:`ParameterError` where all that was counted under one bound passes it: at the same place on every
    machine.
    """
    account = _account.get()
    account.spent += work
    if account.spent > account.most:
        raise ParameterError(
            f"{what} takes more than the {account.most:.2g} operations that are taken on; {advice}, or allow more "
            "(`most_work`)"
        )
