"""The interpreter of certificates: the bound of the loss that a proof gives at its scale.

State: a table E[x][y] ≥ e^A[x][y], bounds of the leakage of the values x and y of a node through
all nodes on one side of it.

* COUNT: with n nodes on that side E ≤ e^(nc), c = 1/scale.
* STEP: E of a node from E of its neighbour, for each pair by a witness
  (:mod:`pufferflow.verify.rules`), or under any distribution of the node ``power`` steps away;
  pairs that have neither get COUNT.
* CLOSE: a period that ends at or below the table from which it starts serves all nodes (Theorem 2).
* RATIO: E of a node by the largest ratios of the node n steps away, the n − 1 between by COUNT:
  Markov quilts.
* READ: e^(wc) · E forward · E backward at every node, or along one tree more for every two
  observations.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import cache, cached_property
from itertools import permutations, product
from operator import mul
from typing import Any

from flint import arb

from pufferflow.verify import balls
from pufferflow.verify.balls import ONE, Table, Work, ball, decide, exact, largest
from pufferflow.verify.counts import count_loss
from pufferflow.verify.model import END, Model, Values, lower, support, union
from pufferflow.verify.parse import Claim, Matrix, Mixing, Proof, Side, Step, require
from pufferflow.verify.rules import largest_ratios, overlapping, reweighted


def interpret(claim: Claim, work: Work) -> Fraction:
    """Return an upper bound of the loss at the stated scale, in balls of the current precision.

    Raises CertificateError: there is no proof; UndecidedError: more bits are needed, or there is no
    proof.
    """
    every, proofs = claim.family.members, claim.proofs
    require(len(proofs) == len(every), f"there are {len(proofs)} proofs for {len(every)} members")
    counts = [proof.count for proof in proofs if proof.count]
    alone = len(counts) == (len(proofs) if claim.mechanism == "wasserstein" else 0)
    require(alone, "a count alone proves the scale of wasserstein, and no other one")
    kinds = [(count.weights, count.lengths) for count in counts]
    same = all(kind == kinds[0] for kind in kinds)
    require(same, "the proofs are of different counts: weights and lengths must be the same")
    moving = not counts or any(count.W for count in counts)
    require(claim.scale > 0 or not moving, "without noise a loss is not bounded")
    require(claim.epsilon > 0, "epsilon is 0; make a certificate for a positive one")
    if counts:
        return max(count_loss(claim, *pair, work) for pair in zip(every, counts, strict=True))
    pairs = zip(every, proofs, strict=True)
    return max(loss for pair in pairs for loss in Interpreter(claim, *pair, work).losses())


class Interpreter:
    """The run of a proof for one member of a family, in balls of the current precision."""

    def __init__(self, claim: Claim, member: Any, proof: Proof, work: Work) -> None:
        self.claim, self.member, self.proof, self.work = claim, member, proof, work
        self.cost = 1 / ball(claim.scale)
        self.together = claim.length / claim.scale
        """COUNT alone: the loss of all records together."""
        self._ratios = cache(self._ratios_of_rows)
        self._of_nodes = cache(lambda nodes: largest_ratios(self.model.distributions(nodes)))
        """Bounds of m(x) / m(y) for nodes: a ratio of mixtures is at most one of these."""

    @cached_property
    def model(self) -> Model:
        """The distributions of the nodes."""
        return Model(self.member, self.work, self.claim.side_information == "any")

    @cached_property
    def around(self) -> int:
        """Number of nodes outside a window, whose first one has a history of records."""
        return self.claim.length - self.model.window(self.claim.hidden)

    def count(self, records: int) -> Table:
        """COUNT."""
        k, most = self.model.k, (records * self.cost).exp().upper()
        return [[most if x != y else ONE for y in range(k)] for x in range(k)]

    def growth(self, table: Table) -> Table:
        """e^w from E, w(z, y) = c·d(z, y) + A[z, y]; d = 0 where observations are equal."""
        one, seen = self.cost.exp(), self.model.seen
        return [
            [e * one if seen[z] != seen[y] else e for y, e in enumerate(row)]
            for z, row in enumerate(table)
        ]

    # -- STEP and CLOSE ----------------------------------------------------------------------------

    def step(self, forward: bool, nodes: range, step: Step, before: list[Table]) -> Table:
        """Return E of a node, or of late ones, from those before it, at most COUNT (STEP)."""
        model, k, number, power = self.model, self.model.k, len(before), step.power or 1
        # a table of all late nodes holds for those at this distance
        why = f"no node is {power} steps away from step {number} of a side"
        require(power <= number or (model.period == 1 and len(nodes) > 1), why)
        near, far = (self.growth(before[max(number - steps, 0)]) for steps in (1, power))
        table, node = self.count(min(nodes[-1], self.around)), model.node(forward, nodes, near)
        self.work.spend(100 + k**3)
        if step.power:
            self.work.spend(2 * k**4)
            away, records = model.values(forward, nodes, power), model.between(forward, power)
            beyond, own = ([[(n * self.cost).exp() for n in row] for row in by] for by in records)
            far = _entrywise(mul, far, beyond)
            for tables in model.weights(forward, nodes.start, power):
                bounds = reweighted(*tables, away, far)
                for x, y in permutations(node.values, 2):
                    lower(table, x, y, own[x][y] * bounds[x][y])
        if step.witnesses is not None:
            self.work.spend(12 * len(node.values) ** 2 * (3 * k**2 if model.row_sets else k))
            node.lower(table, self.proof.table(step.witnesses, k), near)
        return table

    def begin(self, early: Iterable[Table], stated: Matrix) -> Table:
        """Return a table for late nodes: at least the stated one and those of ``early`` nodes.

        These are the nodes from which its steps may lead.
        """
        require(len(stated) == self.model.k, "a cycle starts from one row per state")
        begin = [[ball(a).exp().upper() for a in row] for row in stated]
        for table in early:
            begin = _entrywise(arb.max, begin, table)
        return _entrywise(arb.min, begin, self.count(self.around))

    def tables(self, forward: bool, side: Side) -> tuple[list[Table], dict[int, Table]]:
        """Return E of the nodes with 0, 1, … nodes on a side, and of all others at each phase.

        With a period segments begin at any phase, and all nodes are others.
        """
        model, every = self.model, [*side.prefix, *(side.cycle or [])]
        both = any(s.power for s in every) and any(s.witnesses is not None for s in every)
        # a flow may pass through impossible values, which have no ratios
        why = "flows and ratios bound different tables, use one of them"
        require(not both or not model.row_sets, why)
        why = "nodes have steps of their own only if one matrix serves all"
        require(not side.prefix or model.period == 1, why)
        early = [self.count(0)]
        for j, step in enumerate(side.prefix[: self.around], 1):
            early.append(self.step(forward, range(j, j + 1), step, early))
        single = early if model.period == 1 else []
        if len(early) > self.around or side.start is None:
            return single, dict.fromkeys(range(model.period), self.count(self.around))
        cycle, phases = side.cycle or [], model.late(forward, len(early))
        why = f"a cycle has a start, and a step for each of the {len(phases)} phases"
        require(len(cycle) == len(phases), why)
        late = [self.begin(early[-max(step.power or 1 for step in cycle) :], side.start)]
        for nodes, step in zip(phases, cycle, strict=True):
            late.append(self.step(forward, nodes, step, late))
        decide(balls.below(late[-1], late[0]), "a period does not end at or below its start")
        pairs = zip(phases, late[1:], strict=True)
        return single, {nodes.start % model.period: table for nodes, table in pairs}

    # -- READ --------------------------------------------------------------------------------------

    def losses(self) -> Iterator[Fraction]:
        """Yield the loss at every node that represents others."""
        proof, claim = self.proof, self.claim
        if isinstance(self.member, Mixing):  # it has no program
            known = claim.side_information == "any"
            bound = overlapping(self.member, self.cost, claim.windows - 1)
            yield self.together if known else self.loss(bound, claim.hidden)
        elif proof.quilts is not None:
            yield from self.quilts()
        elif proof.forward is None or proof.backward is None or self.around == 0:
            yield self.together
        else:
            yield from self.program(proof.forward, proof.backward)

    def program(self, forward: Side, backward: Side) -> Iterator[Fraction]:
        """Yield the losses of nodes with steps of their own, and of all others at each phase."""
        (early, late), (begun, past) = self.tables(True, forward), self.tables(False, backward)
        period, around = self.model.period, self.around
        last = self.claim.length - around - 1
        single = {*range(len(begun)), *range(around + 1 - len(early), around + 1)}
        places = [range(node, node + 1) for node in single if 0 <= node <= around]
        if len(begun) + len(early) <= around:
            places += self.model.late(False, len(begun))
        for nodes in places:
            node, after = nodes.start, around - nodes[-1]
            ahead = early[after] if 0 <= after < len(early) else late[(node + last) % period]
            behind = begun[node] if node < len(begun) else past[node % period]
            yield self.read(nodes, ahead, behind)

    def loss(self, revealed: arb, records: int) -> Fraction:
        """Return a bound of the loss of ``records`` and of the leakage of others."""
        if not revealed.is_finite():
            return self.together
        log = exact(revealed.upper().log().upper())  # a ball around 1 may hold more
        return min(self.together, records / self.claim.scale + log)

    def read(self, nodes: range, forward: Table, backward: Table) -> Fraction:
        """Return the loss of windows that begin at one of these nodes."""
        sets = self.model.sets(nodes)
        return max(self.windows(nodes, values, forward, backward) for values in sets)

    def windows(self, nodes: range, values: Values, forward: Table, backward: Table) -> Fraction:
        """Return the loss of windows with these first values: over two first and two last ones.

        First and last values are equal for a single record. Its loss is over two observations: that
        of their worst values, or along a tree of their distributions.
        """
        w, model, k = self.claim.length - self.around, self.model, self.model.k
        reached = balls.certain(model.power(w - 1, nodes.start % model.period))
        ends = {x: support(reached[x]) for x in values}
        self.work.spend(2 * k * sum(map(len, ends.values())))
        beyond = {x: [largest(forward[z][y] for z in ends[x]) for y in range(k)] for x in ends}
        every, single = [[x] for x in ends], self.claim.hidden == 1
        if single:
            every = [[x for x in ends if model.seen[x] == name] for name in model.observations]

        def between(x: int, y: int) -> arb:
            return largest(beyond[x][z] for z in ends[y]) * backward[x][y]

        table = [
            [largest([ONE, *(between(x, y) for x in xs for y in ys)]) for ys in every]
            for xs in every
        ]
        if (index := self.proof.observations) is not None:
            plain = model.hidden and single and model.period == 1 and not model.informed
            why = "observations of hidden states have trees, for windows of one record, if none is"
            require(plain, f"{why} known and one matrix serves all")
            self.work.spend(12 * k * len(every) ** 2)
            growth = self.growth(_entrywise(mul, forward, backward))
            node = model.observed(nodes, growth)
            alone = node.excess / self.cost.exp()  # the record itself is counted in the end
            node._replace(excess=alone).lower(table, self.proof.table(index, len(every)), growth)
        # windows with the same first value may differ in the last ones
        pairs = ((i, j) for i, j in product(range(len(every)), repeat=2) if i != j or w > 1)
        return self.loss(largest([ONE, *(table[i][j] for i, j in pairs)]), w)

    # -- RATIO -------------------------------------------------------------------------------------

    def quilts(self) -> Iterator[Fraction]:
        """Yield losses of ranges of nodes, if every node is in exactly one and the quilts fit."""
        windows, covered = self.claim.windows, 0
        for first, last, left, right in self.proof.quilts or []:
            why = f"nodes {first} to {last} do not follow node {covered} of {windows}"
            require(first == covered + 1 and first <= last <= windows, why)
            fits = (left or 0) < first and (right or 0) <= windows - last
            why = f"nodes {first} to {last}: the quilt does not fit the {windows} nodes"
            require(fits, why)
            covered = last
            yield self.quilt(first, last, left, right)
        require(covered == windows, f"nodes {covered + 1} to {windows} have no quilt")

    def quilt(self, first: int, last: int, left: int | None, right: int | None) -> Fraction:
        """Return the loss of nodes first … last with a quilt at left and right (Lemma 4.6)."""
        model = self.model
        plain = model.period == 1 and not (model.hidden or model.row_sets or model.informed)
        require(plain, "quilts prove scales of chains with one matrix, and for no side information")
        if left is None and right is None:  # as proved, at a node with one value too
            return self.together
        nodes = range(first - 1, last)
        forward, backward = self.count(self.claim.windows - first), self.count(last - 1)
        if right is not None:
            forward = self._ratios(True, right, model.everything)
        if left is not None:
            sources = union(model.sets(range(nodes.start - left, nodes.stop - left)))
            # those of a first node serve all later ones
            of_node = self._of_nodes(nodes if len(nodes) == 1 else range(nodes.start, END))
            backward = _entrywise(mul, self._ratios(False, left, sources), balls.columns(of_node))
        return self.read(nodes, forward, backward)

    def _ratios_of_rows(self, forward: bool, n: int, values: Values) -> Table:
        """RATIO."""
        self.work.spend(2 * self.model.k**3)
        [(rows, _)] = self.model.weights(forward, 0, n)
        return _entrywise(mul, self.count(n - 1), largest_ratios(rows[y] for y in values))


def _entrywise(rule: Callable[[arb, arb], arb], one: Table, other: Iterable[Any]) -> Table:
    return [list(map(rule, *rows)) for rows in zip(one, other, strict=True)]
