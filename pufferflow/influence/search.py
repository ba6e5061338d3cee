"""Finding the worst node of a chain and its best quilt (Algorithm 3) without scanning all quilts.

These facts keep the work independent of the length T and of the size of quilts.

*Windows.* Secrets may be what happened during w consecutive records. Given these, past and future are independent, the
past depends on the first one alone and the future on the last: so the max-influence of a quilt at distances a before
and b after a window is eq. 5 with the forward term taken over pairs of last values that can follow the pair of first
ones, X_N is larger by the w − 1 records that the window has beyond one, and nothing else changes. A node below is the
first record of a window, so there are T − w + 1 of them.

*Distance.* The terms of eq. 5 never increase with the distance of the quilt node (data processing), so a
rectangle of quilts, a in [a1, a2] and b in [b1, b2], scores at least card(a1, b1) / (ε − e(a2, b2)).

*Octaves.* Scores of large quilts hardly differ from those of their neighbours, and telling them apart takes as many
rectangles as the best one has nodes. So between a power of two and the next one only ``SPACES`` distances are looked
at, multiples of a smaller power of two, and besides these the ends of the chain. Every quilt gives a valid score, so
looking at fewer never lowers the scale. It raises it by a factor of at most 1 + 1/``SPACES``: with its distances
rounded up to the next ones looked at, or to an end of the chain that is nearer, a quilt has so many more nodes at most
and no more influence (*Distance*). Where scores are flat, as they are about a best one inside the chain, far less is
lost. The exact scale never rises with ε, nor falls with T. The scale found may, by no more than that factor and the
one of *Limits* (together 1.0013, unless ``LEAF_LIMIT`` is reached): which nodes are solved is up to bounds from quilts
at other distances too (*Likeness*, *Chords*), and these may be the better ones. With up to 2 · ``SPACES`` nodes all
distances are looked at.

*Likeness.* Nodes that share the first term of eq. 5 share all scores of two-sided quilts, so a node whose
best quilt is two-sided bounds all of them: where that quilt does not fit, one of its sides alone, or the
trivial quilt, covers no more nodes and has no larger influence. A left-only best quilt likewise bounds all
nodes to the right, a right-only one all nodes to the left. Bisection over nodes therefore suffices.

*Forgetting.* With P^n, max over z of log P^n(z, x') / P^n(z, x) bounds the first term of every node beyond n
(see ``InfluenceTables.law_any``). Once it has converged those nodes are alike; before, it discards whole
ranges of nodes that cannot be the worst.

*Chords.* Under a given start the laws of a progression of nodes lie near the straight line between its ends
(see ``GivenLaws``), which bounds their first terms closely: progressions are halved until the best quilt of a
whole one is no worse than the worst node, or its nodes are alike. A left quilt node that stays where it is, the
first node say, alone covers the same number of nodes for all of them, and has no more influence on a node that
is farther away (data processing), so its influence on the first node of a progression bounds all.

*Limits.* The bound of a range of nodes is one of each of them, so where it stands for them all the scale is never too
low. It does once ``CLOSE_LIMIT`` ranges have been told apart and it is close to the largest score of a node itself,
which raises the scale by a factor of at most 1 + ``CLOSE``, and at ``LEAF_LIMIT`` in any case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain

import numpy as np

from pufferflow._util.rounding import divide_up, quilt_score
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.influence._kernels import max_influence, search_quilts
from pufferflow.influence.laws import GivenLaws
from pufferflow.influence.tables import INFINITE, InfluenceTables

CONVERGED = 1e-12
"""How far the first term may still be from its limit (in nats) when nodes count as alike."""

KERNEL_WORK = 10**8
"""Entries of tables that a kernel looks at before it returns to Python, where signals arrive: tenths of a second."""

_FIRST_WORK = 2**10  # at first; twice as many each time, as a kernel may be interpreted until there is more to do

SPACES = 2**10
"""Most distances between a power of two and the next one that are looked at for quilt nodes: up to twice this all."""

_ROOM = 256  # free places below which the list of rectangles is made longer

CLOSE = 2.0**-12
"""How close scores of nodes are (relatively) that count as the same beyond ``CLOSE_LIMIT``."""

CLOSE_LIMIT = 1000
"""Most ranges of nodes told apart however close their scores are, fewer where there are many states."""

LEAF_LIMIT = 5000
"""Most ranges of nodes told apart at all, fewer likewise; beyond it those that are left share an upper bound."""


@dataclass(frozen=True)
class Candidate:
    """A node with its best quilt.

    Attributes
    ----------
    node : int
        1-based.
    left, right : int or None
        Distances a and b of the quilt nodes; None where there is none on that side.
    influence : float
        Max-influence of the quilt, an upper bound.
    score : float
        card / (ε − influence), rounded up.
    """

    node: int
    left: int | None
    right: int | None
    influence: float
    score: float


@dataclass(frozen=True)
class Range:
    """Nodes of first..last with a common bound on the first term of eq. 5; most often a single node.

    Attributes
    ----------
    first, last : int
    law, mask : float arrays, shape (k, k)
        First term with and without a left quilt node.
    reach : int
        Largest distance a of a left quilt node.
    settled : bool
        Whether, up to there, the left quilt nodes of all nodes take the same states as that of the first.
    """

    first: int
    last: int
    law: Floats
    mask: Floats
    reach: int
    settled: bool = True

    def solver(self, solve: Callable[[Range], Candidate]) -> Callable[[int], Candidate]:
        """``solve`` for one of the nodes, with the first term that bounds all."""
        return lambda node: solve(replace(self, first=node, last=node, reach=self.reach + node - self.first))


def worst_node(tables: InfluenceTables, length: int, epsilon: float) -> Candidate:
    """Return the node with the largest best score, for one chain of T = ``length`` records.

    Parameters
    ----------
    tables : InfluenceTables
    length : int
        T ≥ 1.
    epsilon : float
        ε > 0.

    Returns
    -------
    Candidate
        Its score is σ_max of Algorithm 3, rounded up.
    """
    return QuiltSearch(tables, length, epsilon).run()


def chain_quilt_influence(
    tables: InfluenceTables, length: int, node: int, left: int | None, right: int | None
) -> float:
    """Max-influence of one quilt, rounded up, ∞ included."""
    search = QuiltSearch(tables, length, math.inf)
    e = search.influence(search.single(node), left or 0, right or 0)
    return math.inf if e >= INFINITE / 2 else e


def worst_alike(length: int, solve: Callable[[int], Candidate], lowest: int = 1, stride: int = 1) -> Candidate:
    """Worst of the nodes lowest, lowest + stride, … up to ``length``, which share all influences.

    ``solve`` gives the best quilt of a node. Every answer bounds all nodes, or those on one side (see
    *Likeness* above), so logarithmically many nodes are solved.
    """
    low, high = 0, (length - lowest) // stride
    candidates = []
    while low <= high:
        middle = (low + high) // 2
        best = solve(lowest + middle * stride)
        candidates.append(best)
        if best.left is None and best.right is not None:
            low = middle + 1
        elif best.right is None and best.left is not None:
            high = middle - 1
        else:
            break
    return max(candidates, key=lambda candidate: candidate.score)


class QuiltSearch:
    """Best quilts of the nodes of one chain; see the module's text for the ideas."""

    def __init__(self, tables: InfluenceTables, length: int, epsilon: float) -> None:
        self.tables = tables
        self.chain = tables.chain
        self.window = min(tables.window, length)
        self.length = length - self.window + 1  # nodes: windows by their first records
        self.epsilon = epsilon
        self.worst: Candidate | None = None
        self._supports = [tables.canonical(self.chain.initial_support)]
        self._seen = {self._supports[0].tobytes(): 0}
        self._cycle: tuple[int, int] | None = None  # first node of the periodic part, its period
        self.laws = GivenLaws(tables)  # of a given start
        self._anchors = [1]  # left quilt nodes of the best quilts found

    # -- which states a node can take ------------------------------------------------------------

    def support(self, node: int) -> Bools:
        """States X_node can take."""
        while self._cycle is None and node > len(self._supports):
            reached: Bools = self._supports[-1] @ self.tables.power(1).support
            key = reached.tobytes()
            if key in self._seen:
                first = self._seen[key]
                self._cycle = (first + 1, len(self._supports) - first)
            else:
                self._seen[key] = len(self._supports)
                self._supports.append(self.tables.canonical(reached))
        if node > len(self._supports):
            assert self._cycle is not None
            first, period = self._cycle
            node = first + (node - first) % period
        return self._supports[node - 1]

    def settled(self) -> tuple[int, int]:
        """First node from which the supports repeat, and their period (both T + 1 at most)."""
        self.support(self.length)
        return self._cycle if self._cycle is not None else (self.length + 1, 1)

    # -- the search ------------------------------------------------------------------------------

    def run(self) -> Candidate:
        """Find the worst node."""
        middle = self.single((self.length + 1) // 2)
        if self._hopeless(middle):
            return Candidate(middle.first, None, None, 0.0, self._all())
        if self.chain.start == "stationary":
            self._bisect(1, 1, self._stationary_law())
        else:
            self._forget()
        assert self.worst is not None
        return self.worst

    def _all(self) -> float:
        """Score of the trivial quilt."""
        return divide_up(self.length + self.window - 1, self.epsilon)

    def _hopeless(self, node: Range) -> bool:
        """Whether a node has only the trivial quilt (then no node can be worse)."""
        # the farthest quilts have the least influence, but in large powers of P rounding counts
        one_sided = chain(
            ((0, b) for b in _growing(self.length - node.last, 1, 8)), ((a, 0) for a in _growing(node.first - 1, 1, 8))
        )
        return all(self.influence(node, a, b) >= self.epsilon for a, b in one_sided)

    def _bisect(self, lowest: int, stride: int, law: Floats) -> None:
        """Solve the nodes lowest, lowest + stride, …, which share ``law`` and supports."""
        settled = 1 if self.chain.start == "stationary" else self.settled()[0]
        mask = self.tables.law_mask(self.support(lowest))

        def solve(node: int) -> Candidate:
            return self.solve(Range(node, node, law, mask, node - settled))

        worst_alike(self.length, solve, lowest, stride)

    def _forget(self) -> None:
        """Solve a chain whose nodes have different laws (given or any initial distribution)."""
        settled, period = self.settled()
        horizon = self._horizon(settled, period)
        # Quilts reaching back before the supports settle are tried node by node, up to where they are too large.
        while horizon < self.length:
            for node in range(horizon + 1, min(horizon + period, self.length) + 1):
                self._bisect(node, period, self.tables.law_any(horizon, self.support(node)))
            assert self.worst is not None
            needed = settled + math.floor(self.epsilon * self.worst.score) + 1
            if needed <= horizon:
                break
            horizon, self.worst = needed, None
        last = min(horizon, self.length)
        if self.worst is None:
            self.solve(self.single((1 + last) // 2))
        self._search_nodes(last)

    def _horizon(self, settled: int, period: int) -> int:
        """Smallest n ≥ settled, up to a factor 2, beyond which nodes of equal support are alike; T if none."""
        n = 1
        while n < self.length:
            if n >= settled:
                spread = 0.0
                table = self.tables.law_any(n, self.tables.everything)
                for node in range(n + 1, n + 1 + period):
                    support = self.support(node)
                    inside = table[np.ix_(support, support)]
                    spread = max(spread, float((inside + inside.T).max()))
                if spread <= CONVERGED + 3 * n * self.tables.step_error:
                    return n
            n *= 2
        return self.length

    def _search_nodes(self, last: int) -> None:
        """Solve those nodes of 1..last that no quilt known so far bounds by the worst score, worst first."""
        assert self.worst is not None
        pending = [(-math.inf, *progression) for progression in self._progressions(last)]
        fewer = max(1, self.chain.states**2 // 1000)
        solved, told = 0, self.worst.score  # the largest score of a node itself
        while pending and -pending[0][0] > self.worst.score:
            _, low, high, stride = heappop(pending)
            where, alike = self.several(low, high, stride)
            bound = self.bound(where)
            if bound <= self.worst.score:
                continue
            if pending and bound < -pending[0][0]:
                heappush(pending, (-bound, low, high, stride))
                continue
            solved += 1
            candidate = self._best(where)
            if candidate.score > self.worst.score and alike and low < high:
                candidate = worst_alike(high, where.solver(self._best), low, stride)
                # else a quilt that reaches back before the supports settled might do better, if they ever did not
                settled = self.settled()[0]
                alike = settled == 1 or low - settled >= self.epsilon * candidate.score
            if low == high or alike:
                told = max(told, candidate.score)
            close = solved > CLOSE_LIMIT // fewer and candidate.score <= told * (1 + CLOSE)
            if low == high or alike or close or solved > LEAF_LIMIT // fewer:
                self._keep(candidate)
            elif candidate.score > self.worst.score:
                # at a power of two strides, which is what bounds of ranges are made for
                cut = low + (stride << ((high - low) // stride).bit_length() - 1)
                bound = min(bound, candidate.score)
                heappush(pending, (-bound, low, cut - stride, stride))
                heappush(pending, (-bound, cut, high, stride))

    def _progressions(self, last: int) -> Iterator[tuple[int, int, int]]:
        """Nodes 1..last as first and last nodes and strides of progressions, settled nodes apart."""
        settled, period = self.settled()
        if settled > 1:
            yield 1, min(settled - 1, last), 1
        stride = self._stride(settled, period) if self.chain.start == "given" else 1
        for node in range(settled, min(settled + stride - 1, last) + 1):
            yield node, last - (last - node) % stride, stride

    def bound(self, where: Range) -> float:
        """Upper bound of the best scores of the nodes of a range, from quilts found so far."""
        assert self.worst is not None
        least = math.inf
        for option in self.options(where):
            least = min(least, option)
            if least <= self.worst.score:
                break
        return least

    def options(self, where: Range) -> Iterator[float]:
        """Scores, at the worst node of a range, of quilts found so far, and their sides alone, that fit all nodes."""
        fitting = set()
        for a, b in self.tables.quilts:
            a_fits, b_fits = 0 < a <= where.reach, 0 < b <= self.length - where.last
            fitting |= {(a if a_fits else 0, b if b_fits else 0), (a if a_fits else 0, 0), (0, b if b_fits else 0)}
        for a, b in sorted(fitting - {(0, 0)}):
            e = self.influence(where, a, b)
            card = quilt_card(self.length, where.first if not b else where.last, a or None, b or None, self.window)
            yield quilt_score(card, e, self.epsilon)
        if self.chain.start == "given":
            first = self.single(where.first)
            for anchor in self._anchors:
                if anchor < where.first:
                    e = self.influence(first, where.first - anchor, 0)
                    yield quilt_score(self.length - anchor + self.window - 1, e, self.epsilon)
                    for b in {b for _, b in fitting if b}:
                        card = where.last - anchor + b - 1 + self.window - 1
                        yield quilt_score(card, e + self.influence(first, 0, b), self.epsilon)

    # -- first term ------------------------------------------------------------------------------

    def _stationary_law(self) -> Floats:
        """Table of log π(x') / π(x); for a given start of irreducible chains only."""
        chain = self.chain
        states = chain.initial_support if chain.start == "stationary" else self.tables.everything
        return self.tables.law(
            "stationary",
            lambda: self.tables.law_given(chain.stationary_distribution, states, chain.stationary_error),
        )

    def several(self, first: int, last: int, stride: int) -> tuple[Range, bool]:
        """Every ``stride``-th of the nodes first..last with a first term that bounds theirs.

        And whether it is as good as that of each, up to rounding.
        """
        if first == last:
            return self.single(first), True
        everything = self.tables.everything
        law = self.tables.law_any(first - 1, everything)
        if self.chain.start == "any":
            return Range(first, last, law, self.tables.law_mask(everything), first - 1, settled=False), False
        excess = math.inf
        if self.chain.is_irreducible:
            uneven = self.laws.unevenness(first)
            law, excess = np.minimum(law, self._stationary_law() + uneven), 2 * uneven
        settled, period = self.settled()
        if first < settled or stride % period:
            return Range(first, last, law, self.tables.law_mask(everything), first - 1, settled=False), False
        support = self.support(first)
        chord = self.laws.chord(first, ((last - first) // stride).bit_length(), stride, support)
        law, excess = np.minimum(law, chord.table), min(excess, chord.excess)
        alike = excess <= CONVERGED + 8 * self.laws.error(last)
        return Range(first, last, law, self.tables.law_mask(support), first - settled), alike

    def _stride(self, node: int, period: int) -> int:
        """The multiple of the period by which laws move least, for its length."""
        settled, inside = node + 8 * period * self.chain.states, self.support(node)
        best, least = period, math.inf
        for stride in range(period, period * 2 * self.chain.states + 1, period):
            bend = self.laws.chord(settled, 1, stride, inside).excess / stride
            if bend < least / 4:
                best, least = stride, bend
        return best

    def single(self, node: int) -> Range:
        """One node with its own first term."""
        support = self.support(node)
        if self.chain.start == "stationary":
            law = self._stationary_law()
        elif self.chain.start == "any":
            law = self.tables.law_any(node - 1, support)
        else:
            law = self.laws.table(node, support)
        return Range(node, node, law, self.tables.law_mask(support), node - 1)

    # -- quilts ----------------------------------------------------------------------------------

    def influence(self, where: Range, a: int, b: int) -> float:
        """Max-influence of the quilt at distances ``a`` and ``b``, 0 for none on that side."""
        tables = self.tables
        left = self._left_slot(where, a)
        right = tables.right(b)
        law = where.law if a else where.mask
        return max_influence(law, tables.lefts.tables[left], tables.rights.tables[right], np.empty(2, dtype=np.int64))

    def best_quilt(self, node: int) -> Candidate:
        """Best quilt of one node, whatever the others are."""
        self.worst = None
        return self.solve(self.single(node))

    def solve(self, where: Range) -> Candidate:
        """Return the best quilt of a range of nodes; keep it in ``worst`` if it is worse than that."""
        candidate = self._best(where)
        self._keep(candidate)
        return candidate

    def _keep(self, candidate: Candidate) -> None:
        if self.worst is None or candidate.score > self.worst.score:
            self.worst = candidate

    def _best(self, where: Range) -> Candidate:
        """Return the best quilt of a range of nodes.

        The search stops early once the score is no larger than the worst one known, which is all that
        matters then: the score is an upper bound.
        """
        self.tables.trim()
        behind = self.length - where.last
        best = np.array([self._all(), 0.0])
        quilt = np.zeros(2, dtype=np.int64)

        def search(pending: list[tuple[int, int, int, int]]) -> None:
            rectangles = np.array(pending, dtype=np.int64).reshape(-1, 4)
            lowest = np.zeros(len(rectangles))
            while len(rectangles):
                self._fill_missing(where, set(rectangles[:, 1].tolist()), set(rectangles[:, 3].tolist()))
                rectangles, lowest = self._search_known(where, rectangles, lowest, best, quilt)

        # a first good quilt shows how far the others can reach: a + b − 1 < ε · best
        if self.tables.quilts:
            near = [(min(a, where.reach), min(b, behind)) for a, b in self.tables.quilts]
            search([(a, a, b, b) for a, b in near if a or b])
        else:
            for n in _growing(max(where.reach, behind), 8, 2):
                if n >= self.epsilon * best[0]:
                    break
                a, b = min(n, where.reach), min(n, behind)
                search([(a, a, b, b)])
        largest = 1
        while largest < self.epsilon * best[0]:
            largest *= 2
        a, b = min(largest, where.reach), min(largest, behind)
        sides = ([(1, a, 0, 0)] if a else []) + ([(0, 0, 1, b)] if b else [])
        search(sides + ([(1, a, 1, b)] if a and b else []))

        candidate = Candidate(where.first, int(quilt[0]) or None, int(quilt[1]) or None, float(best[1]), float(best[0]))
        self.tables.remember(spaced(int(quilt[0])), spaced(int(quilt[1])))
        if candidate.left is not None and where.first == where.last:
            anchor = where.first - candidate.left
            self._anchors = [anchor, *(known for known in self._anchors if known != anchor)][:3]
        return candidate

    def _fill_missing(self, where: Range, lefts: set[int], rights: set[int]) -> None:
        """Compute the tables at these distances."""
        states = self._left_states(where, 0).tobytes() if self._same_supports() else None
        known = {} if states is None else self.tables.lefts.index(states).slots
        for a in lefts:
            if a not in known:
                self._left_slot(where, a)
        known = self.tables.rights.index(b"").slots
        for b in rights:
            if b not in known:
                self.tables.right(b)

    def _search_known(
        self, where: Range, rectangles: Ints, lowest: Floats, best: Floats, quilt: Ints
    ) -> tuple[Ints, Floats]:
        """Search as far as tables are at hand; return rectangles that need others."""
        tables = self.tables
        lefts = tables.lefts.tables, *self._left_arrays(where)
        rights = tables.rights.tables, *tables.rights.index(b"").arrays()
        floor = self.worst.score if self.worst is not None else 0.0
        counts = np.array([len(rectangles), 0])
        work = _FIRST_WORK
        while counts[0] and best[0] > floor:
            rectangles, lowest = _with_room(rectangles, lowest, *counts.tolist())
            search_quilts(
                (rectangles, lowest, counts),
                (min(work, KERNEL_WORK), SPACES),
                (self.length, where.first, where.last, self.window),
                (self.epsilon, floor),
                (where.law, where.mask),
                lefts,
                rights,
                (tables.deciding, best, quilt),
            )
            work *= 2
        missing = slice(len(rectangles) - counts[1], None)
        return rectangles[missing][::-1].copy(), lowest[missing][::-1].copy()

    def _left_states(self, where: Range, a: int) -> Bools:
        """States z that the backward term at distance ``a`` looks at."""
        if not where.settled:
            return self.tables.everything
        return self.tables.left_states(self.support(where.first - a))

    def _left_slot(self, where: Range, a: int) -> int:
        return self.tables.left(a, self._left_states(where, a)) if a else 0

    def _left_arrays(self, where: Range) -> tuple[Ints, Ints]:
        """Distances of the left tables at hand, increasing, and their slots."""
        lefts = self.tables.lefts
        if not where.settled or self._same_supports():
            return lefts.index(self._left_states(where, 0).tobytes()).arrays()
        settled, period = self.settled()
        early = [self.tables.left_states(self.support(node)) for node in range(1, settled + period)]
        numbers = np.array([lefts.index(states.tobytes()).number for states in early])

        def index_at(distances: Ints) -> Ints:
            nodes = where.first - distances
            return np.asarray(numbers[np.minimum(nodes, settled) + np.maximum(nodes - settled, 0) % period - 1])

        return lefts.arrays_by(index_at, where.reach)

    def _same_supports(self) -> bool:
        """Whether the backward term looks at the same states wherever the left quilt node is."""
        return self.tables.convention == "published" or self.chain.start == "stationary" or self.settled() == (1, 1)


def _with_room(rectangles: Ints, lowest: Floats, top: int, missing: int) -> tuple[Ints, Floats]:
    """The same stack at the front and list at the end, with places free between them."""
    if len(rectangles) - top - missing >= _ROOM:
        return rectangles, lowest
    end = len(rectangles) - missing
    size = 2 * len(rectangles) + 2 * _ROOM
    wider, bounds = np.empty((size, 4), dtype=np.int64), np.empty(size)
    for old, new in ((rectangles, wider), (lowest, bounds)):
        new[:top] = old[:top]
        new[size - missing :] = old[end:]
    return wider, bounds


def _growing(limit: int, start: int, factor: int) -> Iterator[int]:
    """``start`` times powers of ``factor`` below ``limit``, then ``limit``; nothing if that is 0."""
    n = start
    while n < limit:
        yield n
        n *= factor
    if limit:
        yield limit


def spaced(distance: int) -> int:
    """The smallest distance that is looked at (see *Octaves* above) from ``distance`` on."""
    step = max(1, (1 << distance.bit_length()) // (2 * SPACES))
    return -(-distance // step) * step


def quilt_card(length: int, node: int, a: int | None, b: int | None, window: int = 1) -> int:
    """card(X_N) of a chain quilt (Lemma 4.6), of the ``length`` nodes there are; they stand for ``window`` records."""
    left = length if a is None else length - node + a  # without a node to the right
    right = node + (b or 0) - 1 if a is None else a + (b or 0) - 1
    return (left if b is None else right) + window - 1
