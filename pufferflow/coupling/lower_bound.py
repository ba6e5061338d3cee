"""Scales below which no Laplace noise is private: theorem (d) of ``docs/leakage.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling._count_kernels import count_products
from pufferflow.coupling.sides import reached
from pufferflow.errors import ChainError
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import AnyFamily, as_family

Integers: TypeAlias = NDArray[np.int64]

_WINDOW = 20_000
"""Entries on either side of a node that are counted at most, unless rounding allows for more."""

_EVERY_NODE = 500
"""Longest chain of which every node is looked at."""

_SETTLED = 1e-10
_ALL_SUBSETS = 8
_EARLY_NODES = 48
_PART = 64
_ODDS = np.logspace(-10, 10, 81)
_UNKNOWN = 1e-200


@dataclass(frozen=True)
class LowerBound:
    """A scale that is too small, and why: Laplace noise of a smaller scale on a count of visits is not private.

    Attributes
    ----------
    epsilon : float
    length : int
        The segment length that decides.
    scale : float
        Every Laplace scale below it breaks ε for the count; rounded down.
    node : int
        The entry that leaks, 1-based.
    pair : tuple of int
        The two values, as indices of states, that can be told apart. Where no entry has two values ``scale`` is 0.
    states : tuple of int
        S: the query is the number of entries with a state in S, from ``before`` entries before the node to ``after``
        entries after it.
    alternating : bool
        Whether S is replaced by its complement at odd distances from the node; the query still changes by at most 1
        with one entry.
    before, after : int
        How many entries on either side of the node are counted.
    chain : int
        Index in the family, from 0, of the chain that decides.
    """

    epsilon: float
    length: int
    scale: float
    node: int
    pair: tuple[int, int]
    states: tuple[int, ...]
    alternating: bool
    before: int
    after: int
    chain: int

    @property
    def window(self) -> int:
        """How far from the node entries are counted at most."""
        return max(self.before, self.after)


class _Leak(NamedTuple):
    """What a count tells about a node: nats, rounded down; two values of the node; entries counted on either side."""

    value: float
    node: int
    pair: tuple[int, int]
    before: int
    after: int


class _Counts(NamedTuple):
    """Queries: the j-th counts states in ``sets[j]``; where ``alternating[j]``, outside it at odd distances."""

    sets: Bools
    alternating: Bools

    def at(self, chosen: Any) -> _Counts:
        """Some of them."""
        return _Counts(self.sets[chosen], self.alternating[chosen])


class _Table(NamedTuple):
    """Leaks of queries (rows) at nodes (columns): nats, rounded down; two values; entries counted on either side."""

    values: Floats
    high: Integers
    low: Integers
    nodes: Integers
    before: Integers
    after: Integers


def lower_bound(family: AnyFamily, length: Lengths, epsilon: float, *, alternating: bool = True) -> LowerBound:
    """Largest scale found below which Laplace noise on a 1-Lipschitz count is not ε-Pufferfish private.

    Noise of scale σ on the number of visits to S leaks, for outputs beyond all counts, exactly the logarithm of
    E[e^(visits/σ) | X_i = x] / E[e^(visits/σ) | X_i = x'], a product of transfer matrices. Sets S are searched (all of
    them for few states, else thresholds, single states, levels of slow eigenvectors, then single changes); any set
    gives a valid bound. Beside :func:`pufferflow.leakage` it says how far that scale can be from the best one.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; some chain of it is enough, the worst one is reported.
    length : int or sequence of int
    epsilon : float
        ε > 0. Below about 1e-8, where rounding leaves little of the leaks, and above 200 the bound is 1/ε, the scale
        that a single entry needs.
    alternating : bool
        Whether to try counts that change to the complement of S at every other entry, too (chains of at most 8 states).

    Raises
    ------
    ParameterError
        ε or a length is out of range.
    ChainError
        The family is an interval family, which has no list of chains; give chains of it.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    bounds = [_chain_bound(chain, records, epsilon, i, alternating) for i, chain in enumerate(as_family(family).chains)]
    return max(bounds, key=lambda bound: bound.scale)


