"""Finding the worst node of a chain and its best quilt (Algorithm 3) without scanning all quilts.

Three facts keep the work independent of the length T.

*Distance.* The terms of eq. 5 never increase with the distance of the quilt node (data processing), so a
rectangle of quilts, a in [a1, a2] and b in [b1, b2], scores at least card(a1, b1) / (ε − e(a2, b2)).

*Likeness.* Nodes that share the first term of eq. 5 share all scores of two-sided quilts, so a node whose
best quilt is two-sided bounds all of them: where that quilt does not fit, one of its sides alone, or the
trivial quilt, covers no more nodes and has no larger influence. A left-only best quilt likewise bounds all
nodes to the right, a right-only one all nodes to the left. Bisection over nodes therefore suffices.

*Forgetting.* With P^n, max over z of log P^n(z, x') / P^n(z, x) bounds the first term of every node beyond n
(see ``InfluenceTables.law_any``). Once it has converged those nodes are alike; before, it discards whole
ranges of nodes that cannot be the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from pufferflow.influence._kernels import max_influences
from pufferflow.influence.tables import INFINITE, InfluenceTables
from pufferflow.markov.chain import UNIT_ROUNDOFF, Bools, Floats

Ints = NDArray[np.int64]

CONVERGED = 1e-12
"""How far the first term may still be from its limit (in nats) when nodes count as alike."""

LEAF_LIMIT = 50_000
"""Most single nodes examined one by one; beyond it ranges of nodes share an upper bound."""

_CHUNK_BYTES = 64 * 2**20


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
class _Range:
    """Nodes first..last with a common bound on the first term of eq. 5; most often a single node.

    ``law`` and ``mask`` are slots of the first term with and without a left quilt node; ``reach`` is
    the largest a allowed.
    """

    first: int
    last: int
    law: int
    mask: int
    reach: int


def worst_node(tables: InfluenceTables, length: int, epsilon: float) -> Candidate:
    """Return the node with the largest best score, for one chain of T = ``length`` nodes.

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
    return _Search(tables, length, epsilon).run()


def chain_quilt_influence(
    tables: InfluenceTables, length: int, node: int, left: int | None, right: int | None
) -> float:
    """Max-influence of one quilt, rounded up, ∞ included."""
    search = _Search(tables, length, math.inf)
    return search.influence_of(node, left, right)


def worst_alike(length: int, solve: Callable[[int], Candidate], lowest: int = 1, stride: int = 1) -> Candidate:
    """Worst of the nodes lowest, lowest + stride, … up to ``length``, which share all influences.

    ``solve`` gives the best quilt of a node. Every answer bounds all nodes, or those on one side (see
    *Likeness* above), so logarithmically many nodes are solved.
    """
    low, high = 0, (length - lowest) // stride
    found = []
    while low <= high:
        middle = (low + high) // 2
        best = solve(lowest + middle * stride)
        found.append(best)
        if best.left is None and best.right is not None:
            low = middle + 1
        elif best.right is None and best.left is not None:
            high = middle - 1
        else:
            break
    return max(found, key=lambda candidate: candidate.score)


