"""(ε, δ)-differential privacy of mechanisms with finitely many outputs: decided, not estimated.

M is (ε, δ)-DP when P(S) ≤ e^ε Q(S) + δ for the laws P, Q of its output on any two neighbours and every set S of
outputs (Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Definition 2.4). With fractions:

- the least δ at a factor f = e^ε is the hockey-stick divergence Σ_y max(0, P(y) − f Q(y)), largest over neighbours;
- the least factor at δ is the largest (P(S) − δ)/Q(S); the best S of each size are the outputs with the largest
  P(y)/Q(y), because the divergence is the maximum of P(S) − f Q(S) over all S and these S attain it at every f.

Both are rational, so that the one inexact thing is e^ε, and e^ε ≥ f is decided by as many digits as it takes.

Outputs whose probabilities are proportional, over all inputs, tell the same; adding them up loses nothing for any pair
of inputs. That keeps k uses of a mechanism small: randomised response used k times has k + 1 outputs, not 2^k.

>>> from pufferflow import dp
>>> coins = dp.FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
>>> coins.level().factor, coins.is_private(1.0986), coins.is_private(1.0987)
(Fraction(3, 1), False, True)
>>> ten = coins.repeated(10)
>>> ten.delta(3**6), ten.level("1e-6").factor < 3**10
(Fraction(3645, 16384), True)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf
from numbers import Rational
from typing import Any, TypeAlias

from pufferflow._checks import check_list, check_type, check_whole, shown
from pufferflow._display import displayed
from pufferflow._numbers import written_number
from pufferflow._rounding import float_up
from pufferflow.errors import ParameterError
from pufferflow.related.dp._exponentials import exp_down, exp_reaches, log_up

Exact: TypeAlias = float | str | Rational
"""A number given exactly: a fraction, an integer, a text such as "1/3", or a float, which stands for its decimal."""

Law: TypeAlias = tuple[Fraction, ...]
Pair: TypeAlias = tuple[Hashable, Hashable]

MOST_OUTPUTS = 10**6
"""Products of numbers of outputs beyond which a composition is refused."""


@dataclass(frozen=True)
@displayed("factor", "delta", "pair", "event")
class PrivacyLevel:
    """(ε, δ) with e^ε exact.

    Attributes
    ----------
    factor : Fraction or float
        e^ε; ``math.inf`` where no ε will do.
    delta : Fraction
    pair : tuple
        Neighbours (x, x') that need this factor; empty where none is above 1, or where the level is a bound.
    event : tuple of int
        Positions of the outputs S for which P(S | x) = factor · P(S | x') + delta.
    """

    factor: Fraction | float
    delta: Fraction
    pair: tuple[Hashable, ...] = ()
    event: tuple[int, ...] = ()

    @property
    def epsilon(self) -> float:
        """ε in nats, rounded up, also when read as the decimal that it prints."""
        return log_up(self.factor)

    def within(self, epsilon: Exact) -> bool:
        """Whether the level is one of this ε or less, decided exactly."""
        wanted = _number(epsilon, "epsilon")
        return isinstance(self.factor, Fraction) and exp_reaches(wanted, self.factor)


@dataclass(frozen=True, eq=False)
@displayed("laws")
class FiniteMechanism:
    """The laws of a mechanism's output, one an input.

    Parameters
    ----------
    laws : mapping
        The probabilities of the outputs given each input, exact and in one order.
    neighbours : iterable of pairs of inputs, optional
        Both orders count. Without it any two inputs are neighbours, as for one person's answer.

    Raises
    ------
    ParameterError
        No input, laws that are none or of different lengths, or a neighbour that is no input.
    """

    laws: Mapping[Hashable, Law]
    neighbours: tuple[Pair, ...]

    def __init__(self, laws: Mapping[Any, Sequence[Exact]], neighbours: Iterable[tuple[Any, Any]] | None = None):
        check_type(laws, "laws", Mapping)
        if not laws:
            raise ParameterError("the mechanism has no input; give the law of its output on at least one")
        exact = {given: _law(law, place) for place, (given, law) in enumerate(laws.items(), 1)}
        if len({len(law) for law in exact.values()}) > 1:
            raise ParameterError("the laws have different numbers of outputs; give every output on every input, also 0")
        pairs = combinations(exact, 2) if neighbours is None else map(_pair, check_list(neighbours, "neighbours"))
        both = tuple(dict.fromkeys(pair for a, b in pairs if a != b for pair in ((a, b), (b, a))))
        if any(given not in exact for given, _ in both):
            raise ParameterError("neighbours names an input without a law; give laws for all of them")
        object.__setattr__(self, "laws", exact)
        object.__setattr__(self, "neighbours", both)

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(next(iter(self.laws.values())))

    def delta(self, factor: Exact) -> Fraction:
        """Least δ of (ε, δ)-DP at e^ε = ``factor``, at least 1: exact."""
        return self._delta(_number(factor, "factor", 1))

    def delta_at(self, epsilon: Exact) -> float:
        """Least δ of (ε, δ)-DP at ``epsilon`` in nats, rounded up."""
        wanted, largest = _number(epsilon, "epsilon"), self._largest_ratio()
        # beyond the largest ratio nothing changes; before it e^ε is of its size
        return float_up(self._delta(largest if exp_reaches(wanted, largest) else exp_down(wanted)))

    def level(self, delta: Exact = 0) -> PrivacyLevel:
        """Least ε of (ε, δ)-DP at ``delta``, with the neighbours and the event that need it."""
        allowed = _number(delta, "delta")
        levels = (_least(self.laws[x], self.laws[y], allowed, (x, y)) for x, y in self.neighbours)
        return max(levels, key=lambda level: level.factor, default=PrivacyLevel(Fraction(1), allowed))

    def is_private(self, epsilon: Exact, delta: Exact = 0) -> bool:
        """Whether the mechanism is (ε, δ)-DP: exact, for any ε and δ that can be written down."""
        return self.level(delta).within(epsilon)

    def group(self, size: int) -> FiniteMechanism:
        """Return the mechanism with inputs as neighbours that at most ``size`` steps between neighbours connect."""
        size, beside = check_whole(size, "size"), defaultdict(list)
        for x, y in self.neighbours:
            beside[x].append(y)
        reached = ((x, y) for x in self.laws for y in within_steps(x, lambda given: beside[given], size))
        return _like(self.laws, tuple(reached))

    def compose(self, other: FiniteMechanism) -> FiniteMechanism:
        """Return both run on the same input with independent randomness; equivalent outputs are added up.

        Raises
        ------
        ParameterError
            Other inputs or neighbours, or more than ``MOST_OUTPUTS`` pairs of outputs.
        """
        check_type(other, "other", FiniteMechanism)
        if set(other.laws) != set(self.laws) or set(other.neighbours) != set(self.neighbours):
            raise ParameterError("the mechanisms have different inputs or neighbours; compose those that share them")
        if self.outputs * other.outputs > MOST_OUTPUTS:
            raise ParameterError(
                f"{self.outputs} times {other.outputs} outputs are more than {MOST_OUTPUTS}; compose fewer mechanisms"
            )
        names = list(self.laws)
        ours, theirs = (list(zip(*(m.laws[name] for name in names), strict=True)) for m in (self, other))
        columns = (tuple(p * q for p, q in zip(a, b, strict=True)) for a in ours for b in theirs)
        merged = _merge(columns)
        return _like(dict(zip(names, zip(*merged, strict=True), strict=True)), self.neighbours)

    def repeated(self, times: int) -> FiniteMechanism:
        """Return the mechanism run ``times`` times with independent randomness."""
        if check_whole(times, "times") == 1:
            return self
        half = self.repeated(times // 2)
        twice = half.compose(half)
        return twice.compose(self) if times % 2 else twice

    def _largest_ratio(self) -> Fraction:
        """Largest finite ratio of probabilities of an output given two neighbours, at least 1."""
        laws = ((self.laws[x], self.laws[y]) for x, y in self.neighbours)
        ratios = (a / b for p, q in laws for a, b in zip(p, q, strict=True) if b)
        return max((Fraction(1), *ratios))

    def _delta(self, factor: Fraction) -> Fraction:
        return max((hockey_stick(self.laws[x], self.laws[y], factor) for x, y in self.neighbours), default=Fraction(0))


def _like(laws: Mapping[Hashable, Law], neighbours: tuple[Pair, ...]) -> FiniteMechanism:
    """Return a mechanism of parts that are known to fit."""
    made = object.__new__(FiniteMechanism)
    object.__setattr__(made, "laws", laws)
    object.__setattr__(made, "neighbours", neighbours)
    return made


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], factor: Fraction) -> Fraction:
    """Σ_y max(0, p(y) − factor · q(y)); at factor 1 the statistical difference of p and q."""
    return sum((max(Fraction(0), a - factor * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def composed(levels: Iterable[PrivacyLevel]) -> PrivacyLevel:
    """Level of several releases by basic composition: the ε and the δ add up, whatever the mechanisms are."""
    total = PrivacyLevel(Fraction(1), Fraction(0))
    for level in check_list(levels, "levels"):
        check_type(level, "an entry of levels", PrivacyLevel)
        total = PrivacyLevel(total.factor * level.factor, total.delta + level.delta)
    return total


def grouped(level: PrivacyLevel, size: int) -> PrivacyLevel:
    """Level that holds for inputs ``size`` steps apart, whatever the mechanism is.

    From P_0 ≤ f P_1 + δ ≤ f (f P_2 + δ) + δ ≤ …: the factor is f^size, and δ (1 + f + … + f^(size−1)).
    """
    check_type(level, "level", PrivacyLevel)
    size = check_whole(size, "size")
    if not isinstance(level.factor, Fraction):
        return PrivacyLevel(inf, level.delta)
    return PrivacyLevel(level.factor**size, level.delta * sum(level.factor**i for i in range(size)))


def within_steps(start: Any, neighbours: Callable[[Any], Iterable[Any]], steps: int) -> Iterator[Any]:
    """Yield what at most ``steps`` steps from a thing to a neighbour reach from ``start``, itself not."""
    seen, front = {start}, [start]
    for _ in range(steps):
        front = list(dict.fromkeys(y for x in front for y in neighbours(x) if y not in seen))
        seen.update(front)
        yield from front


def _least(p: Law, q: Law, delta: Fraction, pair: Pair) -> PrivacyLevel:
    """Least factor at which the divergence of p from q is at most delta."""
    order = sorted((y for y in range(len(p)) if p[y]), key=lambda y: -p[y] / q[y] if q[y] else -inf)
    best, size = PrivacyLevel(Fraction(1), delta), 0
    mass = other = Fraction(0)
    for place, y in enumerate(order, 1):
        mass, other = mass + p[y], other + q[y]
        if mass > delta and (factor := (mass - delta) / other if other else inf) > best.factor:
            best, size = PrivacyLevel(factor, delta, pair), place
        if best.factor == inf:
            break
    return PrivacyLevel(best.factor, delta, best.pair, tuple(sorted(order[:size])))


def _merge(columns: Iterable[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    """Add up proportional columns; those of zeros are outputs that never occur."""
    totals: defaultdict[tuple[Fraction, ...], Fraction] = defaultdict(Fraction)
    for column in columns:
        if total := sum(column):
            totals[tuple(entry / total for entry in column)] += total
    return [tuple(entry * total for entry in shape) for shape, total in totals.items()]


def _law(values: Sequence[Exact], place: int) -> Law:
    law = tuple(written_number(value, f"an entry of law {place}") for value in check_list(values, f"law {place}"))
    if sum(law) != 1 or min(law) < 0:
        raise ParameterError(f"law {place} is no law: its entries must be at least 0 and sum to 1 exactly")
    return law


def _pair(entry: Any) -> Pair:
    try:
        first, second = entry
        hash((first, second))
    except (TypeError, ValueError):
        raise ParameterError("an entry of neighbours is no pair of inputs; give tuples of two") from None
    return first, second


def _number(value: Exact, name: str, least: int = 0) -> Fraction:
    exact = Fraction(-1) if isinstance(value, bool) else written_number(value, name)
    if exact < least:
        raise ParameterError(f"{name} is {shown(value)}; it must be a number of at least {least}")
    return exact
