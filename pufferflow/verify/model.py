"""Chains in balls: what contains the exact powers and distributions, beside which values are possible at all.

Sets of values are the bits of an integer and exact; probabilities are balls that contain the exact numbers (Arb).
Products of non-negative balls never cancel, so an entry that can be positive is positive in the balls too, given
enough bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from flint import arb, arb_mat, fmpq

from pufferflow.verify.parse import CertificateError, Chain

PRECISIONS = (128, 256, 512, 1024, 2048, 4096)
"""Bits of the balls, tried in turn until they are narrow enough to decide."""

MOST_SUPPORTS = 10_000
"""Sets of values that the nodes of a chain may have."""

Row: TypeAlias = list[arb]  # exactly 0 where a value is impossible, otherwise known to be positive
Table: TypeAlias = list[Row]


class UndecidedError(Exception):
    """The balls are too wide at the present precision."""


class Supports:
    """The values that the nodes of a homogeneous chain can take, as exact sets."""

    def __init__(self, matrix: list[list[Fraction]], start: str | list[Fraction]) -> None:
        self.everything = (1 << len(matrix)) - 1
        self._powers = [[sum(1 << y for y, p in enumerate(row) if p) for row in matrix]]
        if start == "stationary":
            first = self._closed_class()
        else:
            first = self.everything if start == "any" else sum(1 << x for x, p in enumerate(start) if p)
        self._orbit: dict[int, int] = {}  # sets of node 1, 2, … up to the first that repeats
        while first not in self._orbit:
            if len(self._orbit) == MOST_SUPPORTS:
                raise CertificateError("the values that the nodes can take do not settle")
            self._orbit[first] = len(self._orbit)
            first = _union(self._powers[0], first)
        self._sets, self._again = list(self._orbit), self._orbit[first]
        self.ever = self.between(1, len(self._sets))
        self.later = self.between(2, len(self._sets) + 1)

    @property
    def settling(self) -> int:
        """Different sets of values that nodes have."""
        return len(self._sets)

    def possible(self, node: int) -> int:
        """Values of a node."""
        n, known = node - 1, len(self._sets)
        return self._sets[n if n < known else self._again + (n - self._again) % (known - self._again)]

    def sets(self, first: int, last: int) -> set[int]:
        """All sets of values that some node of a range has."""
        return {self.possible(node) for node in range(first, min(last, first + len(self._sets) - 1) + 1)}

    def between(self, first: int, last: int) -> int:
        """Values that some node of a range can take."""
        return _union(list(self.sets(first, last)), -1)

    def reached(self, values: int, n: int) -> int:
        """Values that can be reached from ``values`` in exactly n steps."""
        for j in range(n.bit_length()):
            if j == len(self._powers):
                steps = self._powers[-1]
                self._powers.append([_union(steps, reached) for reached in steps])
            if n >> j & 1:
                values = _union(self._powers[j], values)
        return values

    def _closed_class(self) -> int:
        """Values of the only closed class."""
        within = [steps | 1 << x for x, steps in enumerate(self._powers[0])]
        while (farther := [_union(within, reached) for reached in within]) != within:
            within = farther
        closed = {r for x, r in enumerate(within) if all(within[y] >> x & 1 for y in members(r))}
        if len(closed) > 1:
            raise CertificateError(f"the stationary distribution is not unique ({len(closed)} closed classes)")
        return closed.pop()


class Model:
    """Powers of the matrix of a homogeneous chain and distributions of its nodes, at the present precision."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.k = chain, chain.states
        self.supports = Supports(chain.matrices[0], chain.start)
        self.rows: Table = [[ball(p) for p in row] for row in chain.matrices[0]]
        self._squares = [arb_mat(self.rows)]
        self._kept: dict[int, Table] = {}

    def power(self, n: int) -> Table:
        """P^n by rows."""
        if n not in self._kept:
            power = arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
            for matrix in self._binary(n):
                power = power * matrix
            reached = (self.supports.reached(1 << x, n) for x in range(self.k))
            self._kept[n] = [positive(row, values) for row, values in zip(power.tolist(), reached, strict=True)]
        return self._kept[n]

    def distribution(self, node: int) -> Row:
        """The distribution of a node up to a factor; not for any start."""
        if self.chain.start == "stationary":
            return self.stationary
        assert not isinstance(self.chain.start, str)
        row = arb_mat([[ball(p) for p in self.chain.start]])
        for matrix in self._binary(node - 1):
            row = row * matrix
        return positive(row.tolist()[0], self.supports.possible(node))

    @cached_property
    def stationary(self) -> Row:
        """The stationary distribution up to a factor."""
        values = Supports(self.chain.matrices[0], "stationary").ever
        return positive(stationary_weights(self._squares[0], values), values)

    def distance(self, node: int) -> arb | None:
        """Largest quotient of m(x)/π(x) over the distributions m of a node; None where there is none."""
        if self.chain.start == "stationary":
            return arb(1)
        if any(weight.is_zero() for weight in self.stationary):
            return None
        factor = arb(1)
        for row in self.power(node - 1) if self.chain.start == "any" else [self.distribution(node)]:
            if any(p.is_zero() for p in row):
                return None
            ratios = [p / q for p, q in zip(row, self.stationary, strict=True)]
            factor = factor.max(largest(ratios) * largest([1 / ratio for ratio in ratios]))
        return factor

    def _binary(self, n: int) -> Iterator[arb_mat]:
        """The powers P^(2^j) whose product is P^n."""
        for j in range(n.bit_length()):
            if j == len(self._squares):
                self._squares.append(self._squares[-1] * self._squares[-1])
            if n >> j & 1:
                yield self._squares[j]


