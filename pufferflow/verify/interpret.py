"""The interpreter of certificates: the largest loss that a proof leaves at the scale that is stated.

State: a table E[x][y] ≥ e^A[x][y], how much the values x and y of a node reveal through all nodes on one side of it.

* COUNT: with n nodes on that side E ≤ e^(nc), c = 1/scale.
* STEP: E of a node from E of its neighbour, for each pair by a witness (:mod:`pufferflow.verify.rules`), or under any
  distribution of the node ``power`` steps away; pairs that have neither get COUNT.
* CLOSE: a period that ends at or below the table from which it starts serves all nodes (Theorem 2).
* READ: e^(wc) · E forward · E backward at every node, or along one tree more for every two observations.

A family of row sets has the steps of a chain, with flows as witnesses. Quilts are read from ratios and COUNT alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from flint import arb, fmpq

from pufferflow.verify.model import (
    Model,
    Period,
    Table,
    UndecidedError,
    ball,
    before,
    exact,
    largest,
    members,
)
from pufferflow.verify.parse import (
    CertificateError,
    Chain,
    Claim,
    Intervals,
    Matrix,
    Mixing,
    Program,
    Quilt,
    Side,
    Step,
    Tree,
)
from pufferflow.verify.rules import (
    by_flows,
    by_tree,
    cut,
    extremes,
    largest_ratios,
    overlapping,
    quotients,
    reweighted,
)

_LARGEST = 10**6
"""Costs m·c of a block beyond which mixing is left out."""


class Node(NamedTuple):
    """What is known of a node and of its neighbour on one side.

    ``values`` and ``neighbours`` are those that the two can have, ``rows`` the distributions of the neighbour (or sets
    of them) given each value, None where they are not known, ``excess`` a factor for what is not exactly so, ``ratios``
    of two values and a number of steps bounds of the node so far away, for :func:`reweighted`, and ``equal`` says of
    two values whether nothing differs, exactly.
    """

    values: int
    neighbours: int
    rows: Any
    ratios: Callable[[int, int, int], list[Any]]
    equal: Callable[[int, int], bool] = lambda x, y: False
    excess: arb = arb(1)

    def bound(self, x: int, y: int, witness: Any, growth: Table) -> arb:
        """What a witness proves of two values."""
        if isinstance(witness, Tree):
            return self.excess * by_tree(self.rows[x], self.rows[y], cut(witness, self.neighbours), growth)
        return by_flows(self.rows[x], self.rows[y], witness, growth)


class Terms:
    """Costs of a claim, in balls, and the rules COUNT, STEP and CLOSE."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.scale = claim, Fraction(claim.scale)
        self.cost = 1 / ball(self.scale)

    def count(self, records: int) -> arb:
        """COUNT: e^(nc)."""
        return (records * self.cost).exp()

    def growth(self, table: Table, seen: list[int]) -> Table:
        """e^w from E, w(z, y) = c·d(z, y) + A[z, y]; values seen alike have d = 0."""
        jump = self.count(1)
        return [
            [value * jump if seen[z] != seen[y] else value for y, value in enumerate(row)]
            for z, row in enumerate(table)
        ]

    def step(self, node: Node, step: Step, witnesses: Any, growth: Table, far: Table, cap: arb) -> Table:
        """STEP: E of a node from the growth of its neighbour, and of the node ``power`` steps away."""
        listed = {} if step.witnesses is None else witnesses[step.witnesses]
        table: Table = [[arb(1)] * len(growth) for _ in growth]
        for x, y in product(members(node.values), repeat=2):
            if x == y or node.equal(x, y):
                continue
            bounds = [cap]
            if node.rows is not None and (x, y) in listed:
                bounds.append(node.bound(x, y, listed[x, y], growth))
            if step.power is not None:
                between = self.count(step.power - 1)
                bounds += [between * reweighted(ratios, far) for ratios in node.ratios(x, y, step.power)]
            table[x][y] = min(bound.upper() for bound in bounds).max(arb(1))
        return table

    def close(self, side: Side, witnesses: Any, nodes: Nodes, where: str) -> tuple[list[Table], list[Table]]:
        """E of the nodes with 0, 1, … nodes on this side, and of all others at each phase: CLOSE."""
        around, seen, steps = self.claim.windows - 1, nodes.seen, [*side.prefix, *side.cycle]
        if nodes.apart and any(step.power for step in steps) and any(step.witnesses is not None for step in steps):
            raise CertificateError(f"{where}: flows and ratios bound different tables, use one of them")
        tables: list[Table] = [[[arb(1)] * nodes.k for _ in range(nodes.k)]]
        growths = [self.growth(tables[0], seen)]
        for j, step in enumerate(side.prefix[:around], 1):
            power = step.power or 1
            if power > j:
                raise CertificateError(f"{where}: no node is {power} steps away from one with {j} beside it")
            node = nodes.early(j, growths[-1])
            tables.append(self.step(node, step, witnesses, growths[-1], growths[j - power], self.count(j)))
            growths.append(self.growth(tables[-1], seen))
        if len(tables) > around:
            return tables, []
        cap = self.count(around).upper()
        if side.start is None:
            return tables, [[[cap] * nodes.k for _ in range(nodes.k)]] * nodes.period
        start = [[ball(a).exp().upper().min(cap) for a in row] for row in side.start]
        for table in tables:  # the early nodes are among those that it bounds
            start = [[a.max(b) for a, b in zip(*rows, strict=True)] for rows in zip(start, table, strict=True)]
        rest = self.cycle(start, side.cycle, witnesses, nodes, len(tables))
        end = rest[nodes.round()[-1][0]]
        for x, y in product(range(nodes.k), repeat=2):
            if x != y and not end[x][y] <= start[x][y]:
                places = f"{where}, values {x + 1} and {y + 1}"
                raise UndecidedError(f"{places}: a period does not end at or below where it starts")
        return tables, rest

    def cycle(self, start: Table, steps: list[Step], witnesses: Any, nodes: Nodes, early: int) -> list[Table]:
        """E at each phase, one period after ``start``."""
        cap, now, rest = self.count(self.claim.windows - 1).upper(), start, [start] * nodes.period
        for phase, piece in nodes.round():
            growth, step = self.growth(now, nodes.seen), steps[piece]
            if nodes.period > 1 and step.power not in (None, 1):
                raise CertificateError("powers above 1 are for chains with one matrix")
            node = nodes.any(phase, early, growth)
            rest[phase] = now = self.step(node, step, witnesses, growth, growth, cap)
        return rest

    def loss(self, records: int, revealed: arb) -> Fraction:
        """Bound of the loss of a window that costs so many records, and of what its sides reveal."""
        if not revealed.is_finite():
            raise UndecidedError("what the sides of a node reveal has no finite bound")
        return records / self.scale + (exact(revealed.log().upper()) if revealed != 1 else 0)


