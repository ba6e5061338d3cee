"""What lies before and after a secret, and queries that count there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from pufferflow._protection import Protection
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling.count_sides import Counts, End, Found, FreeStart, Side, lost_of, most_entries
from pufferflow.coupling.sides import reached
from pufferflow.errors import ChainError
from pufferflow.markov.chain import MarkovChain

Pair: TypeAlias = tuple[int, int]
Warm: TypeAlias = dict[tuple[int, Pair], Counts]

_WINDOW = 20_000
"""Entries on a side that are counted at most, unless rounding allows for more."""

_LONGEST_WINDOW = 4096


class Leak(NamedTuple):
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
        with np.errstate(invalid="ignore"):  # of values of which nothing is known
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


class Half:
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
        visited = Found(side, counts, side.about(counts, cost))
        self.found.append(visited)
        if self.free is None and len(self.sides) == 1 and side.end is None and counts.entries < side.steps:
            self._settled[pair] = visited  # more entries would change nothing

    def table(self) -> tuple[Floats, Floats]:
        """What the queries found tell of two values at most, −∞ where unknown, shape (k, k), and which of them does."""
        if not self.found:
            return self._nothing, np.zeros_like(self._nothing, dtype=np.int64)
        apart = np.array([apart_by(one.tells) for one in self.found])
        return apart.max(axis=0), apart.argmax(axis=0)


class Surroundings:
    """What lies around the secrets of a chain: the sides of every node, without the states that never occur."""

    def __init__(self, chain: MarkovChain, length: int, epsilon: float, protection: Protection) -> None:
        self.names = np.arange(chain.states)
        if chain.start == "stationary":
            self.names = np.flatnonzero(chain.initial_support)
            chain = chain.restricted(chain.initial_support)
        self.chain, self.length, self.protection = chain, length, protection
        self.window = min(protection.window, length, _LONGEST_WINDOW)
        self.last = length - self.window + 1
        """Where the last secret begins."""
        self.matrix = np.ascontiguousarray(chain.transition_matrix)
        # so many entries that rounding stays far below ε
        self._most = int(max(_WINDOW, 1e-7 * epsilon / (4.0 * (chain.states + 8) * UNIT_ROUNDOFF)))
        self._halves: dict[tuple[str, int], Half] = {}
        self._settled: dict[str, dict[Pair, Found]] = {}
        self._laws: dict[int, End] = {}
        self._supports = [chain.initial_support]

    def forget(self) -> None:
        """Begin anew, at another c."""
        self._halves, self._settled = {}, {}

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

    def ahead(self, node: int) -> Half:
        """Sides of the entries after a secret that begins at this node."""
        steps = self.length - node - self.window + 1
        return self._half("ahead", steps)

    def behind(self, node: int) -> Half:
        """Sides of the entries before it."""
        return self._half("behind", node - 1)

    def _half(self, name: str, steps: int) -> Half:
        key = name, steps
        if key not in self._halves:
            sides = list(self._ahead_sides(steps) if name == "ahead" else self._behind_sides(steps))
            free = None
            # far from the start the stationary law does as well
            far = self.reversal is not None and steps > most_entries(self.chain.states)
            if name == "behind" and self.chain.start == "any" and steps and not far:
                free = FreeStart(self.matrix, steps, self._most)
            settled = self._settled.setdefault(name, {})
            self._halves[key] = Half(sides, free, settled, self.chain.states)
        return self._halves[key]

    def _ahead_sides(self, steps: int) -> Iterator[Side]:
        yield Side(self.matrix, min(steps, self._most))
        if self.protection.knows != "nothing":
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
            yield Side(self.reversal, min(steps, self._most), error=error, law=meant)
        elif self.chain.start != "any":
            near = min(steps, most_entries(self.chain.states))
            beyond = min(steps, self._most) - near
            yield Side(back, near, lambda n: self._law(steps - n), beyond=beyond, error=error)
        if self.protection.knows != "nothing":
            for distance in _grid(min(steps, most_entries(self.chain.states))):
                for y in np.flatnonzero(self.support(steps - distance + 1)):
                    yield self._known(back, distance, int(y), -distance)

    def _law(self, steps: int) -> End:
        """Law of X_{steps + 1}."""
        if steps not in self._laws:
            law = self.chain.initial_distribution
            assert law is not None
            if steps and self.chain.start == "given":
                law = law @ np.linalg.matrix_power(self.matrix, steps)
            law = np.ascontiguousarray(law)
            self._laws[steps] = End(law, lost_of(law), 8.0 * (self.chain.states + 8) * UNIT_ROUNDOFF * steps)
        return self._laws[steps]

    def support(self, node: int) -> Bools:
        """Values that an entry can take."""
        seen = self._supports
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


def apart_by(tells: Floats) -> Floats:
    """By how much two values are told apart, shape (k, k), from what each tells, shape (k,).

    −∞ where of one of them nothing is known.
    """
    with np.errstate(invalid="ignore"):
        apart = tells[:, None] - tells[None, :]
    return np.where(np.isfinite(apart), apart, -np.inf)


def _grid(most: int) -> Iterator[int]:
    """Distances of a known record: all small ones, then ever fewer."""
    distance = 1
    while distance <= most:
        yield distance
        distance = max(distance + 1, distance * 5 // 4)
