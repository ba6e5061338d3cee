"""The exponential mechanism in exact arithmetic.

In floating point weights underflow to 0 or vanish in a sum, so that an output is impossible for
one database and possible for its neighbour. Ilvento, "Implementing the Exponential Mechanism with
Base-2 Differential Privacy" (CCS 2020), takes η = −z·log2(x / 2^y), so that every weight 2^(−η·u)
of an integer utility u is a finite binary fraction; as there, **small** utilities are likely.

*Privacy.* Let neighbouring databases change every utility by at most α. The mechanism is 2⌈α⌉η·ln 2
differentially private:

1. Integer utilities change by at most a = ⌊α⌋. A weight changes by a factor of at most 2^(aη), the
   sum of all weights by no more, both possibly against each other: a ratio of at most 2^(2aη).
   (An outcome of utility 1 among n of 0, against 0 among n of 1, tends to 2^(2η) as n grows.)
2. Clamping to a fixed range does not increase differences of utilities.
3. Rounding u to ⌊u⌋ + 1 with probability u − ⌊u⌋ is ⌊u + V⌋ with V uniform on [0, 1). Give both
   databases the same V for each outcome; |u − u'| ≤ α then implies |⌊u + V⌋ − ⌊u' + V⌋| ≤ ⌈α⌉. For
   each V the ratio is at most 2^(2⌈α⌉η) by 1, so it is for the averages over V.

The source's code states 2αη for every α; with α = ½, utility ½ against 1 and all others 1 against
½, the ratio tends to ((1 + 2^η)/2)², which is larger. ε does not include leakage by timing.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, product
from typing import Any, Literal, Self, TypeAlias

from flint import arb, ctx, fmpq, fmpz

from pufferflow._util.checks import check_choice, check_positive, check_type, check_whole
from pufferflow._util.noise import randomness
from pufferflow._util.numbers import log_bound
from pufferflow._util.rounding import float_up
from pufferflow.dp.finite import held_number
from pufferflow.errors import ParameterError

Number: TypeAlias = float | Fraction  # a float stands for its binary value


@dataclass(frozen=True)
class Eta:
    """The base-2 privacy parameter η = −z·log2(x / 2^y).

    x, y and z are positive integers, x < 2^y; anything else is a ParameterError.
    """

    x: int
    y: int
    z: int = 1

    def __post_init__(self) -> None:
        for name in ("x", "y", "z"):
            whole = check_whole(getattr(self, name), f"{name} of η", most=None)
            object.__setattr__(self, name, whole)
        if self.x >> self.y:
            raise ParameterError("x of η must be smaller than 2^y")

    @classmethod
    def for_epsilon(cls, epsilon: float, sensitivity: Number = 1, *, y: int = 16) -> Self:
        """Return the largest η with z = 1 and 2⌈α⌉η·ln 2 ≤ ``epsilon``, for y up to 62.

        Raises ParameterError if that needs a larger y.
        """
        nats, y = Fraction(check_positive(epsilon, "epsilon")), check_whole(y, "y of η", 1, 62)
        each, every = nats / (2 * _whole_sensitivity(sensitivity)), range(1, 2**y)
        x = 1 + bisect_left(every, True, key=lambda x: log_bound(Fraction(2**y, x)) <= each)
        if x >> y:
            raise ParameterError(f"epsilon is {epsilon}, too small for y = {y} bits of η; raise y")
        return cls(x, y)

    @property
    def base(self) -> Fraction:
        """2^−η, exactly."""
        return Fraction(self.x, 2**self.y) ** self.z

    @property
    def odd(self) -> tuple[int, int]:
        """2^−η as numerator and binary places, with an odd numerator."""
        return self.base.numerator, self.base.denominator.bit_length() - 1

    def loss(self, factor: int) -> float:
        """Return ``factor``·η·ln 2, rounded up."""
        return float_up(log_bound(1 / self.base**factor))


class CumulativeWeights:
    """The sums c_i = Σ_{j ≤ i} q^{k_j}, enclosed between integers and exact on demand.

    q = numerator / 2^shift < 1, the numerator odd; all exponents k_j ≥ 0, one of them 0. Exact
    sums of 75,000 outcomes fill 700 MB; a draw needs almost none of these bits. ``lower`` and
    ``upper`` enclose them in units of 2^-bits (any number of bits gives the same draws); every c_i
    is an integer in units of 2^-depth.
    """

    def __init__(self, numerator: int, shift: int, exponents: Sequence[int], bits: int) -> None:
        self._numerator, self._shift, self._exponents = numerator, shift, exponents
        self.bits, self.depth = bits, shift * max(exponents)
        wide, floors, last, power = bits + 64, {}, 0, 1 << bits + 64

        @cache
        def factor(gap: int) -> int:
            while True:
                with ctx.workprec(2 * wide):
                    ball = arb(fmpq(numerator, 1 << shift)) ** gap * arb(1 << wide)
                    found = int(ball.lower().floor().unique_fmpz() or 0)
                if ball < found + 2:  # threads share flint's precision, so it may have been lower
                    return found

        # Each power of q from the one before it, in units of 2^-wide. Rounding down loses less
        # than 3 units each time, fewer than 2^64 in all.
        for k in sorted(set(exponents)):
            power, last = power * factor(k - last) >> wide, k
            floors[k] = power >> 64
        self.lower = list(accumulate(floors[k] for k in exponents))
        self.upper = list(accumulate(floors[k] + 2 * (shift * k > bits) for k in exponents))

    @cached_property
    def width(self) -> int:
        """Bits of s: ``bits`` fractional ones, and ⌈log2 t⌉ before them, t ≥ 1 the total."""
        least, most = ((sums[-1] - 1).bit_length() for sums in (self.lower, self.upper))
        if least == most:
            return least
        return (self.exact(len(self._exponents)) - 1).bit_length() - self.depth + self.bits

    def exact(self, count: int) -> int:
        """Return 2^depth · (sum of the first ``count`` weights)."""
        total, power, last, base = fmpz(0), fmpz(1), 0, fmpz(self._numerator)
        for k, times in sorted(Counter(self._exponents[:count]).items()):
            power, total = power * base ** (k - last), total << self._shift * (k - last)
            total, last = total + times * power, k
        return int(total) << self.depth - self._shift * last

    def draw(self, getrandbits: Callable[[int], int], *, bitwise: bool) -> int:
        """Draw s, at once or bit by bit; return its outcome, or n if s ≥ t."""
        s, left, first, last = 0, self.width, 0, len(self.lower)
        step = 1 if bitwise else left
        while first != last and left:
            s, left = s << step | getrandbits(step), left - step
            low, high = s << left, s + 1 << left
            first, last = bisect_right(self.upper, low), bisect_left(self.lower, high)
        if first < last:  # the sums need more bits than the enclosures
            s = s << self.depth - self.bits | getrandbits(self.depth - self.bits)
            first += bisect_right(range(first, last), s, key=lambda i: self.exact(i + 1))
        return first


class Base2Exponential:
    """Exact base-2 exponential mechanism on a finite set of outcomes.

    Parameters
    ----------
    eta : Eta
    utility_min, utility_max : int
        Public range; utilities outside are clamped to it.
    max_outcomes : int
        Public bound on the number of outcomes.
    sensitivity : number
        α: the largest change of any utility by one record, rounded up to ⌈α⌉.
    sampler : {"rejection", "bitwise"}
        "rejection" draws s uniform on [0, 2^⌈log2 t⌉), t the total weight, repeats this while
        s ≥ t, and returns the first i whose cumulative weight c_i > s. "bitwise" draws the bits of
        s from the top until the outcome is determined: fewer random bits, more timing leakage.
    minimum_attempts : int
        Minimum number of attempts. One fails with probability below ½, so timing reveals the
        weights with probability below 2^−minimum_attempts.
    insecure_seed : int, optional
        Draw from a seeded generator instead of the operating system's. Not private.

    Raises ParameterError: an argument is out of range, or weights need more than 2^30 bits.

    Examples
    --------
    >>> votes = [31, 50, 12]
    >>> mechanism = Base2Exponential(Eta.for_epsilon(0.5), -100, 0, max_outcomes=3, insecure_seed=1)
    >>> mechanism.release([-n for n in votes])
    [1]
    """

    def __init__(
        self,
        eta: Eta,
        utility_min: int,
        utility_max: int,
        max_outcomes: int,
        *,
        sensitivity: Number = 1,
        sampler: Literal["rejection", "bitwise"] = "rejection",
        minimum_attempts: int = 1,
        insecure_seed: int | None = None,
    ) -> None:
        check_type(eta, "eta", Eta)
        check_choice(sampler, "sampler", ("rejection", "bitwise"))
        self.eta, self.sampler = eta, sampler
        self.utility_min = check_whole(utility_min, "utility_min", None, None)
        self.utility_max = check_whole(utility_max, "utility_max", self.utility_min, None)
        self.max_outcomes = check_whole(max_outcomes, "max_outcomes")
        self.minimum_attempts = check_whole(minimum_attempts, "minimum_attempts")
        self.epsilon = eta.loss(2 * _whole_sensitivity(sensitivity))
        """ε of one release in nats, 2⌈α⌉η·ln 2, rounded up."""
        span = self.utility_max - self.utility_min
        self.precision = eta.y * eta.z * span + self.max_outcomes.bit_length()
        if self.precision > 2**30:
            raise ParameterError("exact weights need too many bits; narrow the range of utilities")
        # an enclosed sum is at most 5·n·(range + 1) units wide, and s may fall into one of n
        self.enclosure_bits = 131 + 2 * self.max_outcomes.bit_length() + (span + 1).bit_length()
        self._seeded, self._random = insecure_seed is not None, randomness(insecure_seed)

    def __repr__(self) -> str:
        utilities = f"utilities {self.utility_min} to {self.utility_max}"
        return "NOT PRIVATE: " * self._seeded + f"Base2Exponential({self.eta}, {utilities})"

    def release(self, utilities: Iterable[Number], count: int = 1) -> list[int]:
        """Return ``count`` independent outcomes, as indices; each costs ``epsilon``.

        Small utilities are likely; those that are not integers are rounded at random. Raises
        ParameterError for no outcome or too many, or a utility that is not a finite number.
        """
        exact, count = self._clamped(utilities), check_whole(count, "count")
        if all(u.denominator == 1 for u in exact):
            weights = self.cumulative([int(u) for u in exact])
            return [self._draw(weights) for _ in range(count)]
        return [self._draw(self.cumulative([*map(self._round, exact)])) for _ in range(count)]

    def weights(self, utilities: Iterable[int]) -> list[int]:
        """Return the exact weights of integer utilities times one public factor, as integers."""
        exact = self._clamped(utilities)
        if any(u.denominator > 1 for u in exact):
            raise ParameterError("weights are of integer utilities; release rounds the others")
        (numerator, shift), low, high = self.eta.odd, self.utility_min, self.utility_max
        return [numerator ** int(u - low) << shift * int(high - u) for u in exact]

    def probabilities(self, utilities: Iterable[Number]) -> list[Fraction]:
        """Return the exact distribution of one release, for at most 2^12 ways to round."""
        exact = self._clamped(utilities)
        if 1 << sum(u.denominator > 1 for u in exact) > 2**12:
            raise ParameterError("there are more than 2^12 ways to round the utilities")
        found = [Fraction(0)] * len(exact)
        ways = ([(u // 1, 1 - u % 1), (u // 1 + 1, u % 1)][: u.denominator] for u in exact)
        for way in product(*ways):
            weights = self.weights([rounded for rounded, _ in way])
            share = math.prod(chance for _, chance in way) / Fraction(sum(weights))
            found = [p + share * w for p, w in zip(found, weights, strict=True)]
        return found

    def cumulative(self, utilities: Sequence[int]) -> CumulativeWeights:
        """Return the cumulative weights of integers within the range, the largest weight as 1."""
        best = min(utilities)
        exponents = [u - best for u in utilities]
        return CumulativeWeights(*self.eta.odd, exponents, self.enclosure_bits)

    def _clamped(self, utilities: Any) -> list[int | Fraction]:
        try:
            given = list(utilities)
        except TypeError:
            raise ParameterError("utilities must be a list of one number per outcome") from None
        if not 0 < len(given) <= self.max_outcomes:
            raise ParameterError(
                f"there are {len(given)} outcomes; give at least 1 and at most {self.max_outcomes}"
            )
        exact = [u if type(u) is int else held_number(u, "a utility") for u in given]
        return [min(max(u, self.utility_min), self.utility_max) for u in exact]

    def _round(self, u: int | Fraction) -> int:
        """Return u, rounded up with probability u − ⌊u⌋, exactly."""
        return u // 1 + (self._random.randrange(u.denominator) < u.numerator % u.denominator)

    def _draw(self, weights: CumulativeWeights) -> int:
        chosen = rejected = len(weights.lower)
        attempts = 0
        while chosen == rejected or attempts < self.minimum_attempts:
            index = weights.draw(self._random.getrandbits, bitwise=self.sampler == "bitwise")
            chosen, attempts = index if chosen == rejected else chosen, attempts + 1
        return chosen


def _whole_sensitivity(sensitivity: Number) -> int:
    exact = held_number(sensitivity, "sensitivity")
    if exact <= 0:
        raise ParameterError("sensitivity must be positive")
    return math.ceil(exact)
