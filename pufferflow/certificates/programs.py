"""Programs: leakages of the engine, proved by running the verifier's interpreter."""

import math
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import ExactRows, PairBound, ReweightedRows
from pufferflow.bounds.robust import AffineRows, RobustFlows
from pufferflow.bounds.solver import beginning, post_fixed_point
from pufferflow.verify import MAX_WORK
from pufferflow.verify.balls import Table, Work, below
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.model import Node
from pufferflow.verify.parse import Claim, Matrix, Proof, Step, Witnesses, read, require

# relative excess: decimals and exact rows differ slightly from floats
_MARGIN = 1e-9
_ENOUGH = 1e-3
"""Leakage, relatively or in c, that justifies no longer program."""
_FARTHEST = 2**20
_POWERS = [m << j for j in range(20) for m in ((2, 3) if j else (1, 2, 3))]
_MAX_COUPLED = 12
"""States of sets of rows with flows."""
_EARLY, _MAX_WORK = (0, 1, 4, 16, 64, 150, 400), 2e7
"""Numbers of nodes with steps of their own, and work on them."""
_ROUNDS, _CLOSE = 2_000, 1e-7
"""Periods from above, and the relative change of leakages that ends them."""
# rounded to decimals, shares still sum to at most 1; the rest stays
_BELOW = 1 - 4e-15

Document = dict[str, Any]


class Way(NamedTuple):
    """Distributions of a node some steps away, and an addend to the leakages through them."""

    rows: PairBound
    extra: float
    steps: int


class Place(NamedTuple):
    """A node, or all late ones: ways to bound their leakages; pairs of values they cannot have.

    ``exact``: the distributions of the neighbour are known without an error.
    """

    ways: list[Way]
    outside: Bools
    exact: bool


