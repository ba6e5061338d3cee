"""Distributions of nodes and their neighbours, for a chain or all chains with rows in sets.

Products of non-negative balls never cancel, so an entry that can be positive is positive in the
balls too, given enough bits; and the zeros of Arb are exact.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property, reduce
from operator import and_, or_
from typing import Any, NamedTuple, TypeAlias

from flint import arb, arb_mat

from pufferflow.verify.balls import (
    INFINITE,
    ONE,
    ZERO,
    Row,
    Table,
    UndecidedError,
    Work,
    ball,
    certain,
    columns,
    decide,
    largest,
    members,
    union,
)
from pufferflow.verify.parse import Balls, Chain, Intervals, require
from pufferflow.verify.rules import entry_bounds

_MAX_SETS = 10_000  # of possible values of the nodes of a chain

Position: TypeAlias = tuple[int, int, bool]
"""Phase of a node, nodes on that side of it, and whether there are no more."""


class Node(NamedTuple):
    """The distributions of a node's neighbour on one side.

    ``values`` and ``neighbours`` are the possible values of the two, ``rows`` the distributions of
    the neighbour (or sets of them) given each value, or None, ``excess`` a factor for their error.
    """

    values: int
    neighbours: int = 0
    rows: list[Any] | None = None
    excess: arb = ONE


class Model:
    """A chain, at the current precision; ``informed``: with any side information."""

    def __init__(self, chain: Chain, work: Work, informed: bool = False) -> None:
        self.work, self.informed = work, informed
        self.k, self.period, self.start = chain.states, chain.period, chain.initial_distribution
        work.spend(self.k**2 * self.period)
        self.hidden = chain.observations is not None
        self.seen = chain.observations or list(range(self.k))
        self.observations = sorted(set(self.seen))
        self.everything = (1 << self.k) - 1
        self.rows: list[Table] = [
            [[ball(p) for p in row] for row in matrix] for matrix in chain.transition_matrices
        ]
        self.power = cache(self._product)
        self._following = [list(map(_support, matrix)) for matrix in chain.transition_matrices]
        self._sets, self._again = self._possible_sets()

    # -- values ------------------------------------------------------------------------------------

    def _possible_sets(self) -> tuple[list[int], int]:
        """Return the values of the nodes until these repeat, and the first node that repeats."""
        values = self._closed if self.start == "stationary" else self.everything
        if isinstance(self.start, list):
            values = _support(self.start)
        known: dict[tuple[int, int], int] = {}
        while (position := (len(known) % self.period, values)) not in known:
            require(len(known) < _MAX_SETS + self.period, "the values of nodes do not settle")
            known[position] = len(known)
            if self.period == 1 or self.start != "any":  # else segments begin at any phase
                values = union(self._following[position[0]], values)
        return [values for _, values in known], known[position]

    @cached_property
    def _closed(self) -> int:
        """Return the values of the only closed class at the first phase; 0 if there are several."""
        reach = [1 << x for x in range(self.k)]
        for following in self._following:
            reach = [union(following, values) for values in reach]
        reach = [values | 1 << x for x, values in enumerate(reach)]
        for _ in range(self.k.bit_length()):
            reach = [union(reach, values) for values in reach]
        closed = reduce(and_, reach)
        unknown = closed == 0 and self.start == "stationary"
        require(not unknown, "the stationary distribution is not unique")
        return closed

    def possible(self, node: int) -> int:
        """Return the values of a node, the first being 0; with a period those of a phase."""
        known, again = len(self._sets), self._again
        return self._sets[node if node < known else again + (node - again) % (known - again)]

    def sets(self, first: int, last: float) -> set[int]:
        """Return all sets of values of the nodes of a range."""
        end = int(min(last + 1, first + len(self._sets)))
        return set(map(self.possible, range(first, end)))

    def values(self, first: int, last: float) -> int:
        """Return all values of the nodes of a range."""
        return reduce(or_, self.sets(first, last))

    def ends(self, values: int, phase: int, w: int) -> dict[int, list[int]]:
        """Return the last values of windows by their first ones."""
        if self.period > 1 and w > 1:
            last = list(members(self.possible(phase + w - 1)))
            return dict.fromkeys(members(values), last)
        reached = certain(self.power(w - 1, 0))
        return {x: list(members(_support(reached[x]))) for x in members(values)}

    # -- distributions -----------------------------------------------------------------------------

    def _product(self, n: int, phase: int) -> arb_mat:
        """Return the product of the next n matrices from a phase on."""
        if n == 0:
            return arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
        if n == 1:
            return arb_mat(self.rows[phase])
        self.work.spend(self.k**3 // 8)
        half = n // 2
        return self.power(half, phase) * self.power(n - half, (phase + half) % self.period)

    def distribution(self, node: int, later: bool = False) -> Table:
        """Return the distribution of a node, or at a phase, up to a factor; one for each start.

        If ``later`` those of which the distributions of all nodes from there on are mixtures.
        """
        if self.start == "stationary":
            return [self.stationary[node % self.period]]
        rows = self.power(node, 0)
        if isinstance(self.start, list) and not later:
            rows = arb_mat([list(map(ball, self.start))]) * rows
        return certain(rows)

    @cached_property
    def stationary(self) -> Table:
        """Return the stationary distribution at every phase, up to a factor."""
        self.work.spend(self.k**3 * self.period)
        whole = certain(self.power(self.period, 0))
        inside = list(members(self._closed))
        system = arb_mat([[-whole[x][y] for x in inside] for y in inside])
        for i, x in enumerate(inside):
            system[i, i] = sum((whole[x][y] for y in inside if y != x), ZERO)
            system[0, i] = int(i == 0)  # the first has weight 1
        try:
            weights = system.solve(arb_mat([[int(i == 0)] for i in range(len(inside))]))
        except ZeroDivisionError:
            raise UndecidedError from None
        given = dict(zip(inside, weights.entries(), strict=True))
        row, found = arb_mat([[given.get(x, ZERO) for x in range(self.k)]]), Table()
        for rows in self.rows:
            found += certain(row)
            row = row * arb_mat(rows)
        return found

    def distance(self, node: int) -> arb:
        """Return the largest quotient of m(x)/π(x) over a node's distributions m, or ∞."""
        factor = ONE
        if self.period > 1 or self._closed != self.everything:
            return INFINITE
        for row in self.distribution(node):
            if any(p.is_zero() for p in row):
                return INFINITE
            ratios = [p / q for p, q in zip(row, self.stationary[0], strict=True)]
            factor = factor.max(largest(ratios) * largest([1 / ratio for ratio in ratios]))
        return factor

    # -- neighbours --------------------------------------------------------------------------------

    def phases(self, forward: bool) -> list[int]:
        """Return the phases of a period, away from the node where it starts."""
        phases = list(range(self.period))
        return phases[::-1] if forward else [*phases[1:], 0]

    def values_at(self, forward: bool, position: Position, steps: int) -> int:
        """Return the values of the node some steps away, any one forward, any one of late nodes."""
        phase, j, early = position
        if forward:
            return self.everything
        if self.period == 1 and not early:
            return self.values(0, math.inf)
        return self.possible(j - steps if early else (phase - steps) % self.period)

    def node(self, forward: bool, position: Position, growth: Table) -> Node:
        """Return the distributions at a position."""
        phase, j, early = position
        values = self.values_at(forward, position, 0)
        if self.informed:
            return Node(values)
        if forward:
            return Node(values, values, self.rows[phase])
        weights, excess = self._own((phase - 1, j - 1, early), j if early else j - 1, growth)
        if not _support(weights):
            return Node(values)
        rows = _before(weights, self.rows[phase - 1], values)
        return Node(values, _support(weights), rows, excess)

    def _own(self, position: Position, after: int, growth: Table) -> tuple[Row, arb]:
        """Return the distribution of a node up to a factor, zeros if it is unknown.

        It may be nearly the stationary one: then the other factor is that of Lemma 7 of
        ``docs/leakage.md``, with e^ω, e^ω' the distances of the node and of the one ``after`` it,
        of which later ones have none larger, and e^W the largest growth.
        """
        phase, node, early = position
        if self.start == "stationary" or (early and self.start != "any"):
            return self.distribution(node if early else phase)[0], ONE
        here = self.distance(node)
        if not here.is_finite():
            return [ZERO] * self.k, here
        through = 1 + (1 - 1 / here) * (largest(map(largest, growth)) - 1)
        excess = here * (here if after == node else self.distance(after))
        return self.stationary[0], excess.min(through * through)

    def given(self, position: Position, growth: Table) -> Node:
        """Return distributions of a node's own value given each possible observation."""
        weights, excess = self._own(position, position[1], growth)
        each = [
            [p if x == name else ZERO for p, x in zip(weights, self.seen, strict=True)]
            for name in self.observations
        ]
        rows = [shares(parts) if _support(parts) else [] for parts in each]
        return Node(0, _support(weights), rows, excess)

    def weights(self, forward: bool, phase: int, power: int) -> list[tuple[Table, Table]]:
        """Return bounds, up to a factor, of the weights of values of a node some steps away."""
        # known records end the leakage, known observations of hidden states do not
        ended = power == 1 or not (self.hidden and self.informed)
        require(ended, "powers above 1 are for chains whose records are known, if any are")
        rows = certain(self.power(power, phase if forward else (phase - power) % self.period))
        rows = columns(rows) if forward else rows
        return [(rows, rows)]


