"""The account: exact costs of releases over time, and the promises that hold.

A promise of ε for windows of readings holds if top ≤ C *or* whole ≤ ε, one for participants if
whole ≤ ε; with a δ zero-concentrated and approximate releases count, too. docs/account.md proves it
and defines the terms.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from typing import Any, Self, TypeAlias, cast

from pufferflow._util.checks import check_confidence, check_epsilon, check_whole
from pufferflow.accounting import approximate
from pufferflow.accounting.approximate import event_delta
from pufferflow.errors import ParameterError
from pufferflow.models.families import Protection, SideInformation
from pufferflow.records.units import steps_of, text_of

UNBOUNDED = Fraction(10**400)
"""Stands for infinity: more than any promise allows."""
SECONDS = (-62_135_596_800, 253_402_300_798)
"""Seconds since 1970 of the years 1 to 9999."""
MAX_STEPS = 10**7
"""Longest span of a ledger in steps, for which noise is proved."""
Load: TypeAlias = tuple[Fraction, ...]
"""Sums of c, ρ and δ0."""
NOTHING: Load = (Fraction(0),) * 3

event_rho = lru_cache(maxsize=1000)(approximate.event_rho)  # found anew for every load otherwise


@dataclass(frozen=True)
class Level:
    """The secrets and the adversary of a release.

    ``window`` is the number of consecutive readings of one participant, or None for all readings
    of one; then ``side_information``, "none" or "any", is "none".
    """

    window: int | None = 1
    side_information: SideInformation = "none"

    def __post_init__(self) -> None:
        Protection(1 if self.window is None else self.window, self.side_information)
        if self.window is None:
            object.__setattr__(self, "side_information", "none")

    @property
    def whole(self) -> bool:
        """Whether all readings of a participant are protected."""
        return self.window is None

    def description(self, step_seconds: int | None = None) -> str:
        """Return the value of ``protect``, as a time if the step is known, and from whom."""
        if self.window is None:
            return "participant"
        text = "reading" if self.window == 1 else f"{self.window} readings"
        if self.window > 1 and step_seconds is not None:
            text = text_of(self.window * step_seconds)
        return text + " with side information any" * (self.side_information == "any")


def level_of(
    protect: object, side_information: str = "none", step_seconds: int | None = None
) -> Level:
    """Return the level of "reading", "participant", a time, or a number of readings.

    Raises ParameterError: it is none of them, or a time without a known step.
    """
    side = cast(SideInformation, side_information)
    if protect == "participant":
        return Level(None, side)
    known = "reading, participant, a time such as 1h or 7d, or a whole number of readings"
    steps = 1 if protect == "reading" else steps_of(protect, step_seconds, "protect", known)
    return Level(steps, side)


@dataclass(frozen=True)
class Charge:
    """The cost of a release in nats: c of one reading, and D of all readings of a participant.

    ``first`` and ``last`` are its first and last second, None if unbounded. ``rho`` and
    ``whole_rho`` are the costs of zero-concentrated noise; ``delta`` is the δ0 of one reading,
    without a bound for a participant.
    """

    cost: Fraction
    whole: Fraction
    first: int | None = None
    last: int | None = None
    rho: Fraction = Fraction(0)
    whole_rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for time in (self.first, self.last):
            check_whole(0 if time is None else time, "a time in seconds", *SECONDS)
        if min(self.whole, self.whole_rho, *self.load) < 0 or self.range[0] >= self.range[1]:
            raise ParameterError("a release costs at least 0, and its range ends after it begins")

    @classmethod
    def of(
        cls, cost: Fraction, rho: Fraction, longest: int, period: tuple[int | None, int | None]
    ) -> Self:
        """Return the cost of a release with at most ``longest`` readings of a participant."""
        return cls(cost, cost * longest, *period, rho, rho * longest**2)

    @property
    def load(self) -> Load:
        """The cost of one reading."""
        return self.cost, self.rho, self.delta

    @property
    def range(self) -> tuple[float, float]:
        """The first second, and the first one after the last."""
        first = -math.inf if self.first is None else self.first
        return first, math.inf if self.last is None else self.last + 1


@dataclass(frozen=True)
class Promise:
    """A limit of ``epsilon`` nats for all releases together, at one level.

    ``cost`` C is the largest c that keeps it at any length (0 for participants), proved by the
    ``certificate``, a document or packed as in a ledger. A ``delta`` of 0 means pure privacy.
    """

    level: Level
    epsilon: float
    cost: Fraction
    certificate: dict[str, Any] | str | None = field(default=None, repr=False, compare=False)
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not 0 <= self.cost < UNBOUNDED or (self.level.whole and self.cost):
            raise ParameterError("the cost that keeps epsilon must be finite, 0 for participants")
        check_confidence(self.delta or 0.5, "delta")

    def allowed(self, longest: int, share: Fraction) -> tuple[Fraction, Fraction]:
        """Return the largest c of one reading for a share, and the ρ instead, 0 without a δ.

        A participant has at most ``longest`` readings.
        """
        cost, rho = Fraction(self.epsilon) / longest if self.level.whole else self.cost, 0.0
        if self.delta:
            rho = event_rho(self.epsilon, self.delta, float(self.cost or self.epsilon))
        many = longest if self.level.whole else 1
        return share * cost, Fraction(rho) * (share / many) ** 2

    def share(self, load: Load, cost: Fraction) -> Fraction:
        """Return the share that a load uses up if ``cost`` is the largest c that keeps ε.

        κ + √(ρ/(1 − τ)ρ_max), or τ = δ0/δ0_max if that is larger: docs/account.md, Theorem 6.
        """
        c, rho, delta = load
        used, tau = c / cost, Fraction(0)
        if delta:
            most = event_delta(self.epsilon, self.delta, float(cost)) if self.delta else 0.0
            tau = delta / Fraction(most) if most else UNBOUNDED
        if rho:
            if tau >= 1 or not self.delta:
                return UNBOUNDED
            left = Fraction(event_rho(self.epsilon, self.delta, float(cost))) * (1 - tau)
            square = math.ceil(rho / left * 4**64)
            used += Fraction(math.isqrt(square - 1) + 1, 2**64)
        return max(used, tau)


def whole(charges: Iterable[Charge]) -> Load:
    """Return the cost of all readings of one participant."""
    loads = ((UNBOUNDED if one.delta else one.whole, one.whole_rho, Fraction(0)) for one in charges)
    return reduce(_sum, loads, NOTHING)


def _sum(one: Load, other: Load) -> Load:
    return tuple(a + b if a and b else a or b for a, b in zip(one, other, strict=True))


def spent(
    promises: Iterable[Promise], charges: Collection[Charge], within: Charge | None = None
) -> Fraction:
    """Return the largest used share of a promise: at most 1 if and only if all promises hold.

    It is whole/ε for participants, and for windows the smaller one of that and top/C, with the top
    in the range of ``within`` if one is given. Further charges and promises never lower it.
    """
    begin, end = (-math.inf, math.inf) if within is None else within.range
    loads = [load for since, to, load in _loads(charges) if since < end and to > begin]
    loads = [max(loads), *(load for load in loads if load[1] or load[2])]  # all others are smaller
    everything, shares = whole(charges), [Fraction(0)]
    for promise in promises:
        shares.append(promise.share(everything, Fraction(promise.epsilon)))
        if promise.cost:
            shares[-1] = min(shares[-1], max(promise.share(one, promise.cost) for one in loads))
    return max(shares)


def percent(share: Fraction) -> int:
    """Return a share in percent, rounded up."""
    return math.ceil(100 * share)


def free_from(promise: Promise, charges: Collection[Charge], new: Charge) -> float:
    """Return the first second from which on a promise always has room for ``new``; ∞: never."""
    if promise.share(whole([*charges, new]), Fraction(promise.epsilon)) <= 1:
        return -math.inf
    loads, cost = _loads(charges), promise.cost
    if not cost or max(promise.share(load, cost) for _, _, load in loads) > 1:
        return math.inf
    full = (end for _, end, load in loads if promise.share(_sum(load, new.load), cost) > 1)
    return max(full, default=-math.inf)


def _loads(charges: Iterable[Charge]) -> list[tuple[float, float, Load]]:
    """Return intervals of time, end excluded, with the sum of costs in each."""
    changes: dict[float, Load] = dict.fromkeys((-math.inf, math.inf), NOTHING)
    for charge in charges:
        less = tuple(-part for part in charge.load)
        for time, change in zip(charge.range, (charge.load, less), strict=True):
            changes[time] = _sum(changes.get(time, NOTHING), change)
    times = sorted(changes)
    loads = accumulate((changes[time] for time in times), _sum)
    return list(zip(times, times[1:], loads, strict=False))
