"""What is known of a node's side: of a chain, and of all chains with rows in given sets."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from flint import arb

from pufferflow.verify.model import Model, Table, Work, before, largest, members
from pufferflow.verify.parse import Balls, CertificateError, Intervals
from pufferflow.verify.rules import entry_bounds


class Node(NamedTuple):
    """What is known of a node and of its neighbour on one side.

    ``values`` and ``neighbours`` are those that the two can have, ``rows`` the distributions of the
    neighbour (or sets of them) given each value, None where they are not known, ``excess`` a factor
    for what is not exactly so.
    """

    values: int
    neighbours: int
    rows: list[Any] | None
    excess: arb = arb(1)


class ChainSide:
    """The nodes of a chain on one side of a node."""

    def __init__(self, model: Model, forward: bool, informed: bool) -> None:
        self.model, self.forward, self.informed = model, forward, informed
        self.k, self.period = model.k, model.chain.period
        self.hidden = model.chain.observations is not None
        self.seen = model.chain.observations or list(range(self.k))
        phases = list(range(self.period))
        self.phases = phases[::-1] if forward else [*phases[1:], 0]
        """Those of a period, away from the node where it starts."""

    def node(self, phase: int, j: int, early: bool, growth: Table) -> Node:
        """The node at this phase with j nodes on that side; unless ``early``, with j or more."""
        model, supports = self.model, self.model.supports
        if self.forward:
            row = None if self.informed else model.rows[phase]
            return Node(supports.everything, supports.everything, row)
        if self.period > 1:
            values = supports.possible(phase)
            neighbours = supports.possible(phase - 1 + self.period)
        else:
            values, neighbours = supports.later(0), supports.later(0)
        if early:
            values, neighbours = supports.possible(j), supports.possible(j - 1)
        rows, start = model.rows[phase - 1], model.chain.initial_distribution
        if self.informed or (self.period > 1 and start == "any"):
            return Node(values, neighbours, None)
        if start == "stationary" or (early and start != "any"):
            known = model.distribution(j - 1 if early else phase - 1)
            assert known is not None
            return Node(values, neighbours, before(known, rows, values))
        if (excess := self._excess(j, early, growth)) is None:
            return Node(values, neighbours, None)
        return Node(values, supports.everything, before(model.stationary[0], rows, values), excess)

    def _excess(self, j: int, early: bool, growth: Table) -> arb | None:
        """How much more a nearly stationary distribution reveals (Lemma 7 of ``docs/leakage.md``).

        e^ω, e^ω' are the distances of this node and the next, which never grow, e^W the largest
        growth.
        """
        here = self.model.distance(j - 1)
        after = self.model.distance(j) if early else here
        if here is None or after is None:
            return None
        through = 1 + (1 - 1 / here) * (largest(map(largest, growth)) - 1)
        return (here * after).min(through * through)

    def weights(self, phase: int, power: int) -> list[tuple[Table, Table]]:
        """Bounds of the weights of a node's values, up to a factor.

        Of the node ``power`` steps away by those of this.
        """
        if power > 1 and self.hidden and self.informed:
            # a known record ends what leaks through it, a known observation of a hidden state does
            # not
            raise CertificateError(
                "powers above 1 are for chains whose records are known, if any are"
            )
        first = (phase if self.forward else phase - power) % self.period
        rows = self.model.rows[first] if power == 1 else self.model.power(power, first)
        rows = transposed(rows) if self.forward else rows
        return [(rows, rows)]

    def values(self, node: int, late: bool) -> int:
        """Those of this node (or phase) or, if ``late``, of any from it on."""
        return self.model.supports.later(node) if late else self.model.supports.possible(node)

    def ends(self, values: int, phase: int, w: int) -> dict[int, list[int]]:
        """The last values of windows by their first ones."""
        supports = self.model.supports
        if self.period > 1 and w > 1:
            return {x: list(members(supports.possible(phase + w - 1))) for x in members(values)}
        return {x: list(members(supports.reached(1 << x, w - 1))) for x in members(values)}


class SetSide:
    """The same of all chains with rows in given sets."""

    period, phases, hidden = 1, [0], False

    def __init__(
        self, family: Intervals | Balls, forward: bool, informed: bool, work: Work
    ) -> None:
        self.family, self.forward, self.informed, self.work = family, forward, informed, work
        self.known = family if forward else family.backward
        self.k = len(family.rows)
        self.seen = list(range(self.k))

    def node(self, phase: int, j: int, early: bool, growth: Table) -> Node:
        """As for chains."""
        everything = (1 << self.k) - 1
        return Node(
            everything, everything, None if self.informed or self.known is None else self.known.rows
        )

    def weights(self, phase: int, power: int) -> list[tuple[Table, Table]]:
        """As for chains."""
        self.work.spend(2 * power * self.k**3)
        found = [] if self.forward else [entry_bounds(self.family.rows, power)]
        if self.known is not None:
            low, high = entry_bounds(self.known.rows, power)
            found.append((transposed(low), transposed(high)))
        return found

    def values(self, node: int, late: bool) -> int:
        """As for chains."""
        return (1 << self.k) - 1

    def ends(self, values: int, phase: int, w: int) -> dict[int, list[int]]:
        """As for chains."""
        return {x: list(range(self.k)) if w > 1 else [x] for x in range(self.k)}


Side: TypeAlias = ChainSide | SetSide


def transposed(matrix: Table) -> Table:
    """Return columns as rows."""
    return [list(column) for column in zip(*matrix, strict=True)]
