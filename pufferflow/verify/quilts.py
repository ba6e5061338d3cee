"""Scales that Markov quilts prove: mqm-exact, mqm-approx, and with one quilt for all group-dp and entry-dp.

For every chain the certificate lists ranges of nodes with a quilt each. It is a proof of the scale if for every node
of every chain the quilt fits and card / (ε − e) ≤ scale, e being the max-influence of eq. 5 (Song, Wang, Chaudhuri,
SIGMOD 2017; Algorithm 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

from flint import arb

from pufferflow.verify.balls import ChainBalls, Supports, UndecidedError, Vector, ball, exact, members
from pufferflow.verify.parsing import (
    CertificateError,
    Chain,
    Claim,
    Nodes,
    check_choice,
    check_integer,
    check_list,
    finite,
    parse_number,
    parse_ranges,
)
from pufferflow.verify.proof import Bound, Proof, Work, place

Table: TypeAlias = list[list[arb | None]]  # over pairs of states; None: infinite


@dataclass(frozen=True)
class NodeRange(Nodes):
    """Nodes first … last, all with the quilt at distances ``left`` and ``right`` (None: no node there)."""

    left: int | None
    right: int | None

    def __str__(self) -> str:
        left, right = ("none" if distance is None else distance for distance in (self.left, self.right))
        return f"{super().__str__()}, quilt distances {left} and {right}"


class Scores(ABC):
    """Scores card / (ε − e) of quilts, as balls of the precision at which they are made.

    A node is the first record of a window, which has ``hidden`` of them; ``length`` counts the windows.
    """

    def __init__(self, length: int, epsilon: Fraction, hidden: int = 1) -> None:
        self.length, self.epsilon, self.hidden = length, epsilon, hidden

    def card(self, nodes: NodeRange) -> int:
        """Largest card(X_N) over the nodes (Lemma 4.6), with all records of the windows."""
        a, b = nodes.left, nodes.right
        if a is None:
            card = self.length if b is None else nodes.last + b - 1
        else:
            card = self.length - nodes.first + a if b is None else a + b - 1
        return card + self.hidden - 1

    def score(self, nodes: NodeRange) -> arb | None:
        """Ball around card / (ε − e), both the largest over the nodes; None where e ≥ ε."""
        card, ratio = self.card(nodes), self.influence_ratio(nodes)
        if ratio is None:
            return None
        if ratio == 1:
            return ball(card / self.epsilon)
        slack = ball(self.epsilon) - ratio.log()
        if slack > 0:
            return card / slack
        if slack <= 0:
            return None
        raise UndecidedError

    @abstractmethod
    def influence_ratio(self, nodes: NodeRange) -> arb | None:
        """Exponential of the max-influence (eq. 5) or of a bound of it, None where it is infinite."""


class NodesProof(Proof):
    """A quilt for every node of every chain."""

    keys: ClassVar[tuple[str, ...]] = ("nodes",)
    hides_windows = True

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        lists = check_list(self.fields["nodes"], "nodes")
        chains = len(finite(claim))
        if len(lists) != chains:
            raise CertificateError(f"nodes has {len(lists)} lists of ranges for {chains} chains")
        self.nodes = [list(_ranges(entry, claim.windows, f"chain {i}")) for i, entry in enumerate(lists, 1)]

    @abstractmethod
    def scores(self) -> list[Scores]:
        """Scores for every chain, in balls of the present precision."""

    def work(self) -> Work:
        """Estimate the scores of all ranges: ten operations each, what one class of proofs adds apart."""
        return Work(10 * sum(map(len, self.nodes)))

    def bound(self) -> Bound:
        """Return the enclosure of the largest card / (ε − e)."""
        entries = []
        for i, (scores, ranges) in enumerate(zip(self.scores(), self.nodes, strict=True)):
            for nodes in ranges:
                score = scores.score(nodes)
                if score is None:
                    raise CertificateError(f"{place(i, nodes)}: the max-influence is not below epsilon")
                entries.append((exact(score.upper()), exact(score.lower()), i, nodes))
        upper, _, chain, worst = max(entries, key=lambda entry: entry[0])
        return Bound(max(entry[1] for entry in entries), upper, len(entries), chain, worst)


class QuiltProof(NodesProof):
    """Quilts whose max-influence is that of eq. 5, under one of its two conventions."""

    keys: ClassVar[tuple[str, ...]] = ("convention", "nodes")

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self.convention = check_choice(self.fields["convention"], ("exact", "published"), "convention")

    def work(self) -> Work:
        """Estimate the tables of ratios, k³ operations each, and the scores."""
        hidden = self.claim.hidden > 1
        sizes = [_quilt_work(known, nodes, hidden) for known, nodes in zip(finite(self.claim), self.nodes, strict=True)]
        return Work(*map(sum, zip(*sizes, strict=True)))

    def scores(self) -> list[Scores]:
        """Scores of the quilts of every chain."""
        numbers = self.claim.windows, self.claim.epsilon, self.claim.hidden
        return [QuiltScores(chain, self.convention, *numbers) for chain in finite(self.claim)]


class LargerScaleProof(QuiltProof):
    """The same for mqm-approx, which asks for more noise than the quilts prove; ``proved`` is what they do."""

    keys = (*QuiltProof.keys, "proved")

    @property
    def stated(self) -> Fraction:
        """The smallest scale that the quilts prove."""
        return parse_number(self.fields["proved"], "proved")


class IndependenceProof(NodesProof):
    """Quilts of independent records, whose max-influence is 0: the neighbours, of card w, prove entry-dp's w / ε.

    Whoever knows some of them knows no more of the others.
    """

    from_informed = True

    def scores(self) -> list[Scores]:
        """Scores without influence, if all rows by which a node can be left are equal, exactly."""
        length = self.claim.length
        for i, chain in enumerate(finite(self.claim), 1):
            alike: dict[tuple[Fraction, ...], int] = {}
            same = [alike.setdefault(tuple(row), x) for x, row in enumerate(chain.matrix)]
            for support in Supports(chain).between(1, length - 1) if length > 1 else ():
                first, *others = members(support)
                for x in others:
                    if same[x] != same[first]:
                        raise CertificateError(
                            f"chain {i}: its records are correlated (rows {first + 1} and {x + 1} differ), and of "
                            f"correlated ones 1/epsilon hides none; use mqm-exact"
                        )
        return [IndependentScores(self.claim.windows, self.claim.epsilon, self.claim.hidden) for _ in self.nodes]


class WholeChainProof(Proof):
    """T / ε: the trivial quilt, for any chain, every window and whoever knows whichever records."""

    hides_windows = from_informed = True

    def work(self) -> Work:
        """Nothing to speak of."""
        return Work(1)

    def bound(self) -> Bound:
        """Return T / ε."""
        length = self.claim.length
        return Bound(length / self.claim.epsilon, length / self.claim.epsilon, 1, None, Nodes(1, length))


class IndependentScores(Scores):
    """Scores of quilts that tell nothing."""

    def influence_ratio(self, nodes: NodeRange) -> arb:
        """1, that is exp(0)."""
        return arb(1)


class QuiltScores(Scores):
    """Scores of the quilts of one chain."""

    def __init__(self, chain: Chain, convention: str, length: int, epsilon: Fraction, hidden: int = 1) -> None:
        super().__init__(length, epsilon, hidden)
        self._balls = ChainBalls(chain)
        self._published = convention == "published"

    def influence_ratio(self, nodes: NodeRange) -> arb | None:
        """Exponential of the max-influence (eq. 5), None where it is infinite."""
        chain, tables = self._balls, []
        if nodes.left is not None:
            tables += [self._first_term(nodes), self._left_term(nodes, nodes.left)]
        if nodes.right is not None:
            b = nodes.right
            tables.append(chain.keep(("right", b), lambda: self._right_term(b)))
        supports = chain.supports.between(nodes.first, nodes.last) if tables else []
        largest = arb(1)
        for x in range(chain.k):
            others = 0  # secrets of a node of which x is one
            for support in supports:
                others |= support if support >> x & 1 else 0
            for y in members(others):
                if x != y or self.hidden > 1:  # windows that begin alike may end differently
                    value = arb(1)
                    for table in tables:
                        entry = table[x][y]
                        if entry is None:
                            return None
                        value *= entry
                    largest = largest.max(value)
        return largest

    def _first_term(self, nodes: NodeRange) -> Table:
        """Bound of m_i(x') / m_i(x) for every node of the range."""
        chain, n = self._balls, nodes.first - 1
        if chain.start != "stationary" and (chain.start == "any" or nodes.first < nodes.last):
            # every later law is a mixture of the rows of P^n, a ratio of mixtures at most the largest ratio
            return chain.keep(("rows", n), lambda: _transposed(_largest_ratios(_transposed(chain.power(n)))))
        return _transposed(_largest_ratios([[p] for p in chain.law(nodes.first)]))

    def _right_term(self, b: int) -> Table:
        """Max over z of P^b(x, z) / P^b(x', z), x and x' the last values of windows, by their first ones."""
        ratios = _largest_ratios(self._balls.power(b))
        if self.hidden == 1:
            return ratios
        supports, k = self._balls.supports, self._balls.k
        last = [list(members(supports.reached(1 << x, self.hidden - 1))) for x in range(k)]
        ends = [[_largest(ratios[z][y] for z in last[x]) for y in range(k)] for x in range(k)]
        return [[_largest(ends[x][z] for z in last[y]) for y in range(k)] for x in range(k)]

    def _left_term(self, nodes: NodeRange, a: int) -> Table:
        """Max over z of P^a(z, x) / P^a(z, x'), z all states or (exact) those X_{i-a} can take."""
        chain = self._balls
        sources = (1 << chain.k) - 1 if self._published else _sources(chain.supports, nodes, a)
        return chain.keep(
            ("left", a, sources), lambda: _largest_ratios(_transposed([chain.power(a)[z] for z in members(sources)]))
        )


def _sources(supports: Supports, nodes: NodeRange, a: int) -> int:
    """States that the left quilt node can take."""
    sources = 0
    for support in supports.between(nodes.first - a, nodes.last - a):
        sources |= support
    return sources


def _quilt_work(chain: Chain, ranges: list[NodeRange], windows: bool) -> Work:
    """What the scores of the quilts of one chain take."""
    k, supports = len(chain.matrix), Supports(chain)
    square, cube = k * k, k**3
    right = {nodes.right for nodes in ranges if nodes.right is not None}
    left: set[tuple[int, int]] = set()
    rows, single, followed = set(), 0, 0
    for nodes in ranges:
        followed += min(supports.settling(), nodes.last - nodes.first + 1)
        if nodes.left is not None:
            left.add((nodes.left, _sources(supports, nodes, nodes.left)))
            if chain.start == "any" or (chain.start != "stationary" and nodes.first < nodes.last):
                rows.add(nodes.first - 1)
            else:
                single += 1
    tables = len(right) + len(left) + len(rows)
    powers = {*right, *rows, *(a for a, _ in left)}
    bits = max((n.bit_length() for n in powers), default=0)
    multiplied = bits + sum(n.bit_count() for n in powers)  # matrices
    products = cube * multiplied + square * 63 * single
    operations = 4 * square + (cube if chain.start == "stationary" else 0) + 2 * cube * tables
    operations += multiplied * (6 + square // 4) + 90 * single
    operations += 2 * cube * len(right) if windows else 0
    operations += (4 * len(ranges) + single + 4 * tables) * (square + 4) + followed * k // 4 + 10 * len(ranges)
    return Work(operations, products, 3 * square * (tables + bits + 1))


def _ranges(value: object, length: int, where: str) -> Iterator[NodeRange]:
    for nodes, sides in parse_ranges(value, ("left", "right"), length, where):
        left, right = (
            None if side is None else check_integer(side, f"{where}: {key}")
            for key, side in zip(("left", "right"), sides, strict=True)
        )
        served = NodeRange(nodes.first, nodes.last, left, right)
        if not ((left is None or 1 <= left < served.first) and (right is None or 1 <= right <= length - served.last)):
            raise CertificateError(f"{where}, {served}: the quilt does not fit the {length} nodes")
        yield served


def _largest_ratios(vectors: list[Vector]) -> Table:
    """table[x][y] = max over z of vectors[x][z] / vectors[y][z]; 0/0 does not count, x/0 is infinite."""
    inverses = [[None if p is None else 1 / p for p in vector] for vector in vectors]

    def largest(above: Vector, below: Vector) -> arb | None:
        result = arb(0)
        for p, q in zip(above, below, strict=True):
            if p is not None:
                if q is None:
                    return None
                result = result.max(p * q)
        return result

    return [[largest(above, below) for below in inverses] for above in vectors]


def _largest(entries: Iterable[arb | None]) -> arb | None:
    """The largest of some ratios, None where one is infinite."""
    result = arb(0)
    for entry in entries:
        if entry is None:
            return None
        result = result.max(entry)
    return result


def _transposed(rows: Table) -> Table:
    return [list(column) for column in zip(*rows, strict=True)]
