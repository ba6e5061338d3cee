"""Programs of couplings: what the engine finds, closed by running the verifier's interpreter."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from pufferflow._util.types import Bools, Floats
from pufferflow.coupling.affine import AffineRows, RobustFlows
from pufferflow.coupling.distribution_sets import (
    ExactRows,
    costs_of,
    largest_log_cross_ratios,
    reweighted_columns,
    reweighted_within,
)
from pufferflow.coupling.periodic import Rounds, Way, average_leakages
from pufferflow.coupling.process import MOST_ROBUST_STATES
from pufferflow.coupling.robust import AscendingRows
from pufferflow.coupling.solver import LeakageEquation, beginning, post_fixed_point
from pufferflow.coupling.walks import tree_parents, walk_once
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.periodic import PeriodicChain
from pufferflow.verify.interpret import Node, Nodes, Terms, sides_of
from pufferflow.verify.model import PRECISIONS, Table, ball, members
from pufferflow.verify.parse import CertificateError, Chain, Claim, Step, witness_of

_WORK, _ROWS_WORK = 4_000_000, 20_000
_ROUNDS, _RISES = 40, 5
_STEPS = 20_000
"""Of all the rounds of one side at one c."""
_MOST = 1e30
"""Leakages beyond which nobody need look."""
_GUESSES = 6
_FARTHEST = 10**6
_ROOM = 1e-9
"""Above what is found, relatively: decimals and exact rows differ a little from floats."""
_DIGITS = 15
_BELOW = 1 - 4e-15  # rounded to decimals, shares still sum to at most 1; what is left stays where it is

Document = dict[str, Any]


class _Writer:
    """The program of one member of a family, made by running the rules on what the engine finds."""

    def __init__(self, member: Any, claim: Claim) -> None:
        self.member, self.terms = member, Terms(claim)
        self.nodes = sides_of(member, claim.informed)
        self.k, self.around = member.states, claim.windows - 1
        self.cost = float(1 / Fraction(claim.scale))
        self.cap = self.around * self.cost * (1 + 1e-12)
        seen = self.nodes[0].seen
        self.differ = np.not_equal.outer(seen, seen).astype(np.float64)
        self.zero: Table = [[arb(1)] * self.k for _ in range(self.k)]
        self.witnesses: list[list[Any]] = []
        self.parsed: list[dict[Any, Any]] = []
        self.witnessed = True

    def found(self, nodes: Any, node: Node, leakages: Floats) -> list[list[Any]]:
        """The best trees for the distributions of a neighbour with these leakages."""
        possible = _mask(node.values, self.k)
        _, trees = walk_once(floats(node.rows), possible, leakages, self.cost * self.differ)
        return [[x + 1, y + 1, parents] for x, y, parents in tree_parents(trees) if not node.equal(x, y)]

    def add(self, found: list[list[Any]]) -> int:
        """Note witnesses, and return where."""
        self.witnesses.append(found)
        self.parsed.append({(x - 1, y - 1): witness_of(self.member, w) for x, y, w in found})
        return len(self.witnesses) - 1

    def prefix(self, nodes: Any, many: int, power: int) -> tuple[list[Document], list[Table]]:
        """Steps of the nodes with 1, 2, … nodes on a side, and their tables."""
        tables, growths, steps = [self.zero], [self.terms.growth(self.zero, nodes.seen)], []
        for j in range(1, many + 1):
            node, step = nodes.early(j, growths[-1]), Document()
            if known := node.rows is not None and self.witnessed:
                step["witnesses"] = self.add(self.found(nodes, node, logs(tables[-1])))
            if not known or node.excess != 1:
                step["power"] = power if power <= j else 1
            steps.append(step)
            far, cap = growths[j - step.get("power", 1)], self.terms.count(j)
            tables.append(self.terms.step(node, _step(step), self.parsed, growths[-1], far, cap))
            growths.append(self.terms.growth(tables[-1], nodes.seen))
        return steps, tables

    def closed(self, nodes: Nodes, steps: list[Document], leakages: Floats, early: list[Table]) -> Floats:
        """A table from which the period leads nowhere above it.

        From a guess upwards; without witnesses, if that does not close, from the cap downwards, where every table does.
        """
        parsed, tried = [_step(step) for step in steps], 0
        alone = all(step.witnesses is None for step in parsed)
        leakages = np.maximum(leakages, np.maximum.reduce([logs(table) for table in early]))
        while True:
            end, closed = self._cycle(nodes, parsed, leakages, len(early))
            if closed:
                return leakages
            tried += 1
            if tried == (_RISES if alone else _ROUNDS):
                break
            leakages = np.minimum(np.maximum(leakages, end * (1 + _ROOM) + _ROOM * self.cost * (end > 0)), self.cap)
        if not alone:
            raise CertificateError("no period ends at or below where it starts near this scale")
        leakages = self.cap * (1 - np.eye(self.k))
        for _ in range(_ROUNDS):
            end, _ = self._cycle(nodes, parsed, leakages, len(early))
            if (end >= leakages * (1 - 1e-7)).all():
                break
            leakages = end
        return leakages

    def _cycle(self, nodes: Nodes, steps: list[Step], leakages: Floats, early: int) -> tuple[Floats, bool]:
        """Where a period leads that starts at a table as it is written, and whether it closes."""
        start = [[ball(Fraction(entry)).exp().upper() for entry in row] for row in decimals(leakages)]
        end = self.terms.cycle(start, steps, self.parsed, nodes, early)[nodes.round()[-1][0]]
        pairs = [(x, y) for x in range(self.k) for y in range(self.k) if x != y]
        return logs(end), all(end[x][y] <= start[x][y] for x, y in pairs)

    def document(self, sides: list[Document], **more: Any) -> Document:
        """The program."""
        return {"witnesses": self.witnesses, "forward": sides[0], "backward": sides[1]} | more


def most_early(states: int) -> int:
    """How many nodes may have steps of their own."""
    return _WORK // states**4


def program_of_chain(member: Chain, claim: Claim, early: int) -> Document:
    """Return a program for a chain with one matrix, with at most so many steps of single nodes."""
    with ctx.workprec(PRECISIONS[0]):
        writer = _Writer(member, claim)
        sides = [_chain_side(writer, nodes, early) for nodes in writer.nodes]
        more = {} if member.observations is None else _observed(writer, [side[1] for side in sides])
        return writer.document([side[0] for side in sides], **more)


def _chain_side(writer: _Writer, nodes: Any, early: int) -> tuple[Document, Floats]:
    """One side, and the leakages of a node in the middle."""
    around, fixed = writer.around, nodes.forward or writer.member.start == "stationary"
    many = around if around <= early else (0 if fixed else early)
    power = 1
    if nodes.informed or not fixed:
        power = _best_power(floats(nodes.model.rows), writer.cost, around, nodes.forward)
    steps, tables = writer.prefix(nodes, many, power)
    side: Document = {"prefix": steps}
    if many == around:
        return side, logs(tables[-1])
    node = nodes.any(0, len(tables), writer.terms.growth(tables[-1], nodes.seen))
    guess, far = _guess(writer, nodes, node, tables, power)
    step: Document = {}
    if node.rows is not None:
        step["witnesses"] = writer.add(writer.found(nodes, node, guess))
    if nodes.informed or not fixed:
        step["power"] = far
    leakages = writer.closed(nodes, [step], guess, tables)
    return side | {"start": decimals(leakages), "cycle": [step]}, leakages


def _guess(writer: _Writer, nodes: Any, node: Node, tables: list[Table], power: int) -> tuple[Floats, int]:
    """Leakages that bound every node after the early ones, in floats, and through how many steps."""
    floor, cap = np.maximum.reduce([logs(table) for table in tables]), writer.around * writer.cost
    within = np.array(list(members(node.values | node.neighbours)))
    inside = np.ix_(within, within)
    values = _mask(node.values, nodes.k)[within]
    cost = writer.cost * writer.differ[inside]
    caps = np.full(cost.shape, cap * (1 + 1e-13))

    def solved(side: Any, extra: float) -> Floats:
        away = (1 - np.eye(len(within))) * (extra + _ROOM * writer.cost)
        equation = LeakageEquation(side, cost, caps, extra=away, floor=np.minimum(floor[inside], cap))
        return post_fixed_point(equation, np.minimum(beginning(side) * writer.cost, cap))

    best, far = caps * (1 - np.eye(len(within))), 1
    matrix = floats(nodes.model.rows)
    if nodes.informed or not (nodes.forward or writer.member.start == "stationary"):
        for m in dict.fromkeys((1, power)):
            rows = np.linalg.matrix_power(matrix, m)
            found = solved(reweighted_columns((rows.T if nodes.forward else rows)[inside]), (m - 1) * writer.cost)
            if m == 1 or found.max() < best.max():
                best, far = found, m
    if node.rows is not None:
        side = ExactRows(floats(node.rows)[inside], 1e-15, values)
        excess, near = math.log(float(node.excess)), best
        for _ in range(_GUESSES):
            near = solved(side, excess)
            if node.excess == 1:
                break
            full = np.zeros((nodes.k, nodes.k))
            full[inside] = near
            again = nodes.any(0, len(tables), writer.terms.growth(_table(full), nodes.seen))
            if math.log(float(again.excess)) <= excess:
                break
            excess = math.log(float(again.excess)) * 1.01 + 1e-15
        best = np.minimum(best, near)
    guess = np.zeros((nodes.k, nodes.k))
    guess[inside] = best
    return guess * (1 + _ROOM), far


def _best_power(matrix: Floats, cost: float, around: int, forward: bool) -> int:
    """How many steps away the largest cross ratio bounds most: of m steps that is (m − 1)·c and what comes through."""
    best, power, m = math.inf, 1, 1
    while m <= min(around, _FARTHEST):
        rows = np.linalg.matrix_power(matrix, m)
        ratio = float(largest_log_cross_ratios(rows if forward else rows.T, np.ones(len(rows), dtype=np.bool_)).max())
        bound = around * cost
        for _ in range(60):
            bound = min(bound, (m - 1) * cost + _reweighted(ratio, bound + cost))
        if bound < best * (1 - 1e-3):
            best, power = bound, m
        m *= 2
    return power


def _reweighted(ratio: float, weight: float) -> float:
    """Log ((1 + √(RH)) / (√R + √H))²."""
    if ratio > 600 or weight > 600:
        return min(ratio, weight)
    r, h = math.exp(ratio / 2), math.exp(weight / 2)
    return 2 * math.log((1 + r * h) / (r + h))


def _observed(writer: _Writer, leakages: list[Floats]) -> Document:
    """Trees for every two observations of a node."""
    seen = np.array(writer.nodes[0].seen)
    known = np.array([float(p) for p in writer.nodes[0].model.stationary])  # type: ignore[attr-defined]
    names = sorted(set(seen.tolist()))
    rows = np.zeros((len(seen), len(seen)))
    for row, name in zip(rows, names, strict=False):
        weights = np.where(seen == name, known, 0.0)
        row[:] = weights / weights.sum() if weights.any() else 0.0
    possible = np.asarray(rows.any(axis=1))
    _, trees = walk_once(rows, possible, leakages[0] + leakages[1], writer.cost * writer.differ)
    found = [[x + 1, y + 1, parents] for x, y, parents in tree_parents(trees)]
    return {"observations": writer.add(found)}


def program_of_phases(chain: PeriodicChain, claim: Claim) -> Document:
    """Return a program for a chain that changes with its phase."""
    with ctx.workprec(PRECISIONS[0]):
        writer = _Writer(claim.family.members[0], claim)
        return writer.document([_phase_side(writer, nodes, chain) for nodes in writer.nodes])


def _phase_side(writer: _Writer, nodes: Any, chain: PeriodicChain) -> Document:
    if not writer.around:
        return {"prefix": []}
    pieces, ahead = len(chain.transition_matrices), nodes.forward
    known = not nodes.informed and (ahead or chain.start == "stationary")
    guess = writer.cost * average_leakages(chain, writer.around + 1, ahead=ahead)
    steps: list[Document] = [{"power": 1}] * pieces
    if known:
        way = Way(chain, ahead=ahead, trees_alone=True)
        guess = Rounds(way, chain.period, writer.cost, writer.cap).family(guess).start
        way.freeze()
        guess = _frozen(way, chain, guess, writer.cost)
        walked = [pieces - 1 - piece if ahead else piece for piece in range(pieces)]
        found = [[[x + 1, y + 1, parents] for x, y, parents in way.trees(piece)] for piece in walked]
        steps = [{"witnesses": writer.add(trees)} for trees in found]
    leakages = writer.closed(nodes, steps, guess * (1 + _ROOM), [writer.zero])
    return {"prefix": [], "start": decimals(leakages), "cycle": steps}


def _frozen(way: Way, chain: PeriodicChain, guess: Floats, cost: float) -> Floats:
    """Where a round of the trees found last begins that ends below, in floats."""
    away = 1 - np.eye(chain.states)
    for _ in range(20 + _STEPS // chain.period):
        if not guess.max() <= _MOST:
            break
        end = Rounds(way, chain.period, cost, np.inf).once(guess)
        if (end * (1 + _ROOM) <= guess).all():
            return guess
        guess = np.maximum(guess, end * (1 + 2 * _ROOM) + 2 * _ROOM * cost * away)
    raise CertificateError("no round ends below where it starts near this scale")


def program_of_rows(family: BoundedFamily, claim: Claim, early: int) -> Document:
    """Return a program for all chains with rows in given sets."""
    with ctx.workprec(PRECISIONS[0]):
        writer = _RowsWriter(claim.family.members[0], claim, family)
        many = writer.around if writer.around <= min(early, _ROWS_WORK // family.states**6) else 0
        return writer.document([writer.side(nodes, many) for nodes in writer.nodes])


class _RowsWriter(_Writer):
    """The same for sets of rows, whose witnesses are flows."""

    def __init__(self, member: Any, claim: Claim, family: BoundedFamily) -> None:
        super().__init__(member, claim)
        self.family, self.coupled = family, not claim.informed and family.states <= MOST_ROBUST_STATES
        self.rows = {True: family.rows}
        if family.backward is not None:
            self.rows[False] = family.backward.rows
        self.affine = {forward: AffineRows(rows) for forward, rows in self.rows.items() if self.coupled}

    def found(self, nodes: Any, node: Node, leakages: Floats) -> list[list[Any]]:
        """Flows for every two values."""
        with np.errstate(over="ignore"):
            growth = np.exp(costs_of(leakages, self.cost))
        side, found = self.affine[nodes.forward], []
        for x, y in np.argwhere(~np.eye(self.k, dtype=np.bool_)).tolist():
            if (solved := side.flows(x, y, growth)) is not None:
                found.append([x + 1, y + 1, _written(solved)])
        return found

    def side(self, nodes: Any, many: int) -> Document:
        """The program of one side: flows throughout, or ratios throughout where these bound more."""
        rows, away = self.rows.get(nodes.forward), 1 - np.eye(self.k)
        ratios = [] if nodes.forward else [reweighted_within(self.family.rows.log_column_ratios())]
        if rows is not None and not self.coupled:
            ratios.append(reweighted_within(rows.log_ratios()))
        start = np.random.default_rng(0).random((self.k, self.k)) / 2 * self.cost
        found = [self._fixed([kind], start) for kind in ratios]
        bound, flows = np.minimum.reduce([self.cap * away, *found]), False
        if rows is not None and self.coupled:
            coupled = self._fixed([AscendingRows(rows), self.affine[nodes.forward]], start)
            flows = nodes.forward or bool(coupled.max() <= bound.max())
            bound = coupled if flows else bound
        self.witnessed = flows
        steps, tables = self.prefix(nodes, many, 1)
        if many == self.around:
            return {"prefix": steps}
        step = (
            Document(witnesses=self.add(self.found(nodes, nodes.any(0, 1, self.zero), bound)))
            if flows
            else Document(power=1)
        )
        leakages = self.closed(nodes, [step], bound * (1 + _ROOM), tables)
        return {"prefix": steps, "start": decimals(leakages), "cycle": [step]}

    def _fixed(self, kinds: list[Any], start: Floats) -> Floats:
        """A post-fixed point of the last of some sides, each started from that of the one before."""
        away = 1 - np.eye(self.k)
        for kind in kinds:
            start = post_fixed_point(
                LeakageEquation(kind, self.cost, self.cap * away, extra=_ROOM * self.cost * away), start
            )
        return start


def _written(flows: RobustFlows) -> Document:
    def parts(table: Floats) -> list[list[Any]]:
        return [[z + 1, y + 1, f"{table[z, y]:.{_DIGITS}g}"] for z, y in np.argwhere(table > 0).tolist() if z != y]

    return {
        "flow": parts(flows.flow),
        "surplus": [parts(shares * _BELOW) for shares in flows.surplus],
        "reserve": [parts(shares * _BELOW) for shares in flows.reserve],
    }


def floats(table: Any) -> Floats:
    """A table of balls in floats."""
    return np.array([[float(value.mid()) for value in row] for row in table])


def logs(table: Table) -> Floats:
    """A from E, in floats and a little above."""
    return np.array([[max(float(value.log()), 0.0) for value in row] for row in table])


def decimals(leakages: Floats) -> list[list[str]]:
    """A table as it is written, rounded up."""
    return [[f"{a * (1 + 4e-10):.10g}" for a in row] for row in leakages.tolist()]


def _table(leakages: Floats) -> Table:
    return [[arb(a).exp() for a in row] for row in leakages.tolist()]


def _mask(values: int, k: int) -> Bools:
    return np.array([bool(values >> x & 1) for x in range(k)])


def _step(step: Document) -> Step:
    return Step(step.get("witnesses"), step.get("power"))
