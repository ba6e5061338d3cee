"""Exact differential privacy of mechanisms with finitely many outputs, and sensitivity.

M is (ε, δ)-DP if P(S) ≤ e^ε Q(S) + δ for the distributions P, Q of its output on any two
neighbours and every set S of outputs (Dwork and Roth 2014, Definition 2.4). The least δ at f = e^ε
is the hockey-stick divergence Σ_y max(0, P(y) − f Q(y)). The least f at δ is the largest
(P(S) − δ)/Q(S); of each size, the outputs with the largest P(y)/Q(y) suffice.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from math import inf
from typing import Any, TypeAlias

import numpy as np
from flint import ctx

from pufferflow._util.checks import check_list, check_type, check_whole, shown
from pufferflow._util.numbers import Exact, ball, log_bound, written_number
from pufferflow._util.rounding import float_up
from pufferflow.errors import DataError, ParameterError

Distribution: TypeAlias = tuple[Fraction, ...]
Neighbours: TypeAlias = Callable[[Any], Iterable[Any]]


@dataclass(frozen=True)
class PrivacyLevel:
    """(ε, δ) with exact ``factor`` = e^ε; ``math.inf`` if no ε suffices."""

    factor: Fraction | float
    delta: Fraction

    @property
    def epsilon(self) -> float:
        """ε in nats, rounded up, also when read as the decimal that it prints."""
        if not isinstance(self.factor, Fraction):
            return inf
        bound = log_bound(self.factor)
        above = float_up(bound)
        return above if Fraction(repr(above)) >= bound else math.nextafter(above, inf)


class FiniteMechanism:
    """The distribution of a mechanism's output for every input.

    Parameters
    ----------
    distributions : mapping
        For each input the exact probabilities of all outputs, in one order, with sum 1.
    neighbours : iterable of pairs of inputs, optional
        Pairs in either order. By default any two inputs are neighbours.
    """

    def __init__(
        self,
        distributions: Mapping[Any, Sequence[Exact]],
        neighbours: Iterable[tuple[Any, Any]] | None = None,
    ) -> None:
        check_type(distributions, "distributions", Mapping)
        self.distributions: dict[Hashable, Distribution] = {}
        for x, row in distributions.items():
            chances = [written_number(p, "a probability") for p in check_list(row, "a row")]
            if sum(chances) != 1 or min(chances) < 0:
                raise ParameterError("probabilities of outputs must be ≥ 0 and sum to 1 exactly")
            self.distributions[x] = tuple(chances)
        sizes = set(map(len, self.distributions.values()))
        if len(sizes) != 1:
            raise ParameterError("distributions must have an input, and as many outputs for each")
        self.outputs = sizes.pop()
        pairs = combinations(distributions, 2) if neighbours is None else neighbours
        try:
            self.neighbours = {pair for a, b in pairs if a != b for pair in ((a, b), (b, a))}
            rows = self.distributions
            self._pairs = [(rows[a], rows[b]) for a, b in self.neighbours]
        except (TypeError, ValueError, KeyError):
            raise ParameterError("neighbours must be pairs of inputs with a distribution") from None

    def __repr__(self) -> str:
        return f"FiniteMechanism({len(self.distributions)} inputs, {self.outputs} outputs)"

    def delta(self, factor: Exact) -> Fraction:
        """Return the least δ of (ε, δ)-DP at e^ε = ``factor`` ≥ 1, exactly."""
        f, divergences = check_exact(factor, "factor", 1), [Fraction(0)]
        for p, q in self._pairs:
            above = (max(Fraction(0), a - f * b) for a, b in zip(p, q, strict=True))
            divergences.append(sum(above, Fraction(0)))
        return max(divergences)

    def delta_at(self, epsilon: Exact) -> float:
        """Return the least δ of (ε, δ)-DP at ``epsilon`` nats, rounded up."""
        wanted = check_exact(epsilon, "epsilon")
        ratios = (a / b for p, q in self._pairs for a, b in zip(p, q, strict=True) if b)
        largest = max((Fraction(1), *ratios))
        if wanted >= log_bound(largest):  # from there on δ is constant: no huge e^ε is formed
            return float_up(self.delta(largest))
        with ctx.workprec(128 + int(wanted).bit_length()):
            factor = ball(wanted).exp().lower().fmpq()
        return float_up(self.delta(max(Fraction(1), Fraction(int(factor.p), int(factor.q)))))

    def level(self, delta: Exact = 0) -> PrivacyLevel:
        """Return the least ε of (ε, δ)-DP at ``delta``, exactly."""
        allowed = check_exact(delta, "delta")
        least: Fraction | float = Fraction(1)
        for p, q in self._pairs:
            mass = other = Fraction(0)
            for y in sorted(range(len(p)), key=lambda y: -p[y] / q[y] if q[y] else -inf):
                mass, other = mass + p[y], other + q[y]
                if mass > allowed:
                    least = max(least, (mass - allowed) / other if other else inf)
        return PrivacyLevel(least, allowed)

    def group(self, size: int) -> FiniteMechanism:
        """Return the mechanism with inputs within ``size`` steps of each other as neighbours."""
        near = {x: {x} for x in self.distributions}
        for _ in range(min(check_whole(size, "size"), len(near))):
            near = {x: of | {z for y, z in self.neighbours if y in of} for x, of in near.items()}
        return FiniteMechanism(self.distributions, [(x, y) for x, of in near.items() for y in of])

    def compose(self, other: FiniteMechanism) -> FiniteMechanism:
        """Return both run on the same input with independent randomness.

        Outputs whose probabilities are proportional over all inputs carry the same information
        and are merged: k uses of randomised response have k + 1 outputs, not 2^k. Raises
        ParameterError for other inputs or neighbours, or more than 10^6 pairs of outputs.
        """
        check_type(other, "other", FiniteMechanism)
        ours, theirs = self.distributions, other.distributions
        if theirs.keys() != ours.keys() or other.neighbours != self.neighbours:
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


def change_one(values: Iterable[Any]) -> Neighbours:
    """Return the function of a database whose neighbours differ in one record (bounded DP)."""
    listed = check_list(values, "values")
    return lambda database: (
        (*database[:i], new, *database[i + 1 :])
        for i, old in enumerate(database)
        for new in listed
        if new != old
    )


def add_or_remove_one(values: Iterable[Any]) -> Neighbours:
    """Return the same for one more record, at the end, or one less (unbounded DP)."""
    listed = check_list(values, "values")
    return lambda database: chain(
        ((*database[:i], *database[i + 1 :]) for i in range(len(database))),
        ((*database, new) for new in listed),
    )


def sensitivity(
    query: Callable[[Any], Any], databases: Iterable[Any], neighbours: Neighbours
) -> Fraction:
    """Return the largest L1 change of a query between neighbours, exactly.

    Parameters
    ----------
    query : callable
        Returns a number, or a sequence of numbers of one length, for a database or a neighbour;
        anything else is a DataError.
    databases : iterable
        All possible databases, such as ``itertools.product(values, repeat=3)``.
    neighbours : callable
        Returns the neighbours of a database: :func:`change_one`, or any other function.
    """
    if not (callable(query) and callable(neighbours)):
        raise ParameterError("query and neighbours must be functions of a database")
    if not (every := check_list(databases, "databases")):
        raise ParameterError("there is no database; give at least one")
    largest = Fraction(0)
    for database in every:
        answer = _numbers(query(database))
        for neighbour in neighbours(database):
            other = _numbers(query(neighbour))
            if len(other) != len(answer):
                raise DataError("the query must always return the same number of numbers")
            change = sum((abs(a - b) for a, b in zip(answer, other, strict=True)), Fraction(0))
            largest = max(largest, change)
    return largest


def _numbers(answer: Any) -> list[Fraction]:
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    listed = plain if isinstance(plain, list | tuple) else [plain]
    try:
        return [held_number(value, "an answer") for value in listed]
    except ParameterError:
        raise DataError("an answer of the query must be a number or a list of numbers") from None


def held_number(value: object, name: str) -> Fraction:
    """Return an exact number: for a float its binary value, otherwise the written number."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and math.isfinite(plain):
        return Fraction(plain)
    return written_number(plain, name)


def check_exact(value: Exact, name: str, low: int = 0, high: float = inf) -> Fraction:
    """Return an exact number from ``low`` to ``high``."""
    exact = Fraction(low - 1) if isinstance(value, bool) else written_number(value, name)
    if not low <= exact <= high:
        most = "" if high == inf else f" and at most {high}"
        raise ParameterError(
            f"{name} is {shown(value)}; it must be a number of at least {low}{most}"
        )
    return exact
