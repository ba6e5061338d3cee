"""Distributions of nodes and their neighbours, for a chain or all chains with rows in sets.

Products of non-negative balls never cancel, so an entry that can be positive is positive in the
balls too, given enough bits; and the zeros of Arb are exact.
"""

import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache, cached_property
from itertools import permutations
from math import gcd
from operator import mul, ne, truediv
from typing import Any, NamedTuple, TypeAlias

from flint import arb, arb_mat

from pufferflow.verify import balls
from pufferflow.verify.balls import ONE, ZERO, Row, Table, Work, ball, columns
from pufferflow.verify.parse import Chain, RowSet, Witnesses, require
from pufferflow.verify.rules import by_flows, by_tree, entry_bounds

Values: TypeAlias = frozenset[int]

END = sys.maxsize
"""More nodes than any segment has: a range of nodes up to it is of all late ones."""


class Node(NamedTuple):
    """The distributions of a node's neighbour on one side.

    ``values`` and ``neighbours`` are the possible values of the two, ``rows`` the distributions of
    the neighbour (or sets of them) given each value, if known, ``excess`` a factor for their error.
    """

    values: Values
    neighbours: Values = frozenset()
    rows: Sequence[Any] = ()
    excess: arb = ONE

    def lower(self, table: Table, witnesses: Witnesses, growth: Table) -> None:
        """Replace larger bounds of the leakage of pairs of values by those of their witnesses."""
        rows = self.rows
        for x, y in permutations(self.values if rows else (), 2):
            if (witness := witnesses[x][y]) is not None:
                if isinstance(rows[x], RowSet):
                    bound = by_flows(rows[x], rows[y], witness, growth)
                else:
                    bound = by_tree(rows[x], rows[y], witness, self.neighbours, growth)
                lower(table, x, y, self.excess * bound)


def lower(table: Table, x: int, y: int, bound: arb) -> None:
    """Replace an entry by a bound that is provably smaller, or by 1."""
    if bound < table[x][y]:
        table[x][y] = bound.upper().max(ONE)


