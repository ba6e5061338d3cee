"""The exponential mechanism in exact arithmetic.

Floating point breaks the exponential mechanism: weights that underflow to 0 or vanish in a sum make outputs
impossible on one database that are possible on its neighbour. Ilvento, "Implementing the Exponential Mechanism with
Base-2 Differential Privacy" (CCS 2020), takes η = −z·log2(x / 2^y), so that 2^−η = (x / 2^y)^z and with it every
weight 2^(−η·u) of an integer utility u is a finite binary fraction. Here these are Python integers; no rounding happens
anywhere, and none can.

As in the source the utility is a cost: outcomes with **small** utility are likely.

Privacy
-------
Let neighbouring databases change every utility by at most α. The mechanism is 2⌈α⌉η base-2 private, that is
2⌈α⌉η·ln 2 differentially private:

1. Integer utilities change by at most a = ⌊α⌋ ≤ ⌈α⌉. A weight changes by a factor of at most 2^(aη), the sum of all
   weights by no more, both possibly against each other: the ratio of the probabilities is at most 2^(2aη). (One half
   is for the normaliser. It cannot be left out: o with utility 1 among n outcomes of utility 0 against o with 0 among
   outcomes of 1 has a ratio that tends to 2^(2η) as n grows.)
2. Clamping to a fixed range moves no two utilities further apart.
3. Rounding u to ⌊u⌋ + 1 with probability u − ⌊u⌋ is ⌊u + V⌋ with V uniform on [0, 1). Give both databases the same V
   for each outcome; |u − u'| ≤ α then means |⌊u + V⌋ − ⌊u' + V⌋| ≤ ⌈α⌉. For each V the ratio is at most
   2^(2⌈α⌉η) by 1, so it is for the averages over V.

The source's own code states 2αη for every α. For non-integer α that is not so once utilities are rounded: with
α = ½, o of utility ½ against 1 and all others of 1 against ½, the ratio tends to ((1 + 2^η)/2)² as their number grows,
which is larger than 2^(2αη) = 2^η; the study of this mechanism in the workflow computes it (``rounding_loss``). Scale
utilities so that α is an integer.

Time
----
The number of attempts and, with "bitwise", of random bits depend on the weights; so does, slightly, the time of
Python's integer arithmetic. ``minimum_attempts`` hides the first. Where an adversary can time a release precisely,
that is a leak the ε does not count.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

from pufferflow._checks import check_choice, check_positive, check_whole, shown
from pufferflow._display import displayed
from pufferflow._numbers import held_number
from pufferflow.errors import ParameterError
from pufferflow.related.dp._cumulative import CumulativeWeights

Number = int | float | Fraction
Sampler = Literal["rejection", "bitwise"]

LARGEST_PRECISION = 2**30
"""Bits of the longest number allowed (128 MB); a mechanism that could need more is refused before it sees data."""
MOST_ROUNDINGS = 2**12
"""Most ways to round the utilities that :meth:`Base2Exponential.probabilities` goes through."""
_SPARE_BITS = 128
"""The exact sums are needed in fewer than one of 2^128 draws."""


@displayed()
@dataclass(frozen=True)
class Eta:
    """The base-2 privacy parameter η = −z·log2(x / 2^y).

    Parameters
    ----------
    x, y, z : int
        Positive, x < 2^y.

    Raises
    ------
    ParameterError
        One of them is not a positive integer, or x ≥ 2^y.
    """

    x: int
    y: int
    z: int = 1

    def __post_init__(self) -> None:
        for name in ("x", "y", "z"):
            object.__setattr__(self, name, check_whole(getattr(self, name), f"{name} of η", most=None))
        if self.x >> self.y:
            raise ParameterError(f"η has x = {self.x} and y = {self.y}; x must be smaller than 2^y")

    @classmethod
    def for_epsilon(cls, epsilon: float, sensitivity: Number = 1, *, y: int = 16) -> Eta:
        """Return the largest η with denominator 2^y, z = 1 and 2⌈α⌉η·ln 2 ≤ ``epsilon``, proved by interval arithmetic.

        Raises
        ------
        ParameterError
            ``epsilon`` is not a positive number, or so small that it needs a larger ``y``.
        """
        epsilon = check_positive(epsilon, "epsilon")
        y = check_whole(y, "y of η")
        whole = _whole_sensitivity(sensitivity)
        # x/2^y ≥ e^(−ε/2α) keeps the loss below ε; round x up
        x = max(1, _ceiling(lambda arb: (-arb(epsilon) / (2 * whole)).exp() * arb(2) ** y))
        if x >> y:
            raise ParameterError(f"epsilon = {epsilon} is too small for y = {y} bits of η; raise y")
        return cls(x, y)

    @property
    def base(self) -> Fraction:
        """2^−η, exactly."""
        return Fraction(self.x, 2**self.y) ** self.z

    @property
    def value(self) -> float:
        """η, rounded to the nearest double."""
        return _enclose(lambda arb: -arb(self.z) * (arb(self.x) / arb(2) ** self.y).log() / arb(2).log())[0]

    @property
    def epsilon(self) -> float:
        """η·ln 2, rounded up."""
        return self.loss(1)

    def loss(self, factor: int) -> float:
        """``factor``·η·ln 2, rounded up to a double that is proved not to lie below it."""
        return _enclose(lambda arb: -arb(factor * self.z) * (arb(self.x) / arb(2) ** self.y).log())[1]

    @property
    def odd(self) -> tuple[int, int]:
        """2^−η as numerator and binary places, with an odd numerator."""
        twos = (self.x & -self.x).bit_length() - 1
        return (self.x >> twos) ** self.z, (self.y - twos) * self.z


@dataclass(frozen=True)
@displayed("index", "clamped", "rounded")
class Release:
    """One output of the mechanism.

    Attributes
    ----------
    index : int
        The outcome drawn: this, and only this, is private.
    clamped, rounded : int
        Utilities outside the public range, and non-integer ones. **These depend on the data**: for whoever runs the
        mechanism, not to be published.
    """

    index: int
    clamped: int
    rounded: int


@displayed("eta", "utility_min", "utility_max", "max_outcomes", "sampler")
class Base2Exponential:
    """Exact base-2 exponential mechanism on a finite set of outcomes.

    Parameters
    ----------
    eta : Eta
    utility_min, utility_max : int
        Public range; utilities outside are clamped to it (and counted).
    max_outcomes : int
        Public bound of the number of outcomes.
    sensitivity : number
        α: the most by which one record changes any utility. A public fact about the utility function; a non-integer one
        counts as ⌈α⌉.
    sampler : {"rejection", "bitwise"}
        "rejection" draws s uniform on [0, 2^⌈log2 t⌉), t the total weight, starts again while s ≥ t, and returns the
        first i whose cumulative weight c_i > s. "bitwise" draws the bits of s one at a time from the top, stops as soon
        as they leave one outcome, and starts again if they leave only s ≥ t: fewer random bits, and a running time that
        tells more about the weights.
    minimum_attempts : int
        Attempts made at every release, needed or not; the first success counts. An attempt fails with probability
        below ½, so the number of attempts depends on the weights with probability below 2^−minimum_attempts. The law of
        the output is the same for every value.
    insecure_seed : int, optional
        Draw from a reproducible generator, for tests and experiments. Not private: whoever knows the seed knows the
        database. By default all randomness comes from the operating system.

    Attributes
    ----------
    precision : int
        Bits that suffice for every exact number the mechanism may meet, fixed by the public arguments alone: a sum of
        max_outcomes weights of at most 2^(y·z·(utility_max − utility_min)).
    enclosure_bits : int
        Fractional bits of the sums that a draw is compared with, from the same arguments; exact sums are formed where
        these do not decide.

    Raises
    ------
    ParameterError
        An argument is out of its range, or ``precision`` exceeds 2^30.

    Examples
    --------
    >>> votes = [31, 50, 12]
    >>> mechanism = Base2Exponential(Eta.for_epsilon(0.5), -100, 0, max_outcomes=3, insecure_seed=1)
    >>> mechanism.release([-n for n in votes]).index
    1
    """

    def __init__(
        self,
        eta: Eta,
        utility_min: int,
        utility_max: int,
        max_outcomes: int,
        *,
        sensitivity: Number = 1,
        sampler: Sampler = "rejection",
        minimum_attempts: int = 1,
        insecure_seed: int | None = None,
    ) -> None:
        if not isinstance(eta, Eta):
            raise ParameterError(f"eta is {shown(eta)}; give Eta(x, y, z) or Eta.for_epsilon(epsilon)")
        self.eta = eta
        self.utility_min = check_whole(utility_min, "utility_min", None, None)
        self.utility_max = check_whole(utility_max, "utility_max", None, None)
        if self.utility_min > self.utility_max:
            raise ParameterError(f"utility_min = {utility_min} exceeds utility_max = {utility_max}; exchange them")
        self.max_outcomes = check_whole(max_outcomes, "max_outcomes")
        self.minimum_attempts = check_whole(minimum_attempts, "minimum_attempts")
        self._whole_sensitivity = _whole_sensitivity(sensitivity)
        check_choice(sampler, "sampler", _ATTEMPTS)
        self.sampler = sampler
        span = self.utility_max - self.utility_min
        self.precision = eta.y * eta.z * span + self.max_outcomes.bit_length()
        if self.precision > LARGEST_PRECISION:
            raise ParameterError(
                f"exact weights need {self.precision} bits for y·z = {eta.y * eta.z} and utilities from {utility_min} "
                f"to {utility_max}, more than {LARGEST_PRECISION}; narrow the range or choose a shorter η"
            )
        # an enclosed sum of n weights is at most 5·n·(range + 1) units wide, and there are n sums for s to fall into
        self.enclosure_bits = _SPARE_BITS + 3 + 2 * self.max_outcomes.bit_length() + (span + 1).bit_length()
        self._random = (
            System() if insecure_seed is None else Seeded(check_whole(insecure_seed, "insecure_seed", None, None))
        )

    def __repr__(self) -> str:
        private = "NOT PRIVATE: " if isinstance(self._random, Seeded) else ""
        return f"{private}Base2Exponential({self.eta}, utilities {self.utility_min} to {self.utility_max})"

    @property
    def random_bits(self) -> int:
        """Random bits taken so far.

        How many depends on the data: for whoever runs the mechanism, not to be published.
        """
        return self._random.taken

    @property
    def epsilon(self) -> float:
        """The privacy parameter ε of one release, 2⌈α⌉η·ln 2, rounded up."""
        return self.eta.loss(2 * self._whole_sensitivity)

    def release(self, utilities: Iterable[Number]) -> Release:
        """Draw one outcome; costs ``epsilon``.

        Parameters
        ----------
        utilities : iterable of n ≤ max_outcomes numbers
            The utility of each outcome: small is good. Non-integers are rounded at random, exactly.

        Raises
        ------
        ParameterError
            There is no outcome or there are too many, or a utility is not a finite number.
        """
        exact, clamped = self._clamp(utilities)
        rounded = [self._round(u) for u in exact]
        index = self._draw(self._cumulative(rounded))
        return Release(index, clamped, sum(type(u) is Fraction for u in exact))

    def releases(self, utilities: Iterable[Number], count: int) -> list[int]:
        """Draw ``count`` independent outcomes from the same utilities; costs ``count``·ε.

        Raises
        ------
        ParameterError
            As in :meth:`release`, or ``count`` is not a positive integer.
        """
        count = check_whole(count, "count")
        exact, _ = self._clamp(utilities)
        if any(type(u) is Fraction for u in exact):  # rounded anew for every release
            return [self._draw(self._cumulative([self._round(u) for u in exact])) for _ in range(count)]
        weights = self._cumulative([int(u) for u in exact])
        return [self._draw(weights) for _ in range(count)]

    def weights(self, utilities: Iterable[int]) -> list[int]:
        """Return the exact weights 2^(−η·u) times one common factor, as integers of at most ``precision`` bits.

        The factor, (2^(y·z))^utility_max · x^(−z·utility_min) for x odd, is public. Draws never form this list.

        Raises
        ------
        ParameterError
            As in :meth:`release`, or a utility is not an integer.
        """
        exact, _ = self._clamp(utilities)
        if any(type(u) is Fraction for u in exact):
            raise ParameterError("weights are of integer utilities; release rounds the others at random")
        return self._weights([int(u) for u in exact])

    def probabilities(self, utilities: Iterable[Number]) -> list[Fraction]:
        """Return the exact law of one release, for tests and small sets.

        Raises
        ------
        ParameterError
            As in :meth:`release`, or there are more than 2^12 ways to round the utilities.
        """
        exact, _ = self._clamp(utilities)
        between = [i for i, u in enumerate(exact) if type(u) is Fraction]
        if 1 << len(between) > MOST_ROUNDINGS:
            raise ParameterError(
                f"{len(between)} utilities are not integers, so there are 2^{len(between)} ways to round them; the "
                f"exact law goes through at most {MOST_ROUNDINGS}"
            )
        rounded = [math.floor(u) for u in exact]
        law = [Fraction(0)] * len(exact)
        for ups in product((0, 1), repeat=len(between)):
            chance = Fraction(1)
            for i, up in zip(between, ups, strict=True):
                part = exact[i] - math.floor(exact[i])
                chance *= part if up else 1 - part
                rounded[i] = math.floor(exact[i]) + up
            weights = self._weights(rounded)
            share = chance / sum(weights)
            law = [p + share * w for p, w in zip(law, weights, strict=True)]
        return law

    def _clamp(self, utilities: Iterable[Number]) -> tuple[list[int | Fraction], int]:
        """Utilities within the range as integers and exact fractions, and how many were outside."""
        low, high = self.utility_min, self.utility_max
        exact: list[int | Fraction] = []
        clamped = 0
        for i, given in enumerate(_plain(utilities)):
            u: int | Fraction = given if type(given) is int else _rational(given, f"utility {i}")
            if not low <= u <= high:
                u = low if u < low else high
                clamped += 1
            exact.append(u)
        if not exact:
            raise ParameterError("the set of outcomes is empty; give the utility of at least one outcome")
        if len(exact) > self.max_outcomes:
            raise ParameterError(
                f"there are {len(exact)} outcomes, more than max_outcomes = {self.max_outcomes}; "
                "raise that public bound"
            )
        return exact, clamped

    def _round(self, u: int | Fraction) -> int:
        """Round up with probability u − ⌊u⌋, exactly: randrange is uniform without bias."""
        if type(u) is int:
            return u
        floor = math.floor(u)
        part = u - floor
        return floor + (self._random.randrange(part.denominator) < part.numerator)

    def _weights(self, utilities: Sequence[int]) -> list[int]:
        numerator, shift = self.eta.odd
        return [numerator ** (u - self.utility_min) << shift * (self.utility_max - u) for u in utilities]

    def _cumulative(self, utilities: Sequence[int]) -> CumulativeWeights:
        """The common factor is chosen so that the largest weight is 1; the law does not depend on it."""
        best = min(utilities)
        return CumulativeWeights(*self.eta.odd, [u - best for u in utilities], self.enclosure_bits)

    def _draw(self, weights: CumulativeWeights) -> int:
        attempt, getrandbits, rejected = _ATTEMPTS[self.sampler], self._random.getrandbits, len(weights)
        chosen = rejected
        for _ in range(self.minimum_attempts):
            index = attempt(weights, getrandbits)
            if chosen == rejected:
                chosen = index
        while chosen == rejected:
            chosen = attempt(weights, getrandbits)
        return chosen


class Counted(random.Random):
    """Count the random bits that are taken."""

    taken = 0

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of ``k`` random bits."""
        self.taken += k
        return super().getrandbits(k)


