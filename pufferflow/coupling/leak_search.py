"""The query that leaks most of the values of a chain at one c, and where."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from pufferflow._jit import constant
from pufferflow._types import Bools, Floats, Ints
from pufferflow.coupling._count_kernels import distances, farthest_windows
from pufferflow.coupling.count_sides import FIRST_STEPS, Counts, Side, most_entries
from pufferflow.coupling.sides import ranges
from pufferflow.coupling.surroundings import Half, Leak, Pair, Surroundings, Warm

FEW_NODES = 12
ALL_SUBSETS = 8
_ALL_PAIRS = 5
_FEW_STATES = 2
_BEST_PAIRS = 2  # of few states, else 1
_MOST_VISITS = 12
_PATIENCE = 3


class LeakSearch:
    """The query that leaks most of one chain, at ``cost``."""

    def __init__(self, around: Surroundings, epsilon: float) -> None:
        self._around, self._epsilon = around, epsilon
        self._possible = around.matrix > 0
        self._warms: dict[tuple[str, int], Warm] = {}
        self.cost = 0.0

    def everywhere(self, cost: float, near: Leak | None) -> Leak | None:
        """The largest leak at a c; near one where it is known."""
        if cost != self.cost:
            self._around.forget()
            self.cost = cost
        leaks: dict[int, Leak | None] = {}

        def value(node: int) -> float:
            if node not in leaks:
                leaks[node] = self._look(node, near)
            leak = leaks[node]
            return -math.inf if leak is None else leak.value

        node = self._nodes(value, leaks) if near is None else near.node
        value(node)
        step = min(node, self._around.last - node) // 3 + 1
        while step and self._around.last > FEW_NODES and not self.even(leaks[node]):
            beside = [n for n in (node - step, node + step) if 1 <= n <= self._around.last]
            better = max(beside, key=value, default=node)
            if value(better) > value(node) * (1 + 1e-9):
                node = better
            else:
                step //= 2
        return leaks[node]

    def _nodes(self, value: Callable[[int], float], leaks: dict[int, Leak | None]) -> int:
        """The best of some nodes: all of few, else both ends, the middle and some that grow as long as that helps."""
        if self._around.last <= FEW_NODES:
            return max(range(1, self._around.last + 1), key=value)
        some = [(self._around.last + 1) // 2]
        value(some[0])
        if self.even(leaks[some[0]]):  # all nodes in the middle are alike, and more entries only tell more
            return some[0]
        some += [1, self._around.last]
        if self._around.chain.start != "stationary" or self._around.reversal is None:
            best, since, node = 1, 0, 2
            while node < self._around.last and since < _PATIENCE:
                best, since = (node, 0) if value(node) > value(best) * (1 + 1e-9) else (best, since + 1)
                node += max(1, node // 2)
            some.append(best)
        return max(some, key=value)

    def even(self, leak: Leak | None) -> bool:
        """Whether other nodes near by are all alike."""
        if leak is None or self._around.chain.start != "stationary" or self._around.reversal is None:
            return False
        if self._around.last > 8 * most_entries(self._around.chain.states):
            return True
        return all(half.counts.entries < half.side.steps for half in (leak.behind, leak.ahead))

    # -- one node -------------------------------------------------------------------------------

    def _look(self, node: int, near: Leak | None = None) -> Leak | None:
        """The query that leaks most of the values of one node; only of pairs ``near`` some, if given."""
        ahead, behind = self._around.ahead(node), self._around.behind(node)
        secrets = self._around.support(node)
        for last, start in self._pairs(secrets) if near is None else [near.ends]:
            self._visit(node, behind, start, ahead, last, near is None)
        best = None
        for _ in range(_MOST_VISITS):
            best = self._joint(node, behind, ahead, secrets)
            if best is None or (best.ends[0] in ahead.visited and best.ends[1] in behind.visited):
                break
            self._visit(node, behind, best.ends[1], ahead, best.ends[0], near is None)
        return best

    def _visit(self, node: int, behind: Half, start: Pair, ahead: Half, last: Pair, rough: bool) -> None:
        rough = rough and self._around.last > FEW_NODES
        ahead.visit(last, self.cost, self._warm("ahead", self._around.length - node), rough)
        behind.visit(start, self.cost, self._warm("behind", node), rough)

    def _pairs(self, secrets: Bools) -> list[tuple[Pair, Pair]]:
        """Values of the last and of the first record to look at: all of few."""
        k = self._around.chain.states
        if k > (_ALL_PAIRS if self._around.last <= FEW_NODES else _FEW_STATES):
            return self._likely(secrets) + (self._of_thresholds(secrets) if self._epsilon > 2 else [])
        pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
        if self._around.window == 1:
            pairs = [(x, y) for x, y in pairs if secrets[x] and secrets[y]]
        return [(pair, pair) for pair in pairs] or [((0, 0), (0, 0))]

    def _warm(self, name: str, at: int) -> Warm:
        return self._warms.setdefault((name, at), {})

    def _likely(self, secrets: Bools) -> list[tuple[Pair, Pair]]:
        """Pairs of values of the last and the first record that are told apart best as c → 0."""
        ahead, behind = self.limits
        secret = secrets[:, None] & secrets[None, :]
        k = self._around.chain.states
        upper = np.triu(np.ones((k, k), dtype=np.bool_), 1)
        if self._around.window == 1:
            scores = np.where(secret & upper, ahead + behind, -np.inf)
            return [both for pair in _largest(scores) for both in ((pair, pair), (pair[::-1], pair[::-1]))]
        last = _largest(np.where(upper, ahead, -np.inf))
        first = _largest(np.where(upper & secret, behind, -np.inf))
        pairs = list(zip(last, first, strict=False))
        return [both for x, y in pairs for both in ((x, y), (x[::-1], y[::-1]))]

    def _of_thresholds(self, secrets: Bools) -> list[tuple[Pair, Pair]]:
        """Pairs of values that the number of entries above, or below, some state tells apart best: for large c."""
        k = self._around.chain.states
        behind = self._around.matrix if self._around.reversal is None else self._around.reversal
        sides = [Side(matrix, min(self._around.length, 4 * FIRST_STEPS)) for matrix in (self._around.matrix, behind)]
        scores = np.full((k, k), -np.inf)
        for threshold in range(1, k):
            for inside in (np.arange(k) >= threshold, np.arange(k) < threshold):
                counts = Counts.of(np.tile(inside, (sides[0].steps, 1)))
                tells = sum(side.about(counts, self.cost) for side in sides) + self.cost * inside
                scores = np.fmax(scores, tells[:, None] - tells[None, :])
        scores = np.where(secrets[:, None] & secrets[None, :] & ~np.eye(k, dtype=np.bool_), scores, -np.inf)
        order = np.argsort(-scores, axis=None)[:_BEST_PAIRS]
        return [(pair, pair) for pair in (divmod(int(at), k) for at in order)]

    @cached_property
    def limits(self) -> tuple[Floats, Floats]:
        """How well pairs of values are told apart as c → 0 by what lies ahead, and behind, about."""
        k = self._around.chain.states
        totals = []
        for matrix in (
            self._around.matrix,
            self._around.matrix if self._around.reversal is None else self._around.reversal,
        ):
            total, power = np.zeros((k, k)), matrix.copy()
            for first, last in ranges(min(self._around.length, 2000), 2 * k**3):
                if distances(constant(matrix), power, last - first, 1e-2, total):
                    break
            totals.append(total)
        return totals[0], totals[1]

    def _joint(self, node: int, behind: Half, ahead: Half, secrets: Bools) -> Leak | None:
        """The two values of the secret that the queries found tell apart best."""
        before, by_before = behind.table()
        after, by_after = ahead.table()
        before = np.where(secrets[:, None] & secrets[None, :], before, -np.inf)
        values = self.windows(before, after)
        if values is None:
            return None
        value, one, other = values
        left = behind.found[by_before[one[0], other[0]]]
        right = ahead.found[by_after[one[-1], other[-1]]]
        return Leak(value, node, (one, other), left, right)

    def windows(self, before: Floats, after: Floats) -> tuple[float, tuple[int, ...], tuple[int, ...]] | None:
        """The windows told apart best, and by how much, from tables of their first and of their last values."""
        k = self._around.chain.states
        cost = self.cost
        first = before + cost * (1 - np.eye(k))
        steps = self._around.window - 1
        best = first.copy()
        back = np.empty((0, k, k), dtype=np.int64)
        if steps:
            back = np.empty((min(steps, 4 * k + 64 if k > 8 else 1024), k, k), dtype=np.int64)
            layers = self._windows(steps, best, back)
            if layers == len(back):
                steps = layers
            back = back[:layers]
        with np.errstate(invalid="ignore"):
            total = best + after
        total = np.where(np.isnan(total), -np.inf, total)
        at = int(total.argmax())
        value = float(total.ravel()[at])
        if not value > 0:
            return None
        path = [at]
        for t in range(steps, 0, -1):
            path.append(int(back[min(t, len(back)) - 1].ravel()[path[-1]]))
        path.reverse()
        return value, tuple(p // k for p in path), tuple(p % k for p in path)

    def _windows(self, steps: int, best: Floats, back: Ints) -> int:
        """Fill in the pairs of windows that differ most, as :func:`farthest_windows`; how many layers of ``back``."""
        for part in ranges(len(back), 2 * len(best) ** 3):
            if filled := farthest_windows(self._possible, self.cost, steps, best, back, part):
                return filled
        return len(back)


def _largest(scores: Floats) -> list[Pair]:
    """Where some of the largest entries are."""
    order = np.argsort(-scores, axis=None)[: _BEST_PAIRS if len(scores) <= ALL_SUBSETS else 1]
    return [divmod(int(at), scores.shape[1]) for at in order if scores.ravel()[at] > -np.inf]