class Writer:
    """The program of one member of a family.

    ``known`` has its rows, and those of the reversed chain, if they lie in sets; ``share`` is the
    member's share of the work on early nodes.
    """

    def __init__(self, claim: Claim, member: Any, known: list[Any], share: float) -> None:
        self.witnesses: list[Any] = []
        self.parsed: list[Witnesses] = []
        self.run = Interpreter(claim, member, Proof(self.parsed), Work(MAX_WORK))
        self.model, self.around = self.run.model, self.run.around
        self.cost, self.k = float(self.run.cost), self.model.k
        self.away = 1 - np.eye(self.k)
        self.costs = self.cost * np.not_equal.outer(self.model.seen, self.model.seen)
        self.cap = self.around * self.cost * self.away
        self.most = float(claim.epsilon)
        """The largest leakage of late nodes, c included, if there is a proof."""
        unsure = self.model.informed or self.model.start == "any"  # ratios of k⁴ pairs
        work = 1000 * self.k**6 if known else (12 + 2 * self.k * unsure) * self.k**3
        self.many = int(share * _MAX_WORK / work)
        self._affine = cache(lambda forward: AffineRows(known[not forward]))
        self._ratios, self._last = cache(self._reweighted), ExactRows(np.eye(self.k))

    def program(self) -> Document:
        """Return it."""
        model, run, document = self.model, self.run, Document(witnesses=self.witnesses)
        document["forward"], forward = self._side(True)
        document["backward"], past = self._side(False)
        plain = model.hidden and model.period == 1 and not model.informed
        if plain and run.claim.hidden == 1:
            middle = range(self.around // 2, self.around // 2 + 1)
            node = model.observed(middle, run.growth(run.count(0)))
            if node.rows:
                rows = self._coupled(True, node)
                rows.bound(forward + past + self.costs)
                document["observations"] = self._add(_witnesses(rows, len(node.rows)))
        return document

    def _add(self, found: list[Any]) -> int:
        """Return the index of witnesses, which are added if they are new."""
        if found in self.witnesses:
            return self.witnesses.index(found)
        self.witnesses.append(found)
        self.parsed.append(read(Witnesses, found, "witnesses"))
        return len(self.witnesses) - 1

    def _side(self, forward: bool) -> tuple[Document, Floats]:
        """Return one side, and the leakages of a node in the middle."""
        model, run = self.model, self.run
        far = self._place(forward, model.late(forward, self.around)[0], 0, self.most)
        power = 0 if far.exact else self._power(forward)
        many = self._early(forward, power)
        single = [range(j, j + 1) for j in range(1, many + 1)]
        prefix, tables = self._steps(forward, run.count(0), single, power)
        if many == self.around:
            return {"prefix": prefix}, _logs(tables[-1])
        # at least those of all nodes at this distance from a late one
        floor = np.maximum.reduce([_logs(table) for table in tables[-max(power, 1) :]])
        guess = self._late(forward, many + 1, power, floor)
        if power:  # ratios that hardly help a late node cost most of a check
            alone = self._late(forward, many + 1, 0, floor)
            if alone.max() <= guess.max() * (1 + _ENOUGH):
                guess, power = alone, 0
        stated = [[f"{a * (1 + 4e-10):.10g}" for a in row] for row in guess.tolist()]
        begin = run.begin(tables[-max(power, 1) :], read(Matrix, stated, "start"))
        late = model.late(forward, many + 1)
        cycle, (*_, last) = self._steps(forward, begin, late, power)
        require(below(last, begin), "no period ends at or below its start near this scale")
        return {"prefix": prefix, "start": stated, "cycle": cycle}, guess

    def _steps(
        self, forward: bool, start: Table, places: list[range], power: int
    ) -> tuple[list[Document], list[Table]]:
        """Return steps for successive places, and the tables that they prove."""
        steps, tables, logs = list[Document](), [start], [_logs(start)]
        for nodes in places:
            place = self._best(forward, nodes, power, logs)
            (trees, ratios), step = self._through(place, logs), Document()
            slack = _ENOUGH * self.cost * (len(nodes) == 1)
            if (trees < ratios).any():
                step["witnesses"] = self._add(_witnesses(place.ways[0].rows, self.k))
            if (ratios + slack < trees).any():
                step["power"] = place.ways[-1].steps
            steps.append(step)
            tables.append(self.run.step(forward, nodes, Step(**step), tables))
            logs.append(_logs(tables[-1]))
        return steps, tables

    def _early(self, forward: bool, power: int) -> int:
        """Return the number of nodes with steps of their own.

        All have if leakages grow up to the middle; otherwise those before the distributions are
        nearly stationary, if there are not too many.
        """
        model, logs, many = self.model, [0 * self.cap], 0
        most = min(self.around, self.many, _EARLY[-1])
        if most == self.around and model.period == 1:
            late = self._late(forward, most, power).max() * (1 - _ENOUGH)
            while len(logs) <= most // 2 and logs[-1].max() < late:
                nodes = range(len(logs), len(logs) + 1)
                place = self._best(forward, nodes, power, logs)
                table = np.minimum.reduce(self._through(place, logs))
                logs.append(np.minimum(table, len(logs) * self.cost))
            if len(logs) > most // 2:
                return most
        for many in (n for n in _EARLY if n <= most):
            late = model.node(forward, model.late(forward, many + 1)[0], _growth(self.most))
            if late.rows and late.excess.log() <= _ENOUGH * self.cost:
                break
        return many if late.rows else 0

    # -- leakages, in floats -----------------------------------------------------------------------

    def _best(self, forward: bool, nodes: range, power: int, before: list[Floats]) -> Place:
        """Return a place with the power, up to this one, whose leakages are smallest."""
        most = min(power, len(before))
        powers = [m for m in _POWERS if m <= most] or [0]
        if len(nodes) > 1:
            powers = [power if self.model.period == 1 else most]
        widest = float((before[-1] + self.costs).max())
        places = [self._place(forward, nodes, m, widest) for m in powers]

        def largest(place: Place) -> float:
            found = np.minimum(*self._through(place, before))
            return float(found.max(initial=0, where=~place.outside))

        return min(places, key=largest)

    def _place(self, forward: bool, nodes: range, power: int, widest: float) -> Place:
        """Return a place whose ratios are those of a node ``power`` steps away, 0 for none.

        ``widest`` is the largest leakage of its neighbour, c included.
        """
        model, ways = self.model, list[Way]()
        node = model.node(forward, nodes, _growth(widest))
        if node.rows and not (model.row_sets and self.k > _MAX_COUPLED):
            extra = math.log(min(float(node.excess), 1e300))
            ways = [Way(self._coupled(forward, node), extra, 1)]
        exact = bool(ways and node.excess == 1)
        if power and not exact:
            found = self._ratios(forward, nodes.start % model.period, power)
            ways += [Way(rows, (power - 1) * self.cost, power) for rows in found]
        possible = np.array([x in node.values for x in range(self.k)])
        return Place(ways, ~(possible[:, None] & possible) & (self.away > 0), exact)

    def _coupled(self, forward: bool, node: Node) -> AffineRows | ExactRows:
        """Return the known distributions of a node's neighbour."""
        if self.model.row_sets:
            return self._affine(forward)
        rows = np.zeros_like(self.cap)
        rows[: len(node.rows)] = _floats(node.rows)
        if not np.array_equal(self._last.rows, rows):  # otherwise the last trees are nearly best
            # an error: equal rows have a tree too
            self._last = ExactRows(rows, 1e-15)
        return self._last

    def _reweighted(self, forward: bool, phase: int, power: int) -> list[ReweightedRows]:
        """Return sets of distributions of a node ``power`` steps away; each bounds the leakage."""
        found = []
        for tables in self.model.weights(forward, phase, power):
            low, high = (_floats(table).T for table in tables)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(high)[:, None, :] - np.log(low)[None, :, :]
            logs[np.broadcast_to(high[:, None, :] == 0, logs.shape)] = -np.inf
            found.append(ReweightedRows(logs))
        return found

    def _through(self, place: Place, before: list[Floats]) -> tuple[Floats, Floats]:
        """Return the leakages by known distributions and by any, from those ``before`` them."""
        trees = ratios = self.cap
        for rows, extra, steps in place.ways:
            bound = rows.bound(before[max(len(before) - steps, 0)] + self.costs)
            bound = np.fmin(bound, rows.limit) + extra * self.away
            table = np.where(place.outside, self.cap, bound)
            if isinstance(rows, ReweightedRows):
                ratios = np.fmin(ratios, table)
            else:
                trees = np.fmin(trees, table)
        return trees, ratios

    def _power(self, forward: bool) -> int:
        """Return the number of steps with the smallest leakage."""
        model, power, least, m = self.model, 1, math.inf, 1
        most = min(self.around, _FARTHEST if model.period == 1 else model.period)
        most = 1 if model.hidden and model.informed else most
        while m <= most and (m - 1) * self.cost < least:
            bound = float(self._late(forward, self.around, m, trees=False).max())
            if bound < least * (1 - _ENOUGH):
                power, least = m, bound
            m *= 2
        return power

    def _late(
        self,
        forward: bool,
        first: int,
        power: int,
        floor: Floats | float = 0.0,
        *,
        trees: bool = True,
    ) -> Floats:
        """Return leakages of at least ``floor`` that a period maps to at most themselves."""
        single, places = self.model.period == 1, list[Place]()
        for i, nodes in enumerate(self.model.late(forward, first), 1):
            place = self._place(forward, nodes, power if single else min(power, i), self.most)
            ways = [way for way in place.ways if trees or isinstance(way.rows, ReweightedRows)]
            places.append(place._replace(ways=ways))
        extra, now = self.away * _MARGIN * self.cost, self.cap
        if single:
            floor = np.minimum(np.where(places[0].outside, np.inf, floor), self.cap)
            for rows, more, _ in places[0].ways:
                start = np.clip(beginning(rows, self.around) * self.cost, floor, self.cap)
                given = rows, self.costs, self.cap, start
                found = post_fixed_point(*given, extra=extra + more * self.away, floor=floor)
                now = np.minimum(now, found)
            return now
        for _ in range(_ROUNDS):
            tables = [now]
            for place in places:
                table = np.minimum.reduce(self._through(place, tables))
                tables.append(np.minimum(table + extra, self.cap))
            now, last = tables[-1], now
            if (last - now).max() <= _CLOSE * now.max():
                break
        return now


def _witnesses(rows: Any, values: int) -> list[list[Any]]:
    """Return the last trees or flows of distributions, as they are written."""
    found: list[list[Any]] = [[None] * values for _ in range(values)]
    if isinstance(rows, AffineRows):
        for (x, y), flows in rows.flows.items():
            found[x][y] = _written(flows)
    else:
        for x, y, parents in rows.parents():
            found[x][y] = parents
    return found


def _written(flows: RobustFlows) -> Document:
    def moved(table: Floats) -> list[list[str]]:
        away = np.maximum(table, 0) * (1 - np.eye(len(table)))
        return [[f"{p:.15g}" for p in row] for row in away.tolist()]

    def shares(table: Floats) -> list[list[str]]:
        """Return rows of sum 1: the rest stays."""
        rows = moved(table * _BELOW)
        for z, row in enumerate(rows):
            row[z] = str(1 - sum(map(Fraction, row)))
        return rows

    return {
        "flow": moved(flows.flow),
        "surplus": list(map(shares, flows.surplus)),
        "reserve": list(map(shares, flows.reserve)),
    }


def _growth(largest: float) -> Table:
    """Return a table of growth whose largest entry is that of some leakage."""
    return [[arb(largest).exp()]]


def _floats(table: Any) -> Floats:
    """Return a table of balls as floats."""
    return np.array([[float(value.mid()) for value in row] for row in table])


def _logs(table: Table) -> Floats:
    """Return A from E, as floats slightly above."""
    return np.array([[max(float(value.log()), 0.0) for value in row] for row in table])