class Period:
    """The distributions of a chain round its period, from any phase, at the present precision."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.k = chain, chain.states
        self.matrices: list[Table] = [[[ball(p) for p in row] for row in matrix] for matrix in chain.matrices]
        self.values = list(self._values())

    def _values(self) -> Iterator[int]:
        """Values that a node can take at each phase."""
        steps = [Supports(matrix, "any") for matrix in self.chain.matrices]
        if self.chain.start != "stationary":
            yield from [(1 << self.k) - 1] * self.chain.period
            return
        rounds = []
        for x in range(self.k):
            values = 1 << x
            for step in steps:
                values = step.reached(values, self.chain.repeat)
            rounds.append([Fraction(values >> y & 1) for y in range(self.k)])
        values = Supports(rounds, "stationary").ever
        for step in steps:
            for _ in range(self.chain.repeat):
                yield values
                values = step.reached(values, 1)

    @cached_property
    def distributions(self) -> Table:
        """The stationary distribution of a node at every phase, up to a factor."""
        whole = arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
        for matrix in self.matrices:
            whole = whole * arb_mat(matrix) ** self.chain.repeat
        row = arb_mat([stationary_weights(whole, self.values[0])])
        found: Table = []
        for matrix in self.matrices:
            step = arb_mat(matrix)
            for _ in range(self.chain.repeat):
                found.append(positive(row.tolist()[0], self.values[len(found)]))
                row = row * step
        return found


def before(distribution: Row, matrix: Table, values: int) -> Table:
    """Distribution of a node given each of the ``values`` of the next one, zeros given any other."""
    rows: Table = [[arb(0)] * len(matrix) for _ in matrix]
    for x in members(values):
        weights = [p * row[x] for p, row in zip(distribution, matrix, strict=True)]
        total = sum(weights, arb(0))
        if not total > 0:
            raise UndecidedError
        rows[x] = [weight / total for weight in weights]
    return rows


def stationary_weights(matrix: arb_mat, values: int) -> Row:
    """Stationary distribution of a closed class up to a factor, after Grassmann, Taksar and Heyman (no subtraction)."""
    inside = list(members(values))
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
    row = [arb(0)] * matrix.nrows()
    for x, weight in zip(inside, weights, strict=True):
        row[x] = weight
    return row


def positive(values: Row, support: int) -> Row:
    """Return exact zeros outside of the support, once all other entries are known to be positive."""
    row = [value if support >> x & 1 else arb(0) for x, value in enumerate(values)]
    if not all(row[x] > 0 for x in members(support)):
        raise UndecidedError
    return row


def largest(values: list[arb]) -> arb:
    """Return the largest of some balls."""
    result = values[0]
    for value in values[1:]:
        result = result.max(value)
    return result


def ball(number: Any) -> arb:
    """Return a ball around an exact number, or the ball that it is."""
    return arb(fmpq(number.numerator, number.denominator) if isinstance(number, Fraction) else number)


def exact(end: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def members(values: int) -> Iterator[int]:
    """The values of a set."""
    return (x for x in range(values.bit_length()) if values >> x & 1)


def _union(steps: list[int], values: int) -> int:
    """Union of the steps of some values (-1: of all)."""
    reached = 0
    for step in steps if values < 0 else (steps[x] for x in members(values)):
        reached |= step
    return reached
