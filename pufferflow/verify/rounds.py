"""Scales of leakage for chains that follow a clock, or of which only labels are seen.

The certificate has, for either side of a node, bounds of what pairs of states tell at the beginning of a period
("start"), and for each transition matrix a tree for every pair of states. From the start on the check computes
bounds for every phase itself, from step to step: for laws p, q of the next node given two states, and costs
w(z, y) = c·1[z and y are told apart] + A[z, y], take u with u(z) = u(y) + w(z, y) along the arcs (z, y) of the tree,
h = e^u, and flows along its arcs. In tilted units P = p·h/(p·h), Q likewise, flows g ≥ 0 with

    P(y) − Σ_z g(y, z) + Σ_z g(z, y) e^(w(z, y) − u(z) + u(y)) ≤ ρ Q(y)   at every state y

prove that Φ_c(A) is at most log ρ (p·h)/(q·h): what is left over at a state goes to one with much of q. If what
results at the end of the period is nowhere above the start, the bounds hold for every node of every segment. The loss
of a node is then at most c + max (A + B) at its phase, or, of a label, what trees prove for the laws of the states
that have it. States that no record has at a phase are left out: what hangs on one in a tree hangs on the state above
it. The proofs are in ``docs/leakage.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from operator import mul
from typing import NamedTuple, TypeAlias

from flint import arb, arb_mat

from pufferflow.verify.balls import Supports, UndecidedError, ball, members, stationary_weights
from pufferflow.verify.parsing import (
    CertificateError,
    Chain,
    Claim,
    Clocked,
    Nodes,
    check_integer,
    check_list,
    check_object,
)
from pufferflow.verify.proof import Bound, Proof, Work
from pufferflow.verify.sides import parse_cost, parse_matrix

Row: TypeAlias = list[arb]
Table: TypeAlias = list[Row]


class Tree(NamedTuple):
    """A root and all other states, parents before children, each with its parent and whether the arc leads there."""

    root: int
    arcs: list[tuple[int, int, bool]]


_ONE = arb(1)

Trees: TypeAlias = dict[tuple[int, int], Tree]


class ClaimedRounds(NamedTuple):
    """One side: bounds at the beginning of a period, and the trees of every piece of it."""

    start: list[list[Fraction]]
    trees: list[Trees]


class RoundsProof(Proof):
    """Leakages all round the period, computed from trees."""

    keys = ("cost", "ahead", "past", "nodes")
    quantity = "1/c"

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        if not isinstance(claim.family, Clocked):
            raise CertificateError("the family is neither one with a clock nor a labelled chain")
        self.family = claim.family
        if self.family.start != "stationary":
            raise CertificateError("only stationary starts have proofs by rounds")
        self.cost = parse_cost(self.fields["cost"])
        k, pieces = len(self.family.matrices[0]), len(self.family.matrices)
        self.ahead, self.past = (_side(self.fields[name], k, pieces, name) for name in ("ahead", "past"))
        self.nodes = _trees(self.fields["nodes"], k, "nodes")

    def work(self) -> Work:
        """Estimate the walks round the period: some operations a state and pair."""
        family = self.family
        k, steps = len(family.matrices[0]), len(family.matrices) * family.repeat
        return Work(6 * k**3 * steps, 20 * k**3 * len(family.matrices) * family.repeat.bit_length(), 3 * k**2 * steps)

    def bound(self) -> Bound:
        """Return 1/c if the rounds close and every loss is at most ε; otherwise nothing is proved."""
        claim = self.claim
        if claim.length * self.cost > claim.epsilon:
            _Walk(self).run()
        scale = 1 / self.cost
        return Bound(scale, scale, len(self.family.matrices), None, Nodes(1, claim.length))


class _Walk:
    """Both rounds, in balls of the present precision."""

    def __init__(self, proof: RoundsProof) -> None:
        family = proof.family
        self.proof, self.family = proof, family
        self.k, self.repeat = len(family.matrices[0]), family.repeat
        labels = range(self.k) if family.labels is None else family.labels
        jump, same = ball(proof.cost).exp(), arb(1)
        self.jumps = [[jump if a != b else same for b in labels] for a in labels]
        self.matrices = [[[ball(p) for p in row] for row in matrix] for matrix in family.matrices]
        self.there = list(self._there())

    def _there(self) -> Iterator[list[int]]:
        """States that a record can have at each phase."""
        steps = [Supports(Chain(matrix, "any")) for matrix in self.family.matrices]
        period = []
        for x in range(self.k):
            states = 1 << x
            for step in steps:
                states = step.reached(states, self.repeat)
            period.append([Fraction(states >> y & 1) for y in range(self.k)])
        states = Supports(Chain(period, "stationary")).states
        if self.family.labels is not None and len(list(members(states))) < self.k:
            raise CertificateError("some hidden states do not occur in the long run; leave them out of the model")
        for step in steps:
            for _ in range(self.repeat):
                yield list(members(states))
                states = step.reached(states, 1)

    def run(self) -> None:
        """Raise unless they prove ε."""
        laws = self._laws()
        ahead = self._round(self.proof.ahead, self._ahead(), "ahead")
        past = self._round(self.proof.past, self._past(laws), "past")
        most = ball(self.proof.claim.epsilon).exp()
        for phase, law in enumerate(laws):
            both = [[a * b for a, b in zip(*rows, strict=True)] for rows in zip(ahead[phase], past[phase], strict=True)]
            for told, where in self._losses(both, law):
                if told <= most:
                    continue
                if told > most:
                    raise CertificateError(f"phase {phase}, {where}: a loss above epsilon is not excluded")
                raise UndecidedError

    def _losses(self, both: Table, law: Row) -> Iterator[tuple[arb, str]]:
        """E^loss of every pair of values of a node."""
        growth = [[a * b for a, b in zip(*rows, strict=True)] for rows in zip(self.jumps, both, strict=True)]
        labels = self.family.labels
        if labels is None:
            yield ball(self.proof.cost).exp(), "one state"
            for x in range(self.k):
                for y in range(self.k):
                    if x != y:
                        yield growth[x][y], f"states {x + 1} and {y + 1}"
            return
        yield ball(self.proof.cost).exp(), "one label"
        for a in sorted(set(labels)):
            for b in sorted(set(labels)):
                if a == b:
                    continue
                p, q = (
                    _normalised([share if label == at else arb(0) for share, label in zip(law, labels, strict=True)])
                    for at in (a, b)
                )
                tree = self.proof.nodes.get((a, b))
                if tree is None:
                    raise CertificateError(f"nodes: labels {a + 1} and {b + 1} have no tree")
                yield _proved(p, q, tree, growth), f"labels {a + 1} and {b + 1}"

    def _laws(self) -> Table:
        """Law of a record at every phase, up to a factor."""
        whole = arb_mat([[int(x == y) for y in range(self.k)] for x in range(self.k)])
        for matrix in self.matrices:
            power, n = arb_mat(matrix), self.repeat
            while n:
                if n & 1:
                    whole = whole * power
                power, n = power * power, n >> 1
        weights = dict(zip(self.there[0], stationary_weights(whole, self.there[0]), strict=True))
        law = arb_mat([[weights.get(x, arb(0)) for x in range(self.k)]])
        laws: Table = []
        for matrix in self.matrices:
            step = arb_mat(matrix)
            for _ in range(self.repeat):
                row = law.tolist()[0]
                if not all(row[x] > 0 for x in self.there[len(laws)]):
                    raise UndecidedError
                laws.append(row)
                law = law * step
        return laws

    def _ahead(self) -> Iterator[tuple[int, int, Table]]:
        """Piece, phase and rows of every step, back from the end of the period."""
        pieces = len(self.matrices)
        for piece in range(pieces):
            for step in range(self.repeat):
                yield piece, (pieces - piece) * self.repeat - 1 - step, self.matrices[pieces - 1 - piece]

    def _past(self, laws: Table) -> Iterator[tuple[int, int, Table]]:
        for phase, before in enumerate(laws):
            matrix = self.matrices[phase // self.repeat]
            after = (phase + 1) % len(laws)
            rows = [[p * row[x] for p, row in zip(before, matrix, strict=True)] for x in range(self.k)]
            yield phase // self.repeat, after, [_normalised(row) for row in rows]  # not finite where no record has x

    def _round(self, side: ClaimedRounds, steps: Iterator[tuple[int, int, Table]], where: str) -> list[Table]:
        """E^leakage at every phase."""
        start = [[ball(a).exp() if x != y else arb(1) for y, a in enumerate(row)] for x, row in enumerate(side.start)]
        now = [[a.upper() for a in row] for row in start]
        tables: list[Table] = [[]] * (len(self.matrices) * self.repeat)
        before = self.there[0]
        last, trees = None, {}
        for piece, phase, rows in steps:
            growth = [[a * b for a, b in zip(*pair, strict=True)] for pair in zip(self.jumps, now, strict=True)]
            known, before = before, self.there[phase]
            if (piece, known, before) != last:
                last = piece, known, before
                trees = self._cut_trees(side.trees[piece], *last, where)
            now = [[_ONE] * self.k for _ in range(self.k)]
            for (x, y), tree in trees.items():
                now[x][y] = _proved(rows[x], rows[y], tree, growth)
            tables[phase] = now
        for x in before:
            for y in before:
                if now[x][y] <= start[x][y]:
                    continue
                if now[x][y] > start[x][y]:
                    raise CertificateError(
                        f"{where}, states {x + 1} and {y + 1}: a round does not end at or below where it starts"
                    )
                raise UndecidedError
        return tables

    def _cut_trees(self, trees: Trees, piece: int, known: list[int], before: list[int], where: str) -> Trees:
        """The trees of the pairs of states ``before``, each of the states ``known``."""
        matrix = self.family.matrices[-1 - piece]
        cut: Trees = {}
        for x in before:
            for y in before:
                if x == y:
                    continue
                if (x, y) in trees:
                    cut[x, y] = _cut(trees[x, y], known)
                elif where != "ahead" or matrix[x] != matrix[y]:
                    raise CertificateError(f"{where}, piece {piece + 1}: states {x + 1} and {y + 1} have no tree")
        return cut


def _normalised(law: Row) -> Row:
    total = sum(law[1:], law[0])
    return [share / total for share in law]


def _cut(tree: Tree, there: list[int]) -> Tree:
    """The tree of the states ``there``: what hangs on others hangs on the state above, or on the first there is."""
    root, arcs = tree
    first = next(v for v in (root, *(v for v, _, _ in arcs)) if v in there)
    above = {root: first}
    for v, a, _ in arcs:
        above[v] = v if v in there else above[a]
    return Tree(first, [(v, above[a], up) for v, a, up in arcs if v in there and v != first])


def _proved(p: Row, q: Row, tree: Tree, growth: Table) -> arb:
    """Upper bound of e^Φ for two laws of the states of a tree, whatever it is."""
    h: Row = [_ONE] * len(p)
    for v, a, up in tree.arcs:
        h[v] = h[a] * growth[v][a] if up else h[a] / growth[a][v]
    above, below = list(map(mul, p, h)), list(map(mul, q, h))
    ratio, balanced = _balanced(above.copy(), below.copy(), tree)
    if not balanced:
        ratio *= 1 + _left_over(above, below, tree, h, growth)
    if not ratio.is_finite():
        raise UndecidedError
    return ratio.upper()


def _balanced(above: Row, below: Row, tree: Tree) -> tuple[arb, bool]:
    """(p·h)/(q·h), and whether flows along the arcs of the tree surely move P to Q: then nothing is left over.

    ``above`` and ``below`` are p·h and q·h of each state; they become the sums of what hangs on it.
    """
    for v, a, _ in reversed(tree.arcs):
        above[a] += above[v]
        below[a] += below[v]
    ratio = above[tree.root] / below[tree.root]
    for v, _, up in tree.arcs:  # each carries what P has more than Q in all that hangs on its state
        share = ratio * below[v]
        if not (above[v] >= share if up else above[v] <= share):
            return ratio, False
    return ratio, True


def _left_over(above: Row, below: Row, tree: Tree, h: Row, growth: Table) -> arb:
    """What goes to the state with most of Q where the flows of the tree fall short, by ρ, in units of what is there."""
    sum_p, sum_q = sum(above[1:], above[0]), sum(below[1:], below[0])
    net = [a / sum_p - b / sum_q for a, b in zip(above, below, strict=True)]
    for v, a, up in reversed(tree.arcs):
        carried = net[v].mid() if up else -net[v].mid()
        if not carried > 0:
            continue
        flow = carried if up else -carried
        net[v] -= flow
        net[a] += flow
    store = max(range(len(below)), key=lambda y: float(below[y].mid()))
    moved = arb(0)
    for y, rest in enumerate(net):
        if not rest <= 0:
            far = growth[y][store] * h[store] / h[y] if y != store else _ONE
            moved += rest.upper() * far
    return moved * sum_q / below[store]


def _side(value: object, k: int, pieces: int, where: str) -> ClaimedRounds:
    given, lists = check_object(value, ("start", "trees"), where).values()
    start = parse_matrix(given, k, f"{where}: start")
    trees = [_trees(entry, k, f"{where}, piece {i}") for i, entry in enumerate(check_list(lists, where), 1)]
    if len(trees) != pieces:
        raise CertificateError(f"{where}: trees has {len(trees)} entries for {pieces} matrices")
    return ClaimedRounds(start, trees)


def _trees(value: object, k: int, where: str) -> Trees:
    trees: Trees = {}
    for entry in check_list(value, where):
        parts = check_list(entry, f"{where}: a tree")
        if len(parts) != 3:
            raise CertificateError(f"{where}: a tree has {len(parts)} parts; it is [value, other, parents]")
        pair = check_integer(parts[0], where) - 1, check_integer(parts[1], where) - 1
        if pair in trees:
            raise CertificateError(f"{where}: the tree of {pair[0] + 1} and {pair[1] + 1} is given twice")
        trees[pair] = _tree([check_integer(a, where) for a in check_list(parts[2], where)], k, where)
    return trees


def _tree(parents: list[int], k: int, where: str) -> Tree:
    """A tree from the parent of every state: from 1, negative where the arc leads from there, 0 for the root."""
    roots = [v for v, a in enumerate(parents) if a == 0]
    if len(parents) != k or len(roots) != 1 or not all(-k <= a <= k for a in parents):
        raise CertificateError(f"{where}: a tree needs one parent a state, and 0 for its root")
    children: dict[int, list[int]] = {}
    for v, a in enumerate(parents):
        if a:
            children.setdefault(abs(a) - 1, []).append(v)
    line = [roots[0]]
    for v in line:
        line.extend(children.get(v, []))
    if len(line) != k:
        raise CertificateError(f"{where}: the parents of a tree go round in a circle")
    return Tree(line[0], [(v, abs(parents[v]) - 1, parents[v] > 0) for v in line[1:]])