class _Search:
    def __init__(self, tables: InfluenceTables, length: int, epsilon: float) -> None:
        self.tables = tables
        self.chain = tables.chain
        self.length = length
        self.epsilon = epsilon
        self.worst: Candidate | None = None
        self._supports = [self.chain.initial_support]
        self._seen = {self._supports[0].tobytes(): 0}
        self._cycle: tuple[int, int] | None = None  # first node of the periodic part, its period
        self._laws: tuple[int, Floats] | None = None  # a node and its law, for a given start

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
                self._supports.append(reached)
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
        middle = (self.length + 1) // 2
        if self._hopeless(middle):
            self.worst = self._trivial(middle)
            return self.worst
        if self.chain.start == "stationary":
            self._bisect(1, 1, self._stationary_law())
        else:
            self._forget()
        assert self.worst is not None
        return self.worst

    def _trivial(self, node: int) -> Candidate:
        return Candidate(node, None, None, 0.0, divide_up(self.length, self.epsilon))

    def _hopeless(self, node: int) -> bool:
        """Whether ``node`` has only the trivial quilt (then no node can be worse)."""
        # the farthest quilts have the least influence, but in large powers of P rounding counts
        mask, none = self._mask_slot(self.support(node)), self.tables.none_left()
        for b in _doublings(self.length - node):
            if self._influence(mask, none, self.tables.right(b)) < self.epsilon:
                return False
        law, none = self._range(node).law, self.tables.none_right()
        for a in _doublings(node - 1):
            if self._influence(law, self.tables.left(a, self.support(node - a)), none) < self.epsilon:
                return False
        return True

    def _stationary_law(self) -> int:
        chain = self.chain
        return self.tables.laws.slot(
            "stationary",
            lambda: self.tables.law_given(chain.stationary_distribution, chain.initial_support, chain.stationary_error),
        )

    def _bisect(self, lowest: int, stride: int, law: int) -> None:
        """Solve the nodes lowest, lowest + stride, …, which share ``law`` and supports."""
        settled = 1 if self.chain.start == "stationary" else self.settled()[0]

        def solve(node: int) -> Candidate:
            return self._solve([_Range(node, node, law, self._mask_slot(self.support(node)), node - settled)])

        worst_alike(self.length, solve, lowest, stride)

    def _forget(self) -> None:
        """Solve a chain whose nodes have different laws (given or any initial distribution)."""
        settled, period = self.settled()
        horizon = self._horizon(settled, period)
        # Quilts reaching back before the supports settle are tried node by node, up to where they are too large.
        while horizon < self.length:
            for offset in range(min(period, self.length - horizon)):
                node = horizon + 1 + offset
                support = self.support(node)
                key = ("beyond", horizon, support.tobytes())
                law = self.tables.laws.slot(key, lambda s=support, n=horizon: self.tables.law_any(n, s))  # type: ignore[misc]
                self._bisect(node, period, law)
            assert self.worst is not None
            needed = settled + math.floor(self.epsilon * self.worst.score) + 1
            if needed <= horizon:
                break
            horizon, self.worst = needed, None
        last = min(horizon, self.length)
        if self.worst is None:
            self._solve([self._range((1 + last) // 2)])
        undecided = self._undecided(1, last)
        size = max(1, _CHUNK_BYTES // (8 * self.chain.states**2))
        while chunk := list(islice(undecided, size)):
            self._solve([self._range(first, end) for first, end in chunk])

    def _horizon(self, settled: int, period: int) -> int:
        """Smallest n ≥ settled, up to a factor 2, beyond which nodes of equal support are alike; T if none."""
        n = 1
        while n < self.length:
            if n >= settled:
                spread = 0.0
                table = self.tables.law_any_unmasked(n)
                for node in range(n + 1, n + 1 + period):
                    support = self.support(node)
                    inside = table[np.ix_(support, support)]
                    spread = max(spread, float((inside + inside.T).max()))
                if spread <= CONVERGED + 3 * n * self.tables.step_error:
                    return n
            n *= 2
        return self.length

    def _undecided(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Ranges of nodes that no quilt known so far bounds by the worst score; single nodes as far as allowed."""
        pending = [(first, last)]
        leaves = 0
        while pending:
            low, high = pending.pop()
            if self._bounded(low, high):
                continue
            if low == high or leaves + len(pending) >= LEAF_LIMIT:
                leaves += 1
                yield low, high
            else:
                middle = (low + high) // 2
                pending += [(middle + 1, high), (low, middle)]

    def _bounded(self, first: int, last: int) -> bool:
        """Whether the worst node's quilt, or a side of it, bounds all nodes first..last by the worst score."""
        worst = self.worst
        assert worst is not None
        a, b = worst.left, worst.right
        right_fits = b is not None and b <= self.length - last
        left_fits = a is not None and a <= first - 1
        everything = np.ones(self.chain.states, dtype=np.bool_)
        if right_fits:
            assert b is not None
            e = self._influence(self._mask_slot(everything), self.tables.none_left(), self.tables.right(b))
            if score(last + b - 1, e, self.epsilon) <= worst.score:
                return True
        if left_fits:
            assert a is not None
            law = self.tables.laws.slot(("any", first - 1), lambda: self.tables.law_any_unmasked(first - 1))
            left = self.tables.left(a, everything)
            e = self._influence(law, left, self.tables.none_right())
            if score(self.length - first + a, e, self.epsilon) <= worst.score:
                return True
            if right_fits:
                assert b is not None
                e = self._influence(law, left, self.tables.right(b))
                return score(a + b - 1, e, self.epsilon) <= worst.score
        return False

    # -- first term ------------------------------------------------------------------------------

    def _mask_slot(self, support: Bools) -> int:
        return self.tables.laws.slot(("mask", support.tobytes()), lambda: self.tables.law_mask(support))

    def _range(self, first: int, last: int | None = None) -> _Range:
        """Nodes first..last (default: one node) with the sharpest common first term at hand."""
        chain, tables = self.chain, self.tables
        if last is not None and last > first:
            everything = np.ones(chain.states, dtype=np.bool_)
            law = tables.laws.slot(("any", first - 1), lambda: tables.law_any_unmasked(first - 1))
            return _Range(first, last, law, self._mask_slot(everything), first - 1)
        support = self.support(first)
        if chain.start == "stationary":
            law = self._stationary_law()
        elif chain.start == "any":
            key = ("any", first - 1, support.tobytes())
            law = tables.laws.slot(key, lambda: tables.law_any(first - 1, support))
        else:
            law = tables.laws.slot(("node", first), lambda: self._law_of_node(first, support))
        return _Range(first, first, law, self._mask_slot(support), first - 1)

    def _law_of_node(self, node: int, support: Bools) -> Floats:
        chain = self.chain
        start = chain.initial_distribution
        assert start is not None
        with np.errstate(under="ignore"):
            if self._laws is not None and self._laws[0] <= node and node - self._laws[0] <= chain.states:
                at, law = self._laws
                for _ in range(node - at):
                    law = law @ chain.transition_matrix
            else:
                law = start @ self.tables.power(node - 1).values
        self._laws = (node, law)
        return self.tables.law_given(law, support, node * self.tables.step_error / 2)

    # -- quilts ----------------------------------------------------------------------------------

    def influence_of(self, node: int, left: int | None, right: int | None) -> float:
        """Max-influence of the quilt at distances ``left`` and ``right`` of ``node``."""
        tables = self.tables
        if left is None:
            law, back = self._mask_slot(self.support(node)), tables.none_left()
        else:
            law, back = self._range(node).law, tables.left(left, self.support(node - left))
        e = self._influence(law, back, tables.none_right() if right is None else tables.right(right))
        return math.inf if e >= INFINITE / 2 else e

    def _influence(self, law: int, left: int, right: int) -> float:
        return float(self._influences([law], [left], [right])[0])

    def _influences(self, law: list[int] | Ints, left: list[int] | Ints, right: list[int] | Ints) -> Floats:
        out = np.empty(len(law))
        tables = self.tables
        max_influences(
            tables.laws.tables,
            tables.lefts.tables,
            tables.rights.tables,
            np.asarray(law, dtype=np.int64),
            np.asarray(left, dtype=np.int64),
            np.asarray(right, dtype=np.int64),
            self.epsilon,
            out,
        )
        return out

    def _solve(self, ranges: list[_Range]) -> Candidate:
        """Return the worst range with its best quilt; keep it in ``self.worst`` if it is worse.

        Branch and bound over all ranges at once: every round looks at the far corner of each rectangle
        of quilts, discards what cannot matter and splits the rest. A range whose best score so far is no
        larger than a score known to be reached elsewhere is dropped: its score is then an upper bound.
        """
        first = np.array([r.first for r in ranges])
        last = np.array([r.last for r in ranges])
        law = np.array([r.law for r in ranges])
        mask = np.array([r.mask for r in ranges])
        reach = np.array([r.reach for r in ranges])
        behind = self.length - last
        floor = self.worst.score if self.worst is not None else 0.0

        best = np.full(len(ranges), divide_up(self.length, self.epsilon))
        quilt = np.zeros((len(ranges), 2), dtype=np.int64)  # 0: none on that side
        influence = np.zeros(len(ranges))

        # rectangles: owner, a1, a2, b1, b2; 0, 0 stands for no quilt node on that side
        every = np.arange(len(ranges))
        one, zero = np.ones_like(every), np.zeros_like(every)
        rectangles = np.concatenate(
            [
                np.stack([every, one, reach, one, behind], axis=1)[(reach > 0) & (behind > 0)],
                np.stack([every, one, reach, zero, zero], axis=1)[reach > 0],
                np.stack([every, zero, zero, one, behind], axis=1)[behind > 0],
            ]
        )
        rectangles = _split(rectangles[best[rectangles[:, 0]] > floor])
        while len(rectangles):
            owner, a1, a2, b1, b2 = rectangles.T
            e = self._influences(
                np.where(a2 > 0, law[owner], mask[owner]),
                self._left_slots(a2, first[owner], last[owner]),
                self._right_slots(b2),
            )
            far = self._card(a2, b2, first[owner], last[owner])
            near = self._card(a1, b1, first[owner], last[owner])
            upper = _scores(far, e, self.epsilon)
            lower = _scores(near, e, self.epsilon)
            order = np.lexsort((upper, owner))
            leaders = order[np.unique(owner[order], return_index=True)[1]]
            better = leaders[upper[leaders] < best[owner[leaders]]]
            best[owner[better]] = upper[better]
            influence[owner[better]] = e[better]
            quilt[owner[better]] = rectangles[better][:, [2, 4]]

            # the nearest quilt of a unit rectangle is the one just scored: nothing is left in it
            open_ = (lower < best[owner]) & ((a1 < a2) | (b1 < b2))
            bound = best.copy()
            np.minimum.at(bound, owner[open_], lower[open_])
            floor = max(floor, float(bound.max()))
            rectangles = _split(rectangles[open_ & (best[owner] > floor)])

        champion = int(best.argmax())
        a, b = (int(d) or None for d in quilt[champion])
        found = Candidate(int(first[champion]), a, b, float(influence[champion]), float(best[champion]))
        if self.worst is None or found.score > self.worst.score:
            self.worst = found
        return found

    def _card(self, a: Ints, b: Ints, first: Ints, last: Ints) -> Ints:
        """card(X_N), the largest over the range (Lemma 4.6)."""
        return np.where(b == 0, self.length - first + a, np.where(a == 0, last + b - 1, a + b - 1))

    def _left_slots(self, a: Ints, first: Ints, last: Ints) -> Ints:
        if self.tables.convention == "published" or self.chain.start == "stationary":
            support = self.support(1)
            slots = {int(d): self.tables.left(int(d), support) if d else self.tables.none_left() for d in np.unique(a)}
            return np.array([slots[int(d)] for d in a])
        everything = np.ones(self.chain.states, dtype=np.bool_)
        slots_ = np.empty(len(a), dtype=np.int64)
        for i, (d, low, high) in enumerate(zip(a.tolist(), first.tolist(), last.tolist(), strict=True)):
            if d == 0:
                slots_[i] = self.tables.none_left()
            else:
                slots_[i] = self.tables.left(d, self.support(low - d) if low == high else everything)
        return slots_

    def _right_slots(self, b: Ints) -> Ints:
        slots = {int(d): self.tables.right(int(d)) if d else self.tables.none_right() for d in np.unique(b)}
        return np.array([slots[int(d)] for d in b])


def _doublings(limit: int) -> Iterator[int]:
    """1, 2, 4, … below ``limit``, then ``limit``; nothing if that is 0."""
    n = 1
    while n < limit:
        yield n
        n *= 2
    if limit:
        yield limit


def _split(rectangles: Ints) -> Ints:
    """Cut every rectangle at round distances, so that few powers of P are needed."""
    if not len(rectangles):
        return rectangles
    owner, a1, a2, b1, b2 = rectangles.T
    am, bm = _middle(a1, a2), _middle(b1, b2)
    parts = []
    for low_a, high_a, keep_a in ((a1, am, a1 <= am), (am + 1, a2, am < a2)):
        for low_b, high_b, keep_b in ((b1, bm, b1 <= bm), (bm + 1, b2, bm < b2)):
            parts.append(np.stack([owner, low_a, high_a, low_b, high_b], axis=1)[keep_a & keep_b])
    return np.concatenate(parts)


def _middle(low: Ints, high: Ints) -> Ints:
    """Where to cut [low, high]: near the geometric mean if wide, else at the roundest number; high if a point."""
    below = np.maximum(low, 1) - 1
    top = np.maximum(high - 1, 1)
    step = np.int64(1) << np.floor(np.log2(np.maximum(below ^ top, 1))).astype(np.int64)
    roundest = top & ~(step - 1)
    geometric = np.int64(1) << np.round((np.log2(below + 1) + np.log2(top)) / 2).astype(np.int64)
    wide = (high >= 4 * low) & (geometric < high)
    return np.where(low == high, high, np.where(wide, geometric, roundest))


def _scores(card: Ints, influence: Floats, epsilon: float) -> Floats:
    """Card / (ε − e) rounded up; infinite unless e < ε."""
    left = epsilon - influence
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(left > 0, card / np.where(left > 0, left, 1.0) * (1 + 4 * UNIT_ROUNDOFF), np.inf)


def score(card: int, influence: float, epsilon: float) -> float:
    """Card / (ε − e) rounded up; infinite unless e < ε."""
    return float(_scores(np.array([card]), np.array([influence]), epsilon)[0])


def quilt_card(length: int, node: int, a: int | None, b: int | None) -> int:
    """card(X_N) of a chain quilt (Lemma 4.6)."""
    if b is None:
        return length if a is None else length - node + a
    return node + b - 1 if a is None else a + b - 1


def divide_up(numerator: float, denominator: float) -> float:
    """Quotient of two floats, never below the exact one; exact where it can be."""
    quotient = numerator / denominator
    if math.isinf(quotient):
        return quotient
    if Fraction(quotient) * Fraction(denominator) < Fraction(numerator):
        return math.nextafter(quotient, math.inf)
    return quotient
