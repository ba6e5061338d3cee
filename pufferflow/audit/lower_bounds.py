"""Scales below which no Laplace noise is private: Theorems 9 and 10 of ``docs/leakage.md``."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import permutations

import numpy as np

from pufferflow._util.checks import Lengths, check_epsilon, longest
from pufferflow._util.grids import of_epsilons
from pufferflow._util.jit import constant
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_down
from pufferflow._util.types import Bools, Floats
from pufferflow.audit._lower_bound_kernels import TINY, pull_back, sweep
from pufferflow.bounds.roots import crossing
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, finite_chains

Pair = tuple[int, int]

FIRST_RECORDS, MAX_RECORDS, MAX_PRODUCTS = 64, 20_000, 12_000_000
"""Initial number of records of a side, doubled as long as they matter, and its maximum."""

FEW_NODES, ALL_SUBSETS, SWEEPS, ROUNDS = 12, 8, 60, 8
"""Largest numbers: nodes of a full search, states for all sets, improvements."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound: smaller Laplace noise on a count of visits is not private.

    The query is the number of records t with a state in S_t; :meth:`counted` gives S_t.

    Attributes
    ----------
    epsilon, length : float, int
        ε, and the worst segment length.
    scale : float
        Every smaller Laplace scale has a loss above ε for the count; rounded down. 0 if no record
        has two values.
    node, pair : int, tuple of int
        The worst record, from 1, and its two values, as indices of states.
    states : tuple of int
        S_t at the node.
    chain : int
        Index in the family, from 0, of the worst chain.
    earlier, later : tuple of tuples of int
        S_t of the counted records before and after the node, by increasing distance.
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

    def counted(self, record: int) -> tuple[int, ...]:
        """Return S_t of one record, from 1; it is empty beyond the searched records."""
        distance = abs(record - self.node)
        sets = (self.states, *(self.earlier if record < self.node else self.later))
        return sets[distance] if distance < len(sets) else ()


@of_epsilons
def lower_bound(
    family: AnyFamily, length: Lengths, epsilon: float, *, alternating: bool = True
) -> LowerBound:
    """Return a scale below which Laplace noise on a 1-Lipschitz count is not ε-private.

    For outputs beyond all counts the loss of noise of scale σ on the number N of records t with a
    state in S_t is the logarithm of E[e^(N/σ) | X_i = x] / E[e^(N/σ) | X_i = x'], a product of
    transfer matrices. The sets S_t are optimised one after another, for the worst pair of values;
    if none can be improved, no 1-Lipschitz query distinguishes these two values better. Any sets
    give a valid bound. Its distance to the scale of :func:`pufferflow.leakage` bounds that from the
    optimal scale.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; the result is for its worst chain. For any initial distribution the stationary one is
        used, or the uniform one if there is none.
    length : int or sequence of int
    epsilon : float or sequence of float
        ε > 0; of several the result is a list. Below about 1e-8, because of rounding, and above
        200 the bound is 1/ε, the scale for a single record.
    alternating : bool
        Whether sets may change with time; else one S counts for all records.

    Raises ParameterError: ε or a length is out of range; ChainError: the family has no list of
    chains; give chains of it.
    """
    epsilon, records = check_epsilon(epsilon), longest(length)
    bounds = [
        _Search(chain, records, epsilon).bound(index, alternating)
        for index, chain in enumerate(finite_chains(family))
    ]
    return max(bounds, key=lambda bound: bound.scale)


