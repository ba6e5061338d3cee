"""Scales below which no Laplace noise is private: Theorems 9 and 10 of ``docs/leakage.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._display import displayed
from pufferflow._protection import Knowledge, Protection, check_protection
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling._count_kernels import distances, farthest_windows
from pufferflow.coupling.count_sides import FIRST_STEPS, Counts, End, Found, FreeStart, Side, lost_of, most_entries
from pufferflow.coupling.sides import reached
from pufferflow.errors import ChainError
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import AnyFamily, as_family

Integers: TypeAlias = NDArray[np.int64]
Pair: TypeAlias = tuple[int, int]
Sets: TypeAlias = tuple[tuple[int, ...], ...]
Runs: TypeAlias = tuple[tuple[int, Sets], ...]
Warm: TypeAlias = dict[tuple[int, Pair], Counts]

_WINDOW = 20_000
"""Entries on a side that are counted at most, unless rounding allows for more."""

_LONGEST_WINDOW = 4096
_ALL_PAIRS = 5
_FEW_STATES = 2
_BEST_PAIRS = 2  # of few states, else 1
_MOST_VISITS = 12
_ROUNDS = 8
_FEW_NODES = 12
_ALL_SUBSETS = 8
_PATIENCE = 3
_ENOUGH = 1e-5  # the next round would gain about its square
_LONGEST_CYCLE = 8


@dataclass(frozen=True)
@displayed("epsilon", "length", "scale", "node", "pair", "states", "secret_window", "knows")
class LowerBound:
    """A scale that is too small, and why: Laplace noise of a smaller scale on a count of visits is not private.

    The query is the number of entries t with a state in S_t; :meth:`counted` gives S_t.

    Attributes
    ----------
    epsilon : float
    length : int
        The segment length that decides.
    scale : float
        Every Laplace scale below it breaks ε for the count; rounded down.
    node : int
        The entry that leaks, 1-based; the first of them where ``secret_window`` are the secret.
    pair : tuple of int
        The two values of that entry, as indices of states, that can be told apart. Where no entry has two values
        ``scale`` is 0.
    states : tuple of int
        S_t at the node.
    alternating : bool
        Whether S_t is ``states`` at even distances from the node and its complement at odd ones, where it is counted.
    before, after : int
        How many entries on either side of the node, or of the window, are counted.
    chain : int
        Index in the family, from 0, of the chain that decides.
    changing : bool
        Whether S_t changes with time in another way than ``alternating`` says.
    earlier, later : tuple of (int, tuple of tuple of int)
        S_t of the entries counted before and after the secret, with growing distance: how often a row of sets is
        repeated, and the row.
    secrets : tuple of two tuples of int
        The two values of the secret: of ``secret_window`` records, or of as many as are needed.
    secret_window : int
        w, the consecutive records that are to be hidden.
    knows : {"nothing", "any records"}
        Whom from.
    known : tuple of pair of int
        Records that whoever learns ε knows: entry, 1-based, and value.
    initial_law : tuple of float, optional
        The law of the first record for which this holds, where the chain has a given one or any.
    """

    epsilon: float
    length: int
    scale: float
    node: int
    pair: Pair
    states: tuple[int, ...]
    alternating: bool
    before: int
    after: int
    chain: int
    changing: bool = False
    earlier: Runs = ()
    later: Runs = ()
    secrets: tuple[tuple[int, ...], tuple[int, ...]] = ((0,), (0,))
    secret_window: int = 1
    knows: Knowledge = "nothing"
    known: tuple[Pair, ...] = ()
    initial_law: tuple[float, ...] | None = None

    @property
    def window(self) -> int:
        """How far from the node entries are counted at most."""
        return max(self.before, self.after)

    def counted(self, entry: int) -> tuple[int, ...]:
        """S_t of one entry, 1-based: the states that the query counts there, none beyond those it looks at."""
        offset = entry - self.node
        if 0 <= offset < len(self.secrets[0]):
            here, other = (values[offset] for values in self.secrets)
            if len(self.secrets[0]) == 1:
                return self.states
            return (here,) if here != other else ()
        if offset < 0:
            return _at(self.earlier, -offset)
        return _at(self.later, offset - len(self.secrets[0]) + 1)


def _at(runs: Runs, distance: int) -> tuple[int, ...]:
    for repeats, sets in runs:
        if distance <= repeats * len(sets):
            return sets[(distance - 1) % len(sets)]
        distance -= repeats * len(sets)
    return ()


def lower_bound(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    alternating: bool = True,
    window: int = 1,
    knows: Knowledge = "nothing",
) -> LowerBound:
    """Largest scale found below which Laplace noise on a 1-Lipschitz count is not ε-Pufferfish private.

    Noise of scale σ on the number N of entries t with a state in S_t leaks, for outputs beyond all counts, exactly the
    logarithm of E[e^(N/σ) | X_i = x] / E[e^(N/σ) | X_i = x'], a product of transfer matrices. The sets S_t are found
    one after another, for the pair of values that leaks most; where none of them can be improved, no other 1-Lipschitz
    query tells these two values apart better, counts or not. Any sets give a valid bound. Beside
    :func:`pufferflow.leakage` it says how far that scale can be from the best one.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; some chain of it is enough, the worst one is reported.
    length : int or sequence of int
    epsilon : float
        ε > 0. Below about 1e-8, where rounding leaves little of the leaks, and above 200 the bound is 1/ε times the
        records that can differ, the scale that the secret itself needs.
    alternating : bool
        Whether sets may change with time; else one S counts for all entries outside the window.
    window : int
        w ≥ 1: secrets are the values of w consecutive records, or of all of a shorter segment.
    knows : {"nothing", "any records"}
        Whether any other records of the segment may be known.

    Raises
    ------
    ParameterError
        ε, a length, the window or ``knows`` is out of range.
    ChainError
        The family is an interval family, which has no list of chains; give chains of it.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    protection = check_protection(window, knows)
    bounds = [
        _Search(chain, records, epsilon, protection).bound(i, alternating)
        for i, chain in enumerate(as_family(family).chains)
    ]
    return max(bounds, key=lambda bound: bound.scale)


class _Leak(NamedTuple):
    """A query and two values of a secret that it tells apart; ``value`` in nats, about."""

    value: float
    node: int
    secrets: tuple[tuple[int, ...], tuple[int, ...]]
    behind: Found
    ahead: Found
    one: Bools | None = None
    """The set that counts throughout, where the search was for one."""

    @property
    def _own(self) -> int:
        """How much more the secret's own entries count of the first value than of the second."""
        first, second = self.secrets
        if self.one is not None and len(first) == 1:
            return int(self.one[first[0]]) - int(self.one[second[0]])
        return sum(x != y for x, y in zip(first, second, strict=True))

    @property
    def ends(self) -> tuple[Pair, Pair]:
        """The two values of the last and of the first record of the secret."""
        first, second = self.secrets
        return (first[-1], second[-1]), (first[0], second[0])

    def about(self, cost: float) -> float:
        """What the query leaks at another c, without a promise."""
        (first, second), differ = self.secrets, self._own
        before = self.behind.side.about(self.behind.counts, cost)
        after = self.ahead.side.about(self.ahead.counts, cost)
        value = float(differ * cost + before[first[0]] - before[second[0]] + after[first[-1]] - after[second[-1]])
        return value if math.isfinite(value) else -math.inf

    def nats(self, cost: float) -> float:
        """The same, rounded down."""
        (first, second), differ = self.secrets, self._own
        before, error = self.behind.side.tells(self.behind.counts, cost)
        after, other = self.ahead.side.tells(self.ahead.counts, cost)
        value = differ * cost + (before[first[0]] - before[second[0]]) + (after[first[-1]] - after[second[-1]])
        size = (
            differ * cost + np.abs(before[[first[0], second[0]]]).sum() + np.abs(after[[first[-1], second[-1]]]).sum()
        )
        lower = float(value - error - other - 16 * UNIT_ROUNDOFF * size)
        return lower if math.isfinite(lower) else -math.inf


class _Half:
    """The sides that the entries before, or after, a secret may be; queries found at one c."""

    def __init__(self, sides: list[Side], free: FreeStart | None, settled: dict[Pair, Found], states: int) -> None:
        self.sides, self.free, self._settled = sides, free, settled
        self._nothing = np.full((states, states), -np.inf)
        self.found: list[Found] = []
        self.visited: set[Pair] = set()

    def visit(self, pair: Pair, cost: float, warm: Warm, rough: bool) -> None:
        """Find what tells two values apart best."""
        if pair in self.visited:
            return
        self.visited.add(pair)
        known = self._settled.get(pair)
        if known is not None and known.counts.entries <= self.sides[0].steps:
            self.found.append(known._replace(side=self.sides[0]))
            return
        best: tuple[float, Side, Counts] | None = None
        for j, side in enumerate(self.sides):
            value, counts = side.best(pair, cost, warm.get((j, pair)), rough=rough)
            warm[j, pair] = counts
            if best is None or value > best[0]:
                best = value, side, counts
        if self.free is not None:
            freely = self.free.best(pair, cost)
            if freely is not None and (best is None or freely[0] > best[0]):
                best = freely
        if best is None:
            return
        _, side, counts = best
        found = Found(side, counts, side.about(counts, cost))
        self.found.append(found)
        if self.free is None and len(self.sides) == 1 and side.end is None and counts.entries < side.steps:
            self._settled[pair] = found  # more entries would change nothing

    def table(self) -> tuple[Floats, Floats]:
        """What the queries found tell of two values at most, −∞ where unknown, shape (k, k), and which of them does."""
        if not self.found:
            return self._nothing, np.zeros_like(self._nothing, dtype=np.int64)
        tells = np.array([one.tells for one in self.found])
        apart = tells[:, :, None] - tells[:, None, :]
        apart = np.where(np.isnan(apart), -np.inf, apart)
        return apart.max(axis=0), apart.argmax(axis=0)


class _Search:
    """The query that leaks most of one chain."""

    def __init__(self, chain: MarkovChain, length: int, epsilon: float, protection: Protection) -> None:
        self.names = np.arange(chain.states)
        if chain.start == "stationary":
            self.names = np.flatnonzero(chain.initial_support)
            chain = chain.restricted(chain.initial_support)
        self.chain, self.length, self.epsilon = chain, length, epsilon
        self.asked, self.knows = protection.window, protection.knows
        self.window = min(self.asked, length, _LONGEST_WINDOW)
        self.matrix = np.ascontiguousarray(chain.transition_matrix)
        self.possible = self.matrix > 0
        # so many entries that rounding stays far below ε
        self.most = int(max(_WINDOW, 1e-7 * epsilon / (4.0 * (chain.states + 8) * UNIT_ROUNDOFF)))
        self.warm: dict[tuple[str, int], Warm] = {}
        self.halves: dict[tuple[str, int], _Half] = {}
        self.settled: dict[str, dict[Pair, Found]] = {}
        self.laws: dict[int, End] = {}
        self.supports = [chain.initial_support]
        self.cost = 0.0

    @cached_property
    def reversal(self) -> Floats | None:
        """P* of a chain that may be stationary; None where it cannot be trusted."""
        reversal = None
        if self.chain.start != "given" and self.chain.is_irreducible:
            with suppress(ChainError):  # stationary probabilities too small to divide by
                reversal = self.chain.time_reversal
        if reversal is not None and reversal[self.matrix.T > 0].min() < SAFE_MINIMUM:
            reversal = None
        return reversal

    # -- sides ----------------------------------------------------------------------------------

    def _ahead(self, node: int) -> _Half:
        steps = self.length - node - self.window + 1
        return self._half("ahead", steps)

    def _behind(self, node: int) -> _Half:
        return self._half("behind", node - 1)

    def _half(self, name: str, steps: int) -> _Half:
        key = name, steps
        if key not in self.halves:
            sides = list(self._ahead_sides(steps) if name == "ahead" else self._behind_sides(steps))
            free = None
            # far from the start the stationary law does as well
            far = self.reversal is not None and steps > most_entries(self.chain.states)
            if name == "behind" and self.chain.start == "any" and steps and not far:
                free = FreeStart(self.matrix, steps)
            settled = self.settled.setdefault(name, {})
            self.halves[key] = _Half(sides, free, settled, self.chain.states)
        return self.halves[key]

    def _ahead_sides(self, steps: int) -> Iterator[Side]:
        yield Side(self.matrix, min(steps, self.most))
        if self.knows != "nothing":
            for distance in _grid(min(steps, most_entries(self.chain.states))):
                for z in range(self.chain.states):
                    yield self._known(self.matrix, distance, z, distance)

    def _known(self, matrix: Floats, distance: int, value: int, where: int) -> Side:
        end = End(np.eye(self.chain.states)[value])
        return Side(matrix, distance, lambda n: end, exact=True, known=(where, value))

    def _behind_sides(self, steps: int) -> Iterator[Side]:
        back = np.ascontiguousarray(self.matrix.T)
        if not steps:
            yield Side(back, 0)
            return
        error = 4 * self.chain.stationary_error if self.chain.start != "given" else 0.0
        if self.reversal is not None:
            # in products of P*(x, y) = π(y) P(y, x)/π(x) only the first and the last π remain
            meant = self.chain.stationary_distribution if self.chain.start == "any" else None
            yield Side(self.reversal, min(steps, self.most), error=error, law=meant)
        elif self.chain.start != "any":
            near = min(steps, most_entries(self.chain.states))
            yield Side(back, near, lambda n: self._law(steps - n), error=error)
        if self.knows != "nothing":
            for distance in _grid(min(steps, most_entries(self.chain.states))):
                for y in np.flatnonzero(self._support(steps - distance + 1)):
                    yield self._known(back, distance, int(y), -distance)

    def _law(self, steps: int) -> End:
        """Law of X_{steps + 1}."""
        if steps not in self.laws:
            law = self.chain.initial_distribution
            assert law is not None
            if steps and self.chain.start == "given":
                law = law @ np.linalg.matrix_power(self.matrix, steps)
            law = np.ascontiguousarray(law)
            self.laws[steps] = End(law, lost_of(law), 8.0 * (self.chain.states + 8) * UNIT_ROUNDOFF * steps)
        return self.laws[steps]

    def _support(self, node: int) -> Bools:
        """Values that an entry can take."""
        seen = self.supports
        while len(seen) < node:
            following = reached(seen[-1], self.matrix)
            if (following == seen[-1]).all():
                return following
            if len(seen) > self.chain.states**2:  # by now they repeat themselves
                for period in range(1, len(seen)):
                    if (seen[-period] == following).all():
                        return seen[len(seen) - period + (node - len(seen) - 1) % period]
            seen.append(following)
        return seen[node - 1]

    # -- one node -------------------------------------------------------------------------------

    def _look(self, node: int, near: _Leak | None = None) -> _Leak | None:
        """The query that leaks most of the values of one node; only of pairs ``near`` some, if given."""
        ahead, behind = self._ahead(node), self._behind(node)
        secrets = self._support(node)
        for last, start in self._pairs(secrets) if near is None else [near.ends]:
            self._visit(node, behind, start, ahead, last, near is None)
        best = None
        for _ in range(_MOST_VISITS):
            best = self._joint(node, behind, ahead, secrets)
            if best is None or (best.ends[0] in ahead.visited and best.ends[1] in behind.visited):
                break
            self._visit(node, behind, best.ends[1], ahead, best.ends[0], near is None)
        return best

    def _visit(self, node: int, behind: _Half, start: Pair, ahead: _Half, last: Pair, rough: bool) -> None:
        rough = rough and self._last > _FEW_NODES
        ahead.visit(last, self.cost, self._warm("ahead", self.length - node), rough)
        behind.visit(start, self.cost, self._warm("behind", node), rough)

    def _pairs(self, secrets: Bools) -> list[tuple[Pair, Pair]]:
        """Values of the last and of the first record to look at: all of few."""
        k = self.chain.states
        if k > (_ALL_PAIRS if self._last <= _FEW_NODES else _FEW_STATES):
            return self._likely(secrets) + (self._of_thresholds(secrets) if self.epsilon > 2 else [])
        pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
        if self.window == 1:
            pairs = [(x, y) for x, y in pairs if secrets[x] and secrets[y]]
        return [(pair, pair) for pair in pairs] or [((0, 0), (0, 0))]

    def _warm(self, name: str, at: int) -> Warm:
        return self.warm.setdefault((name, at), {})

    def _likely(self, secrets: Bools) -> list[tuple[Pair, Pair]]:
        """Pairs of values of the last and the first record that are told apart best as c → 0."""
        ahead, behind = self._distances
        secret = secrets[:, None] & secrets[None, :]
        k = self.chain.states
        upper = np.triu(np.ones((k, k), dtype=np.bool_), 1)
        if self.window == 1:
            scores = np.where(secret & upper, ahead + behind, -np.inf)
            return [both for pair in _largest(scores) for both in ((pair, pair), (pair[::-1], pair[::-1]))]
        last = _largest(np.where(upper, ahead, -np.inf))
        first = _largest(np.where(upper & secret, behind, -np.inf))
        pairs = list(zip(last, first, strict=False))
        return [both for x, y in pairs for both in ((x, y), (x[::-1], y[::-1]))]

    def _of_thresholds(self, secrets: Bools) -> list[tuple[Pair, Pair]]:
        """Pairs of values that the number of entries above, or below, some state tells apart best: for large c."""
        k = self.chain.states
        behind = self.matrix if self.reversal is None else self.reversal
        sides = [Side(matrix, min(self.length, 4 * FIRST_STEPS)) for matrix in (self.matrix, behind)]
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
    def _distances(self) -> tuple[Floats, Floats]:
        k = self.chain.states
        totals = []
        for matrix in (self.matrix, self.matrix if self.reversal is None else self.reversal):
            total = np.zeros((k, k))
            distances(np.ascontiguousarray(matrix), min(self.length, 2000), 1e-2, total)
            totals.append(total)
        return totals[0], totals[1]

    def _joint(self, node: int, behind: _Half, ahead: _Half, secrets: Bools) -> _Leak | None:
        """The two values of the secret that the queries found tell apart best."""
        before, by_before = behind.table()
        after, by_after = ahead.table()
        before = np.where(secrets[:, None] & secrets[None, :], before, -np.inf)
        values = self._windows(before, after)
        if values is None:
            return None
        value, one, other = values
        left = behind.found[by_before[one[0], other[0]]]
        right = ahead.found[by_after[one[-1], other[-1]]]
        return _Leak(value, node, (one, other), left, right)

    def _windows(self, before: Floats, after: Floats) -> tuple[float, tuple[int, ...], tuple[int, ...]] | None:
        k = self.chain.states
        cost = self.cost
        first = before + cost * (1 - np.eye(k))
        steps = self.window - 1
        best = first.copy()
        back = np.empty((0, k, k), dtype=np.int64)
        if steps:
            back = np.empty((min(steps, 4 * k + 64 if k > 8 else 1024), k, k), dtype=np.int64)
            layers = farthest_windows(self.possible, first, cost, steps, best, back)
            if layers == len(back):
                steps = layers
            back = back[:layers]
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

    # -- the scale ------------------------------------------------------------------------------

    @property
    def _last(self) -> int:
        """Where the last secret begins."""
        return self.length - self.window + 1

    def _nodes(self, value: Callable[[int], float], found: dict[int, _Leak | None]) -> int:
        """The best of some nodes: all of few, else both ends, the middle and some that grow as long as that helps."""
        if self._last <= _FEW_NODES:
            return max(range(1, self._last + 1), key=value)
        some = [(self._last + 1) // 2]
        value(some[0])
        if self._even(found[some[0]]):  # all nodes in the middle are alike, and more entries only tell more
            return some[0]
        some += [1, self._last]
        if self.chain.start != "stationary" or self.reversal is None:
            best, since, node = 1, 0, 2
            while node < self._last and since < _PATIENCE:
                best, since = (node, 0) if value(node) > value(best) * (1 + 1e-9) else (best, since + 1)
                node += max(1, node // 2)
            some.append(best)
        return max(some, key=value)

    def _everywhere(self, cost: float, near: _Leak | None) -> _Leak | None:
        """The largest leak at a c; near one where it is known."""
        if cost != self.cost:
            self.halves, self.settled, self.cost = {}, {}, cost
        found: dict[int, _Leak | None] = {}

        def value(node: int) -> float:
            if node not in found:
                found[node] = self._look(node, near)
            leak = found[node]
            return -math.inf if leak is None else leak.value

        node = self._nodes(value, found) if near is None else near.node
        value(node)
        step = min(node, self._last - node) // 3 + 1
        while step and self._last > _FEW_NODES and not self._even(found[node]):
            beside = [n for n in (node - step, node + step) if 1 <= n <= self._last]
            better = max(beside, key=value, default=node)
            if value(better) > value(node) * (1 + 1e-9):
                node = better
            else:
                step //= 2
        return found[node]

    def _even(self, leak: _Leak | None) -> bool:
        """Whether other nodes near by are all alike."""
        if leak is None or self.chain.start != "stationary" or self.reversal is None:
            return False
        if self._last > 8 * most_entries(self.chain.states):
            return True
        return all(half.counts.entries < half.side.steps for half in (leak.behind, leak.ahead))

    def bound(self, index: int, changing: bool) -> LowerBound:
        """The bound, of the chain with this index in its family; by one set for all entries unless ``changing``."""
        alone = self._alone()
        if alone is None:
            return LowerBound(
                self.epsilon,
                self.length,
                0.0,
                1,
                (0, 0),
                (),
                False,
                0,
                0,
                index,
                secret_window=self.asked,
                knows=self.knows,
            )
        differ = sum(x != y for x, y in zip(*alone.secrets, strict=True))
        largest = self.epsilon / differ
        if not 1e-8 < self.epsilon <= 200:
            return self._stated(alone, largest, index)
        cost = min(largest, self.epsilon / (self.window + sum(d.max() for d in self._distances)))
        best, least, near = alone, largest, None
        again = self._last <= _FEW_NODES or self.epsilon > 2
        for _ in range(_ROUNDS):
            leak = self._everywhere(cost, near)
            if leak is None:
                break
            tolerance = 1e-6 if near is None else 1e-12
            needed = _least_cost(leak.about, self.epsilon, min(cost, largest), largest, tolerance)
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
            return self._stated(alone, largest, index)
        for margin in (1e-12, 1e-11, 1e-10, 1e-9):  # what rounding takes
            if best.nats(least * (1 + margin)) > self.epsilon:
                least *= 1 + margin
                break
        else:
            least = _least_cost(best.nats, self.epsilon, least, largest, 1e-9)
        return self._stated(best if least < largest else alone, least, index)

    def _one_set(self, best: _Leak, cost: float, alone: _Leak, largest: float, thorough: bool) -> tuple[_Leak, float]:
        """The query with the same S for all entries that needs the least c found, and that c.

        It starts from the states that are likelier on the whole under the best query, and changes the set as long as
        that leaks more: all sets are tried where states are few, else, if ``thorough``, those that gain or lose one
        state.
        """
        chosen = self._likelier(best, cost)
        plain, least = alone, largest
        self.cost = cost
        places = self._places(best) if thorough and not self._even(best) else [best]
        while self.length > self.window:
            if not thorough:
                trials = [chosen]
            else:
                trials = _subsets(self.chain.states) if self.chain.states <= _ALL_SUBSETS else _changed(chosen)
            leaks = [self._of_one_set(place, one) for place in places for one in trials]
            leak = max(leaks, key=lambda one: one.value)
            needed = _least_cost(leak.about, self.epsilon, min(self.cost, largest), largest, 1e-10)
            if not needed < least * (1 - 1e-9):
                break
            plain, least, self.cost = leak, needed, needed
            assert leak.one is not None
            chosen = leak.one
            if not thorough:
                break
        return plain, least

    def _places(self, best: _Leak) -> list[_Leak]:
        """The same query at other nodes, as far as their sides are known without it."""
        nodes = range(1, self._last + 1) if self._last <= _FEW_NODES else {1, (self._last + 1) // 2, self._last}
        places = [best]
        for node in nodes:
            before, after = self._behind(node).sides, self._ahead(node).sides
            if before and after:
                left, right = best.behind._replace(side=before[0]), best.ahead._replace(side=after[0])
                places.append(_Leak(0.0, node, best.secrets, left, right))
        return places

    def _of_one_set(self, best: _Leak, one: Bools) -> _Leak:
        """What the best query leaks when it counts one set throughout."""
        found = []
        for half in (best.behind, best.ahead):
            most = (
                half.side.steps
                if half.side.exact
                else min(half.side.steps, max(FIRST_STEPS, 2 * len(half.counts.sets)))
            )
            counts = Counts(np.tile(one, (most, 1)), one[None, :])
            if half.counts.repeats and half.side.end is None:
                counts = counts._replace(repeats=half.side.steps - most)
            found.append(Found(half.side, counts, half.side.about(counts, self.cost)))
        before, after = (np.nan_to_num(f.tells[:, None] - f.tells[None, :], nan=-np.inf) for f in found)
        secrets = self._support(best.node)
        before = np.where(secrets[:, None] & secrets[None, :], before, -np.inf)
        if self.window == 1:  # in place of c for values that differ
            before += self.cost * (one[:, None] * 1.0 - one[None, :] - 1 + np.eye(len(one)))
        values = self._windows(before, after)
        if values is None:
            return best._replace(value=-math.inf, one=one)
        return _Leak(values[0], best.node, values[1:], found[0], found[1], one)

    def _likelier(self, best: _Leak, cost: float) -> Bools:
        total = np.zeros(self.chain.states)
        for half, at in ((best.behind, 0), (best.ahead, -1)):
            pair = best.secrets[0][at], best.secrets[1][at]
            if len(half.counts.sets) and pair[0] != pair[1]:
                half.side.add_gains(half.counts, cost, pair, total)
        return total > 0

    def _alone(self) -> _Leak | None:
        """What the secret leaks by itself, at a node with two possible values; None where there is nothing to hide."""
        k = self.chain.states
        self.cost = 1.0
        side = Side(self.matrix, 0)
        nothing = Found(side, side.none(), np.zeros(k))
        zeros = np.zeros((k, k))
        best = None
        states = self.chain.initial_support
        for node in range(1, min(self.length - self.window + 1, k**2 + 1) + 1):
            values = self._windows(np.where(states[:, None] & states[None, :], zeros, -np.inf), zeros)
            if values is not None and (best is None or values[0] > best.value):
                best = _Leak(values[0], node, values[1:], nothing, nothing)
                if values[0] == self.window:
                    break
            states = reached(states, self.matrix)
        self.cost = 0.0
        return best

    def _stated(self, leak: _Leak, cost: float, index: int) -> LowerBound:
        """The bound in the names of the family's states."""
        (one, other), names = leak.secrets, self.names
        earlier, later = (_runs(half.counts, names) for half in (leak.behind, leak.ahead))
        here: tuple[int, ...] = (int(names[one[0]]),)
        alternating = changing = False
        if len(one) == 1 and (earlier or later):
            kind = _kind(leak)
            if kind is None:
                changing = True
            else:
                here, alternating = tuple(names[kind[0]].tolist()), kind[1]
        known = tuple(
            (node + d, int(names[z]))
            for half, node in ((leak.behind, leak.node), (leak.ahead, leak.node + len(one) - 1))
            if half.side.known is not None
            for d, z in [half.side.known]
        )
        law = leak.behind.side.law
        return LowerBound(
            self.epsilon,
            self.length,
            _below(1 / cost),
            leak.node,
            (int(names[one[0]]), int(names[other[0]])),
            here,
            alternating,
            leak.behind.counts.entries,
            leak.ahead.counts.entries,
            index,
            changing,
            earlier,
            later,
            (tuple(names[list(one)].tolist()), tuple(names[list(other)].tolist())),
            self.asked,
            self.knows,
            known,
            None if law is None else tuple(law.tolist()),
        )


def _subsets(states: int) -> list[Bools]:
    """All sets of states but the empty and the full one."""
    return [np.array([bool(mask >> x & 1) for x in range(states)]) for mask in range(1, 2**states - 1)]


def _changed(one: Bools) -> list[Bools]:
    """A set and those that differ from it in one state."""
    return [one, *(one ^ (np.arange(len(one)) == x) for x in range(len(one)))]


def _kind(leak: _Leak) -> tuple[Bools, bool] | None:
    """S and whether it alternates with its complement, where that is what the query counts."""
    if leak.one is not None:
        return leak.one, False
    x, y = leak.secrets[0][0], leak.secrets[1][0]
    for alternating in (False, True):
        rows = []
        for counts in (leak.behind.counts, leak.ahead.counts):
            some = np.concatenate([counts.sets, *[counts.cycle] * min(counts.repeats, 2)])
            if alternating and counts.repeats and len(counts.cycle) % 2:
                return None
            odd = (np.arange(1, len(some) + 1) % 2 == 1) & alternating
            rows.append(some ^ odd[:, None])
        every = np.concatenate(rows)
        if (every == every[0]).all() and every[0, x] and not every[0, y]:
            return every[0], alternating
    return None


def _largest(scores: Floats) -> list[Pair]:
    """Where some of the largest entries are."""
    order = np.argsort(-scores, axis=None)[: _BEST_PAIRS if len(scores) <= _ALL_SUBSETS else 1]
    return [divmod(int(at), scores.shape[1]) for at in order if scores.ravel()[at] > -np.inf]


def _grid(most: int) -> Iterator[int]:
    """Distances of a known record: all small ones, then ever fewer."""
    distance = 1
    while distance <= most:
        yield distance
        distance = max(distance + 1, distance * 5 // 4)


def _runs(counts: Counts, names: Integers) -> Runs:
    """Sets in a row as repeated rows of sets, in the names of states."""
    sets = counts.sets
    ends: list[Integers] = []  # for each period, where it is broken
    runs: list[tuple[int, Sets]] = []

    def named(rows: Bools) -> Sets:
        return tuple(tuple(names[row].tolist()) for row in rows)

    def repeats(period: int, at: int) -> int:
        while len(ends) < period:
            p = len(ends) + 1
            broken = np.flatnonzero((sets[p:] != sets[:-p]).any(axis=1))
            ends.append(np.append(broken, max(len(sets) - p, 0)))
        return int(ends[period - 1][np.searchsorted(ends[period - 1], at)] - at) // period + 1

    at = 0
    while at < len(sets):
        best = repeats(1, at), 1
        for period in range(2, min(_LONGEST_CYCLE, (len(sets) - at) // 2) + 1):
            if best[0] * best[1] >= min(2 * _LONGEST_CYCLE, len(sets) - at):
                break
            again = repeats(period, at)
            if again > 1 and again * period > best[0] * best[1]:
                best = again, period
        runs.append((best[0], named(sets[at : at + best[1]])))
        at += best[0] * best[1]
    return (*runs, (counts.repeats, named(counts.cycle))) if counts.repeats else tuple(runs)


def _least_cost(leak: Callable[[float], float], epsilon: float, cost: float, largest: float, tolerance: float) -> float:
    """A c, close to the least one, at which the leak is more than ε: at most ``largest``, which is enough anyway.

    Secant steps for log leak over log c, between the largest c that leaks too little and the least that leaks enough.
    """
    below, above = 0.0, largest
    last: tuple[float, float] | None = None
    slope = 1.0
    for _ in range(60):
        value = leak(cost)
        if value > epsilon:
            above = cost
        else:
            below = cost
        if above <= below * (1 + tolerance) or epsilon < value <= epsilon * (1 + tolerance):
            break
        guess = math.inf
        if value > 0:
            x, y = math.log(cost), math.log(value / epsilon)
            if last is not None and x != last[0]:
                slope = (y - last[1]) / (x - last[0])
            slope = slope if 0.05 < slope < 20 else 1.0
            last = x, y
            guess = cost * math.exp(max((tolerance / 2 - y) / slope, -700.0)) if y > -700 else math.inf
        if not below < guess < above:
            guess = math.sqrt(below * above) if below > 0 else above / 2
        cost = guess
    return above


def _below(scale: float) -> float:
    return math.nextafter(math.nextafter(scale, 0.0), 0.0)
