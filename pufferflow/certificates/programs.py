"""Programs: leakages of the engine, proved by running the verifier's interpreter."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.blocks import Blocks
from pufferflow.bounds.distribution_sets import ExactRows, ReweightedRows
from pufferflow.bounds.loss import ProcessLoss
from pufferflow.bounds.process import of_chain
from pufferflow.bounds.robust import AffineRows, RobustFlows
from pufferflow.bounds.solver import beginning, post_fixed_point
from pufferflow.models.families import Protection
from pufferflow.verify import MAX_WORK
from pufferflow.verify.balls import Table, Work, below
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.model import END, Node, Values
from pufferflow.verify.parse import Claim, Matrix, Proof, Step, Witnesses, read, require

# relative excess: decimals and exact rows differ slightly from floats
_MARGIN = 1e-9
_GUESSES = 6
_FARTHEST, _MAX_EXCESS = 2**20, 100.0
# states of interval families, and work on their early nodes
_MAX_COUPLED, _MAX_EARLY = 12, 20_000
# single nodes: number of trials, loss by fewer steps or old trees, work
_EARLY, _ENOUGH, _MAX_WORK = (1, 4, 16, 64, 150, 400), 1e-3, 2e7
_POWERS = [m << j for j in range(20) for m in ((2, 3) if j else (1, 2, 3))]
# rounded to decimals, shares still sum to at most 1; the rest stays
_BELOW = 1 - 4e-15

Document = dict[str, Any]
Pair: TypeAlias = tuple[int, int]
Map: TypeAlias = tuple[Any, Bools, int]
"""Leakages through a node some steps away, by the engine; mask of impossible pairs."""


class Writer:
    """The program of one member of a family.

    ``known`` has its rows, and those of the reversed chain, if they lie in sets.
    """

    def __init__(self, claim: Claim, member: Any, known: list[Any], early: Pair) -> None:
        self.witnesses: list[Any] = []
        self.parsed: list[Witnesses] = []
        self.run = Interpreter(claim, member, Proof(self.parsed), Work(MAX_WORK))
        self.model, self.early = self.run.model, early
        self.around, self.cost, self.k = self.run.around, float(self.run.cost), self.model.k
        self.away = 1 - np.eye(self.k)
        self.costs = self.cost * np.not_equal.outer(self.model.seen, self.model.seen)
        self.cap = self.around * self.cost * self.away
        self._affine = cache(lambda forward: AffineRows(known[not forward]))
        self._sets_of, self._last = cache(self._reweighted), ExactRows(np.eye(self.k))

    def program(self) -> Document:
        """Return it."""
        model, run, document = self.model, self.run, Document(witnesses=self.witnesses)
        document["forward"], forward = self._side(True)
        document["backward"], past = self._side(False)
        plain = model.hidden and model.period == 1 and not model.informed
        if plain and run.claim.hidden == 1:
            middle = self.around // 2
            nodes = range(middle, END if middle > self.early[1] else middle + 1)
            node = model.observed(nodes, run.growth(run.count(0)))
            if node.rows:
                found, many = self._found(True, node, forward + past)[0], len(node.rows)
                document["observations"] = self._add([row[:many] for row in found[:many]])
        return document

    def _add(self, found: list[Any]) -> int:
        """Add witnesses, and return their index."""
        self.witnesses.append(found)
        self.parsed.append(read(Witnesses, found, "witnesses"))
        return len(self.witnesses) - 1

    def _side(self, forward: bool) -> tuple[Document, Floats]:
        """Return one side, and the leakages of a node in the middle."""
        model, run, sets = self.model, self.run, self.model.row_sets
        start = run.count(0)
        far = model.node(forward, model.late(forward, self.around)[0], run.growth(start))
        same = bool(far.rows and (sets or far.excess == 1))
        coupled, power = not sets or (same and self.k <= _MAX_COUPLED), None
        if not (coupled and same and (forward or not sets)):
            power, bound = self._power(forward)
            if sets and coupled:  # flows throughout, or ratios throughout if their bound is smaller
                coupled = bool(self._coupled(forward, 1, 0.0).max() <= bound.max())
                power = None if coupled else power
        many = min(self.early[not forward], self.around)
        if sets and self.around * self.k**6 <= _MAX_EARLY:
            many = self.around
        positions = [range(j, j + 1) for j in range(1, many + 1)]
        prefix, tables = self._steps(forward, start, positions, coupled, power)
        if many == self.around:
            return {"prefix": prefix}, _logs(tables[-1])
        guess = self.cap
        if coupled:
            guess = self._coupled(forward, many + 1, _logs(tables[-1]))
        if power:  # at least those of all nodes at this distance from a late one
            floor = np.maximum.reduce([_logs(table) for table in tables[-power:]])
            other = self._through_ratios(forward, power, floor)
            guess, power = (guess, None) if guess.max() <= other.max() else (other, power)
        stated = [[f"{a * (1 + 4e-10):.10g}" for a in row] for row in guess.tolist()]
        begin = run.begin(tables[-(power or 1) :], read(Matrix, stated, "start"))
        positions = model.late(forward, many + 1)
        cycle, (*_, last) = self._steps(forward, begin, positions, coupled, power)
        require(below(last, begin), "no period ends at or below its start near this scale")
        return {"prefix": prefix, "start": stated, "cycle": cycle}, guess

    def _steps(
        self, forward: bool, start: Table, places: list[range], coupled: bool, power: int | None
    ) -> tuple[list[Document], list[Table]]:
        """Return steps for successive positions, and the tables that they prove.

        Single nodes get the shortest steps whose bounds are about the smallest.
        """
        steps, tables, logs, old = list[Document](), [start], [_logs(start)], -1

        def prove(step: Document) -> Table:
            return self.run.step(forward, position, Step(**step), tables)

        for position in places:
            node = self.model.node(forward, position, self.run.growth(tables[-1]))
            early = len(position) == 1
            known = bool(coupled and node.rows)
            found, trees = self._found(forward, node, logs[-1]) if known else ([], self.cap)
            through, ratios = 0, self.cap
            if power and not (known and node.excess == 1):
                through, ratios = self._through(forward, position, logs, power)
            most = np.minimum(trees, ratios) + _ENOUGH * self.cost * early
            most = np.where(self._outside(node.values), np.inf, np.maximum(most, 0))
            step = Document(witnesses=old)
            if not (known and early and old >= 0 and (_logs(prove(step)) <= most).all()):
                alone, step = bool((ratios <= most).all()), Document()
                if known and not alone:
                    step["witnesses"] = old = self._add(found)
                if through and (alone or (trees > most).any()):
                    step["power"] = through
            steps.append(step)
            tables.append(prove(step))
            logs.append(_logs(tables[-1]))
        return steps, tables

    def _through(
        self, forward: bool, position: range, logs: list[Floats], power: int
    ) -> tuple[int, Floats]:
        """Return the number of steps with the smallest leakage of a node, and that leakage."""
        i = len(logs)
        powers = [power] if self.model.period == 1 else [min(power, i)]
        if len(position) == 1:
            powers = [m for m in _POWERS if m <= min(power, i)]
        found = []
        for m in powers:
            costs = logs[max(i - m, 0)] + self.costs
            sets = self._sets_of(forward, position.start % self.model.period, m)
            bound = np.minimum.reduce([rows.bound(costs) for rows in sets])
            found.append((m, np.minimum(bound + (m - 1) * self.cost, self.cap)))
        return min(found, key=lambda way: (way[1].max(), way[1].sum()))

    def _found(self, forward: bool, node: Node, leakages: Floats) -> tuple[list[Any], Floats]:
        """Return witnesses for a node from the leakages of its neighbour, and their bounds."""
        found: list[list[Any]] = [[None] * self.k for _ in range(self.k)]
        if self.model.row_sets:
            affine = self._affine(forward)
            bound = affine.bound(leakages + self.costs)
            for (x, y), flows in affine.flows.items():
                found[x][y] = _written(flows)
            return found, bound
        rows = np.zeros_like(self.cap)
        rows[: len(node.rows)] = _floats(node.rows)
        if not np.array_equal(self._last.rows, rows):  # otherwise the last ones are nearly the best
            # an error: equal rows have a tree too
            self._last = ExactRows(rows, 1e-15, _mask(node.values, self.k))
        bound = self._last.bound(leakages + self.costs)
        bound += math.log(min(float(node.excess), 1e300)) * self.away
        for x, y, parents in self._last.parents():
            found[x][y] = parents
        return found, bound

    # -- leakages, in floats -----------------------------------------------------------------------

    def _coupled(self, forward: bool, j: int, floor: Floats | float) -> Floats:
        """Return bounds by couplings of every node with j nodes or more on that side."""
        sets = self._affine(forward) if self.model.row_sets else None
        excess, table, positions = 0.0, self.cap * 0.0 + floor, self.model.late(forward, j)
        for _ in range(_GUESSES):
            growth = self.run.growth([[arb(a).exp() for a in row] for row in table.tolist()])
            nodes = [self.model.node(forward, position, growth) for position in positions]
            if not nodes[0].rows or (needed := math.log(float(nodes[0].excess))) > _MAX_EXCESS:
                return self.cap
            if excess and needed <= excess:
                return table
            excess, maps = needed * 1.01, list[Map]()
            for node in nodes:
                rows = sets or ExactRows(_floats(node.rows), 1e-15, _mask(node.values, self.k))
                maps.append((rows, self._outside(node.values), 1))
            table = self._fixed(maps, excess, floor)
            if not excess:
                return table
        return self.cap

    def _outside(self, values: Values) -> Bools:
        """Return the pairs of values that a node with these values cannot have."""
        possible = _mask(values, self.k)
        return np.asarray(~(possible[:, None] & possible) & (self.away > 0))

    def _power(self, forward: bool) -> tuple[int, Floats]:
        """Return the number of steps with the smallest leakage, and that leakage."""
        model, power, best, m = self.model, 1, self._through_ratios(forward, 1, 0.0), 2
        most = min(self.around, _FARTHEST if model.period == 1 else model.period)
        most = 1 if model.hidden and model.informed else most
        while m <= most and (m - 1) * self.cost < best.max():
            bound = self._through_ratios(forward, m, 0.0)
            if bound.max() < best.max() * (1 - 1e-3):
                power, best = m, bound
            m *= 2
        return power, best

    def _through_ratios(self, forward: bool, power: int, floor: Floats | float) -> Floats:
        """Return bounds by ratios of nodes ``power`` steps away."""
        model, steps = self.model, list[tuple[list[Any], Bools, int]]()
        for i, position in enumerate(model.late(forward, self.around), 1):
            near = power if model.period == 1 else min(power, i)
            outside = self._outside(model.values(forward, position))
            phase = position.start % model.period
            steps.append((self._sets_of(forward, phase, near), outside, near))
        ways = range(len(steps[0][0]))
        every = [[(sets[way], *others) for sets, *others in steps] for way in ways]
        return np.asarray(np.minimum.reduce([self._fixed(maps, 0.0, floor) for maps in every]))

    def _reweighted(self, forward: bool, phase: int, power: int) -> list[Any]:
        """Return sets of distributions of a node ``power`` steps away; each bounds the leakage."""
        found = []
        for tables in self.model.weights(forward, phase, power):
            low, high = (_floats(table).T for table in tables)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(high)[:, None, :] - np.log(low)[None, :, :]
            logs[np.broadcast_to(high[:, None, :] == 0, logs.shape)] = -np.inf
            found.append(ReweightedRows(logs))
        return found

    def _fixed(self, maps: list[Map], extra: float, floor: Floats | float) -> Floats:
        """Return a post-fixed point of the maps of a period, slightly above the smallest."""
        away = self.away * (extra + _MARGIN * self.cost)
        floor = np.minimum(np.maximum(floor, np.where(maps[-1][1], np.inf, 0.0)), self.cap)
        period = _Period(maps, self.costs, self.cost, self.cap)
        start = np.clip(beginning(maps[0][0], self.around) * self.cost, floor, self.cap)
        return post_fixed_point(period, self.costs, self.cap, start, extra=away, floor=floor)


class _Period:
    """The composition of the maps of a period, as one map for the engine's equations."""

    def __init__(self, maps: list[Map], costs: Floats, cost: float, cap: Floats) -> None:
        self.maps, self.costs, self.cost, self.cap = maps, costs, cost, cap
        side, outside, power = maps[-1]
        self.limit = np.where(outside, np.inf, side.limit + (power - 1) * cost)

    def bound(self, costs: Floats) -> Floats:
        """Return leakages after a period."""
        history = [costs]
        for side, outside, power in self.maps:
            far = history[max(len(history) - power, 0)]
            table = np.fmin(side.bound(far), side.limit) + (power - 1) * self.cost
            table = np.where(outside, self.cap, np.minimum(table, self.cap))
            history.append(table + self.costs)
        return np.asarray(table)

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return the derivative of the last values by the costs, a product over the maps."""
        size = self.limit.size
        products = [csr_array(eye_array(size))]
        for side, outside, power in self.maps:
            pairs, arcs, weights = side.derivative()
            kept = ~outside.ravel()[pairs]
            step = csr_array((weights[kept], (pairs[kept], arcs[kept])), shape=(size, size))
            products.append(step @ products[max(len(products) - power, 0)])
        last = products[-1]
        pairs = np.repeat(np.arange(size), np.diff(last.indptr))
        return pairs, last.indices.astype(np.int64), last.data


def early_nodes(chain: Any, asked: Any, share: float) -> Pair:
    """Return the numbers of nodes forward and backward with steps of their own.

    They are the smallest that hardly change the engine's loss, if their share of the check is
    small.
    """
    informed, losses = asked.side_information == "any", dict[Pair, float]()
    protection = Protection(asked.window, asked.side_information)
    for early in _EARLY:
        process = of_chain(chain, asked.length, protection, early=early)
        single = (process.around,) * 2 if process.exact else (0, len(process.possible) - 2)
        work = (60 if informed else 12) * len(process.distance) ** 3
        if sum(single) * work > share * _MAX_WORK:
            break
        if not informed:  # a program's late nodes have no blocks of several lengths
            process = replace(process, backward=replace(process.backward, blocks=Blocks()))
        if single not in losses:
            losses[single] = ProcessLoss(process).loss(1 / asked.scale).value
    most = min(losses.values()) * (1 + _ENOUGH)
    return next(single for single, loss in losses.items() if loss <= most)


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


def _floats(table: Any) -> Floats:
    """Return a table of balls as floats."""
    return np.array([[float(value.mid()) for value in row] for row in table])


def _logs(table: Table) -> Floats:
    """Return A from E, as floats slightly above."""
    return np.array([[max(float(value.log()), 0.0) for value in row] for row in table])


def _mask(values: Values, k: int) -> Bools:
    return np.array([x in values for x in range(k)])
