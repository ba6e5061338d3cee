"""Programs: leakages that the engine finds, proved by running the verifier's interpreter."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from flint import arb
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.affine import AffineRows, RobustFlows
from pufferflow.bounds.distribution_sets import ExactRows, costs_of, reweighted_within
from pufferflow.bounds.robust import AscendingRows
from pufferflow.bounds.solver import LeakageEquation, beginning, post_fixed_point
from pufferflow.bounds.walks import tree_parents, walk_once
from pufferflow.verify import MOST_WORK
from pufferflow.verify.balls import Table, Work, below
from pufferflow.verify.interpret import Interpreter
from pufferflow.verify.model import Node, SetModel
from pufferflow.verify.parse import (
    CertificateError,
    Claim,
    Matrix,
    Pair,
    Proof,
    Step,
    Witness,
    read,
)

# above what is found, relatively: decimals and exact rows differ a little from floats
_MARGIN = 1e-9
_ROUNDS, _GUESSES = 40, 6
_FARTHEST, _MOST_EXCESS = 2**20, 100.0
# states of families between bounds, and work on their early nodes
_MOST_COUPLED, _MOST_EARLY = 12, 20_000
# rounded to decimals, shares still sum to at most 1; what is left stays where it is
_BELOW = 1 - 4e-15

Document = dict[str, Any]
Map: TypeAlias = tuple[Any, Bools, int]
"""What values reveal through a node so many steps away, by the engine; which pairs cannot be."""


class Writer:
    """The program of one member of a family.

    ``known`` are its rows, and those backwards, where they lie in sets.
    """

    def __init__(self, claim: Claim, member: Any, known: list[Any]) -> None:
        self.witnesses: list[Any] = []
        self.parsed: list[dict[Pair, Witness]] = []
        self.rules = Interpreter(claim, member, Proof(self.parsed), Work(MOST_WORK))
        self.model, self.known = self.rules.model, known
        self.around, self.cost = self.rules.around, float(self.rules.cost)
        self.k, seen = self.model.k, self.model.seen
        self.away = 1 - np.eye(self.k)
        self.costs = self.cost * np.not_equal.outer(seen, seen)
        self.cap = self.around * self.cost * self.away
        self.ones = self.rules.count(0)
        self._affine = cache(lambda forward: AffineRows(known[not forward]))

    def program(self, early: int) -> Document:
        """Return it, with at most so many steps of single nodes."""
        model = self.model
        (forward, ahead), (backward, past) = (self._side(way, early) for way in (True, False))
        document: Document = {"witnesses": self.witnesses, "forward": forward, "backward": backward}
        if (
            model.hidden
            and self.rules.claim.hidden == 1
            and not model.informed
            and model.start == "stationary"
        ):
            known = _floats(model.distribution(0))
            names = np.array(sorted(set(model.seen)))[:, None]
            rows = np.zeros((self.k, self.k))
            rows[: len(names)] = known * np.equal(names, model.seen)
            rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
            document["observations"] = self._add(
                self._trees(rows, np.asarray(rows.any(axis=1)), ahead + past)
            )
        return document

    def _add(self, found: list[Any]) -> int:
        """Note witnesses, and return where."""
        self.witnesses.append(found)
        self.parsed.append(read(dict[Pair, Witness], found, "witnesses"))
        return len(self.witnesses) - 1

    def _side(self, forward: bool, early: int) -> tuple[Document, Floats]:
        """One side, and the leakages of a node in the middle."""
        model, sets, ones = self.model, isinstance(self.model, SetModel), self.ones
        phases = model.phases(forward)
        far = model.node(forward, (phases[0], self.around, False), self.rules.growth(ones))
        witnessed = not sets or (far.rows is not None and self.k <= _MOST_COUPLED)
        alike, power = sets or (far.rows is not None and far.excess == 1), None
        if not (witnessed and alike and (forward or not sets)):
            power, bound = self._power(forward)
            if sets and witnessed:  # flows throughout, or ratios throughout where these bound more
                witnessed = bool(self._near(forward, 1, 0.0).max() <= bound.max())
                power = None if witnessed else power
        early = min(early, _MOST_EARLY // self.k**6) if sets else early
        many = 0 if model.period > 1 or (alike and early < self.around) else min(early, self.around)
        prefix: list[Document] = []
        tables, growths = [ones], [self.rules.growth(ones)]
        for j in range(1, many + 1):
            place = (0, j, True)
            node, near = (
                model.node(forward, place, growths[-1]),
                power if power and power <= j else 1,
            )
            step = self._step(forward, node, _logs(tables[-1]), witnessed, power and near)
            prefix.append(step)
            far_growth = growths[j - near]
            tables.append(self.rules.step(forward, place, Step(**step), growths[-1], far_growth))
            growths.append(self.rules.growth(tables[-1]))
        if many == self.around:
            return {"prefix": prefix}, _logs(tables[-1])
        floor, guess = np.maximum.reduce([_logs(table) for table in tables]), self.cap
        if power:
            guess = self._through_ratios(forward, power, floor)
        if witnessed:
            guess = np.minimum(guess, self._near(forward, len(tables), floor))
        guess = now = np.maximum(guess, floor)
        steps = []
        for i, phase in enumerate(phases, 1):
            node = model.node(forward, (phase, len(tables), False), growths[-1])
            steps.append(self._step(forward, node, now, witnessed, power and self._reach(power, i)))
            if witnessed and model.period > 1:
                now = _Period([self._map(forward, phase, node, None)], self).bound(
                    costs_of(now, self.costs)
                )
        leakages = self._closed(forward, tables, guess, steps)
        return {"prefix": prefix, "start": _decimals(leakages), "cycle": steps}, leakages

    def _step(
        self, forward: bool, node: Node, leakages: Floats, witnessed: bool, power: int | None
    ) -> Document:
        """A step of a node from the leakages of its neighbour."""
        step: Document = {}
        if witnessed and isinstance(self.model, SetModel):
            with np.errstate(over="ignore"):
                growth = np.exp(costs_of(leakages, self.cost))
            affine, pairs = self._affine(forward), np.argwhere(self.away).tolist()
            found = [(x, y, affine.flows(x, y, growth)) for x, y in pairs]
            step["witnesses"] = self._add(
                [[x + 1, y + 1, _written(flows)] for x, y, flows in found if flows]
            )
        elif witnessed and node.rows is not None:
            step["witnesses"] = self._add(
                self._trees(_floats(node.rows), _mask(node.values, self.k), leakages)
            )
        if power and not (step and node.excess == 1):
            step["power"] = power
        return step

    def _trees(self, rows: Floats, possible: Bools, leakages: Floats) -> list[Any]:
        """The best trees for distributions of a neighbour with these leakages."""
        _, trees = walk_once(rows, possible, leakages, self.costs)
        return [[x + 1, y + 1, parents] for x, y, parents in tree_parents(trees)]

    def _closed(
        self, forward: bool, early: list[Table], guess: Floats, steps: list[Document]
    ) -> Floats:
        """A table from which the period leads nowhere above it: from a guess upwards."""
        parsed = [Step(**step) for step in steps]
        for _ in range(_ROUNDS):
            stated = read(Matrix, _decimals(guess), "start")
            begin, *_, last = self.rules.close(forward, early, stated, parsed)
            if below(last, begin):
                return guess
            end = _logs(last)
            guess = np.minimum(
                np.maximum(guess, end * (1 + _MARGIN) + _MARGIN * self.cost * (end > 0)), self.cap
            )
        raise CertificateError("no period ends at or below where it starts near this scale")

    def _reach(self, power: int, i: int) -> int:
        """Through how many steps the i-th one of a period leads: at most back to its start."""
        return power if self.model.period == 1 else min(power, i)

    # -- leakages, in floats -----------------------------------------------------------------------

    def _near(self, forward: bool, j: int, floor: Floats | float) -> Floats:
        """What couplings bound of every node with j nodes or more on that side."""
        model, phases = self.model, self.model.phases(forward)
        if isinstance(model, SetModel):
            anything, rows = np.zeros_like(self.cap, dtype=np.bool_), self.known[not forward]
            start = self._fixed([(AscendingRows(rows), anything, 1)], 0.0, floor)
            return self._fixed([(self._affine(forward), anything, 1)], 0.0, floor, start)
        excess, table = 0.0, self.cap * 0.0 + floor
        for _ in range(_GUESSES):
            growth = self.rules.growth([[arb(a).exp() for a in row] for row in table.tolist()])
            nodes = [model.node(forward, (phase, j, False), growth) for phase in phases]
            if nodes[0].rows is None or (needed := math.log(float(nodes[0].excess))) > _MOST_EXCESS:
                return self.cap
            if excess and needed <= excess:
                return table
            excess = needed * 1.01
            maps = [
                self._map(forward, phase, node, None)
                for phase, node in zip(phases, nodes, strict=True)
            ]
            table = self._fixed(maps, excess, floor)
            if not excess:
                return table
        return self.cap

    def _power(self, forward: bool) -> tuple[int, Floats]:
        """Through how many steps any distribution reveals least, and how much."""
        model, power, best, m = self.model, 1, self._through_ratios(forward, 1, 0.0), 2
        most = min(self.around, _FARTHEST if model.period == 1 else model.period)
        while (
            not (model.hidden and model.informed) and m <= most and (m - 1) * self.cost < best.max()
        ):
            bound = self._through_ratios(forward, m, 0.0)
            if bound.max() < best.max() * (1 - 1e-3):
                power, best = m, bound
            m *= 2
        return power, best

    def _through_ratios(self, forward: bool, power: int, floor: Floats | float) -> Floats:
        """What ratios so many steps away bound."""
        ways, phases = range(len(self.model.weights(forward, 0, 1))), self.model.phases(forward)
        places = [(phase, self._reach(power, i)) for i, phase in enumerate(phases, 1)]
        maps = (
            [self._map(forward, phase, None, near, way) for phase, near in places] for way in ways
        )
        found = [self._fixed(of_way, 0.0, floor) for of_way in maps]
        return np.asarray(np.minimum.reduce(found))

    def _map(
        self, forward: bool, phase: int, node: Node | None, power: int | None, way: int = 0
    ) -> Map:
        """What the engine knows of a node, and pairs of values that it cannot have."""
        place = (phase, self.around, False)
        values = _mask(self.model.node(forward, place, self.ones).values, self.k)
        outside = ~(values[:, None] & values[None, :]) & (self.away > 0)
        if power is None and node is not None and node.rows is not None:
            return ExactRows(_floats(node.rows), 1e-15, values), outside, 1
        low, high = (
            _floats(table).T for table in self.model.weights(forward, phase, power or 1)[way]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(high)[:, None, :] - np.log(low)[None, :, :]
        logs[np.broadcast_to(high[:, None, :] == 0, logs.shape)] = -np.inf
        return reweighted_within(logs), outside, power or 1

    def _fixed(
        self, maps: list[Map], extra: float, floor: Floats | float, start: Floats | None = None
    ) -> Floats:
        """A post-fixed point of the maps of a period, a little above the least."""
        away = self.away * (extra + _MARGIN * self.cost)
        floor = np.minimum(np.maximum(floor, np.where(maps[-1][1], np.inf, 0.0)), self.cap)
        equation = LeakageEquation(
            _Period(maps, self), self.costs, self.cap, extra=away, floor=floor
        )
        if start is None:
            start = beginning(maps[0][0]) * self.cost
        return post_fixed_point(equation, np.clip(start, floor, self.cap))


class _Period:
    """The maps of a period one after the other: the engine's equations take one map."""

    def __init__(self, maps: list[Map], writer: Writer) -> None:
        self.maps, self.writer = maps, writer
        side, outside, power = maps[-1]
        self.limit = np.where(outside, np.inf, side.limit + (power - 1) * writer.cost)

    def bound(self, costs: Floats) -> Floats:
        """Leakages after a period."""
        history, cap = [costs], self.writer.cap
        for side, outside, power in self.maps:
            far = history[max(len(history) - power, 0)]
            table = np.fmin(side.bound(far), side.limit) + (power - 1) * self.writer.cost
            table = np.where(outside, cap, np.minimum(table, cap))
            history.append(costs_of(table, self.writer.costs))
        return np.asarray(table)

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Derivative of the last values by the costs: the product of those of the maps to them."""
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


def _written(flows: RobustFlows) -> Document:
    def parts(table: Floats) -> list[list[Any]]:
        entries = ((z, y) for z, y in np.argwhere(table > 0).tolist() if z != y)
        return [[z + 1, y + 1, f"{table[z, y]:.15g}"] for z, y in entries]

    return {
        "flow": parts(flows.flow),
        "surplus": [parts(shares * _BELOW) for shares in flows.surplus],
        "reserve": [parts(shares * _BELOW) for shares in flows.reserve],
    }


def _floats(table: Any) -> Floats:
    """A table of balls in floats."""
    return np.array([[float(value.mid()) for value in row] for row in table])


def _logs(table: Table) -> Floats:
    """A from E, in floats and a little above."""
    return np.array([[max(float(value.log()), 0.0) for value in row] for row in table])


def _decimals(leakages: Floats) -> list[list[str]]:
    """A table as it is written, rounded up."""
    return [[f"{a * (1 + 4e-10):.10g}" for a in row] for row in leakages.tolist()]


def _mask(values: int, k: int) -> Bools:
    return np.array([bool(values >> x & 1) for x in range(k)])
