"""The least c at which a query leaks more than ε."""

from __future__ import annotations

import math

import numpy as np

from pufferflow._types import Bools
from pufferflow.coupling.count_sides import FIRST_STEPS, Counts, Found, Side
from pufferflow.coupling.leak_search import ALL_SUBSETS, FEW_NODES, LeakSearch
from pufferflow.coupling.roots import least_cost
from pufferflow.coupling.sides import reached
from pufferflow.coupling.surroundings import Leak, Surroundings, apart_by

_ROUNDS = 8
_ENOUGH = 1e-5  # the next round would gain about its square
_MANY_ENTRIES, _MOST_STATES = 512, 64
"""From so many entries on powers of the matrix take less time than steps; products of matrices of more states may be
shared among threads, which changes their last bits.
"""


class CostSearch:
    """The query of one chain that leaks more than ε at the least c."""

    def __init__(self, around: Surroundings, epsilon: float) -> None:
        self._around, self._epsilon, self._search = around, epsilon, LeakSearch(around, epsilon)

    def best(self, changing: bool) -> tuple[Leak, float] | None:
        """The query and c, None where there is nothing to hide; by one set for all entries unless ``changing``."""
        alone = self._alone()
        if alone is None:
            return None
        differ = sum(x != y for x, y in zip(*alone.secrets, strict=True))
        largest = self._epsilon / differ
        if not 1e-8 < self._epsilon <= 200:
            return alone, largest
        cost = min(largest, self._epsilon / (self._around.window + sum(d.max() for d in self._search.limits)))
        best, least, near = alone, largest, None
        again = self._around.last <= FEW_NODES or self._epsilon > 2
        for _ in range(_ROUNDS):
            leak = self._search.everywhere(cost, near)
            if leak is None:
                break
            tolerance = 1e-6 if near is None else 1e-12
            needed = least_cost(leak.about, self._epsilon, min(cost, largest), largest, tolerance)
            improved = needed < least * (1 - _ENOUGH)
            if needed < least:
                best, least, cost = leak, needed, needed
            if not improved and (near is None or not again):
                break
            near, again = (leak, again) if improved else (None, False)
        plain, needed = self._one_set(best, least, alone, largest, not changing)
        if not changing or needed <= least * (1 + 1e-9):
            best, least = plain, needed
        if best is alone:
            return alone, largest
        for margin in (1e-12, 1e-11, 1e-10, 1e-9):  # what rounding takes
            if best.nats(least * (1 + margin)) > self._epsilon:
                least *= 1 + margin
                break
        else:
            least = least_cost(best.nats, self._epsilon, least, largest, 1e-9)
        return best if least < largest else alone, least

    def _one_set(self, best: Leak, cost: float, alone: Leak, largest: float, thorough: bool) -> tuple[Leak, float]:
        """The query with the same S for all entries that needs the least c found, and that c.

        It starts from the states that are likelier on the whole under the best query, and changes the set as long as
        that leaks more: all sets are tried where states are few, else, if ``thorough``, those that gain or lose one
        state.
        """
        chosen = self._likelier(best, cost)
        plain, least = alone, largest
        self._search.cost = cost
        places = self._places(best) if thorough and not self._search.even(best) else [best]
        while self._around.length > self._around.window:
            if not thorough:
                trials = [chosen]
            else:
                trials = _subsets(len(chosen)) if len(chosen) <= ALL_SUBSETS else _changed(chosen)
            leaks = [self._of_one_set(place, one) for place in places for one in trials]
            leak = max(leaks, key=lambda one: one.value)
            needed = least_cost(leak.about, self._epsilon, min(self._search.cost, largest), largest, 1e-10)
            if not needed < least * (1 - 1e-9):
                break
            plain, least, self._search.cost = leak, needed, needed
            assert leak.one is not None
            chosen = leak.one
            if not thorough:
                break
        return plain, least

    def _places(self, best: Leak) -> list[Leak]:
        """The same query at other nodes, as far as their sides are known without it."""
        last = self._around.last
        nodes = range(1, last + 1) if last <= FEW_NODES else {1, (last + 1) // 2, last}
        places = [best]
        for node in nodes:
            before, after = self._around.behind(node).sides, self._around.ahead(node).sides
            if before and after:
                left, right = best.behind._replace(side=before[0]), best.ahead._replace(side=after[0])
                places.append(Leak(0.0, node, best.secrets, left, right))
        return places

    def _of_one_set(self, best: Leak, one: Bools) -> Leak:
        """What the best query leaks when it counts one set throughout."""
        halves = []
        for half in (best.behind, best.ahead):
            counts = _throughout(half, one)
            halves.append(Found(half.side, counts, half.side.about(counts, self._search.cost)))
        before, after = (apart_by(half.tells) for half in halves)
        secrets = self._around.support(best.node)
        before = np.where(secrets[:, None] & secrets[None, :], before, -np.inf)
        if self._around.window == 1:  # in place of c for values that differ
            before += self._search.cost * (one[:, None] * 1.0 - one[None, :] - 1 + np.eye(len(one)))
        values = self._search.windows(before, after)
        if values is None:
            return best._replace(value=-math.inf, one=one)
        return Leak(values[0], best.node, values[1:], halves[0], halves[1], one)

    def _likelier(self, best: Leak, cost: float) -> Bools:
        total = np.zeros(self._around.chain.states)
        for half, at in ((best.behind, 0), (best.ahead, -1)):
            pair = best.secrets[0][at], best.secrets[1][at]
            if len(half.counts.sets) and pair[0] != pair[1]:
                half.side.add_gains(half.counts, cost, pair, total)
        return total > 0

    def _alone(self) -> Leak | None:
        """What the secret leaks by itself, at a node with two possible values; None where there is nothing to hide."""
        k = self._around.chain.states
        self._search.cost = 1.0
        side = Side(self._around.matrix, 0)
        nothing = Found(side, side.none(), np.zeros(k))
        zeros = np.zeros((k, k))
        best = None
        states = self._around.chain.initial_support
        for node in range(1, min(self._around.length - self._around.window + 1, k**2 + 1) + 1):
            values = self._search.windows(np.where(states[:, None] & states[None, :], zeros, -np.inf), zeros)
            if values is not None and (best is None or values[0] > best.value):
                best = Leak(values[0], node, values[1:], nothing, nothing)
                if values[0] == self._around.window:
                    break
            states = reached(states, self._around.matrix)
        self._search.cost = 0.0
        return best


def _throughout(half: Found, one: Bools) -> Counts:
    """The count of one set at all entries of a side that may matter."""
    side = half.side
    near = side.steps if side.exact else min(side.steps, max(FIRST_STEPS, 2 * len(half.counts.sets)))
    entries = side.steps + side.beyond if half.counts.repeats else near
    # powers lose what leads to an unlikely end, steps do not
    powers = side.end is None and near >= _MANY_ENTRIES and side.states <= _MOST_STATES
    single = 0 if powers else near
    return Counts(np.tile(one, (single, 1)), one[None, :], entries - single)


def _subsets(states: int) -> list[Bools]:
    """All sets of states but the empty and the full one."""
    return [np.array([bool(mask >> x & 1) for x in range(states)]) for mask in range(1, 2**states - 1)]


def _changed(one: Bools) -> list[Bools]:
    """A set and those that differ from it in one state."""
    return [one, *(one ^ (np.arange(len(one)) == x) for x in range(len(one)))]
