"""Programs of leakages in floats, for the verifier's interpreter to prove."""

import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import ExactRows, PairBound, ReweightedRows
from pufferflow.bounds.robust import AffineRows, Solved
from pufferflow.bounds.solver import beginning, post_fixed_point
from pufferflow.verify import MAX_WORK
from pufferflow.verify.balls import Table, Work
from pufferflow.verify.model import Model, Node, Values
from pufferflow.verify.parse import Claim

# relative excess: decimals and exact rows differ slightly from floats
_MARGIN = 1e-9
_ENOUGH = 1e-3
"""Leakage, relatively or in c, that justifies no longer program."""
_POWERS = [m << j for j in range(20) for m in ((2, 3) if j else (1, 2, 3))]
"""Steps from a node with a step of its own to one with any distribution."""
_WAYS, _NEAR = 4, 8
"""Bounds of a node; and steps to a node with any distribution, at least, that are tried for one."""
_MAX_COUPLED = 12
"""States of sets of rows with flows, and of chains with many bounds of one node."""
_EARLY, _MAX_WORK = (0, 1, 4, 16, 64, 150, 400), 2e7
"""Numbers of nodes with steps of their own, and work on them."""
_ROUNDS, _CLOSE = 2_000, 1e-7
"""Periods from above, and the relative change of leakages that ends them."""
# rounded to decimals, shares still sum to at most 1; the rest stays
_BELOW = 1 - 4e-15

Document = dict[str, Any]


class Kind(NamedTuple):
    """How a step bounds leakages: by a "power", or by known distributions some "steps" away."""

    name: str
    steps: int


class Way(NamedTuple):
    """Distributions of a node some steps away, its costs, and an addend to leakages through it."""

    rows: PairBound
    costs: Floats
    extra: Floats
    steps: int