class System(Counted, random.SystemRandom):
    """The operating system's generator."""


class Seeded(Counted):
    """A reproducible generator, which is not private."""


@displayed("mechanism")
class Base2Laplace:
    """Laplace-like release of a number: the exponential mechanism with utility |f(d) − o| / Δ on a grid of outcomes o.

    Parameters
    ----------
    eta : Eta
    lower, upper : number
        Public range of the outcomes; values outside are clamped to it.
    granularity : number
        Distance γ of two outcomes lower, lower + γ, … ≤ upper.
    sensitivity : number
        Δ of the value. The utility has sensitivity 1: one release is 2η·ln 2 differentially private for any γ and Δ.
    **options
        ``sampler``, ``minimum_attempts`` and ``insecure_seed`` of :class:`Base2Exponential`.

    Attributes
    ----------
    outcomes : list of Fraction
    mechanism : Base2Exponential

    Raises
    ------
    ParameterError
        The range is empty, or a number is not finite or not positive where it must be.
    """

    def __init__(
        self, eta: Eta, lower: Number, upper: Number, granularity: Number, *, sensitivity: Number = 1, **options: Any
    ) -> None:
        self._lower, self._upper = Fraction(_rational(lower, "lower")), Fraction(_rational(upper, "upper"))
        step = Fraction(_rational(granularity, "granularity"))
        self._sensitivity = Fraction(_rational(sensitivity, "sensitivity"))
        for name, number in (("granularity", step), ("sensitivity", self._sensitivity)):
            if number <= 0:
                raise ParameterError(f"{name} is {number}; it must be positive")
        if self._lower > self._upper:
            raise ParameterError(f"lower = {lower} exceeds upper = {upper}; exchange them")
        width = self._upper - self._lower
        self.outcomes = [self._lower + i * step for i in range(math.floor(width / step) + 1)]
        self.mechanism = Base2Exponential(eta, 0, math.ceil(width / self._sensitivity), len(self.outcomes), **options)

    @property
    def epsilon(self) -> float:
        """The privacy parameter ε of one release, rounded up."""
        return self.mechanism.epsilon

    def utilities(self, value: Number) -> list[Fraction]:
        """Return |value − o| / Δ of every outcome, the value clamped to the public range."""
        within = min(max(_rational(value, "the value"), self._lower), self._upper)
        return [abs(within - o) / self._sensitivity for o in self.outcomes]

    def release(self, value: Number) -> float:
        """Release ``value``; costs ``epsilon``.

        Raises
        ------
        ParameterError
            ``value`` is not a finite number.
        """
        return float(self.outcomes[self.mechanism.release(self.utilities(value)).index])

    def probabilities(self, value: Number) -> list[Fraction]:
        """Return the exact law of a release over ``outcomes``, for tests and small grids."""
        return self.mechanism.probabilities(self.utilities(value))


