"""(ε, δ)-differential privacy of mechanisms with finitely many outputs, in exact fractions.

M is (ε, δ)-DP if P(S) ≤ e^ε Q(S) + δ for the distributions P, Q of its output on any two
neighbours and every set S of outputs (Dwork and Roth 2014, Definition 2.4). The least δ at f = e^ε
is the hockey-stick divergence Σ_y max(0, P(y) − f Q(y)). The least f at δ is the largest
(P(S) − δ)/Q(S); of each size, the outputs with the largest P(y)/Q(y) suffice.

>>> from pufferflow import dp
>>> coins = dp.FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
>>> coins.level().factor, coins.is_private(1.0986), coins.repeated(10).delta(3**6)
(Fraction(3, 1), False, Fraction(3645, 16384))
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf
from numbers import Rational
from typing import Any, TypeAlias

from flint import arb, ctx, fmpq

from pufferflow._checks import check_list, check_type, check_whole, shown
from pufferflow._numbers import written_number
from pufferflow._rounding import float_up
from pufferflow.errors import ParameterError

Exact: TypeAlias = float | str | Rational
"""An exact number: a fraction, an integer, a string such as "1/3", or a float, by its decimal."""

Distribution: TypeAlias = tuple[Fraction, ...]


@dataclass(frozen=True)
class PrivacyLevel:
    """(ε, δ) with ``factor`` = e^ε exact; ``math.inf`` if no ε is enough."""

    factor: Fraction | float
    delta: Fraction

    @property
    def epsilon(self) -> float:
        """ε in nats, rounded up, also when read as the decimal that it prints."""
        if not isinstance(self.factor, Fraction):
            return inf
        above = log_up(self.factor)
        printed = exp_reaches(Fraction(repr(above)), self.factor)
        return above if printed else math.nextafter(above, inf)


@dataclass(frozen=True, eq=False, init=False)
class FiniteMechanism:
    """The distribution of a mechanism's output for every input.

    Parameters
    ----------
    distributions : mapping
        For each input the exact probabilities of all outputs, in one order, with sum 1.
    neighbours : iterable of pairs of inputs, optional
        Both orders count. By default any two inputs are neighbours.
    """

    distributions: Mapping[Hashable, Distribution]
    neighbours: tuple[tuple[Hashable, Hashable], ...]

    def __init__(
        self,
        distributions: Mapping[Any, Sequence[Exact]],
        neighbours: Iterable[tuple[Any, Any]] | None = None,
    ) -> None:
        check_type(distributions, "distributions", Mapping)
        rows = {
            x: _distribution(p, f"distribution {i}")
            for i, (x, p) in enumerate(distributions.items(), 1)
        }
        if len({len(row) for row in rows.values()}) != 1:
            raise ParameterError(
                "distributions must have at least one input, and as many outputs for each of them, "
                "also those of probability 0"
            )
        try:
            pairs = list(combinations(rows, 2) if neighbours is None else neighbours)
            both = dict.fromkeys(pair for a, b in pairs if a != b for pair in ((a, b), (b, a)))
            unknown = [x for x, _ in both if x not in rows]
        except (TypeError, ValueError):
            raise ParameterError("neighbours must be a list of pairs of inputs") from None
        if unknown:
            raise ParameterError("neighbours names an input without a distribution; give them all")
        object.__setattr__(self, "distributions", rows)
        object.__setattr__(self, "neighbours", tuple(both))

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(next(iter(self.distributions.values())))

    def delta(self, factor: Exact) -> Fraction:
        """Return the least δ of (ε, δ)-DP at e^ε = ``factor`` ≥ 1, exactly."""
        f, divergences = check_exact(factor, "factor", 1), [Fraction(0)]
        for p, q in self._pairs():
            above = (max(Fraction(0), a - f * b) for a, b in zip(p, q, strict=True))
            divergences.append(sum(above, Fraction(0)))
        return max(divergences)

    def delta_at(self, epsilon: Exact) -> float:
        """Return the least δ of (ε, δ)-DP at ``epsilon`` nats, rounded up."""
        wanted = check_exact(epsilon, "epsilon")
        ratios = (a / b for p, q in self._pairs() for a, b in zip(p, q, strict=True) if b)
        largest = max((Fraction(1), *ratios))
        # δ is constant beyond the largest ratio, so that a huge e^ε is never formed
        return float_up(self.delta(largest if exp_reaches(wanted, largest) else _exp_down(wanted)))

    def level(self, delta: Exact = 0) -> PrivacyLevel:
        """Return the least ε of (ε, δ)-DP at ``delta``, exactly."""
        allowed = check_exact(delta, "delta")
        least: Fraction | float = Fraction(1)
        for p, q in self._pairs():
            mass = other = Fraction(0)
            for y in sorted(range(len(p)), key=lambda y: -p[y] / q[y] if q[y] else -inf):
                mass, other = mass + p[y], other + q[y]
                if mass > allowed:
                    least = max(least, (mass - allowed) / other if other else inf)
        return PrivacyLevel(least, allowed)

    def is_private(self, epsilon: Exact, delta: Exact = 0) -> bool:
        """Return whether the mechanism is (ε, δ)-DP, decided exactly."""
        wanted, factor = check_exact(epsilon, "epsilon"), self.level(delta).factor
        return isinstance(factor, Fraction) and exp_reaches(wanted, factor)

    def group(self, size: int) -> FiniteMechanism:
        """Return the mechanism with inputs within ``size`` steps of each other as neighbours."""
        near, beside = {x: {x} for x in self.distributions}, defaultdict(set)
        for x, y in self.neighbours:
            beside[x].add(y)
        for _ in range(min(check_whole(size, "size"), len(near))):
            near = {x: of.union(*(beside[y] for y in of)) for x, of in near.items()}
        return FiniteMechanism(self.distributions, [(x, y) for x, of in near.items() for y in of])

    def compose(self, other: FiniteMechanism) -> FiniteMechanism:
        """Return both run on the same input with independent randomness.

        Outputs whose probabilities are proportional over all inputs carry the same information
        and are merged: k uses of randomised response have k + 1 outputs, not 2^k. Raises
        ParameterError for other inputs or neighbours, or more than 10^6 pairs of outputs.
        """
        check_type(other, "other", FiniteMechanism)
        ours, theirs = self.distributions, other.distributions
        if theirs.keys() != ours.keys() or set(other.neighbours) != set(self.neighbours):
            raise ParameterError("other has different inputs or neighbours; they must be the same")
        if self.outputs * other.outputs > 10**6:
            raise ParameterError("there are more than 10^6 pairs of outputs; compose fewer")
        merged: defaultdict[Distribution, Fraction] = defaultdict(Fraction)
        for a in zip(*ours.values(), strict=True):
            for b in zip(*(theirs[x] for x in ours), strict=True):
                joint = tuple(p * q for p, q in zip(a, b, strict=True))
                if total := sum(joint):
                    merged[tuple(p / total for p in joint)] += total
        columns = ([share * total for share in shape] for shape, total in merged.items())
        rows = dict(zip(ours, zip(*columns, strict=True), strict=True))
        return FiniteMechanism(rows, self.neighbours)

    def repeated(self, times: int) -> FiniteMechanism:
        """Return the mechanism run ``times`` times with independent randomness."""
        if check_whole(times, "times") == 1:
            return self
        half = self.repeated(times // 2)
        twice = half.compose(half)
        return twice.compose(self) if times % 2 else twice

    def _pairs(self) -> Iterator[tuple[Distribution, Distribution]]:
        return ((self.distributions[x], self.distributions[y]) for x, y in self.neighbours)


def composed(levels: Iterable[PrivacyLevel]) -> PrivacyLevel:
    """Return the level of several releases by basic composition: ε and δ add up."""
    total = PrivacyLevel(Fraction(1), Fraction(0))
    for level in check_list(levels, "levels"):
        check_type(level, "an entry of levels", PrivacyLevel)
        total = PrivacyLevel(total.factor * level.factor, total.delta + level.delta)
    return total


def grouped(level: PrivacyLevel, size: int) -> PrivacyLevel:
    """Return the level for inputs ``size`` steps apart: f^size and δ (1 + … + f^(size−1))."""
    check_type(level, "level", PrivacyLevel)
    size = check_whole(size, "size")
    if not isinstance(level.factor, Fraction):
        return PrivacyLevel(inf, level.delta)
    powers = sum(level.factor**i for i in range(size))
    return PrivacyLevel(level.factor**size, level.delta * powers)


def check_exact(value: Exact, name: str, low: int = 0, high: float = inf) -> Fraction:
    """Return an exact number from ``low`` to ``high``."""
    exact = Fraction(low - 1) if isinstance(value, bool) else written_number(value, name)
    if not low <= exact <= high:
        most = "" if high == inf else f" and at most {high}"
        raise ParameterError(
            f"{name} is {shown(value)}; it must be a number of at least {low}{most}"
        )
    return exact


def exp_reaches(epsilon: Fraction, factor: Fraction) -> bool:
    """Return whether e^ε ≥ factor for ε ≥ 0, exactly: e^ε is irrational unless ε = 0."""
    if epsilon == 0 or factor <= 1:
        return factor <= 1
    bits = 128
    while True:
        with ctx.workprec(bits):
            exact, logarithm = _ball(epsilon), _ball(factor).log()
            if exact > logarithm or exact < logarithm:
                return bool(exact > logarithm)
        bits *= 2


def log_up(factor: Fraction) -> float:
    """Return the smallest float that is not below ln ``factor``, for a factor of at least 1."""
    with ctx.workprec(128 + factor.numerator.bit_length()):
        below = math.nextafter(float(_ball(factor).log().mid()), 0)
    while not exp_reaches(Fraction(below), factor):
        below = math.nextafter(below, inf)
    return below


def _exp_down(epsilon: Fraction) -> Fraction:
    """Return a fraction of at most e^ε, within one part in 2^120, for ε ≥ 0."""
    with ctx.workprec(128 + int(epsilon).bit_length()):
        mantissa, exponent = (int(part) for part in _ball(epsilon).exp().lower().man_exp())
    return max(Fraction(1), Fraction(mantissa) * Fraction(2) ** exponent)


def _ball(number: Fraction) -> Any:
    return arb(fmpq(number.numerator, number.denominator))


def _distribution(values: Sequence[Exact], name: str) -> Distribution:
    entries = tuple(
        written_number(value, f"an entry of {name}") for value in check_list(values, name)
    )
    if sum(entries) != 1 or min(entries) < 0:
        raise ParameterError(f"the entries of {name} must be at least 0 and sum to 1 exactly")
    return entries