class Nodes:
    """The nodes of a family on one side of a node: what STEP and CLOSE ask for."""

    k: int
    period = 1
    seen: list[int]
    apart = False
    """Whether what ratios bound says nothing of values that cannot occur, through which flows may pass."""

    def early(self, j: int, growth: Table) -> Node:
        """The node with j nodes on that side."""
        raise CertificateError("nodes have steps of their own only where one matrix serves all")

    def any(self, phase: int, j: int, growth: Table) -> Node:
        """Every node at this phase with j nodes or more on that side."""
        raise NotImplementedError

    def round(self) -> list[tuple[int, int]]:
        """Phase and matrix of every step of a period, away from the node where it starts."""
        return [(0, 0)]


class ChainNodes(Nodes):
    """Those of a chain with one matrix."""

    def __init__(self, model: Model, forward: bool, informed: bool) -> None:
        self.model, self.forward, self.informed = model, forward, informed
        self.k, self.seen = model.k, model.chain.observations or list(range(model.k))
        self._matrix = [[fmpq(p.numerator, p.denominator) for p in row] for row in model.chain.matrices[0]]

    def early(self, j: int, growth: Table) -> Node:
        """As :meth:`Nodes.early`."""
        if self.forward:
            return self.any(0, j, growth)
        supports = self.model.supports
        return self._before(j, supports.possible(j + 1), supports.possible(j), growth, single=True)

    def any(self, phase: int, j: int, growth: Table) -> Node:
        """As :meth:`Nodes.any`."""
        supports, rows = self.model.supports, self.model.rows
        if not self.forward:
            return self._before(j, supports.later, supports.ever, growth, single=False)
        matrix = self.model.chain.matrices[0]
        ratios = self._ratios(lambda power: supports.later)
        known = None if self.informed else rows
        return Node(supports.ever, supports.later, known, ratios, lambda x, y: matrix[x] == matrix[y])

    def _before(self, j: int, values: int, neighbours: int, growth: Table, single: bool) -> Node:
        """The node after node j, or all that follow."""
        model, start = self.model, self.model.chain.start
        first = model.supports.possible if single else lambda node: model.supports.ever
        node = Node(values, neighbours, None, self._ratios(lambda power: first(j + 1 - power)))
        if self.informed:
            return node
        if start == "stationary" or (single and start != "any"):
            return node._replace(rows=before(model.distribution(j), model.rows, values))
        if (excess := self._excess(j, growth, single)) is None:
            return node
        rows, everything = before(model.stationary, model.rows, values), model.supports.everything
        return node._replace(rows=rows, neighbours=everything, excess=excess)

    def _excess(self, j: int, growth: Table, single: bool) -> arb | None:
        """How much more a distribution close to the stationary one reveals (Lemma 7 of ``docs/leakage.md``).

        e^ω, e^ω' are the distances of this node and the next, which never grow, e^W the largest growth.
        """
        here = self.model.distance(j)
        if here is None:
            return None
        after = self.model.distance(j + 1) if single else here
        if after is None:
            return None
        through = 1 + (1 - 1 / here) * (largest([value for row in growth for value in row]) - 1)
        return (here * after).min(through * through)

    def _ratios(self, values: Callable[[int], int]) -> Callable[[int, int, int], list[Any]]:
        def ratios(x: int, z: int, power: int) -> list[Any]:
            rows = self._matrix if power == 1 else self.model.power(power)
            if self.forward:
                return [quotients((rows[x][y], rows[z][y], y) for y in members(values(power)))]
            return [quotients((rows[y][x], rows[y][z], y) for y in members(values(power)))]

        return ratios


