"""The interpreter of certificates: the largest loss that a proof leaves at the stated scale.

State: a table E[x][y] ≥ e^A[x][y], how much the values x and y of a node reveal through all nodes
on one side of it.

* COUNT: with n nodes on that side E ≤ e^(nc), c = 1/scale.
* STEP: E of a node from E of its neighbour, for each pair by a witness
  (:mod:`pufferflow.verify.rules`), or under any distribution of the node ``power`` steps away;
  pairs that have neither get COUNT.
* CLOSE: a period that ends at or below the table from which it starts serves all nodes (Theorem 2).
* RATIO: E of a node by the largest ratios of what lies n steps away, the n − 1 between by COUNT:
  Markov quilts.
* READ: e^(wc) · E forward · E backward at every node, or along one tree more for every two
  observations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial, reduce
from itertools import permutations, repeat, starmap
from operator import or_
from typing import Any, NamedTuple, TypeAlias

from flint import arb

from pufferflow.verify.counts import count_loss
from pufferflow.verify.model import (
    Model,
    Row,
    Table,
    UndecidedError,
    Work,
    ball,
    exact,
    largest,
    members,
    shares,
)
from pufferflow.verify.parse import (
    CertificateError,
    Chain,
    Claim,
    Matrix,
    Mixing,
    Proof,
    RowSet,
    Step,
    Witness,
)
from pufferflow.verify.parse import Side as Steps
from pufferflow.verify.rules import by_flows, by_tree, largest_ratios, overlapping, reweighted
from pufferflow.verify.sides import ChainSide, Node, SetSide, Side, transposed

_LARGEST = 10**6  # cost m·c of a block beyond which mixing is left out


def interpret(claim: Claim, work: Work) -> Fraction:
    """Return an upper bound of the loss at the stated scale, in balls of the present precision.

    Raises CertificateError: nothing is proved; UndecidedError: more bits are needed, or nothing is
    proved.
    """
    members_, proofs = claim.family.members, claim.proofs
    if len(proofs) != len(members_):
        raise CertificateError(f"there are {len(proofs)} proofs for {len(members_)} members")
    if any(bool(proof.count) != (claim.mechanism == "wasserstein") for proof in proofs):
        raise CertificateError("a count alone proves the scale of wasserstein, and no other one")
    pairs = list(zip(members_, proofs, strict=True))
    if claim.mechanism == "wasserstein":
        return max(count_loss(claim, member, proof, work) for member, proof in pairs)
    if not claim.scale:
        raise CertificateError("without noise a loss is not bounded")
    rules = Rules(claim, work)
    return max(loss for member, proof in pairs for loss in rules.losses(member, proof))


Place: TypeAlias = tuple[int, int, bool]
"""Phase of a node, nodes on that side, and whether there are no more."""


class Tables(NamedTuple):
    """E of the nodes with 0, 1, … nodes on a side, and of all others at each phase."""

    early: list[Table]
    rest: list[Table]

    def at(self, around: int) -> Table:
        """Of the node with so many nodes on that side, of a chain with one matrix."""
        return self.early[around] if around < len(self.early) else self.rest[0]


class Rules:
    """The rules at the costs of a claim, in balls of the present precision."""

    def __init__(self, claim: Claim, work: Work) -> None:
        self.claim, self.work, self.cost = claim, work, 1 / ball(claim.scale)
        self.together = claim.length / claim.scale
        """COUNT alone: what all records reveal together."""

    def sides(self, member: Any) -> list[Side]:
        """The nodes after and before a node."""
        informed = self.claim.side_information == "any"
        if not isinstance(member, Chain):
            return [SetSide(member, forward, informed, self.work) for forward in (True, False)]
        model = Model(member, self.work)
        return [ChainSide(model, forward, informed) for forward in (True, False)]

    def count(self, records: int, k: int) -> Table:
        """COUNT."""
        most = (records * self.cost).exp().upper()
        return [[most if x != y else arb(1) for y in range(k)] for x in range(k)]

    def growth(self, table: Table, seen: Sequence[int]) -> Table:
        """e^w from E, w(z, y) = c·d(z, y) + A[z, y]; values seen alike have d = 0."""
        one = self.cost.exp()
        return [
            [e * one if seen[z] != seen[y] else e for y, e in enumerate(row)]
            for z, row in enumerate(table)
        ]

    # -- STEP and CLOSE ----------------------------------------------------------------------------

    def step(
        self, side: Side, place: Place, step: Step, proof: Proof, near: Table, far: Table
    ) -> Table:
        """STEP: E at a place from its neighbour's growth and that of a node ``power`` steps away.

        Nothing is above COUNT.
        """
        _, j, early = place
        node, listed, power = side.node(*place, near), proof.listed(step.witnesses), step.power or 1
        table, k = self.count(j if early else self.claim.windows - 1, side.k), side.k
        sizes = k if isinstance(side, ChainSide) else 3 * k**2
        self.work.spend(k**3 + 12 * sizes * len(listed) + (2 * k**4 if step.power else 0))
        ways = side.weights(place[0], power) if step.power else []
        between = ((power - 1) * self.cost).exp()
        for x, y in permutations(members(node.values), 2):
            bounds = [between * reweighted(*way, x, y, node.neighbours, far) for way in ways]
            if node.rows is not None and (x, y) in listed:
                bounds.append(_witnessed(node, x, y, listed[x, y], near))
            for bound in bounds:
                if bound < table[x][y]:
                    table[x][y] = bound.upper().max(arb(1))
        return table

    def tables(self, side: Side, steps: Steps, proof: Proof) -> Tables:
        """E of all nodes of a side: the early ones by steps of their own, the others by CLOSE."""
        every = [*steps.prefix, *(steps.cycle or ())]
        if (
            isinstance(side, SetSide)
            and any(s.power for s in every)
            and any(s.witnesses is not None for s in every)
        ):
            # a flow may pass through values that cannot occur, of which ratios say nothing
            raise CertificateError("flows and ratios bound different tables, use one of them")
        early, around = self.early(side, steps.prefix, proof), self.claim.windows - 1
        if len(early) > around:
            return Tables(early, [])
        if steps.start is None:
            return Tables(early, [self.count(around, side.k)] * side.period)
        rest, closed = self.close(side, early, steps.start, steps.cycle or [], proof)
        if not closed:
            raise UndecidedError("a period does not end at or below where it starts")
        return Tables(early, rest)

    def early(self, side: Side, steps: list[Step], proof: Proof) -> list[Table]:
        """E of the nodes with 0, 1, … nodes on that side."""
        tables = [self.count(0, side.k)]
        growths = [self.growth(tables[0], side.seen)]
        if steps and side.period > 1:
            raise CertificateError("nodes have steps of their own only where one matrix serves all")
        for j, step in enumerate(steps[: self.claim.windows - 1], 1):
            if (power := step.power or 1) > j:
                raise CertificateError(f"no node is {power} steps away from one with {j} beside it")
            tables.append(
                self.step(side, (0, j, True), step, proof, growths[-1], growths[j - power])
            )
            growths.append(self.growth(tables[-1], side.seen))
        return tables

    def close(
        self, side: Side, early: list[Table], stated: Matrix, steps: list[Step], proof: Proof
    ) -> tuple[list[Table], bool]:
        """CLOSE: E at each phase, a period after the stated table; whether it ends within that."""
        if len(stated) != side.k or len(steps) != side.period:
            raise CertificateError(
                f"a cycle has a start, and a step for each of the {side.period} phases"
            )
        begin = [[ball(a).exp().upper() for a in row] for row in stated]
        # early nodes are among those that it bounds
        begin = reduce(partial(_entrywise, arb.max), early, begin)
        begin = now = _entrywise(arb.min, begin, self.count(self.claim.windows - 1, side.k))
        rest, growths = [now] * side.period, [self.growth(now, side.seen)]
        for i, (phase, step) in enumerate(zip(side.phases, steps, strict=True), 1):
            if side.period > 1 and (step.power or 1) > i:
                raise CertificateError(
                    f"nothing is known of nodes {step.power} steps away from step {i} of a period"
                )
            far = growths[max(i - (step.power or 1), 0)]
            rest[phase] = now = self.step(
                side, (phase, len(early), False), step, proof, growths[-1], far
            )
            growths.append(self.growth(now, side.seen))
        return rest, all(now[x][y] <= begin[x][y] for x, y in permutations(range(side.k), 2))

    # -- READ --------------------------------------------------------------------------------------

    def losses(self, member: Any, proof: Proof) -> Iterator[Fraction]:
        """The loss at every node that stands for others."""
        if isinstance(member, Mixing):
            yield self.mixing(member)
        elif proof.quilts is not None:
            yield from self.quilts(member, proof.quilts)
        elif proof.forward is None or proof.backward is None or self.claim.windows == 1:
            yield self.together
        else:
            side, other = self.sides(member)
            ahead = self.tables(side, proof.forward, proof)
            past = self.tables(other, proof.backward, proof)
            for node, late, after, before in self.places(side.period, ahead, past):
                ends = side.ends(side.values(node, late), node, self.claim.hidden)
                if isinstance(side, ChainSide) and side.hidden and self.claim.hidden == 1:
                    yield self.observed(side, proof, ends, _entrywise(arb.__mul__, after, before))
                else:
                    yield self.read(ends, after, before)

    def places(
        self, period: int, ahead: Tables, past: Tables
    ) -> Iterator[tuple[int, bool, Table, Table]]:
        """Phases, or nodes, whether later ones are meant too, and the tables of both sides."""
        windows, early, late = self.claim.windows, len(past.early), len(ahead.early)
        if period > 1:
            ends = (ahead.rest[(phase + self.claim.hidden - 1) % period] for phase in range(period))
            yield from zip(range(period), repeat(False), ends, past.rest)
        else:
            for node in {*range(min(windows, early + 1)), *range(max(0, windows - late), windows)}:
                yield node, node >= early, ahead.at(windows - 1 - node), past.at(node)

    def loss(self, revealed: arb, records: int | None = None) -> Fraction:
        """Bound of the loss of a window, of so many records, of which its sides reveal so much."""
        if not revealed.is_finite():
            return self.together
        records = self.claim.hidden if records is None else records
        log = exact(revealed.log().upper()) if revealed != 1 else Fraction()
        return min(self.together, records / self.claim.scale + log)

    def read(self, ends: dict[int, list[int]], ahead: Table, past: Table) -> Fraction:
        """Loss of windows with these last and first values: two pairs, unless of one record."""
        self.work.spend(2 * len(past) * sum(map(len, ends.values())))
        beyond = {
            x: [largest(ahead[z][y] for z in ends[x]) for y in range(len(past))] for x in ends
        }
        products = (largest(beyond[x][z] for z in ends[y]) * past[x][y] for x in ends for y in ends)
        return self.loss(largest([arb(1), *products]))

    def observed(
        self, side: ChainSide, proof: Proof, values: Iterable[int], both: Table
    ) -> Fraction:
        """Loss between two observations of a node.

        Of the worst values, or along a tree from their distributions.
        """
        known, growth, seen = side.model, self.growth(both, side.seen), side.seen
        names, listed, worst = sorted(set(seen)), proof.listed(proof.observations), arb(1)
        if listed and (
            side.informed or known.chain.initial_distribution != "stationary" or side.period > 1
        ):
            raise CertificateError(
                "observations have trees only if the start is stationary and no record is known"
            )

        def row(name: int) -> Row:
            labelled = zip(known.stationary[0], seen, strict=True)
            return shares([p if label == name else arb(0) for p, label in labelled])

        for i, j in permutations(range(len(names)), 2):
            pairs = [
                (x, y) for x in values for y in values if (seen[x], seen[y]) == (names[i], names[j])
            ]
            revealed = largest([arb(1), *(growth[x][y] for x, y in pairs)])
            if pairs and (i, j) in listed:
                possible = known.supports.possible(0)
                tree = by_tree(row(names[i]), row(names[j]), listed[i, j], possible, growth)
                revealed = tree if tree < revealed else revealed
            worst = worst.max(revealed)
        return max(self.loss(arb(1)), self.loss(worst, 0))  # at least that of the record itself

    def mixing(self, family: Mixing) -> Fraction:
        """Loss of a mixing family, of whose sides no program says more."""
        around, informed = self.claim.windows - 1, self.claim.side_information == "any"
        if not around or informed or family.steps > _LARGEST * self.claim.scale:
            return self.together
        return self.loss(overlapping(family, self.cost, around))

    def quilts(self, member: Any, quilts: list[Any]) -> Iterator[Fraction]:
        """Losses of ranges of nodes, if every node is in exactly one and the quilts fit."""
        windows, covered = self.claim.windows, 0
        for first, last, left, right in quilts:
            if first != covered + 1 or not first <= last <= windows:
                raise CertificateError(
                    f"nodes {first} to {last} do not follow node {covered} of {windows}"
                )
            if not (
                (left is None or 1 <= left < first)
                and (right is None or 1 <= right <= windows - last)
            ):
                raise CertificateError(
                    f"nodes {first} to {last}: the quilt does not fit the {windows} nodes"
                )
            covered = last
        if covered < windows:
            raise CertificateError(f"nodes {covered + 1} to {windows} have no quilt")
        of_quilt = self.quilt_reader(member)
        yield from starmap(of_quilt, quilts)

    def quilt_reader(self, member: Any) -> Callable[..., Fraction]:
        """Return the loss of nodes first … last with a quilt at left and right (Lemma 4.6)."""
        forward, backward = self.sides(member)
        chain = isinstance(forward, ChainSide) and forward.period == 1 and not forward.hidden
        if not chain or self.claim.side_information == "any":
            raise CertificateError(
                "quilts prove scales of chains with one matrix, and for no side information"
            )
        assert isinstance(forward, ChainSide)
        model, k, windows = forward.model, forward.k, self.claim.windows
        supports, times = model.supports, partial(_entrywise, arb.__mul__)

        @cache
        def ratios(side: Side, n: int, values: int) -> Table:
            """RATIO."""
            self.work.spend(2 * k**3)
            return times(self.count(n - 1, k), largest_ratios(side.weights(0, n)[0][0], values))

        @cache
        def of_node(node: int, single: bool) -> Table:
            """Bound of m(y) / m(x) for this node's distributions m.

            Unless ``single``, of those of all later ones too.
            """
            one = single or model.chain.initial_distribution == "stationary"
            known = model.distribution(node) if one else None
            # later distributions are mixtures of the rows of P^n, a ratio of mixtures at most the
            # largest ratio
            rows = [known] if known else model.power(node)
            return transposed(largest_ratios(rows, (1 << len(rows)) - 1))

        def loss(first: int, last: int, left: int | None, right: int | None) -> Fraction:
            if left is None and right is None:
                return self.together
            ahead = (
                self.count(windows - first, k)
                if right is None
                else ratios(forward, right, supports.everything)
            )
            past = self.count(last - 1, k)
            if left is not None:
                sources = reduce(or_, supports.sets(first - left - 1, last - left - 1))
                past = times(ratios(backward, left, sources), of_node(first - 1, first == last))
            sets = supports.sets(first - 1, last - 1)
            return max(
                self.read(forward.ends(values, 0, self.claim.hidden), ahead, past)
                for values in sets
            )

        return loss


def _witnessed(node: Node, x: int, y: int, witness: Witness, growth: Table) -> arb:
    """What a tree, or flows, prove of two values."""
    assert node.rows is not None
    p, q = node.rows[x], node.rows[y]
    if isinstance(p, RowSet) and isinstance(q, RowSet):
        return by_flows(p, q, witness, growth)
    return node.excess * by_tree(p, q, witness, node.neighbours, growth)


def _entrywise(rule: Callable[[arb, arb], arb], one: Table, other: Table) -> Table:
    return [
        [rule(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)
    ]