def _rejection_attempt(weights: CumulativeWeights, getrandbits: Callable[[int], int]) -> int:
    """Draw s at once; the index of its outcome, or n if s ≥ t."""
    s = getrandbits(weights.width)
    first, last = weights.locate(s, s + 1)
    return first if first == last else _settle(weights, getrandbits, s, first, last)


def _bitwise_attempt(weights: CumulativeWeights, getrandbits: Callable[[int], int]) -> int:
    """Draw s bit by bit until one outcome (or s ≥ t) is left; its index, or n."""
    s, left = 0, weights.width
    first, last = weights.locate(0, 1 << left)
    while first != last and left:
        left -= 1
        s = s << 1 | getrandbits(1)
        first, last = weights.locate(s << left, s + 1 << left)
    return first if first == last else _settle(weights, getrandbits, s, first, last)


def _settle(weights: CumulativeWeights, getrandbits: Callable[[int], int], s: int, first: int, last: int) -> int:
    """Draw the remaining bits of s and compare with exact sums."""
    missing = weights.depth - weights.bits
    return weights.locate_exactly(s << missing | getrandbits(missing), first, last)


_ATTEMPTS: dict[str, Callable[[CumulativeWeights, Callable[[int], int]], int]] = {
    "rejection": _rejection_attempt,
    "bitwise": _bitwise_attempt,
}


