"""One chain in balls: what contains the exact powers and laws, beside which transitions are possible at all.

Sets of states are the bits of an integer and exact; probabilities are balls that contain the exact numbers (Arb).
Products of non-negative balls never cancel, so an entry that can be positive is positive in the balls too, given
enough bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
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


class ChainBalls:
    """Powers of P, laws of the nodes and the states they can take, at the precision at which it is made."""

    def __init__(self, chain: Chain) -> None:
        self.k = len(chain.matrix)
        self.start = chain.start
        self._squares = [
            (
                arb_mat([[ball(p) for p in row] for row in chain.matrix]),
                [sum(1 << y for y, p in enumerate(row) if p) for row in chain.matrix],
            )
        ]
        self._kept: dict[tuple[Any, ...], Any] = {}
        self._law: Vector = []
        if self.start == "stationary":
            self._states = self._closed_class()
            self._law = self._stationary()
        elif self.start == "any":
            self._states = (1 << self.k) - 1
        else:
            self._states = sum(1 << x for x, p in enumerate(self.start) if p)
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
            for matrix, _ in self._binary(n):
                power = power * matrix
            return [positive(row, self._reach(1 << x, n)) for x, row in enumerate(power.tolist())]

        return self.keep(("power", n), make)

    def law(self, node: int) -> Vector:
        """The law of a node, up to a factor; not for any start."""
        if self.start == "stationary":
            return self._law
        row = arb_mat([[arb(0) if p is None else p for p in self._law]])
        for matrix, _ in self._binary(node - 1):
            row = row * matrix
        return positive(row.tolist()[0], self._reach(self._states, node - 1))

    def supports(self, first: int, last: int) -> list[int]:
        """All sets of states that some X_i, first ≤ i ≤ last, takes with positive probability."""
        if self.start == "stationary":
            return [self._states]
        found = [self._reach(self._states, first - 1)]
        for _ in range(first, last):
            following = _union(self._squares[0][1], found[-1])
            if following in found:  # from here on they repeat
                break
            found.append(following)
            if len(found) > _MOST_SUPPORTS:
                raise CertificateError(f"the states that nodes {first} to {last} can take do not settle")
        return found

    def _binary(self, n: int) -> Iterator[tuple[arb_mat, list[int]]]:
        """The powers P^(2^j) whose product is P^n, with the states each row reaches."""
        for j in range(n.bit_length()):
            if j == len(self._squares):
                matrix, steps = self._squares[-1]
                self._squares.append((matrix * matrix, [_union(steps, reached) for reached in steps]))
            if n >> j & 1:
                yield self._squares[j]

    def _reach(self, states: int, n: int) -> int:
        """States that can be reached from ``states`` in exactly n steps."""
        for _, steps in self._binary(n):
            states = _union(steps, states)
        return states

    def _closed_class(self) -> int:
        """States of the only closed class."""
        steps = self._squares[0][1]
        reached = [1 << x for x in range(self.k)]
        for x in range(self.k):
            while (more := reached[x] | _union(steps, reached[x])) != reached[x]:
                reached[x] = more
        closed = {r for x, r in enumerate(reached) if all(reached[y] >> x & 1 for y in members(r))}
        if len(closed) > 1:
            raise CertificateError(f"the stationary distribution is not unique ({len(closed)} closed classes)")
        return closed.pop()

    def _stationary(self) -> Vector:
        """Stationary law up to a factor, by elimination after Grassmann, Taksar and Heyman (no subtraction)."""
        inside = list(members(self._states))
        matrix = self._squares[0][0]
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
        law = [arb(0)] * self.k
        for x, weight in zip(inside, weights, strict=True):
            law[x] = weight
        return positive(law, self._states)


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