class PhaseNodes(Nodes):
    """Those of a chain that changes with its phase."""

    def __init__(self, model: Period, forward: bool, informed: bool) -> None:
        self.model, self.forward, self.informed = model, forward, informed
        self.k, self.period, self.seen = model.k, model.chain.period, list(range(model.k))
        self._matrices = [
            [[fmpq(p.numerator, p.denominator) for p in row] for row in matrix] for matrix in model.chain.matrices
        ]

    def round(self) -> list[tuple[int, int]]:
        """As :meth:`Nodes.round`."""
        steps = [(phase, phase // self.model.chain.repeat) for phase in range(self.period)]
        return steps[::-1] if self.forward else [((phase + 1) % self.period, piece) for phase, piece in steps]

    def any(self, phase: int, j: int, growth: Table) -> Node:
        """As :meth:`Nodes.any`."""
        model, other = self.model, (phase + (1 if self.forward else -1)) % self.period
        piece = (phase if self.forward else other) // model.chain.repeat
        rows, values, neighbours = model.matrices[piece], model.values[phase], model.values[other]
        if not self.forward and not self.informed and model.chain.start == "stationary":
            rows = before(model.distributions[other], rows, values)
        known = not self.informed and (self.forward or model.chain.start == "stationary")
        weights = self._matrices[piece]

        def ratios(x: int, z: int, power: int) -> list[Any]:
            if self.forward:
                return [quotients((weights[x][y], weights[z][y], y) for y in members(neighbours))]
            return [quotients((weights[y][x], weights[y][z], y) for y in members(neighbours))]

        def equal(x: int, y: int) -> bool:
            return self.forward and weights[x] == weights[y]

        return Node(values, neighbours, rows if known else None, ratios, equal)


class SetNodes(Nodes):
    """Those of all chains with rows in given sets, which may change at every step."""

    apart = True

    def __init__(self, family: Intervals, forward: bool, informed: bool) -> None:
        self.family, self.known = family, family if forward else family.backward
        self.k, self.seen, self.forward, self.informed = family.states, list(range(family.states)), forward, informed

    def early(self, j: int, growth: Table) -> Node:
        """As :meth:`Nodes.early`."""
        return self.any(0, j, growth)

    def any(self, phase: int, j: int, growth: Table) -> Node:
        """As :meth:`Nodes.any`."""
        family, known = self.family, self.known

        def ratios(x: int, z: int, power: int) -> list[Any]:
            if power > 1:
                raise CertificateError("powers above 1 are for exact chains")
            columns = [] if self.forward else [extremes(family.low, family.high, x, z)]
            if known is not None:
                columns.append(extremes(_transposed(known.low), _transposed(known.high), x, z))
            return columns

        rows = None if known is None or self.informed else known.rows
        return Node((1 << self.k) - 1, (1 << self.k) - 1, rows, ratios)


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


# -- READ --------------------------------------------------------------------------------------------


def interpret(claim: Claim) -> Fraction:
    """Return an upper bound of the loss at the scale that is stated, in balls of the present precision.

    Raises CertificateError: nothing is proved; UndecidedError: more bits are needed, or nothing is proved.
    """
    pairs = list(zip(claim.family.members, claim.proofs, strict=True))
    if claim.mechanism == "wasserstein":
        from pufferflow.verify.counts import count_loss

        return max(count_loss(member, count, Fraction(claim.scale)) for member, count in pairs)
    if not Fraction(claim.scale):
        raise CertificateError("without noise a loss is not bounded")
    terms = Terms(claim)
    together = claim.length / terms.scale  # COUNT alone; a count may change by more than 1 a record
    return max(min(together, _read(member, proof, terms)) for member, proof in pairs)


def _read(member: Any, proof: Any, terms: Terms) -> Fraction:
    claim = terms.claim
    if isinstance(member, Mixing):
        return _mixing(member, terms)
    if proof is None or claim.windows == 1:
        return claim.length / terms.scale
    if isinstance(proof, list):
        if member.period > 1 or member.observations is not None or claim.informed:
            raise CertificateError("quilts prove scales of chains with one matrix, and for no side information")
        return QuiltReader(Model(member), terms).loss(proof)
    return max(_losses(member, proof, terms))


def _losses(member: Any, program: Program, terms: Terms) -> Iterator[Fraction]:
    """READ: the loss at every node that stands for others."""
    claim = terms.claim
    sides = sides_of(member, claim.informed)
    model: Any = getattr(sides[0], "model", None)
    hidden = isinstance(member, Chain) and member.observations is not None
    if hidden and (claim.informed or claim.window > 1 or member.start != "stationary"):
        raise CertificateError(
            "hidden chains have proofs for a stationary start, single records and no side information"
        )
    (ahead, after), (past, behind) = (
        terms.close(side, program.witnesses, nodes, where)
        for side, nodes, where in zip((program.forward, program.backward), sides, ("forward", "backward"), strict=True)
    )
    w, windows, everything = claim.hidden, claim.windows, (1 << sides[0].k) - 1
    yield terms.loss(w, arb(1))
    if sides[0].period > 1:
        for phase, values in enumerate(model.values):
            end = (phase + w - 1) % sides[0].period
            last = dict.fromkeys(members(values), model.values[end])
            yield terms.loss(w, _together(values, after[end], behind[phase], last, w))
        return
    early = range(1, min(windows, len(past) + 1) + 1)
    for node in {*early, *range(max(1, windows - len(ahead) + 1), windows + 1)}:
        a = ahead[windows - node] if windows - node < len(ahead) else after[0]
        b = past[node - 1] if node <= len(past) else behind[0]
        if hidden:
            both = [[p * q for p, q in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]
            yield _observed(model, program, terms, both)
            continue
        if isinstance(member, Intervals):
            values, last = everything, dict.fromkeys(members(everything), everything)
        else:
            values = model.supports.possible(node) if node <= len(past) else model.supports.later
            last = {x: model.supports.reached(1 << x, w - 1) for x in members(values)}
        yield terms.loss(w, _together(values, a, b, last, w))


def sides_of(member: Any, informed: bool) -> list[Nodes]:
    """The nodes after and before a node."""
    if isinstance(member, Intervals):
        return [SetNodes(member, forward, informed) for forward in (True, False)]
    if member.period > 1:
        period = Period(member)
        return [PhaseNodes(period, forward, informed) for forward in (True, False)]
    model = Model(member)
    return [ChainNodes(model, forward, informed) for forward in (True, False)]


def _together(values: int, ahead: Table, past: Table, last: dict[int, int], w: int) -> arb:
    """Largest product of what lies ahead of the last values of two windows and of the past of the first ones."""
    most = arb(1)
    if w == 1:
        for x, y in product(members(values), repeat=2):
            most = most.max(ahead[x][y] * past[x][y])
        return most
    ends = {x: list(members(last[x])) for x in members(values)}
    beyond = {x: [largest([ahead[z][y] for z in ends[x]]) for y in range(len(ahead))] for x in ends}
    for x, y in product(ends, repeat=2):
        most = most.max(largest([beyond[x][z] for z in ends[y]]) * past[x][y])
    return most


def _observed(model: Model, program: Program, terms: Terms, both: Table) -> Fraction:
    """Loss between two observations of a node: one tree more for every two of them, each of which must be there."""
    seen, growth = model.chain.observations, None
    assert seen is not None
    names, growth = sorted(set(seen)), terms.growth(both, seen)
    values, worst = model.supports.ever, terms.loss(1, arb(1))
    listed = {} if program.observations is None else program.witnesses[program.observations]
    rows = {}
    for i, name in enumerate(names):
        weights = [p if seen[u] == name else arb(0) for u, p in enumerate(model.stationary)]
        total = sum(weights, arb(0))
        if not total.is_zero():
            rows[i] = [weight / total for weight in weights]
    for i, j in product(rows, repeat=2):
        if i != j:
            if (i, j) not in listed:
                raise CertificateError(f"observations {names[i]} and {names[j]} have no witness")
            revealed = by_tree(rows[i], rows[j], cut(listed[i, j], values), growth)
            worst = max(worst, terms.loss(0, revealed))
    return worst


def _mixing(family: Mixing, terms: Terms) -> Fraction:
    around = terms.claim.windows - 1
    if not around or terms.claim.informed or family.steps > _LARGEST * terms.scale:
        return terms.claim.length / terms.scale
    return terms.loss(terms.claim.hidden, overlapping(family, terms.cost, around))


class QuiltReader:
    """Losses of nodes read from quilts: e^(card·c) and the max-influence of eq. 5, from ratios (Lemma 4.6)."""

    def __init__(self, model: Model, terms: Terms) -> None:
        self.model, self.terms = model, terms
        self.windows, self.hidden = terms.claim.windows, terms.claim.hidden
        self._kept: dict[Any, Any] = {}

    def loss(self, quilts: list[Quilt]) -> Fraction:
        """Largest loss, if every node is in exactly one range and the quilts fit."""
        covered = 0
        for quilt in quilts:
            first, last, left, right = quilt
            if first != covered + 1 or not first <= last <= self.windows:
                raise CertificateError(f"nodes {first} to {last} do not follow node {covered} of {self.windows}")
            if not ((left is None or 1 <= left < first) and (right is None or 1 <= right <= self.windows - last)):
                raise CertificateError(f"{quilt}: the quilt does not fit the {self.windows} nodes")
            covered = last
        if covered < self.windows:
            raise CertificateError(f"nodes {covered + 1} to {self.windows} have no quilt")
        return max(self.one(quilt) for quilt in quilts)

    def one(self, quilt: Quilt) -> Fraction:
        """Loss of the nodes of one range."""
        revealed = self.influence(quilt)
        if revealed is None:
            return self.terms.claim.length / self.terms.scale
        return self.terms.loss(self.card(quilt), revealed)

    def card(self, quilt: Quilt) -> int:
        """Largest card(X_N) over the nodes, with all records of the windows."""
        first, last, left, right = quilt
        if left is None:
            card = self.windows if right is None else last + right - 1
        else:
            card = self.windows - first + left if right is None else left + right - 1
        return card + self.hidden - 1

    def influence(self, quilt: Quilt) -> arb | None:
        """Exponential of the max-influence, None where it is infinite."""
        first, last, left, right = quilt
        supports, tables = self.model.supports, []
        if left is not None:
            tables += [self._first(first, last), self._left(supports.between(first - left, last - left), left)]
        if right is not None:
            tables.append(self._keep(("right", right), lambda: self._right(right)))
        revealed = arb(1)
        for values in supports.sets(first, last) if tables else ():
            for x, y in product(members(values), repeat=2):
                if x != y or self.hidden > 1:  # windows that begin alike may end differently
                    product_of = arb(1)
                    for table in tables:
                        if (entry := table[x][y]) is None:
                            return None
                        product_of *= entry
                    revealed = revealed.max(product_of)
        return revealed

    def _first(self, first: int, last: int) -> Any:
        """Bound of m_i(x') / m_i(x) for every node of the range."""
        model = self.model
        if model.chain.start == "any" or (model.chain.start != "stationary" and first < last):
            # every later distribution is a mixture of the rows of P^n, a ratio of mixtures at most the largest ratio
            return self._keep(("rows", first), lambda: _columns(model.power(first - 1), -1, turned=True))
        ratios = largest_ratios([[p] for p in model.distribution(first)])
        return [list(column) for column in zip(*ratios, strict=True)]

    def _left(self, sources: int, a: int) -> Any:
        """Max over the values z that the node can take of P^a(z, x) / P^a(z, x')."""
        return self._keep(("left", a, sources), lambda: _columns(self.model.power(a), sources))

    def _right(self, b: int) -> Any:
        """Max over z of P^b(x, z) / P^b(x', z), x and x' the last values of windows, by their first ones."""
        ratios = largest_ratios(self.model.power(b))
        if self.hidden == 1:
            return ratios
        k, reached = self.model.k, self.model.supports.reached
        last = [list(members(reached(1 << x, self.hidden - 1))) for x in range(k)]
        ends = [[_most(ratios[z][y] for z in last[x]) for y in range(k)] for x in range(k)]
        return [[_most(ends[x][z] for z in last[y]) for y in range(k)] for x in range(k)]

    def _keep(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def _columns(power: Table, rows: int, turned: bool = False) -> Any:
    """Largest ratios of columns over some rows (-1: all), turned round where the first value is below the line."""
    kept = power if rows < 0 else [power[z] for z in members(rows)]
    ratios = largest_ratios([list(column) for column in zip(*kept, strict=True)])
    return [list(column) for column in zip(*ratios, strict=True)] if turned else ratios


def _most(entries: Any) -> arb | None:
    """The largest of some ratios, None where one is infinite."""
    known = list(entries)
    return None if any(entry is None for entry in known) else largest([arb(0), *known])
