"""Chains in balls that contain exact powers and distributions; which values are possible.

Sets of values are the bits of an integer and exact; probabilities are balls that contain the exact
numbers (Arb). Products of non-negative balls never cancel, so an entry that can be positive is
positive in the balls too, given enough bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cached_property, reduce
from operator import or_
from typing import Any, TypeAlias

from flint import arb, arb_mat, ctx, fmpq

from pufferflow.verify.parse import CertificateError, Chain

_MOST_SETS = 10_000  # of values that the nodes of a chain may have

Row: TypeAlias = list[arb]  # exactly 0 where a value is impossible, otherwise known to be positive
Table: TypeAlias = list[Row]


class UndecidedError(Exception):
    """The balls are too wide at the present precision."""


class Work:
    """Operations on balls of 128 bits that a check may take."""

    def __init__(self, most: float) -> None:
        self.most, self.spent = most, 0

    def spend(self, operations: int) -> None:
        """Note what is done next.

        Raises CertificateError: it is too much.
        """
        self.spent += operations * (1 + ctx.prec // 512)
        if self.spent > self.most:
            raise CertificateError(
                f"its check takes over {self.most:.1e} operations; allow more (`most_work`)"
            )


class Supports:
    """The values that a chain's nodes can take, as exact sets; with a period, those of phases."""

    def __init__(self, chain: Chain) -> None:
        self.everything = (1 << chain.states) - 1
        self.steps = steps = [
            [sum(1 << y for y, p in enumerate(row) if p) for row in matrix]
            for matrix in chain.transition_matrices
        ]
        self._powers, start = steps[:1], chain.initial_distribution
        if isinstance(start, list):
            first = _support(start)
        else:
            first = self.everything if start == "any" else _closed_class(steps)
        self._sets, self._again = [first], 0  # up to the first that repeats
        if chain.period > 1:
            for step in steps[:-1]:
                self._sets.append(
                    self.everything if start == "any" else union(step, self._sets[-1])
                )
            return
        known = {first: 0}
        while (following := union(steps[0], self._sets[-1])) not in known:
            known[following] = len(known)
            self._sets.append(following)
            if len(known) > _MOST_SETS:
                raise CertificateError("the values that the nodes can take do not settle")
        self._again = known[following]

    def possible(self, node: int) -> int:
        """Values of a node, the first being 0; with a period those of a phase."""
        known = len(self._sets)
        return self._sets[
            node if node < known else self._again + (node - self._again) % (known - self._again)
        ]

    def sets(self, first: int, last: int) -> set[int]:
        """All sets of values that some node of a range has."""
        return {
            self.possible(node) for node in range(first, min(last, first + len(self._sets) - 1) + 1)
        }

    def later(self, node: int) -> int:
        """Values that this node or a later one can take."""
        return reduce(or_, self.sets(node, node + len(self._sets)))

    def reached(self, values: int, n: int) -> int:
        """Values that can be reached from ``values`` in exactly n steps."""
        for j in range(n.bit_length()):
            if j == len(self._powers):
                self._powers.append(
                    [union(self._powers[-1], reached) for reached in self._powers[-1]]
                )
            if n >> j & 1:
                values = union(self._powers[j], values)
        return values


def _support(row: list[Fraction]) -> int:
    return sum(1 << x for x, p in enumerate(row) if p)


def _closed_class(steps: list[list[int]]) -> int:
    """Values of the only closed class of a chain, at its first phase."""
    within = [1 << x for x in range(len(steps[0]))]
    for step in steps:
        within = [union(step, reached) for reached in within]
    within = [reached | 1 << x for x, reached in enumerate(within)]
    while (farther := [union(within, reached) for reached in within]) != within:
        within = farther
    closed = {r for x, r in enumerate(within) if all(within[y] == r for y in members(r))}
    if len(closed) > 1:
        raise CertificateError(
            f"the stationary distribution is not unique ({len(closed)} closed classes)"
        )
    return closed.pop()