class Model:
    """A chain, or all chains with rows in ``row_sets``, at the current precision.

    Of these every value of each node is possible. ``informed``: with any side information.
    """

    def __init__(self, member: Any, work: Work, informed: bool = False) -> None:
        self.work, self.informed, self.row_sets = work, informed, list[Any]()
        chain: Chain = member
        if not isinstance(member, Chain):
            k, past = len(member.rows), member.backward
            self.row_sets = [past.rows if past else (), member.rows]
            chain = Chain([[[Fraction(1, k)] * k] * k], "any")
        self.k, self.period, self.start = chain.states, chain.period, chain.initial_distribution
        self.hidden = chain.observations is not None
        self.seen = chain.observations or list(range(self.k))
        self.observations = sorted(set(self.seen))
        self.everything = frozenset(range(self.k))
        self.rows: list[Table] = [
            [[ball(p) for p in row] for row in matrix] for matrix in chain.transition_matrices
        ]
        self.power = cache(self._product)
        self._following = [list(map(support, matrix)) for matrix in chain.transition_matrices]
        self._sets, self.settled = self._possible_sets()

    # -- values ------------------------------------------------------------------------------------

    def _possible_sets(self) -> tuple[list[Values], int]:
        """Return the values of the nodes until these repeat, and the first node that repeats."""
        values = self._closed if self.start == "stationary" else self.everything
        if isinstance(self.start, list):
            values = support(self.start)
        known: dict[tuple[int, Values], int] = {}
        while (position := (len(known) % self.period, values)) not in known:
            self.work.spend(10 * self.k**2)
            known[position] = len(known)
            if self.period == 1 or self.start != "any":  # else segments begin at any phase
                values = union(self._following[position[0]][x] for x in values)
        return [values for _, values in known], known[position]

    @cached_property
    def _closed(self) -> Values:
        """Return the values of the only closed class at the first phase; none if there are more."""
        self.work.spend(self.k**3 // 2)
        reached = balls.certain((self.power(self.period, 0) + 1) ** self.k)
        closed = frozenset.intersection(*map(support, reached))
        known = bool(closed) or self.start != "stationary"
        require(known, "the stationary distribution is not unique")
        return closed

    def sets(self, nodes: range) -> set[Values]:
        """Return all sets of values of some nodes; the first node is 0, or of a phase."""
        again, cycle = self.settled, len(self._sets) - self.settled
        every = nodes[: len(self._sets) // gcd(nodes.step, cycle) + 1]  # later ones repeat
        return {self._sets[t if t < again else again + (t - again) % cycle] for t in every}

    def values(self, forward: bool, nodes: range, steps: int = 0) -> Values:
        """Return the values of the nodes some steps away: any ones forward, or of late nodes."""
        first = nodes.start - steps
        begin = max(first, 0) if self.period == 1 else first % self.period
        before = range(begin, END if len(nodes) > 1 else begin + 1, self.period)
        return self.everything if forward else union(self.sets(before))

    # -- distributions -----------------------------------------------------------------------------

    def _product(self, n: int, phase: int) -> arb_mat:
        """Return the product of the next n matrices from a phase on."""
        if n < 2:
            return arb_mat(self.rows[phase]) ** n
        self.work.spend(self.k**3 // 8)
        half = n // 2
        return self.power(half, phase) * self.power(n - half, (phase + half) % self.period)

    def distributions(self, nodes: range) -> Table:
        """Return distributions of which those of these nodes are mixtures, up to factors."""
        if self.start == "stationary":
            return [self.stationary[nodes.start % self.period]]
        rows = self.power(nodes.start, 0)
        if isinstance(self.start, list) and len(nodes) == 1:
            rows = arb_mat([list(map(ball, self.start))]) * rows
        return balls.certain(rows)

    @cached_property
    def stationary(self) -> Table:
        """Return the stationary distribution at every phase, up to a factor."""
        self.work.spend(self.k**3 // 2 * self.period)
        whole = balls.certain(self.power(self.period, 0))
        first, *others = sorted(self._closed)  # the first has weight 1
        leaves = {y: sum((whole[y][x] for x in self._closed - {y}), ZERO) for y in others}
        system = [[leaves[y] if x == y else -whole[x][y] for x in others] for y in others]
        try:
            weights = arb_mat(system).solve(arb_mat([[whole[first][y]] for y in others]))
        except ZeroDivisionError:
            raise balls.UndecidedError from None
        given = {first: ONE} | dict(zip(others, weights.entries(), strict=True))
        row, found = arb_mat([[given.get(x, ZERO) for x in range(self.k)]]), Table()
        for rows in self.rows:
            found += balls.certain(row)
            row = row * arb_mat(rows)
        return found

    def distance(self, node: int) -> arb:
        """Return the largest quotient of m(x)/π(x) over a node's distributions m, or none."""
        if self.period > 1 or self._closed != self.everything:
            return balls.INFINITE
        return balls.largest(
            balls.largest(map(truediv, row, self.stationary[0]))
            * balls.largest(map(truediv, self.stationary[0], row))
            for row in self.distributions(range(node, node + 1))
        )

    # -- neighbours --------------------------------------------------------------------------------

    def late(self, forward: bool, nodes: int) -> list[range]:
        """Return all nodes after some by their phases, a period away from where it starts."""
        starts = range(self.period)[::-1] if forward else [*range(1, self.period), 0]
        starts = [nodes] if self.period == 1 else starts
        return [range(start, END, self.period) for start in starts]

    def node(self, forward: bool, nodes: range, growth: Table) -> Node:
        """Return the distributions of the neighbour of a node, or of all late ones."""
        values, first = self.values(forward, nodes), nodes.start
        if self.informed or self.row_sets:
            return Node(values, values, () if self.informed else self.row_sets[forward])
        if forward:
            return Node(values, values, self.rows[first % self.period])
        steps, before = columns(self.rows[(first - 1) % self.period]), nodes.stop - 1
        after = first - (len(nodes) > 1)
        given = self.given(steps, range(first - 1, before, self.period), after, growth)
        return given._replace(values=values)

    def observed(self, nodes: range, growth: Table) -> Node:
        """Return the distributions of a node given each possible observation."""
        each = [[arb(int(x == name)) for x in self.seen] for name in self.observations]
        return self.given(each, nodes, nodes.start, growth)

    def given(self, weights: Table, nodes: range, after: int, growth: Table) -> Node:
        """Return the distributions of a node given what has these ``weights`` for each value.

        If its own one may be only nearly the stationary one, the other factor is that of Lemma 7 of
        ``docs/leakage.md``, with e^ω, e^ω' the distances of the node and of the one ``after`` it,
        of which later ones have none larger, and e^W the largest growth.
        """
        node, excess = nodes.start, ONE
        if self.start == "stationary" or (len(nodes) == 1 and self.start != "any"):
            own = self.distributions(nodes)[0]
        elif (here := self.distance(node)).is_finite():
            through = 1 + (1 - 1 / here) * (balls.largest(map(balls.largest, growth)) - 1)
            excess = here * (here if after == node else self.distance(after))
            own, excess = self.stationary[0], excess.min(through * through)
        else:
            return Node(frozenset())
        rows = [shares(list(map(mul, own, row))) for row in weights]
        return Node(support([sum(row, ZERO) for row in rows]), support(own), rows, excess)

    def weights(self, forward: bool, phase: int, power: int) -> list[tuple[Table, Table]]:
        """Return bounds, up to a factor, of the weights of values of a node some steps away."""
        if self.row_sets:
            self.work.spend(2 * power * self.k**2 * (self.k + 10))
            found = [] if forward else [entry_bounds(self.row_sets[True], power)]
            if rows := self.row_sets[forward]:
                low, high = entry_bounds(rows, power)
                found.append((columns(low), columns(high)))
            return found
        first = phase if forward else phase - power
        product = balls.certain(self.power(power, first % self.period))
        product = columns(product) if forward else product
        return [(product, product)]

    @cached_property
    def histories(self) -> list[list[Values]]:
        """Return the observation of each hidden state, of the one before it, and so on.

        They end where states do not determine them. None are before a state without predecessors.
        """
        every, found = range(self.k), [[frozenset([name]) for name in self.seen]]
        for _ in range(1, self.k if self.hidden else 1):
            self.work.spend(self.k**2 * self.period)
            before = [[y for to in self._following for y in every if x in to[y]] for x in every]
            names = [union(found[-1][y] for y in ys) for ys in before]
            if max(map(len, names)) > 1:
                break
            found.append(names)
        return found

    def window(self, records: int) -> int:
        """Return the number of nodes that determine so many records in a row (Theorem L3)."""
        return max(records - len(self.histories), 0) + 1

    def between(self, forward: bool, power: int) -> tuple[list[list[int]], list[list[int]]]:
        """Return how many records between a node and one ``power`` steps away may differ.

        Given pairs of values of the other node, and given pairs of its own. A known record ends the
        leakage; known observations do not, and those of the history of the later node are counted
        by its values (Theorem L3 of ``docs/leakage.md``).
        """
        none = [[0] * self.k] * self.k
        if power == 1 or not (self.hidden and self.informed):
            return none, [[power - 1] * self.k] * self.k
        most = len(self.histories)
        why = f"with side information the power of these hidden states is at most {most}"
        require(power <= most, f"{why}, not {power}")
        histories = list(zip(*self.histories[1:power], strict=True))
        counts = [[sum(map(ne, one, other)) for other in histories] for one in histories]
        return (counts, none) if forward else (none, counts)


def support(row: Sequence[Fraction | arb]) -> Values:
    """Return the values with positive weights."""
    return frozenset(x for x, p in enumerate(row) if p > 0)


def union(sets: Iterable[Values]) -> Values:
    """Return the values in any of some sets."""
    return frozenset().union(*sets)


def shares(weights: Row) -> Row:
    """Return weights divided by their sum, unless all are 0."""
    total = sum(weights, ZERO)
    return weights if total.is_zero() else [weight / total for weight in weights]
