"""Scales below which no Laplace noise is private: Theorems 9 and 10 of ``docs/leakage.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations

import numpy as np

from pufferflow._util.checks import Lengths, check_epsilon, longest
from pufferflow._util.jit import constant
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_down
from pufferflow._util.types import Bools, Floats
from pufferflow.coupling._count_kernels import TINY, differences, pull_back, sweep, tilted
from pufferflow.coupling.roots import least_cost
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, as_family

Pair = tuple[int, int]

FIRST_ENTRIES, MOST_ENTRIES, MOST_PRODUCTS = 64, 20_000, 12_000_000
"""Entries of a side that are looked at first; twice as many as long as they matter; at most."""

FEW_NODES, FEW_STATES, ALL_SUBSETS = 12, 5, 8
"""So many nodes are all looked at; of so many states all pairs, and all sets."""

SWEEPS = 60
ROUNDS = 8
VISITS = 12


@dataclass(frozen=True)
class LowerBound:
    """A scale that is too small: Laplace noise of a smaller one on a count of visits is not private.

    The query is the number of entries t with a state in S_t; :meth:`counted` gives S_t.

    Attributes
    ----------
    epsilon : float
    length : int
        The segment length that decides.
    scale : float
        Every Laplace scale below it breaks ε for the count; rounded down.
    node : int
        The entry that leaks, from 1.
    pair : tuple of int
        The two values of that entry, as indices of states, that can be told apart. Where no entry has two
        values ``scale`` is 0.
    states : tuple of int
        S_t at the node.
    before, after : int
        How many entries on either side of the node are counted.
    chain : int
        Index in the family, from 0, of the chain that decides.
    earlier, later : tuple of tuples of int
        S_t of the entries counted before and after the node, with growing distance from it.
    """

    epsilon: float
    length: int
    scale: float
    node: int
    pair: Pair
    states: tuple[int, ...]
    chain: int
    earlier: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    later: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def before(self) -> int:
        """How many entries before the node are counted."""
        return len(self.earlier)

    @property
    def after(self) -> int:
        """How many entries after the node are counted."""
        return len(self.later)

    def counted(self, entry: int) -> tuple[int, ...]:
        """S_t of one entry, from 1: the states that count there, none beyond those looked at."""
        distance = entry - self.node
        if not distance:
            return self.states
        sets = self.earlier if distance < 0 else self.later
        return sets[abs(distance) - 1] if abs(distance) <= len(sets) else ()


def lower_bound(family: AnyFamily, length: Lengths, epsilon: float, *, alternating: bool = True) -> LowerBound:
    """Largest scale found below which Laplace noise on a 1-Lipschitz count is not ε-Pufferfish private.

    Noise of scale σ on the number N of entries t with a state in S_t leaks, for outputs beyond all counts,
    exactly the logarithm of E[e^(N/σ) | X_i = x] / E[e^(N/σ) | X_i = x'], a product of transfer matrices.
    The sets S_t are found one after another, for the pair of values that leaks most; where none of them can
    be improved, no other 1-Lipschitz query tells these two values apart better, counts or not. Any sets
    give a valid bound. Beside :func:`pufferflow.leakage` it says how far that scale can be from the best.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; some chain of it is enough, the worst one is reported. Of any initial distribution the stationary
        one is taken, or the uniform one where there is none.
    length : int or sequence of int
    epsilon : float
        ε > 0. Below about 1e-8, where rounding leaves little of the leaks, and above 200 the bound is 1/ε,
        the scale that one record needs by itself.
    alternating : bool
        Whether sets may change with time; else one S counts for all entries.

    Returns
    -------
    LowerBound

    Raises
    ------
    ParameterError
        ε or a length is out of range.
    ChainError
        The family is an interval family, which has no list of chains; give chains of it.
    """
    epsilon, records = check_epsilon(epsilon), longest(length)
    bounds = [
        replace(_Search(chain, records, epsilon).bound(alternating), chain=index)
        for index, chain in enumerate(as_family(family).chains)
    ]
    return max(bounds, key=lambda bound: bound.scale)


@dataclass(frozen=True, eq=False)
class _Side:
    """The entries on one side of a node.

    The expected tilt given the value x of the node is, up to a common factor, entry x of
    K D_1 … K D_n · end(n), over ``given``; see ``_count_kernels``. K is P ahead, its transpose behind,
    where the end is the distribution of the entry n away, and ``given`` that of the node.
    """

    matrix: Floats
    transposed: Floats
    steps: int
    end: Callable[[int], Floats]
    given: Floats
    error: float

    def tells(self, sets: Bools, cost: float, *, upper: bool = False) -> Floats:
        """Log E[e^(c · count) | x] up to a constant, shape (k,), rounded down or up but for ``rounding``."""
        values = np.empty(len(self.given))
        tilted(self.transposed, constant(self.end(len(sets))), sets, cost, upper, values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(values) - np.log(self.given))

    def rounding(self, entries: int) -> float:
        """Bound on what roundings change a difference of two entries by: twice those of each factor."""
        return 4.0 * (len(self.given) + 8) * UNIT_ROUNDOFF * (entries + 2) + self.error

    def best(self, pair: Pair, cost: float, start: Bools | None = None) -> tuple[Bools, Floats]:
        """Sets that tell two values apart best, and how much likelier each state is after the first."""
        k = len(self.given)
        most = min(self.steps, MOST_ENTRIES, max(4 * FIRST_ENTRIES, MOST_PRODUCTS // k**2))
        sets = np.zeros((0, k), dtype=np.bool_) if start is None else start
        entries, gains = min(most, max(FIRST_ENTRIES, len(sets))), np.zeros(k)
        while entries:
            more = np.zeros((entries - len(sets), k), dtype=np.bool_)
            sets = np.concatenate([sets, more])
            values, first, second = (np.empty((entries + i, k)) for i in (1, 0, 0))
            tables = values, first, second
            pull_back(self.transposed, constant(self.end(entries)), sets, cost, values)
            value, begin = -math.inf, 0
            for _ in range(SWEEPS):  # a call a sweep: signals arrive between them
                new, begin = sweep((self.matrix, self.transposed), sets, cost, pair, tables, begin)
                if begin < 0 or not new > value + 1e-12 * abs(new):
                    break
                value = new
            if not math.isfinite(new):
                return sets[:0], gains
            apart, gains = np.empty(entries), np.zeros(k)
            differences(sets, cost, tables, apart, gains)
            matter = np.flatnonzero(apart * np.arange(1, entries + 1) >= 1e-11)
            if not len(matter) or matter[-1] + 1 < entries:
                return sets[: matter[-1] + 1 if len(matter) else 0], gains
            if entries == most:
                break
            entries = min(2 * entries, most)
        return sets, gains


@dataclass(frozen=True, eq=False)
class _Query:
    """A count and the node and pair of values that it tells apart; ``one`` where one set counts throughout."""

    node: int
    pair: Pair
    sides: tuple[_Side, _Side]
    sets: tuple[Bools, Bools]
    one: Bools | None = None
    value: float = 0.0
    gains: Floats | None = None

    @property
    def _own(self) -> int:
        """How much more the node itself counts of the first value than of the second."""
        x, y = self.pair
        return 1 if self.one is None else int(self.one[x]) - int(self.one[y])

    def about(self, cost: float) -> float:
        """What it leaks at c, without a promise."""
        x, y = self.pair
        told = [side.tells(sets, cost) for side, sets in zip(self.sides, self.sets, strict=True)]
        value = self._own * cost + sum(float(one[x] - one[y]) for one in told)
        return value if math.isfinite(value) else -math.inf

    def nats(self, cost: float) -> float:
        """The same, rounded down."""
        (x, y), value, lost = self.pair, self._own * cost, 0.0
        size = cost
        for side, sets in zip(self.sides, self.sets, strict=True):
            low = side.tells(sets, cost)[x]
            high = side.tells(sets, cost, upper=True)[y]
            value, size = value + float(low - high), size + abs(low) + abs(high)
            lost += side.rounding(len(sets))
        lower = value - lost - 16 * UNIT_ROUNDOFF * (size + 2 * math.log(1 / TINY))
        return lower if math.isfinite(lower) else -math.inf


class _Search:
    """The query of one chain that leaks more than ε at the least c."""

    def __init__(self, chain: MarkovChain, length: int, epsilon: float) -> None:
        self._matrix, self._length, self._epsilon = chain.transition_matrix, length, epsilon
        start = chain.initial_distribution
        self._stationary = chain.start == "stationary"
        self._error = 4 * chain.stationary_error if self._stationary else 0.0
        if start is None:
            self._stationary = chain.is_irreducible
            start = np.full(chain.states, 1 / chain.states)
            if self._stationary:
                start, self._error = chain.stationary_distribution, 4 * chain.stationary_error
        self._distributions = {1: np.asarray(start)}
        self._forward, self._backward = constant(self._matrix), constant(self._matrix.T)
        self._settled: dict[tuple[bool, Pair], tuple[Bools, Floats]] = {}
        self._warm: dict[tuple[bool, Pair], Bools] = {}
        self._cost = 0.0

    def _distribution(self, node: int) -> Floats:
        """Distribution of X_node."""
        if self._stationary:
            return self._distributions[1]
        if node not in self._distributions:
            power = np.linalg.matrix_power(self._matrix, node - 1)
            self._distributions[node] = self._distributions[1] @ power
        return self._distributions[node]

    def _sides(self, node: int) -> tuple[_Side, _Side]:
        k, given = len(self._matrix), self._distribution(node)
        one, moved = np.ones(k), 0 if self._stationary else node
        behind = _Side(
            self._backward,
            self._forward,
            node - 1,
            lambda n: self._distribution(node - n),
            given,
            self._error + 16.0 * (k + 8) * UNIT_ROUNDOFF * moved,
        )
        return behind, _Side(self._forward, self._backward, self._length - node, lambda n: one, one, 0.0)

    # -- the least c -----------------------------------------------------------------------------

    def bound(self, changing: bool) -> LowerBound:
        """The bound, with chain 0; by one set for all entries unless ``changing``."""
        nodes = range(1, min(self._length, len(self._matrix) ** 2 + 1) + 1)
        node = next((node for node in nodes if len(self._possible(node)) > 1), None)
        if node is None:
            return LowerBound(self._epsilon, self._length, 0.0, 1, (0, 0), (), 0)
        pair = self._possible(node)[:2]
        nothing = np.zeros((0, len(self._matrix)), dtype=np.bool_)
        best = _Query(node, (pair[0], pair[1]), self._sides(node), (nothing, nothing))
        cost = self._epsilon
        if 1e-8 < self._epsilon <= 200:
            found, cost = self._least()
            if not changing:
                found, cost = self._one_set(best if found is None else found, cost)
            if found is not None and (proved := self._proved(found, cost)) < self._epsilon:
                best, cost = found, proved
            else:
                cost = self._epsilon
        states = np.flatnonzero(best.one) if best.one is not None else [best.pair[0]]
        earlier, later = (tuple(tuple(np.flatnonzero(row).tolist()) for row in sets) for sets in best.sets)
        scale = math.nextafter(divide_down(1.0, cost), 0.0)
        own = tuple(int(x) for x in states)
        return LowerBound(self._epsilon, self._length, scale, best.node, best.pair, own, 0, earlier, later)

    def _least(self) -> tuple[_Query | None, float]:
        """The query that changes with time and needs the least c found, and that c, without a promise."""
        spread = sum(float(one.max()) for one in self._limits)
        best, least, near = None, self._epsilon, None
        cost = min(self._epsilon, self._epsilon / (1 + spread))
        for _ in range(ROUNDS):
            query = self._everywhere(cost, near)
            if query is None:
                break
            tolerance = 1e-6 if near is None else 1e-12
            needed = least_cost(query.about, self._epsilon, cost, self._epsilon, tolerance)
            improved = needed < least * (1 - 1e-5)
            if needed < least:
                best, least, cost = query, needed, needed
            if not improved and near is None:
                break
            near = query if improved else None
        return best, least

    def _proved(self, query: _Query, cost: float) -> float:
        """A c little above at which the query surely leaks more than ε; ε where none is found."""
        for margin in (1e-12, 1e-11, 1e-10, 1e-9):
            if query.nats(cost * (1 + margin)) > self._epsilon:
                return cost * (1 + margin)
        return least_cost(query.nats, self._epsilon, cost, self._epsilon, 1e-9)

    # -- the best query at one c -----------------------------------------------------------------

    def _everywhere(self, cost: float, near: _Query | None) -> _Query | None:
        """The query that leaks most at a c; near one where it is known."""
        if cost != self._cost:
            self._cost = cost
            self._settled.clear()
        seen: dict[int, _Query | None] = {}

        def value(node: int) -> float:
            if node not in seen:
                seen[node] = self._at(node, None if near is None else near.pair)
            query = seen[node]
            return -math.inf if query is None else query.value

        last = self._length
        if near is not None:
            node = near.node
        elif last <= FEW_NODES:
            node = max(range(1, last + 1), key=value)
        else:
            middle = (last + 1) // 2
            value(middle)
            some = [middle] if self._even(seen[middle]) else [1, middle, last, *self._early(value)]
            node = max(some, key=value)
        value(node)
        step = min(node, last - node) // 3 + 1
        while step and last > FEW_NODES and not self._even(seen[node]):
            beside = [n for n in (node - step, node + step) if 1 <= n <= last]
            better = max(beside, key=value, default=node)
            if value(better) > value(node) * (1 + 1e-9):
                node = better
            else:
                step //= 2
        return seen[node]

    def _early(self, value: Callable[[int], float]) -> Iterator[int]:
        """Nodes that grow as long as that helps, where the start matters."""
        best, since, node = 1, 0, 2
        while not self._stationary and node < self._length and since < 3:
            if value(node) > value(best) * (1 + 1e-9):
                best, since = node, 0
            else:
                since += 1
            node += max(1, node // 2)
        yield best

    def _even(self, query: _Query | None) -> bool:
        """Whether other nodes near by are all alike."""
        if query is None or not self._stationary:
            return False
        return all(len(s) < side.steps for s, side in zip(query.sets, query.sides, strict=True))

    def _at(self, node: int, pair: Pair | None) -> _Query | None:
        """The query that leaks most of the values of one node; from one pair of them on, if given."""
        sides, possible = self._sides(node), self._possible(node)
        if len(possible) < 2:
            return None
        secret = np.zeros(len(self._matrix), dtype=np.bool_)
        secret[possible] = True
        visited: dict[Pair, list[tuple[Bools, Floats]]] = {}
        tables: list[tuple[Floats, list[Pair]]] = []
        waiting = [pair] if pair is not None else self._pairs(possible)
        for _ in range(VISITS):
            for one in waiting:
                visited[one] = [self._half(bool(i), sides[i], one) for i in (0, 1)]
            tables = []
            for i in (0, 1):
                told = [sides[i].tells(half[i][0], self._cost) for half in visited.values()]
                with np.errstate(invalid="ignore"):
                    apart = np.array([one[:, None] - one[None, :] for one in told])
                apart = np.where(np.isfinite(apart), apart, -np.inf)
                tables.append((apart.max(axis=0), [list(visited)[n] for n in apart.argmax(axis=0).ravel()]))
            total = np.where(secret[:, None] & secret, tables[0][0] + tables[1][0], -np.inf)
            np.fill_diagonal(total, -np.inf)
            at = int(total.argmax())
            best = divmod(at, len(secret))
            if best in visited:
                break
            waiting = [best]
        if total.ravel()[at] == -np.inf:
            return None
        halves = [visited[tables[i][1][at]][i] for i in (0, 1)]
        value = self._cost + float(total.ravel()[at])
        gains = halves[0][1] + halves[1][1]
        return _Query(node, best, sides, (halves[0][0], halves[1][0]), None, value, gains)

    def _half(self, ahead: bool, side: _Side, pair: Pair) -> tuple[Bools, Floats]:
        """Sets of one side for one pair; once where more entries would change nothing."""
        key = ahead, pair
        found = self._settled.get(key)
        if found is None or len(found[0]) > side.steps:
            start = self._warm.get(key)
            found = side.best(pair, self._cost, None if start is None else start[: side.steps].copy())
            self._warm[key] = found[0]
            if len(found[0]) < side.steps and (ahead or self._stationary):
                self._settled[key] = found
        return found

    def _possible(self, node: int) -> list[int]:
        """Values of an entry that are surely possible."""
        return [int(x) for x in np.flatnonzero(self._distribution(node) > 1e-250)]

    def _pairs(self, possible: list[int]) -> list[Pair]:
        """Pairs of values to look at: all of few, else those told apart best as c → 0."""
        pairs = list(permutations(possible, 2))
        if len(self._matrix) <= (FEW_STATES if self._length <= FEW_NODES else 2):
            return pairs
        total = self._limits[0] + self._limits[1]
        pairs.sort(key=lambda pair: -total[pair])
        some = 4 if len(self._matrix) <= ALL_SUBSETS else 2
        return pairs[: some if self._epsilon <= 2 else 3 * some]

    @cached_property
    def _limits(self) -> tuple[Floats, Floats]:
        """How well two values are told apart as c → 0 by what is behind, and ahead, about."""
        start, matrices = self._distribution(1), [self._matrix, self._matrix]
        if self._stationary:
            with np.errstate(divide="ignore", invalid="ignore"):
                matrices[0] = np.nan_to_num(self._matrix.T * start / start[:, None])
        totals = []
        for matrix in matrices:
            total, power, entries = np.zeros(matrix.shape), matrix, 1
            while entries < self._length:  # the distances fall: each stands for as many more
                apart = np.abs(power[:, None] - power[None, :]).sum(axis=-1) / 2
                total += entries * apart
                if apart.max() < 1e-2 or entries > MOST_ENTRIES:
                    break
                power, entries = power @ power, 2 * entries
            totals.append(total)
        return totals[0], totals[1]

    # -- one set for all entries -----------------------------------------------------------------

    def _one_set(self, best: _Query, cost: float) -> tuple[_Query | None, float]:
        """The query with the same S for all entries that needs the least c found, and that c.

        It starts from the states that are likelier on the whole under the best query, and changes the set
        as long as that leaks more: all sets are tried where states are few, else those that gain or lose
        one state.
        """
        k = len(self._matrix)
        chosen = np.zeros(k, dtype=np.bool_) if best.gains is None else best.gains > 0
        found, least = None, self._epsilon
        nodes = [best.node]
        if not self._even(best):
            last = self._length
            nodes += [*range(1, last + 1)] if last <= FEW_NODES else [1, (last + 1) // 2, last]
        while self._length > 1:
            if k <= ALL_SUBSETS:
                trials = [np.array([bool(n >> x & 1) for x in range(k)]) for n in range(1, 2**k - 1)]
            else:
                trials = [chosen, *(chosen ^ (np.arange(k) == x) for x in range(k))]
            queries = [self._of_one_set(node, np.array(trials), best, cost) for node in nodes]
            query = max(queries, key=lambda one: one.value)
            needed = least_cost(query.about, self._epsilon, cost, self._epsilon, 1e-10)
            if not needed < least * (1 - 1e-9):
                break
            found, least, cost = query, needed, needed
            assert query.one is not None
            chosen = query.one
        return found, least

    def _of_one_set(self, node: int, trials: Bools, like: _Query, cost: float) -> _Query:
        """The best of some sets, each counted throughout, at a node, as far away as ``like`` looks."""
        sides, secret = self._sides(node), np.zeros(trials.shape[1], dtype=np.bool_)
        secret[self._possible(node)] = True
        weights, entries = np.exp(cost * (trials - 1.0)), []
        told = cost * trials
        for side, own in zip(sides, like.sets, strict=True):
            entries.append(min(side.steps, max(FIRST_ENTRIES, 2 * len(own))))
            values = np.tile(side.end(entries[-1]), (len(trials), 1))
            for entry in range(entries[-1]):
                values = (weights * values) @ side.transposed
                if entry % 16 == 0 or cost > 20:
                    values /= values.max(axis=1, keepdims=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                told = told + np.log(values) - np.log(side.given)
        known = secret & np.isfinite(told)
        high, low = np.where(known, told, -np.inf), np.where(known, told, np.inf)
        values = high.max(axis=1) - low.min(axis=1)
        best = int((values >= values.max() * (1 - 1e-12)).argmax())  # of equal ones the first
        pair = int(high[best].argmax()), int(low[best].argmin())
        one = trials[best]
        sets = [np.tile(one, (n, 1)) for n in entries]
        return _Query(node, pair, sides, (sets[0], sets[1]), one, float(values[best]))