class SetModel(Model):
    """All chains with rows in given sets: every value of each node is possible."""

    def __init__(self, family: Intervals | Balls, work: Work, informed: bool = False) -> None:
        k = len(family.rows)
        super().__init__(Chain([[[Fraction(1, k)] * k] * k], "any"), work, informed)
        self.known = family.rows, family.backward.rows if family.backward else None

    def node(self, forward: bool, position: Position, growth: Table) -> Node:
        """Return the distributions at a position."""
        rows = None if self.informed else self.known[not forward]
        return Node(self.everything, self.everything, rows)

    def weights(self, forward: bool, phase: int, power: int) -> list[tuple[Table, Table]]:
        """Return bounds, up to a factor, of the weights of values of a node some steps away."""
        self.work.spend(2 * power * self.k**2 * (self.k + 10))
        found = [] if forward else [entry_bounds(self.known[0], power)]
        if rows := self.known[not forward]:
            low, high = entry_bounds(rows, power)
            found.append((columns(low), columns(high)))
        return found


def _support(row: Sequence[Fraction | arb]) -> int:
    return sum(1 << x for x, p in enumerate(row) if p > 0)


def _before(distribution: Row, matrix: Table, values: int) -> Table:
    """Return the distribution of a node given each of the next one's ``values``, else zeros."""
    rows = [[ZERO] * len(matrix) for _ in matrix]
    for x in members(values):
        rows[x] = shares([p * row[x] for p, row in zip(distribution, matrix, strict=True)])
    return rows


def shares(weights: Row) -> Row:
    """Return weights divided by their sum."""
    decide((total := sum(weights, ZERO)) > 0)
    return [weight / total for weight in weights]
