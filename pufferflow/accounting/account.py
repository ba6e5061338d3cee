"""The account: what releases cost over time, and which promises hold; exact numbers only.

A promise of ε for windows of readings holds if top ≤ C *or* whole ≤ ε, one for participants if
whole ≤ ε; docs/account.md proves it and defines the terms.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

from pufferflow._util.checks import check_epsilon, check_whole
from pufferflow._util.protection import Level
from pufferflow.errors import ParameterError

UNBOUNDED = Fraction(10**400)
"""Stands for infinity: more than any promise allows."""
SECONDS = (-62_135_596_800, 253_402_300_798)
"""Of the years 1 to 9999, since 1970."""
MOST_STEPS = 10**7
"""Longest span of a ledger in steps, for which noise is proved."""


@dataclass(frozen=True)
class Charge:
    """By how many nats one reading (c) changes a release, and everything of a participant (D).

    ``first`` and ``last`` are the seconds of its first and last time, or None for ever.
    """

    cost: Fraction
    whole: Fraction
    first: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        for time in (self.first, self.last):
            check_whole(0 if time is None else time, "a time in seconds", *SECONDS)
        if min(self.cost, self.whole) < 0 or self.range[0] >= self.range[1]:
            raise ParameterError("a release costs at least 0, and its range ends after it begins")

    @property
    def range(self) -> tuple[float, float]:
        """First second, and the first one after the last."""
        first = -math.inf if self.first is None else self.first
        return first, math.inf if self.last is None else self.last + 1


@dataclass(frozen=True)
class Promise:
    """``epsilon`` nats, the limit, for everything that is released, at one level.

    ``cost`` C is the largest c that keeps it at any length (0 for participants), as the
    ``certificate`` proves: a document, or packed as in a ledger.
    """

    level: Level
    epsilon: float
    cost: Fraction
    certificate: dict[str, Any] | str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", plain(self.level))
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not 0 <= self.cost < UNBOUNDED or (self.level.whole and self.cost):
            raise ParameterError("the cost that keeps epsilon must be finite, 0 for participants")

    def allowed(self, longest: int) -> Fraction:
        """Return what one changed reading may cost where a participant has at most so many."""
        return Fraction(self.epsilon) / longest if self.level.whole else self.cost


def plain(level: Level) -> Level:
    """Return the level by which promises are kept: participants have no other readings to know."""
    return Level(None) if level.whole else level


def whole(charges: Iterable[Charge]) -> Fraction:
    """Return what everything of one participant costs."""
    return sum((charge.whole for charge in charges), Fraction(0))


def spent(
    promises: Iterable[Promise], charges: Collection[Charge], within: Charge | None = None
) -> Fraction:
    """Return the largest share of a promise that is used: at most 1 exactly if all of them hold.

    For participants whole/ε, for windows the smaller one of that and top/C, the top in the range of
    ``within`` if one is given. No further charge and no further promise lowers it.
    """
    begin, end = (-math.inf, math.inf) if within is None else within.range
    highest = max(load for since, to, load in _loads(charges) if since < end and to > begin)
    everything, shares = whole(charges), [Fraction(0)]
    for promise in promises:
        shares.append(everything / Fraction(promise.epsilon))
        if promise.cost:
            shares[-1] = min(shares[-1], highest / promise.cost)
    return max(shares)


def percent(share: Fraction) -> int:
    """Return a share in percent, rounded up."""
    return math.ceil(100 * share)


def free_from(promise: Promise, charges: Collection[Charge], new: Charge) -> float:
    """Return the first second from which on a promise always has room for ``new``; ∞: never."""
    if whole([*charges, new]) <= promise.epsilon:
        return -math.inf
    loads = _loads(charges)
    if not promise.cost or max(load for _, _, load in loads) > promise.cost:
        return math.inf
    full = (end for _, end, load in loads if load + new.cost > promise.cost)
    return max(full, default=-math.inf)


def _loads(charges: Iterable[Charge]) -> list[tuple[float, float, Fraction]]:
    """Stretches of time, from one second to before another, and the sum of costs in each."""
    changes = {-math.inf: Fraction(0), math.inf: Fraction(0)}
    for charge in charges:
        for time, change in zip(charge.range, (charge.cost, -charge.cost), strict=True):
            changes[time] = changes.get(time, Fraction(0)) + change
    times = sorted(changes)
    return list(zip(times, times[1:], accumulate(changes[time] for time in times), strict=False))
