"""Programs of leakages in floats, for the verifier's interpreter to prove."""

import math
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from flint import arb

from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import ExactRows, PairBound, ReweightedRows
from pufferflow.bounds.robust import AffineRows, Solved
from pufferflow.bounds.solver import beginning, post_fixed_point
from pufferflow.errors import ParameterError
from pufferflow.verify import MAX_WORK
from pufferflow.verify.balls import Table, Work
from pufferflow.verify.model import Model, Node, Values
from pufferflow.verify.parse import Claim

# relative excess: decimals and exact rows differ slightly from floats
_MARGIN = 1e-9
_ENOUGH = 1e-3
"""Leakage, relatively or in c, that justifies no longer program."""
_POWERS = [m << j for j in range(8) for m in ((2, 3) if j else (1, 2, 3))]
"""Steps from a node with a step of its own to one with any distribution."""
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
        self.hidden, self.k = claim.hidden, model.k
        self.remembers = model.hidden and model.informed
        """Whether steps are from one history of records to another."""
        self.around = claim.length - model.window(claim.hidden)
        self.cost, self.away = float(1 / claim.scale), 1 - np.eye(model.k)
        self.costs = self.cost * np.not_equal.outer(model.seen, model.seen)
        # the work of reading and of both sides of a node, some of whose sets are bounded by ratios
        ratios = 2 if model.informed or known else int(model.start != "stationary")
        phase = 2 * ratios * model.k**4 + (29 - 13 * ratios) * model.k**3
        if model.period * phase > share * MAX_WORK:
            what = f"{model.period} phase(s) of {model.k} states take over {share * MAX_WORK:.1e}"
            raise ParameterError(f"{what} operations to check; give fewer")
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
        ends = range(1, 2), model.late(forward, self.early[-1] + 1)[0]
        known = all(self._nearly(forward, nodes) for nodes in ends)
        power = 0 if known else self._power(forward)
        many = 0 if self.remembers and power > 1 else self._early(forward, power)
        single = [range(j, j + 1) for j in range(1, many + 1)]
        prefix, tables = self._steps(forward, 0 * self.away, single, power)
        if many == self.around:
            return {"prefix": prefix}, tables[-1]
        # at least those of all nodes at this distance from a late one
        floor, late = np.maximum.reduce(tables[-max(power, 1) :]), model.late(forward, many + 1)
        guess = self._late(forward, many + 1, 0, floor)
        if power:
            guess = np.minimum(guess, self._late(forward, many + 1, power, floor))
        stated = [[f"{a * (1 + 4e-10):.10g}" for a in row] for row in guess.tolist()]
        cycle, _ = self._steps(forward, guess, late, power)
        return {"prefix": prefix, "start": stated, "cycle": cycle}, guess

    def _early(self, forward: bool, power: int) -> int:
        """Return the number of nodes with steps of their own.

        All have if leakages grow up to the middle; otherwise those before the distributions are
        nearly stationary, if there are not too many.
        """
        model, tables = self.model, [0 * self.away]
        if self.many == self.around and model.period == 1:
            [nodes], largest = model.late(forward, self.many), 0.0
            every = (self._late(forward, self.many, m) for m in {0, power})
            late = min(self._largest(forward, nodes, table) for table in every)
            while len(tables) <= self.many // 2 and largest < late * (1 - _ENOUGH):
                node = range(len(tables), len(tables) + 1)
                tables.append(self._step(forward, node, power, tables)[1])
                largest = self._largest(forward, node, tables[-1])
            if len(tables) > self.many // 2:
                return self.many
        for many in self.early:
            nodes = model.late(forward, many + 1)[0]
            if self._nearly(forward, nodes):
                break
        if self._known(forward, nodes, self.most):
            return many
        # from these on, and ``power`` nodes before them, values repeat
        return min(model.settled and model.settled + max(power, 1) - 1, self.many)

    def _steps(
        self, forward: bool, start: Floats, places: list[range], power: int
    ) -> tuple[list[Document], list[Floats]]:
        """Return steps for successive places, and the leakages at the start and after each."""
        steps, tables = list[Document](), [start]
        for nodes in places:
            step, table = self._step(forward, nodes, power, tables)
            if "witnesses" in step:
                step["witnesses"] = self._add(step["witnesses"])
            steps.append(step)
            tables.append(table)
        return steps, tables

    def _step(
        self, forward: bool, nodes: range, power: int, before: list[Floats]
    ) -> tuple[Document, Floats]:
        """Return the step of a node, or of late ones, with its witnesses, and its leakages.

        The power, up to this one, is that of the smallest leakages.
        """
        late, step = len(nodes) > 1, Document()
        power = power if late and self.model.period == 1 else min(power, len(before))
        known = self._known(forward, nodes, float((before[-1] + self.costs).max()))
        trees, none = self._through(known, forward, nodes, before), self._cap(nodes)
        every = {
            m: self._through(self._unknown(forward, nodes, m), forward, nodes, before)
            for m in ([power] if late else [m for m in _POWERS if m <= power] or [0])
        }
        least = {m: self._largest(forward, nodes, np.minimum(trees, every[m])) for m in every}
        power = min(every, key=least.__getitem__)
        table, ratios, slack = trees, every[power], 0 if late else _ENOUGH * self.cost
        if (ratios + slack < trees).any():
            step["power"], none, table = power, ratios, np.minimum(trees, ratios)
        if (trees < none).any():
            step["witnesses"] = _witnesses(known[0].rows, self.k)
        return step, table

    # -- leakages, in floats -----------------------------------------------------------------------

    def _cap(self, nodes: range) -> Floats:
        """Return the leakages by all nodes on that side."""
        return min(nodes[-1], self.around) * self.cost * self.away

    def _outside(self, forward: bool, nodes: range) -> Bools:
        """Return the pairs of values that the nodes cannot have."""
        possible = self._among(self.model.values(forward, nodes))
        return np.asarray(~(possible[:, None] & possible) & (self.away > 0))

    def _among(self, values: Values) -> Bools:
        return np.array([x in values for x in range(self.k)])

    def _largest(self, forward: bool, nodes: range, table: Floats) -> float:
        """Return the largest leakage of values that the nodes can have."""
        return float(table[~self._outside(forward, nodes)].max(initial=0))

    def _known(self, forward: bool, nodes: range, widest: float) -> list[Way]:
        """Return the distributions of a node's neighbour, if they are known.

        ``widest`` is the largest leakage of the neighbour, c included.
        """
        node = self.model.node(forward, nodes, _growth(widest))
        if not node.rows or (self.model.row_sets and self.k > _MAX_COUPLED):
            return []
        excess = math.log(min(float(node.excess), 1e300)) * self.away
        return [Way(self._coupled(forward, node), self.costs, excess, 1)]

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

    def _unknown(self, forward: bool, nodes: range, power: int) -> list[Way]:
        """Return sets of any distributions of the node ``power`` steps away, none for 0."""
        if not power:
            return []
        values = self.model.values(forward, nodes, power)
        return self._ratios(forward, nodes.start % self.model.period, power, values)

    def _reweighted(self, forward: bool, phase: int, power: int, values: Values) -> list[Way]:
        """Return sets of distributions on some values; each bounds the leakage."""
        found, there = [], self._among(values)
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
            table = self._late(forward, self.around, m)
            bound = self._largest(forward, model.late(forward, self.around)[-1], table)
            if bound < least * (1 - _ENOUGH):
                power, least = m, bound
            m += 1 if self.remembers else m  # chains of order m need m steps
        return power

    def _late(self, forward: bool, first: int, power: int, floor: Floats | float = 0.0) -> Floats:
        """Return leakages of at least ``floor`` that a period maps to at most themselves.

        They are by known distributions, or by any ones of the node ``power`` steps away.
        """
        places, single = self.model.late(forward, first), self.model.period == 1
        every = [
            self._unknown(forward, nodes, power if single else min(power, i))
            if power
            else self._known(forward, nodes, self.most)
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
            return now
        for _ in range(_ROUNDS):
            tables = [now]
            for nodes, ways in zip(places, every, strict=True):
                table = self._through(ways, forward, nodes, tables)
                tables.append(np.minimum(table + extra, cap))
            now, last = tables[-1], now
            if (last - now).max() <= _CLOSE * now.max():
                break
        return now


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