def _plain(utilities: Any) -> list[Number]:
    """Plain Python numbers: numpy's integers overflow."""
    plain: Any = utilities.tolist() if hasattr(utilities, "tolist") else utilities
    try:
        return list(plain)
    except TypeError:
        raise ParameterError(f"utilities is {shown(plain)}; give one number for each outcome") from None


def _rational(number: Number, name: str) -> int | Fraction:
    """The number as an exact integer or fraction."""
    exact = held_number(number, name)
    return exact.numerator if exact.denominator == 1 else exact


def _whole_sensitivity(sensitivity: Number) -> int:
    exact = _rational(sensitivity, "sensitivity")
    if exact <= 0:
        raise ParameterError(f"sensitivity is {sensitivity}; it must be positive")
    return math.ceil(exact)


def _ceiling(value: Callable[[Any], Any]) -> int:
    """⌈value⌉ of an irrational ball, at as many bits as it takes."""
    from flint import arb, ctx

    bits = 128
    while True:
        with ctx.workprec(bits):
            whole = value(arb).ceil().unique_fmpz()
        if whole is not None:
            return int(whole)
        bits *= 2


def _enclose(value: Callable[[Any], Any]) -> tuple[float, float]:
    """A ball's midpoint as the nearest double, and the smallest double proved not to lie below the ball."""
    from flint import arb, ctx

    with ctx.workprec(256):
        ball = value(arb)
        nearest = above = float(ball.mid())
        while not arb(above) >= ball:
            above = math.nextafter(above, math.inf)
    return nearest, above