class CountLeaks:
    """What counts of visits tell about the entries of one chain.

    Parameters
    ----------
    epsilon : float
        Nats that matter: so many entries are counted that rounding stays far below.
    """

    def __init__(self, chain: MarkovChain, length: int, epsilon: float) -> None:
        self.names = np.arange(chain.states)
        if chain.start == "stationary":
            self.names = np.flatnonzero(chain.initial_support)
            chain = chain.restricted(chain.initial_support)
        self.chain, self.length = chain, length
        self.reversal: Floats | None = None
        # of a difference of logarithms, for each step: more than twice the k + 6 roundings of a product and its matrix
        self.error = 4.0 * (chain.states + 8) * UNIT_ROUNDOFF
        if chain.start != "given" and chain.is_irreducible:
            with suppress(ChainError):  # stationary probabilities too small to divide by
                self.reversal = chain.time_reversal
        if self.reversal is not None and self.reversal[chain.transition_matrix.T > 0].min() < SAFE_MINIMUM:
            self.reversal = None
        self.window = int(max(_WINDOW, 1e-7 * epsilon / self.error))
        values = np.linalg.eigvals(chain.transition_matrix)
        periodic = ((np.abs(values) > 1 - 1e-9) & (np.abs(values - 1) > 1e-6)).any()
        self.shorter = np.arange(2 * min(chain.states, _ALL_SUBSETS) if periodic else 1)

    def leaks(self, counts: _Counts, cost: float) -> Floats:
        """Largest leak of each query among the nodes that matter most."""
        middle = (self.length + 1) // 2
        nodes = np.unique([1, middle]) if self.reversal is not None else self._early(_EARLY_NODES)
        parts = [counts.at(slice(j, j + _PART)) for j in range(0, len(counts.sets), _PART)]
        return np.concatenate([self._at(nodes, part, cost).values.max(axis=1) for part in parts])

    def leak_of(self, one: _Counts) -> Callable[[float], float]:
        """The leak of one query, of c."""
        return lambda cost: float(self.leaks(one, cost)[0])

    def closer_look(self, sets: Bools, alternating: bool, cost: float) -> _Leak:
        """Largest leak of one query, at more nodes and under more initial distributions."""
        one = _Counts(sets[None, :], np.array([alternating]))
        nodes = self._early(_EVERY_NODE)
        if self.reversal is not None and self.length > _EVERY_NODE:
            nodes = np.array([1, (self.length + 1) // 2])
        table = self._at(nodes, one, cost)
        at = int(table.values[0].argmax())
        pair = int(self.names[table.high[0, at]]), int(self.names[table.low[0, at]])
        sides = int(table.before[0, at]), int(table.after[0, at])
        best = _Leak(float(table.values[0, at]), int(table.nodes[at]), pair, *sides)
        if self.chain.start == "any":
            best = max([best, *self._two_states(one, cost)], key=lambda leak: leak.value)
        return best

    def _early(self, most: int) -> Integers:
        """Nodes whose law is known, from the first on."""
        known = self.chain.start == "given" or self.reversal is not None
        return np.arange(1, (min(self.length, most) if known else 1) + 1)

    def _windows(self, nodes: Integers) -> tuple[Integers, Integers]:
        """Nodes and how many entries after each are counted; in whole cycles of a periodic chain all would be alike."""
        nodes, shorter = np.repeat(nodes, len(self.shorter)), np.tile(self.shorter, len(nodes))
        most = np.where(shorter > 0, _WINDOW, self.window)
        return nodes, np.maximum(np.minimum(self.length - nodes, most) - shorter, 0)

    def _at(self, nodes: Integers, counts: _Counts, cost: float) -> _Table:
        nodes, steps = self._windows(nodes)
        ahead, after = self._profiles(self.chain.transition_matrix, counts, cost, steps)
        rounding = self.error * (after + 2.0)
        if self.reversal is not None:
            behind, before = self._profiles(self.reversal, counts, cost, np.minimum(nodes - 1, self.window))
            # in products of P*(x, y) = π(y) P(y, x)/π(x) only the first and the last π remain
            rounding += self.error * before + 4 * self.chain.stationary_error
        elif self.chain.start == "given":
            assert self.chain.initial_distribution is not None
            law = self.chain.initial_distribution[None, :]
            weighted, plain = (products[:, :, 0] for products in self._laws(law, counts, cost, nodes))
            behind, before = np.log(weighted) - np.log(plain), np.broadcast_to(nodes - 1, after.shape)
            rounding += self.error * 2 * before
        else:
            behind, before = np.zeros_like(ahead), np.zeros_like(after)
        values = ahead + behind + cost * counts.sets[:, None, :]
        unknown = np.isnan(values)
        largest, least = np.where(unknown, -np.inf, values), np.where(unknown, np.inf, values)
        rounding += 8 * UNIT_ROUNDOFF * np.where(unknown, 0.0, np.abs(values)).max(axis=2)
        return _Table(
            largest.max(axis=2) - least.min(axis=2) - rounding,
            largest.argmax(axis=2),
            least.argmin(axis=2),
            nodes,
            before,
            after,
        )

    def _profiles(self, rows: Floats, counts: _Counts, cost: float, steps: Integers) -> tuple[Floats, Integers]:
        """Log E[e^(c · count of the next n entries) | x] up to a constant, shape (queries, steps, k), and n.

        n is smaller where nothing changes any more: further entries are then left out of the query.
        """
        settled = _SETTLED * min(cost, 1.0)
        products, counted, _ = _products(rows.T, counts, cost, np.ones((1, len(rows))), steps, settled)
        return np.log(products[:, :, 0]), counted

    def _laws(self, first: Floats, counts: _Counts, cost: float, nodes: Integers) -> tuple[Floats, Floats]:
        """Of early nodes, from the rows of ``first``: E[e^(c · count before) 1[X = x]] and P(X = x), to factors.

        Shape (queries or 1, nodes, rows, k); NaN where it is 0 or underflow blurs it.
        """
        none = _Counts(np.zeros((1, self.chain.states), dtype=np.bool_), np.array([False]))
        laws = []
        for queries, growth in ((counts, cost), (none, 0.0)):
            products, _, lost = _products(self.chain.transition_matrix, queries, growth, first, nodes - 1, -1.0)
            laws.append(np.where(products > lost[:, :, None, None] / UNIT_ROUNDOFF, products, np.nan))
        return laws[0], laws[1]

    def _two_states(self, one: _Counts, cost: float) -> Iterator[_Leak]:
        """Of the early nodes under initial distributions on two states, the largest leak for every two."""
        k = self.chain.states
        nodes = np.arange(2, min(self.length, _EARLY_NODES) + 1)
        if not len(nodes):
            return
        nodes, steps = self._windows(nodes)
        ahead, after = self._profiles(self.chain.transition_matrix, one, cost, steps)
        tilt = np.exp(ahead[0] + cost * one.sets[0])[:, None, :]
        laws = self._laws(np.eye(k), one, cost, nodes)
        weighted, plain = (np.where(products[0] > _UNKNOWN, products[0], 0.0) for products in laws)
        odds = _ODDS[:, None]
        pairs = list(combinations(range(k), 2)) if k <= 12 else [(0, y) for y in range(1, k)]
        for x, y in pairs:
            over, under = (law[:, None, x] + odds * law[:, None, y] for law in (weighted, plain))
            known = np.minimum(over, under) > _UNKNOWN * (1 + odds)
            ratios = np.where(known, over / np.where(known, under, 1.0) * tilt, np.nan)
            largest, least = np.where(known, ratios, 0.0), np.where(known, ratios, np.inf)
            with np.errstate(divide="ignore"):  # −∞ where nothing is known
                top, low = np.log(largest.max(axis=2)), np.log(least.min(axis=2))
            size = 1 + np.maximum(np.abs(top), np.abs(low))
            rounding = self.error * (after[0] + 2.0 * nodes)[:, None] + 64 * UNIT_ROUNDOFF * size
            values = top - low - rounding
            i, j = np.unravel_index(values.argmax(), values.shape)
            pair = int(self.names[largest[i, j].argmax()]), int(self.names[least[i, j].argmin()])
            yield _Leak(float(values[i, j]), int(nodes[i]), pair, int(nodes[i] - 1), int(after[0, i]))


def _products(
    matrix: Floats, counts: _Counts, cost: float, first: Floats, steps: Integers, settled: float
) -> tuple[Floats, Integers, Floats]:
    """As the kernel fills them: products, steps taken, what underflow took."""
    shape = len(counts.sets), len(steps)
    products, counted, lost = np.empty((*shape, *first.shape)), np.empty(shape, dtype=np.int64), np.empty(shape)
    # copies: the kernel is compiled for one layout only
    matrix, first = np.array(matrix, order="C"), np.array(first, order="C")
    count_products(matrix, tuple(counts), float(cost), first, steps, settled, (products, counted, lost))
    return products, counted, lost


def _own_entry(chain: MarkovChain, length: int) -> tuple[int, tuple[int, int]] | None:
    """A node with two possible values: a count of that entry alone leaks c. None where there is nothing to hide."""
    states = chain.initial_support
    for node in range(1, min(length, chain.states**2 + 1) + 1):
        names = np.flatnonzero(states)
        if len(names) > 1:
            return node, (int(names[0]), int(names[1]))
        states = reached(states, chain.transition_matrix)
    return None


def _candidates(leaks: CountLeaks, both: bool) -> _Counts:
    """Sets of states to begin with, each also alternating with its complement if ``both``."""
    chain = leaks.chain
    k = chain.states
    subsets: list[Bools] = []
    if k <= _ALL_SUBSETS:
        subsets = [np.array([bool(mask >> x & 1) for x in range(k)]) for mask in range(1, 2**k - 1)]
    else:
        orders = [np.arange(k)]
        values, vectors = np.linalg.eig(chain.transition_matrix)
        for j in np.argsort(-np.abs(values))[1:4]:
            orders += [np.argsort(vectors[:, j].real), np.argsort(vectors[:, j].imag)]
        for order in orders:
            for size in range(1, k):
                first = np.zeros(k, dtype=np.bool_)
                first[order[:size]] = True
                subsets += [first, ~first]
        subsets += [np.arange(k) == x for x in range(k)]
    sets = np.array(list({s.tobytes(): s for s in subsets}.values()) or [np.ones(k, dtype=np.bool_)])
    if both and k <= _ALL_SUBSETS:
        return _Counts(np.concatenate([sets, sets]), np.arange(2 * len(sets)) >= len(sets))
    return _Counts(sets, np.zeros(len(sets), dtype=np.bool_))


def _chain_bound(chain: MarkovChain, length: int, epsilon: float, index: int, both: bool) -> LowerBound:
    own = _own_entry(chain, length)
    if own is None:
        return LowerBound(epsilon, length, 0.0, 1, (0, 0), (), False, 0, 0, index)
    node, pair = own
    alone = LowerBound(epsilon, length, _below(1 / epsilon), node, pair, pair[:1], False, 0, 0, index)
    if not 1e-8 < epsilon <= 200:
        return alone
    leaks = CountLeaks(chain, length, epsilon)
    one, cost = _best_count(leaks, _candidates(leaks, both), epsilon)
    if leaks.chain.states > _ALL_SUBSETS:
        one = _improved(leaks, one, cost)
    sets, alternating = one.sets[0], bool(one.alternating[0])
    cost = _least_cost(lambda c: leaks.closer_look(sets, alternating, c).value, epsilon, cost, 1e-10)
    leak = leaks.closer_look(sets, alternating, cost)
    if not cost < epsilon:
        return alone
    states = tuple(int(s) for s in leaks.names[sets])
    query = states, alternating, leak.before, leak.after
    return LowerBound(epsilon, length, _below(1 / cost), leak.node, leak.pair, *query, index)


def _best_count(leaks: CountLeaks, counts: _Counts, epsilon: float) -> tuple[_Counts, float]:
    """The query that needs the least c to leak ε, and about that c: those that leak less at a c need a larger one."""
    cost = epsilon
    one = counts.at([0])
    while len(counts.sets):
        cost = _least_cost(leaks.leak_of(one), epsilon, cost, 1e-6)
        values = leaks.leaks(counts, cost)
        best = int(values.argmax())
        keep = values > epsilon * (1 + 2e-6)
        if keep.any():
            one = counts.at([best])
            keep[best] = False
        counts = counts.at(keep)
    return one, cost


def _improved(leaks: CountLeaks, one: _Counts, cost: float) -> _Counts:
    """Change single states as long as that leaks more."""
    value = -math.inf
    k = one.sets.shape[1]
    while True:
        trials = _Counts(one.sets ^ np.eye(k + 1, k, dtype=np.bool_), np.repeat(one.alternating, k + 1))
        leaked = leaks.leaks(trials, cost)
        best = int(leaked.argmax())
        if not leaked[best] > value * (1 + 1e-6) or best == k:
            return one
        one, value = trials.at([best]), leaked[best]


def _least_cost(leak: Callable[[float], float], epsilon: float, cost: float, tolerance: float) -> float:
    """A c, close to the least one, at which the leak is more than ε: at most ε, the c of a single entry.

    Secant steps for log leak over log c, between the largest c that leaks too little and the least that leaks enough.
    """
    below, above = 0.0, epsilon
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