@dataclass(frozen=True, eq=False)
class _Side:
    """The records on one side of a node.

    The expected tilt given the value x of the node is, up to a common factor, entry x of
    K D_1 … K D_n · end(n), over ``given``; see ``_lower_bound_kernels``. K is P forward, its
    transpose backward; there the end is the distribution of the record n away, and ``given`` that
    of the node.
    """

    matrix: Floats
    steps: int
    end: Callable[[int], Floats]
    given: Floats
    error: float

    def logs(self, sets: Bools, cost: float, least: float = 0.0) -> Floats:
        """Return log E[e^(c · count) | x] up to a constant and rounding errors."""
        values = np.empty((len(sets) + 1, len(self.given)))
        columns, end = constant(self.matrix.T), constant(self.end(len(sets)))
        power = pull_back(columns, end, sets, math.exp(-cost), least, values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(power * math.log(2) + np.log(values[0]) - np.log(self.given))

    def best(self, pair: Pair, cost: float) -> Bools:
        """Return the sets that distinguish two values best.

        Records are added as long as the tilted distributions differ at the last ones.
        """
        k, low, matrix = len(self.given), math.exp(-cost), constant(self.matrix)
        most = min(self.steps, MAX_RECORDS, max(4 * FIRST_RECORDS, MAX_PRODUCTS // k**2))
        sets, records = np.zeros((0, k), dtype=np.bool_), min(most, FIRST_RECORDS)
        while len(sets) < records:
            sets = np.concatenate([sets, np.zeros((records - len(sets), k), dtype=np.bool_)])
            tables = np.empty((records + 1, k)), np.empty((records, k)), np.empty((records, k))
            end, ratio = constant(self.end(records)), 0.0
            for _ in range(SWEEPS):  # a call per sweep: signals arrive between calls
                pull_back(constant(matrix.T), end, sets, low, 0.0, tables[0])
                one, other = tables[0][0, list(pair)].tolist()
                if not (other > 0 and one > ratio * other * (1 + 1e-12)):
                    break
                ratio = one / other
                sweep(matrix, sets, low, pair, tables)
            if not ratio:
                return sets[:0]
            tilted = [rows * np.where(sets, 1.0, low) * tables[0][1:] for rows in tables[1:]]
            with np.errstate(invalid="ignore"):
                over, under = (rows / rows.sum(axis=1, keepdims=True) for rows in tilted)
            distances = np.abs(over - under).sum(axis=1) / 2
            matter = np.flatnonzero(distances * np.arange(1, records + 1) >= 1e-11) + 1
            if (kept := max(matter, default=0)) < records:
                return sets[:kept]
            records = min(2 * records, most)
        return sets


@dataclass(frozen=True, eq=False)
class _Query:
    """A count: the sets of a node, before and after it, and the pair of values."""

    node: int
    pair: Pair
    sides: tuple[_Side, _Side]
    own: Bools
    sets: tuple[Bools, Bools]
    value: float = 0.0

    def loss(self, cost: float) -> float:
        """Return its loss at c, rounded down."""
        (x, y), lost = self.pair, 0.0
        value, size = cost * (int(self.own[x]) - int(self.own[y])), cost
        for side, sets in zip(self.sides, self.sets, strict=True):
            low, high = side.logs(sets, cost)[x], side.logs(sets, cost, 2 * TINY)[y]
            value, size = value + float(low - high), size + abs(low) + abs(high)
            # twice the roundings of each factor
            lost += 4.0 * (len(self.own) + 8) * UNIT_ROUNDOFF * (len(sets) + 2) + side.error
        lower = value - lost - 16 * UNIT_ROUNDOFF * (size + 2 * math.log(1 / TINY))
        return lower if math.isfinite(lower) else -math.inf


class _Search:
    """The search for the query of one chain with a loss above ε at the smallest c."""

    def __init__(self, chain: MarkovChain, length: int, epsilon: float) -> None:
        self._matrix, self._length, self._epsilon = chain.transition_matrix, length, epsilon
        start, self._stationary = chain.initial_distribution, chain.start == "stationary"
        if start is None:
            self._stationary = chain.is_irreducible
            start = np.full(chain.states, 1 / chain.states)
        if self._stationary:
            start = chain.stationary_distribution
        self._error = 4 * chain.stationary_error if self._stationary else 0.0
        self._start, self._nothing = start, np.zeros((0, chain.states), dtype=np.bool_)
        self._alone = np.eye(chain.states, dtype=np.bool_)

    def _distribution(self, node: int) -> Floats:
        """Return the distribution of X_node."""
        moves = 0 if self._stationary else node - 1
        return np.asarray(self._start @ np.linalg.matrix_power(self._matrix, moves))

    def _possible(self, node: int) -> Bools:
        """Return the values of a record that are surely possible."""
        return self._distribution(node) > 1e-250

    def _sides(self, node: int) -> tuple[_Side, _Side]:
        """Return the records before a node, and after it."""
        k, given = len(self._matrix), self._distribution(node)
        one, moved = np.ones(k), 0 if self._stationary else node
        error = self._error + 16.0 * (k + 8) * UNIT_ROUNDOFF * moved
        return (
            _Side(self._matrix.T, node - 1, lambda n: self._distribution(node - n), given, error),
            _Side(self._matrix, self._length - node, lambda n: one, one, 0.0),
        )

    def bound(self, chain: int, alternating: bool) -> LowerBound:
        """Return the bound, by one set for all records unless ``alternating``."""
        nodes = range(1, min(self._length, len(self._matrix) ** 2 + 1) + 1)
        node = next((node for node in nodes if self._possible(node).sum() > 1), None)
        if node is None:
            return LowerBound(self._epsilon, self._length, 0.0, 1, (0, 0), (), chain)
        pair, nothing = tuple(np.flatnonzero(self._possible(node))[:2].tolist()), self._nothing
        query = _Query(node, pair, self._sides(node), self._alone[pair[0]], (nothing, nothing))
        cost = self._epsilon
        if 1e-8 < self._epsilon <= 200:
            query, cost = self._least(query)
            if not alternating:
                query, cost = self._one_set(query, cost)
        (own,), *others = (
            tuple(tuple(np.flatnonzero(row).tolist()) for row in sets)
            for sets in (query.own[None], *query.sets)
        )
        scale = math.nextafter(divide_down(1.0, cost), 0.0)
        found = self._epsilon, self._length, scale, query.node, query.pair, own, chain
        return LowerBound(*found, *others)

    def _needed(self, query: _Query, cost: float) -> float:
        """Return the smallest c with a loss above ε, near another one."""
        return crossing(query.loss, self._epsilon, cost, self._epsilon, 1e-12, above=True)[1]

    def _least(self, best: _Query) -> tuple[_Query, float]:
        """Return the time-inhomogeneous query with the smallest c, and that c."""
        least, cost = self._epsilon, self._epsilon / min(self._length, MAX_RECORDS)
        for _ in range(ROUNDS):
            query = self._everywhere(cost, best)
            before, cost = least, self._needed(query, cost)
            if cost < least:
                best, least = query, cost
            if not cost < before * (1 - 1e-2):
                break
        return best, least

    def _everywhere(self, cost: float, other: _Query) -> _Query:
        """Return the query with the largest loss at a c, the ``other`` if there is none."""
        pairs, last = self._pairs, self._length
        at, node = cache(lambda node: self._at(node, cost, pairs, other)), (last + 1) // 2
        if not self._even(at(node)):
            node = max(self._nodes, key=lambda n: at(n).value)
            pairs, step = [at(node).pair], last // 3 + 1
            while step:
                near = [at(n) for n in (node - step, node + step) if 1 <= n <= last]
                better = max(near, key=lambda query: query.value, default=at(node))
                if better.value > at(node).value * (1 + 1e-9):
                    node = better.node
                else:
                    step //= 2
        return at(node)

    @property
    def _nodes(self) -> Sequence[int]:
        """Nodes to search: all of few, else the ends and the middle."""
        last = self._length
        return range(1, last + 1) if last <= FEW_NODES else [(last + 1) // 2, 1, last]

    def _even(self, query: _Query) -> bool:
        """Return whether neighbouring nodes have the same loss."""
        sides = zip(query.sets, query.sides, strict=True)
        return self._stationary and all(len(sets) < side.steps for sets, side in sides)

    def _at(self, node: int, cost: float, pairs: list[Pair], other: _Query) -> _Query:
        """Return the query with the largest loss of one node, starting from some pairs of values.

        The best sets for a pair may distinguish another one better, which is then optimised. If no
        pair is possible it is the ``other``, of value −∞.
        """
        sides, possible = self._sides(node), self._possible(node)
        found, visited = replace(other, value=-math.inf), set()
        for pair in (pair for pair in pairs if possible[list(pair)].all()):
            while pair not in visited:
                visited.add(pair)
                before, after = (side.best(pair, cost) for side in sides)
                logs = sides[0].logs(before, cost) + sides[1].logs(after, cost)
                value, pair = _farthest(logs, possible)
                if cost + value > found.value:
                    own = self._alone[pair[0]]
                    found = _Query(node, pair, sides, own, (before, after), cost + value)
        return found

    @cached_property
    def _pairs(self) -> list[Pair]:
        """The pairs of values to search: those distinguished best as c → 0, all of five states.

        They are distinguished by expected visits to the states, discounted with the distance.
        """
        start, k = self._distribution(1), len(self._matrix)
        with np.errstate(divide="ignore", invalid="ignore"):
            back = np.nan_to_num(self._matrix.T * start / start[:, None], posinf=0.0)
        distances, decay = np.zeros((k, k)), 1 - 1 / min(self._length, MAX_RECORDS)
        for rows in (back if self._stationary else self._matrix, self._matrix):
            visits = np.linalg.inv(np.eye(k) - decay * rows)
            distances += np.abs(visits[:, None] - visits).sum(axis=-1)
        pairs = sorted(permutations(range(k), 2), key=lambda pair: -distances[pair])
        return pairs[: max(2, 100 // k)]

    def _one_set(self, best: _Query, cost: float) -> tuple[_Query, float]:
        """Return the query with the same S for all records and the smallest c, and that c.

        The search starts from the set next to the node of the best query, and improves it: over all
        sets for few states, else over those with one state more or less.
        """
        k, least = len(self._matrix), self._epsilon
        chosen = np.concatenate([*best.sets, np.zeros((1, k))]).mean(axis=0) > 0.5
        found = replace(best, sets=(self._nothing, self._nothing))
        nodes = [best.node] if self._even(best) else [best.node, *self._nodes]
        while True:
            trials = chosen ^ np.concatenate([np.zeros_like(self._alone[:1]), self._alone])
            if k <= ALL_SUBSETS:
                trials = np.arange(1, 2**k - 1)[:, None] >> np.arange(k) & 1 > 0
            queries = (self._constant(node, own, best, cost) for node in nodes for own in trials)
            # the first of those that are equal up to rounding
            query = max(queries, key=lambda query: np.float32(query.value))
            needed = self._needed(query, cost)
            if not needed < least * (1 - 1e-9):
                return found, least
            found, least, cost, chosen = query, needed, needed, query.own

    def _constant(self, node: int, own: Bools, like: _Query, cost: float) -> _Query:
        """Return the query with one set for about as many records as ``like``."""
        sides = self._sides(node)
        sets = [
            np.tile(own, (min(side.steps, max(FIRST_RECORDS, 2 * len(others))), 1))
            for side, others in zip(sides, like.sets, strict=True)
        ]
        logs = cost * own + sides[0].logs(sets[0], cost) + sides[1].logs(sets[1], cost)
        value, pair = _farthest(logs, self._possible(node))
        return _Query(node, pair, sides, own, (sets[0], sets[1]), value)


def _farthest(logs: Floats, possible: Bools) -> tuple[float, Pair]:
    """Return the largest difference of the logs of two values, and these two."""
    known = np.flatnonzero(np.isfinite(logs) & possible)
    if len(known) < 2:
        return -math.inf, (0, 0)
    order = known[np.argsort(logs[known], kind="stable")]
    return float(logs[order[-1]] - logs[order[0]]), (int(order[-1]), int(order[0]))