class Model:
    """Powers of a chain's matrices and distributions of its nodes, at the present precision."""

    def __init__(self, chain: Chain, work: Work) -> None:
        self.chain, self.k, self.work = chain, chain.states, work
        work.spend(self.k**2 * chain.period)
        self.supports = Supports(chain)
        self.rows: list[Table] = [
            [[ball(p) for p in row] for row in matrix] for matrix in chain.transition_matrices
        ]
        self._squares = [arb_mat(self.rows[0])]
        self._kept: dict[tuple[int, int], Table] = {}

    def power(self, n: int, phase: int = 0) -> Table:
        """Rows of the product of the next n matrices from this phase on."""
        if (n, phase) not in self._kept:
            matrices, values = self._binary(n), [1 << x for x in range(self.k)]
            if self.chain.period > 1:
                self.work.spend(self.k**3 * n)
                phases = [(phase + i) % self.chain.period for i in range(n)]
                matrices = (arb_mat(self.rows[i]) for i in phases)
                values = [
                    reduce(lambda reached, i: union(self.supports.steps[i], reached), phases, v)
                    for v in values
                ]
            else:
                values = [self.supports.reached(v, n) for v in values]
            identity = arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
            power = reduce(arb_mat.__mul__, matrices, identity)
            self._kept[n, phase] = list(map(positive, power.tolist(), values))
        return self._kept[n, phase]

    def distribution(self, node: int) -> Row | None:
        """The distribution of a node, or at a phase, up to a factor; None for any start."""
        start = self.chain.initial_distribution
        if isinstance(start, str):
            return self.stationary[node % self.chain.period] if start == "stationary" else None
        row = arb_mat([[ball(p) for p in start]])
        for matrix in self._binary(node):
            row = row * matrix
        return positive(row.tolist()[0], self.supports.possible(node))

    @cached_property
    def stationary(self) -> Table:
        """The stationary distribution at every phase, up to a factor."""
        steps = [arb_mat(rows) for rows in self.rows]
        self.work.spend(self.k**3 * len(steps))
        whole = reduce(arb_mat.__mul__, steps[1:], steps[0])
        supports = Supports(Chain(self.chain.transition_matrices, "stationary"))
        row, found = arb_mat([_stationary_weights(whole, supports.possible(0))]), []
        for phase, step in enumerate(steps):
            found.append(positive(row.tolist()[0], supports.possible(phase)))
            row = row * step
        return found

    def distance(self, node: int) -> arb | None:
        """Largest quotient of m(x)/π(x) over a node's distributions m; None if there is none."""
        try:
            [stationary], known, factor = self.stationary, self.distribution(node), arb(1)
        except CertificateError:  # it is not unique
            return None
        for row in self.power(node) if known is None else [known]:
            if any(p.is_zero() for p in (*row, *stationary)):
                return None
            ratios = [p / q for p, q in zip(row, stationary, strict=True)]
            factor = factor.max(largest(ratios) * largest([1 / ratio for ratio in ratios]))
        return factor

    def _binary(self, n: int) -> Iterator[arb_mat]:
        """The powers P^(2^j) whose product is P^n."""
        self.work.spend(self.k**3 * n.bit_length() // 4)
        for j in range(n.bit_length()):
            if j == len(self._squares):
                self._squares.append(self._squares[-1] * self._squares[-1])
            if n >> j & 1:
                yield self._squares[j]


def before(distribution: Row, matrix: Table, values: int) -> Table:
    """Distribution of a node given each of the next one's ``values``, zeros given any other."""
    rows: Table = [[arb(0)] * len(matrix) for _ in matrix]
    for x in members(values):
        rows[x] = shares([p * row[x] for p, row in zip(distribution, matrix, strict=True)])
    return rows


def shares(weights: Row) -> Row:
    """Return weights divided by their sum."""
    if not (total := sum(weights, arb(0))) > 0:
        raise UndecidedError
    return [weight / total for weight in weights]


def _stationary_weights(matrix: arb_mat, values: int) -> Row:
    """Stationary distribution of a closed class up to a factor, without subtraction.

    After Grassmann, Taksar and Heyman.
    """
    inside = list(members(values))
    work = [[matrix[x, y] for y in inside] for x in inside]
    for n in range(len(inside) - 1, 0, -1):
        if not (leave := sum(work[n][:n], arb(0))) > 0:
            raise UndecidedError
        for x in range(n):
            work[x][n] /= leave
            for y in range(n):
                work[x][y] += work[x][n] * work[n][y]
    row = [arb(0)] * matrix.nrows()
    for n, y in enumerate(inside):
        row[y] = (
            sum((row[x] * work[m][n] for m, x in enumerate(inside[:n])), arb(0)) if n else arb(1)
        )
    return row


def positive(values: Row, support: int) -> Row:
    """Return exact zeros outside the support, once all other entries are known to be positive."""
    row = [value if support >> x & 1 else arb(0) for x, value in enumerate(values)]
    if not all(row[x] > 0 for x in members(support)):
        raise UndecidedError
    return row


def largest(values: Iterable[arb]) -> arb:
    """Return the largest of some balls."""
    return reduce(arb.max, values)


def ball(number: Any) -> arb:
    """Return a ball around an exact number, or the ball that it is."""
    return arb(
        fmpq(number.numerator, number.denominator) if isinstance(number, Fraction) else number
    )


def exact(end: arb) -> Fraction:
    """Return the number that a ball of radius 0 is."""
    mantissa, exponent = (int(part) for part in end.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def members(values: int) -> Iterator[int]:
    """Yield the values of a set."""
    return (x for x in range(values.bit_length()) if values >> x & 1)


def union(steps: list[int], values: int) -> int:
    """Where the steps of some values lead."""
    return reduce(or_, (steps[x] for x in members(values)), 0)
