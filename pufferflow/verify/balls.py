"""One chain in balls: what contains the exact powers and laws, beside which transitions are possible at all.

Sets of states are the bits of an integer and exact; probabilities are balls that contain the exact numbers (Arb).
Products of non-negative balls never cancel, so an entry that can be positive is positive in the balls too, given
enough bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from flint import arb, arb_mat, fmpq

from pufferflow.verify.parsing import CertificateError, Chain

PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
"""Bits of the balls, tried in turn until they are narrow enough to decide."""

_MOST_SUPPORTS = 10_000

Vector: TypeAlias = list[arb | None]  # None: exactly 0, all others are known to be positive
_T = TypeVar("_T")


class UndecidedError(Exception):
    """The balls are too wide at the present precision."""


class Supports:
    """The states that the nodes of a chain can take, as exact sets."""

    def __init__(self, chain: Chain) -> None:
        self.k = len(chain.matrix)
        self.start = chain.start
        self._powers = [[sum(1 << y for y, p in enumerate(row) if p) for row in chain.matrix]]  # of P^(2^j), by rows
        if self.start == "stationary":
            self.states = self._closed_class()
        elif self.start == "any":
            self.states = (1 << self.k) - 1
        else:
            self.states = sum(1 << x for x, p in enumerate(self.start) if p)

    def reached(self, states: int, n: int) -> int:
        """States that can be reached from ``states`` in exactly n steps."""
        for j in range(n.bit_length()):
            if j == len(self._powers):
                steps = self._powers[-1]
                self._powers.append([_union(steps, reached) for reached in steps])
            if n >> j & 1:
                states = _union(self._powers[j], states)
        return states

    def between(self, first: int, last: int) -> list[int]:
        """All sets of states that some X_i, first ≤ i ≤ last, takes with positive probability."""
        if self.start == "stationary":
            return [self.states]
        known, repeats = self._orbit
        if repeats is None:
            return self._followed(self.reached(self.states, first - 1), first, last)
        period = len(known) - repeats
        begin = first - 1 if first <= len(known) else repeats + (first - 1 - repeats) % period
        supports = known[begin : begin + last - first + 1]
        if len(supports) < last - first + 1:  # round the cycle
            supports += known[repeats : min(begin, repeats + last - first + 1 - len(supports))]
        return supports

    def settling(self) -> int:
        """How many sets of states a range of nodes may have, at most."""
        return 1 if self.start == "stationary" else len(self._orbit[0])

    @cached_property
    def _orbit(self) -> tuple[list[int], int | None]:
        """The sets of node 1, 2, … up to the first that repeats one, and which; None where too many come before."""
        places: dict[int, int] = {}
        states = self.states
        while states not in places and len(places) <= _MOST_SUPPORTS:
            places[states] = len(places)
            states = _union(self._powers[0], states)
        return list(places), places.get(states)

    def _followed(self, states: int, first: int, last: int) -> list[int]:
        supports = {states: None}
        for _ in range(first, last):
            states = _union(self._powers[0], states)
            if states in supports:  # from here on they repeat
                break
            supports[states] = None
            if len(supports) > _MOST_SUPPORTS:
                raise CertificateError(f"the states that nodes {first} to {last} can take do not settle")
        return list(supports)

    def _closed_class(self) -> int:
        """States of the only closed class."""
        within = [steps | 1 << x for x, steps in enumerate(self._powers[0])]
        while (farther := [_union(within, reached) for reached in within]) != within:
            within = farther
        closed = {r for x, r in enumerate(within) if all(within[y] >> x & 1 for y in members(r))}
        if len(closed) > 1:
            raise CertificateError(f"the stationary distribution is not unique ({len(closed)} closed classes)")
        return closed.pop()


class ChainBalls:
    """Powers of P, laws of the nodes and the states they can take, at the precision at which it is made."""

    def __init__(self, chain: Chain) -> None:
        self.k = len(chain.matrix)
        self.start = chain.start
        self.supports = Supports(chain)
        self._squares = [arb_mat([[ball(p) for p in row] for row in chain.matrix])]
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._law: Vector = []
        if self.start == "stationary":
            self._law = self._stationary()
        elif self.start != "any":
            self._law = [ball(p) if isinstance(p, Fraction) and p else None for p in self.start]

    def keep(self, key: tuple[Any, ...], make: Callable[[], _T]) -> _T:
        """Return what ``make`` returned for this key the first time."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: _T = self._kept[key]
        return kept

    def power(self, n: int) -> list[Vector]:
        """P^n by rows."""

        def make() -> list[Vector]:
            power = arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
            for matrix in self._binary(n):
                power = power * matrix
            return [positive(row, self.supports.reached(1 << x, n)) for x, row in enumerate(power.tolist())]

        return self.keep(("power", n), make)

    def law(self, node: int) -> Vector:
        """The law of a node, up to a factor; not for any start."""
        if self.start == "stationary":
            return self._law
        row = arb_mat([[arb(0) if p is None else p for p in self._law]])
        for matrix in self._binary(node - 1):
            row = row * matrix
        return positive(row.tolist()[0], self.supports.reached(self.supports.states, node - 1))

    def _binary(self, n: int) -> Iterator[arb_mat]:
        """The powers P^(2^j) whose product is P^n."""
        for j in range(n.bit_length()):
            if j == len(self._squares):
                self._squares.append(self._squares[-1] * self._squares[-1])
            if n >> j & 1:
                yield self._squares[j]

    def _stationary(self) -> Vector:
        """Stationary law up to a factor, by elimination after Grassmann, Taksar and Heyman (no subtraction)."""
        inside = list(members(self.supports.states))
        weights = stationary_weights(self._squares[0], inside)
        law = [arb(0)] * self.k
        for x, weight in zip(inside, weights, strict=True):
            law[x] = weight
        return positive(law, self.supports.states)


def stationary_weights(matrix: arb_mat, inside: list[int]) -> list[arb]:
    """Stationary law of a closed class, up to a factor; raises UndecidedError."""
    work = [[matrix[x, y] for y in inside] for x in inside]
    for n in range(len(inside) - 1, 0, -1):
        leave = sum(work[n][:n], arb(0))
        if not leave > 0:
            raise UndecidedError
        for x in range(n):
            work[x][n] /= leave
            for y in range(n):
                work[x][y] += work[x][n] * work[n][y]
    weights = [arb(1)]
    for n in range(1, len(inside)):
        weights.append(sum((weights[x] * work[x][n] for x in range(n)), arb(0)))
    return weights


def ball(number: Fraction) -> arb:
    """Return a ball around an exact number."""
    return arb(fmpq(number.numerator, number.denominator))


def exact(end: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def members(states: int) -> Iterator[int]:
    """The states of a set."""
    return (x for x in range(states.bit_length()) if states >> x & 1)


def positive(values: list[arb], support: int) -> Vector:
    """Mark the exact zeros of a vector by None, once all other entries are known to be positive."""
    vector = [value if support >> x & 1 else None for x, value in enumerate(values)]
    if not all(value is None or value > 0 for value in vector):
        raise UndecidedError
    return vector


def _union(steps: list[int], states: int) -> int:
    reached = 0
    for x in members(states):
        reached |= steps[x]
    return reached