class Writer:
    """The program of one member of a family, from leakages in floats.

    ``known`` has its rows, and those of the reversed chain, if they lie in sets; ``share`` is the
    member's share of the work on early nodes.
    """

    def __init__(self, claim: Claim, member: Any, known: list[Any], share: float) -> None:
        self.witnesses: list[Any] = []
        self.model = model = Model(member, Work(MAX_WORK), claim.side_information == "any")
        self.hidden, self.k, self.small = claim.hidden, model.k, model.k <= _MAX_COUPLED
        self.remembers = model.hidden and model.informed
        """Whether steps are from one history of records to another."""
        self.around = claim.length - 1 - max(claim.hidden - len(model.histories), 0)
        self.cost, self.away = float(1 / claim.scale), 1 - np.eye(model.k)
        self.costs = self.cost * np.not_equal.outer(model.seen, model.seen)
        self.most = float(claim.epsilon)
        """The largest leakage of late nodes, c included, if there is a proof."""
        unsure = model.informed or model.start == "any"  # ratios of k⁴ pairs
        work = 1000 * self.k**6 if known else (12 + 2 * self.k * unsure) * self.k**3
        self.many = min(self.around, int(share * _MAX_WORK / work), _EARLY[-1])
        self.early = [*(n for n in _EARLY if n < self.many), self.many]
        self._ratios = cache(self._reweighted)
        self._affine = cache(lambda forward: AffineRows(known[not forward]))

    def program(self) -> Document:
        """Return it."""
        model, document = self.model, Document(witnesses=self.witnesses)
        document["forward"], forward = self._side(True)
        document["backward"], past = self._side(False)
        plain = model.hidden and model.period == 1 and not model.informed
        if plain and self.hidden == 1:
            middle = range(self.around // 2, self.around // 2 + 1)
            node = model.observed(middle, _growth(self.cost))
            if node.rows:
                rows = self._coupled(True, node)
                rows.bound(forward + past + self.costs)
                document["observations"] = self._add(_witnesses(rows, len(node.rows)))
        return document

    def _add(self, found: list[Any]) -> int:
        """Return the index of witnesses, which are added if they are new."""
        if found not in self.witnesses:
            self.witnesses.append(found)
        return self.witnesses.index(found)

    def _side(self, forward: bool) -> tuple[Document, Floats]:
        """Return one side, and the leakages of a node in the middle."""
        model = self.model
        kinds = self._kinds(forward)
        many = 0 if self.remembers and kinds[-1].steps > 1 else self._early(forward, kinds)
        single = [range(j, j + 1) for j in range(1, many + 1)]
        prefix, tables = self._steps(forward, 0 * self.away, single, kinds)
        if many == self.around:
            return {"prefix": prefix}, tables[-1]
        # at least those of all nodes at this distance from a late one
        floor = np.maximum.reduce(tables[-max(kind.steps for kind in kinds) :])
        late = model.late(forward, many + 1)
        guess = self._late(forward, many + 1, kinds, floor)
        stated = [[f"{a * (1 + 4e-10):.10g}" for a in row] for row in guess.tolist()]
        cycle, _ = self._steps(forward, guess, late, kinds)
        return {"prefix": prefix, "start": stated, "cycle": cycle}, guess

    def _kinds(self, forward: bool) -> list[Kind]:
        """Return how steps of late nodes bound leakages; those of early ones may lead less far."""
        model, first = self.model, self.early[-1] + 1
        [*_, nodes] = places = model.late(forward, first)
        known = all(self._nearly(forward, each) for each in (range(1, 2), places[0]))
        kinds = [Kind("steps", 1)]
        if not known:
            kinds.append(Kind("power", self._power(forward)))
        if model.period > 1 or model.row_sets or self.remembers or not self.small:
            return kinds
        names = ["steps"] * bool(self._known(forward, nodes, self.most)) + ["power"] * (not known)
        inside = ~self._outside(forward, nodes)
        while len(kinds) < _WAYS:
            now, best = self._late(forward, first, kinds), None
            least = _size(now[inside]) / (1 + _ENOUGH)
            for kind in (Kind(*one) for one in product(names, _POWERS)):
                if (kind.steps - 1) * self.cost >= now.max():
                    continue
                ways = self._ways(forward, nodes, kind, self.most)
                table = np.minimum(now, self._through(ways, forward, nodes, [now]))
                if (found := _size(table[inside])) < least:
                    best, least = kind, found
            if best is None:
                break
            kinds.append(best)
        return kinds

    def _early(self, forward: bool, kinds: list[Kind]) -> int:
        """Return the number of nodes with steps of their own.

        All have if leakages grow up to the middle; otherwise those before the distributions are
        nearly stationary, if there are not too many.
        """
        model, tables = self.model, [0 * self.away]
        if self.many == self.around and model.period == 1:
            [nodes], largest = model.late(forward, self.many), 0.0
            late = self._largest(forward, nodes, self._late(forward, self.many, kinds))
            while len(tables) <= self.many // 2 and largest < late * (1 - _ENOUGH):
                node = range(len(tables), len(tables) + 1)
                tables.append(self._step(forward, node, kinds, tables)[1])
                largest = self._largest(forward, node, tables[-1])
            if len(tables) > self.many // 2:
                return self.many
        for many in self.early:
            nodes = model.late(forward, many + 1)[0]
            if self._nearly(forward, nodes):
                break
        if self._known(forward, nodes, self.most):
            return many
        # from these on, and so many nodes before them as steps lead, values repeat
        farthest = max(kind.steps for kind in kinds)
        return min(model.settled and model.settled + farthest - 1, self.many)

    def _steps(
        self, forward: bool, start: Floats, places: list[range], kinds: list[Kind]
    ) -> tuple[list[Any], list[Floats]]:
        """Return steps for successive places, and the leakages at the start and after each."""
        steps, tables = list[Any](), [start]
        for nodes in places:
            ways, table = self._step(forward, nodes, kinds, tables)
            for way in ways:
                if "witnesses" in way:
                    way["witnesses"] = self._add(way["witnesses"])
            if len(ways) == 2 and set(ways[0]) | set(ways[1]) == {"power", "witnesses"}:
                ways = [ways[0] | ways[1]]
            steps.append(ways if len(ways) > 1 else (ways or [{}])[0])
            tables.append(table)
        return steps, tables

    def _step(
        self, forward: bool, nodes: range, kinds: list[Kind], before: list[Floats]
    ) -> tuple[list[Document], Floats]:
        """Return steps of a node, or of late ones, with their witnesses, and its leakages.

        Those of early nodes may lead less far.
        """
        late, number, table = len(nodes) > 1, len(before), self._cap(nodes)
        every = {Kind(name, min(n, number) if self.model.period > 1 else n) for name, n in kinds}
        if not late:
            near = {"steps": 1, "power": 1 if self.remembers else self.small * _NEAR}
            limits = ((name, min(number, max(n, near[name]))) for name, n in kinds)
            every = {Kind(name, m) for name, far in limits for m in _POWERS if m <= far}
        found = list[tuple[Kind, list[Way], Floats]]()
        for kind in sorted(every):
            widest = float((before[max(number - kind.steps, 0)] + self.costs).max())
            given = self._ways(forward, nodes, kind, widest)
            found.append((kind, given, self._through(given, forward, nodes, before)))
        ways, inside = list[Document](), ~self._outside(forward, nodes)
        worth = 1.0 if late else 1 + _ENOUGH
        while found and len(ways) < _WAYS:
            best = min(found, key=lambda one: _size(np.minimum(table, one[2])[inside]))
            kind, given, bound = best
            if not _size(np.minimum(table, bound)[inside]) * worth < _size(table[inside]):
                break
            if not self.small:  # one of each name
                found = [one for one in found if one[0].name != kind.name]
            table = np.minimum(table, bound)
            way: Document = {kind.name: kind.steps} if kind != Kind("steps", 1) else {}
            if kind.name == "steps":
                way["witnesses"] = _witnesses(given[0].rows, self.k)
            ways.append(way)
        return ways, table

    # -- leakages, in floats -----------------------------------------------------------------------

    def _cap(self, nodes: range) -> Floats:
        """Return the leakages by all nodes on that side."""
        return min(nodes[-1], self.around) * self.cost * self.away

    def _outside(self, forward: bool, nodes: range) -> Bools:
        """Return the pairs of values that the nodes cannot have."""
        possible = np.isin(range(self.k), list(self.model.values(forward, nodes)))
        return np.asarray(~(possible[:, None] & possible) & (self.away > 0))

    def _largest(self, forward: bool, nodes: range, table: Floats) -> float:
        """Return the largest leakage of values that the nodes can have."""
        return float(table[~self._outside(forward, nodes)].max(initial=0))

    def _known(self, forward: bool, nodes: range, widest: float, steps: int = 1) -> list[Way]:
        """Return the distributions of the node some steps away, if they are known.

        ``widest`` is its largest leakage, c included.
        """
        node = self.model.node(forward, nodes, _growth(widest), steps)
        if not node.rows or (self.model.row_sets and not self.small):
            return []
        excess = math.log(min(float(node.excess), 1e300)) + (steps - 1) * self.cost
        return [Way(self._coupled(forward, node), self.costs, excess * self.away, steps)]

    def _nearly(self, forward: bool, nodes: range) -> bool:
        """Return whether the distributions are known with hardly an error."""
        ways = self._known(forward, nodes, self.most)
        return bool(ways and ways[0].extra.max() <= _ENOUGH * self.cost)

    def _coupled(self, forward: bool, node: Node) -> AffineRows | ExactRows:
        """Return the known distributions of a node's neighbour."""
        if self.model.row_sets:
            return self._affine(forward)
        rows = np.zeros_like(self.away)
        rows[: len(node.rows)] = _floats(node.rows)
        return ExactRows(rows, 1e-15)  # an error: equal rows have a tree too

    def _ways(self, forward: bool, nodes: range, kind: Kind, widest: float) -> list[Way]:
        """Return sets of distributions of a node some steps away: if known, or of any ones."""
        if kind.name == "steps":
            return self._known(forward, nodes, widest, kind.steps)
        values = self.model.values(forward, nodes, kind.steps)
        return self._ratios(forward, nodes.start % self.model.period, kind.steps, values)

    def _reweighted(self, forward: bool, phase: int, power: int, values: Values) -> list[Way]:
        """Return sets of distributions on some values; each bounds the leakage."""
        found, there = [], np.isin(range(self.k), list(values))
        beyond, own = self.cost * np.array(self.model.between(forward, power))
        for tables in self.model.weights(forward, phase, power):
            low, high = (_floats(table).T * there for table in tables)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(high)[:, None, :] - np.log(low)[None, :, :]
            logs[np.broadcast_to(high[:, None, :] == 0, logs.shape)] = -np.inf
            extra, some = own * self.away, high.max(axis=1) > 0
            # values without a neighbour have no bound, even if no late node has them
            extra[~(some[:, None] & some) & (self.away > 0)] = np.inf
            found.append(Way(ReweightedRows(logs), self.costs + beyond, extra, power))
        return found

    def _through(
        self, ways: list[Way], forward: bool, nodes: range, before: list[Floats]
    ) -> Floats:
        """Return the leakages of nodes from those ``before`` them."""
        table = cap = self._cap(nodes)
        for rows, costs, extra, steps in ways:
            bound = rows.bound(before[max(len(before) - steps, 0)] + costs)
            table = np.fmin(table, np.fmin(bound, rows.limit) + extra)
        return np.where(self._outside(forward, nodes), cap, table)

    def _power(self, forward: bool) -> int:
        """Return the number of steps with the smallest leakage."""
        model, power, least, m = self.model, 1, math.inf, 1
        most = self.around if model.period == 1 else min(self.around, model.period)
        most = min(most, len(model.histories)) if self.remembers else most
        while m <= most and (m - 1) * self.cost < least:
            table = self._late(forward, self.around, [Kind("power", m)])
            bound = self._largest(forward, model.late(forward, self.around)[-1], table)
            if bound < least * (1 - _ENOUGH):
                power, least = m, bound
            m += 1 if self.remembers else m  # chains of order m need m steps
        return power

    def _late(
        self, forward: bool, first: int, kinds: list[Kind], floor: Floats | float = 0.0
    ) -> Floats:
        """Return leakages of at least ``floor`` that a period maps to at most themselves.

        They are by known distributions, or by any ones of a node some steps away.
        """
        places, single = self.model.late(forward, first), self.model.period == 1
        every = [
            [
                way
                for name, n in kinds
                for way in self._ways(
                    forward, nodes, Kind(name, n if single else min(n, i)), self.most
                )
            ]
            for i, nodes in enumerate(places, 1)
        ]
        now = cap = self._cap(places[0])
        extra = self.away * _MARGIN * self.cost
        if single:
            floor = np.minimum(np.where(self._outside(forward, places[0]), np.inf, floor), cap)
            for rows, costs, more, _ in every[0]:
                start = np.clip(beginning(rows, self.around) * self.cost, floor, cap)
                given = rows, costs, cap, start
                found = post_fixed_point(*given, extra=extra + more, floor=floor)
                now = np.minimum(now, found)
            if len(every[0]) < 2:
                return now
        for _ in range(_ROUNDS):
            tables = [now]
            for nodes, ways in zip(places, every, strict=True):
                table = self._through(ways, forward, nodes, tables)
                tables.append(np.maximum(np.minimum(table + extra, cap), floor))
            now, last = tables[-1], now
            if (last - now).max() <= _CLOSE * now.max():
                break
        return now


def _size(leakages: Floats) -> float:
    """Return the largest and the mean leakage, together."""
    return float(leakages.max() + leakages.mean())


def _witnesses(rows: Any, values: int) -> list[list[Any]]:
    """Return the last trees or flows of distributions, as they are written."""
    found: list[list[Any]] = [[None] * values for _ in range(values)]
    if isinstance(rows, AffineRows):
        for solved in rows.solved:
            for i, (x, y) in enumerate(solved.pairs.tolist()):
                found[x][y] = _written(solved, i)
    else:
        for x, y, parents in rows.parents():
            found[x][y] = parents
    return found


def _written(solved: Solved, i: int) -> Document:
    def moved(table: Floats) -> list[list[str]]:
        away = np.maximum(table, 0) * (1 - np.eye(len(table)))
        return [[f"{p:.15g}" for p in row] for row in away.tolist()]

    def shares(tables: Floats) -> list[list[str]]:
        """Return rows of sum 1: the rest stays."""
        rows = moved(tables[i] * _BELOW)
        for z, row in enumerate(rows):
            row[z] = str(1 - sum(map(Fraction, row)))
        return rows

    return {
        "flow": moved(solved.flow[i]),
        "surplus": list(map(shares, solved.surplus)),
        "reserve": list(map(shares, solved.reserve)),
    }


def _growth(largest: float) -> Table:
    """Return a table of growth whose largest entry is that of some leakage."""
    return [[arb(largest).exp()]]


def _floats(table: Any) -> Floats:
    """Return a table of balls as floats."""
    return np.array([[float(value.mid()) for value in row] for row in table])
