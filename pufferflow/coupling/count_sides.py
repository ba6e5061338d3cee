"""One side of a secret: the counts of the entries before or after it that tell its values apart best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pufferflow._jit import constant
from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling._count_kernels import LIFT, UNDERFLOW, ascend, gains, profile, signs

FIRST_STEPS = 64
"""Entries that are looked at first; twice as many as long as they matter."""

_LARGEST_SIDE = 12_000_000
_SETTLED = 1e-11, 1e-5
_SWEEPS = 60, 4
_AT_ONCE = 5 * 10**7  # products of a sweep, there and back, in a call of a kernel: tenths of a second
_ROUNDS = 8
_LONGEST_CYCLE = 8
_ODDS = np.logspace(-12, 12, 25)


class Counts(NamedTuple):
    """States counted at each entry of a side, with growing distance from the secret.

    ``sets``, shape (n, k), then ``repeats`` times the rows of ``cycle``, shape (p, k).
    """

    sets: Bools
    cycle: Bools
    repeats: int = 0

    @property
    def entries(self) -> int:
        """How many entries are looked at."""
        return len(self.sets) + self.repeats * len(self.cycle)

    @classmethod
    def of(cls, sets: Bools) -> Counts:
        """Each entry by itself."""
        return cls(sets, sets[:0])


class End(NamedTuple):
    """What stands behind the last entry counted.

    ``values``, shape (k,), each off by ``lost`` at most beside a relative error that changes a leak by at most
    ``error`` nats.
    """

    values: Floats
    lost: float = 0.0
    error: float = 0.0


def most_entries(states: int) -> int:
    """How many entries of a side may each have a set of their own: looking at all of them takes some 20 ms at most."""
    return max(4 * FIRST_STEPS, min(4096, _LARGEST_SIDE // states**2))


@dataclass(frozen=True, eq=False)
class Side:
    """The entries on one side of a secret, to the last one that is counted.

    The expected tilt given the value x of the entry next to it is, up to a common factor, entry x of
    K D_1 … K D_n · end over entry x of K^n · end; see ``_count_kernels``.

    Attributes
    ----------
    matrix : float array, shape (k, k)
        K: P ahead; behind P*, or the transpose of P.
    steps : int
        Entries on this side.
    end : function of n, optional
        Ahead 1 (None), or 1 at the value of a record that is known; behind the law of the entry n away.
    exact : bool
        Whether at least ``steps`` entries must be looked at.
    beyond : int
        Entries farther away that may be counted, too, as the last ones again and again.
    error : float
        Nats that relative errors of the matrix which do not grow with n may change a leak by.
    known : pair of int, optional
        Distance, less than 0 behind, and value of a record that is known.
    law : float array, shape (k,), optional
        The initial law meant, where any may be.
    """

    matrix: Floats
    steps: int
    end: Callable[[int], End] | None = None
    exact: bool = False
    beyond: int = 0
    error: float = 0.0
    known: tuple[int, int] | None = None
    law: Floats | None = None
    _rows: Floats = field(init=False, repr=False)
    _transposed: Floats = field(init=False, repr=False)
    _one: End = field(init=False, repr=False)
    _plain: dict[int, tuple[Floats, float]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", constant(self.matrix))
        object.__setattr__(self, "_transposed", constant(self.matrix.T))
        object.__setattr__(self, "_one", End(np.ones(len(self.matrix))))

    @property
    def states(self) -> int:
        """How many states the chain has, k."""
        return len(self.matrix)

    def none(self) -> Counts:
        """The count of nothing."""
        return Counts.of(np.zeros((self.steps if self.exact else 0, self.states), dtype=np.bool_))

    def plain(self, counts: Counts) -> tuple[Floats, float]:
        """Logarithm of K^n · end, NaN where it is 0 or unknown, and a bound on the error of a difference."""
        if self.end is None:
            return np.zeros(self.states), 0.0
        if counts.entries not in self._plain:
            self._plain[counts.entries] = self._logarithms(counts, 0.0)
        return self._plain[counts.entries]

    def can_be(self, pair: tuple[int, int]) -> bool:
        """Whether both values are known to be possible, given what stands behind the entries."""
        return not self.exact or bool(np.isfinite(self.plain(self.none())[0][list(pair)]).all())

    def about(self, counts: Counts, cost: float) -> Floats:
        """Log E[e^(c · count) | x] up to a constant, shape (k,), NaN or −∞ where it is unknown; without a promise."""
        values = np.zeros(self.states)
        if not counts.entries:
            return values
        profile(self._transposed, constant(self._behind(counts, cost).values), counts.sets, cost, False, values, values)
        return values if self.end is None else values - self.plain(counts)[0]

    def tells(self, counts: Counts, cost: float) -> tuple[Floats, float]:
        """The same, NaN where underflow may blur it, and a bound on the error of a difference."""
        plain, rounding = self.plain(counts)
        if not counts.entries:
            return plain * 0.0, 0.0
        tilted, more = self._logarithms(counts, cost)
        return tilted - plain, rounding + more + self.error

    def add_gains(self, counts: Counts, cost: float, pair: tuple[int, int], total: Floats) -> None:
        """Add to ``total`` how much likelier each state is after the first value, tilted, over the first entries."""
        gains(self._rows, self._transposed, constant(self._behind(counts, cost).values), counts.sets, cost, pair, total)

    def best(
        self, pair: tuple[int, int], cost: float, start: Counts | None = None, *, rough: bool = False
    ) -> tuple[float, Counts]:
        """The largest leak between two values, about, and the count that attains it.

        Parameters
        ----------
        pair : pair of int
        cost : float
            c.
        start : Counts, optional
            By default the states that are likelier after the first value.
        rough : bool
            Whether 1e-4 of the leak may be missed, to compare many pairs.
        """
        if pair[0] == pair[1] or not self.steps:
            return 0.0, self.none()
        if not self.can_be(pair):
            return -math.inf, self.none()
        value, improved, _ = self.ascent(pair, cost, start, rough=rough)
        return value, improved

    def ascent(
        self, pair: tuple[int, int], cost: float, start: Counts | None, *, rough: bool = False
    ) -> tuple[float, Counts, Floats]:
        """As :meth:`best`, and what the two values give at the last entry with a set of its own, each up to a factor.

        Shape (2, k).
        """
        given = np.zeros((0, self.states), dtype=np.bool_) if start is None else start.sets
        largest = min(self.steps, most_entries(self.states))
        steps = self.steps if self.exact else min(largest, max(FIRST_STEPS, len(given)))
        message, sweeps, negligible = np.empty((2, self.states)), _SWEEPS[rough], _SETTLED[rough]
        while True:
            sets = np.empty((steps, self.states), dtype=np.bool_)
            if len(given) < steps:
                signs(self._rows, pair, sets)
            sets[: len(given)] = given[:steps]
            counts = Counts.of(sets)
            value, apart = self._ascend(pair, cost, counts, message, sweeps)
            settled = apart[-1] * steps < negligible
            if self.exact or steps == largest or settled:
                break
            given, steps = sets, min(2 * steps, largest)
        if not self.exact and settled:
            far = np.flatnonzero(apart * np.arange(1, steps + 1) >= negligible)
            counts = Counts.of(sets[: far[-1] + 1 if len(far) else 0])
        value = self._told(pair, value, counts)
        if not settled and self.steps + self.beyond > steps:
            prolonged = self._prolonged(pair, cost, counts)
            if prolonged[0] > value:
                return prolonged
        return value, counts, message

    def _told(self, pair: tuple[int, int], value: float, counts: Counts) -> float:
        """The leak, from the logarithm of the ratio that is tilted."""
        plain = self.plain(counts)[0]
        return float(value - plain[pair[0]] + plain[pair[1]])

    def _ascend(
        self, pair: tuple[int, int], cost: float, counts: Counts, message: Floats, sweeps: int = _SWEEPS[0]
    ) -> tuple[float, Floats]:
        """Change the sets of single entries; the value and how far apart the laws of each are."""
        n, k = counts.sets.shape
        law = self._rows, self._transposed, constant(self._behind(counts, cost).values)
        tables, state, apart = (np.empty((n + 1, k)), np.empty((n, k)), np.empty((n, k))), np.zeros(3), np.empty(n)
        at_once = max(1, _AT_ONCE // (n * k**2))
        while not ascend(law, counts.sets, cost, pair, (sweeps, at_once), tables, state, (apart, message)):
            pass
        return float(state[2]), apart

    def _prolonged(self, pair: tuple[int, int], cost: float, counts: Counts) -> tuple[float, Counts, Floats]:
        """Of a chain that is too slow for sets of their own: the last ones again and again; as :meth:`ascent`."""
        for period in range(1, _LONGEST_CYCLE + 1):
            last = counts.sets[-2 * period :]
            if (last[:period] == last[period:]).all():
                break
        else:
            period = 1
        repeats = (self.steps + self.beyond - len(counts.sets)) // period
        longer, message = Counts(counts.sets.copy(), counts.sets[-period:].copy(), repeats), np.empty((2, self.states))
        value, _ = self._ascend(pair, cost, longer, message)
        return self._told(pair, value, longer), longer, message

    def _behind(self, counts: Counts, cost: float) -> End:
        """What stands behind the entries that have sets of their own."""
        end = self._one if self.end is None else self.end(counts.entries)
        if not counts.repeats:
            return end
        values, lost = self.repeated(counts, cost, end.values, end.lost)
        return End(values, lost, end.error)

    def repeated(self, counts: Counts, cost: float, values: Floats, lost: float) -> tuple[Floats, float]:
        """What is repeated times the ``values`` behind it, up to a factor, and what underflow took of them at most.

        The values have shape (k,), or (k, n) for n of them at once, and so has what is returned.
        """
        low = math.exp(-cost)
        power = np.eye(self.states)
        for inside in counts.cycle:
            power = power @ (self.matrix * np.where(inside, 1.0, low))
        # underflow takes ``lost`` of an entry of the values at most, ``missing`` of one of the power
        missing, left = len(counts.cycle) * 4 * self.states * UNDERFLOW, counts.repeats
        while left:
            if left & 1:
                values = power @ values
                top = float(values.max())
                values, lost = values / top, 2 * self.states * (lost + missing + UNDERFLOW) / top
            left >>= 1
            if left:
                power = power @ power
                top = float(power.max())
                power, missing = power / top, 2 * self.states * (2 * missing + UNDERFLOW) / top
        return values, lost

    def _logarithms(self, counts: Counts, cost: float) -> tuple[Floats, float]:
        end = self._behind(counts, cost)
        values, lost = np.empty(self.states), np.full(self.states, end.lost * LIFT)
        profile(self._transposed, constant(end.values), counts.sets, cost, True, values, lost)
        known = values > lost * (1024 / LIFT / UNIT_ROUNDOFF)
        logs = np.log(np.where(known, values, np.nan))
        # more than twice the k + 6 roundings of each factor
        rounding = 4.0 * (self.states + 8) * UNIT_ROUNDOFF * (counts.entries + 2.0) + end.error
        return logs, rounding + 8 * UNIT_ROUNDOFF * float(np.where(known, np.abs(logs), 0.0).max(initial=0.0))


class Found(NamedTuple):
    """A count on one side: what it tells, shape (k,), at the c it was found at."""

    side: Side
    counts: Counts
    tells: Floats


class FreeStart:
    """Everything before a secret whose first entry may have any law: a :class:`Side` for each law, found on the way.

    The best law for a count is one on two states: the ratio of two averages over it, over that of two others.

    Parameters
    ----------
    matrix : float array, shape (k, k)
        P.
    steps : int
        Entries before the secret.
    most : int
        Entries that may be counted.
    """

    def __init__(self, matrix: Floats, steps: int, most: int) -> None:
        self._back, self._matrix = np.ascontiguousarray(matrix.T), matrix
        self._steps, self._most = steps, most
        self._counted = min(steps, most_entries(len(matrix)))
        self._powers: dict[int, Floats] = {}
        self._laws = self._far(0)

    def best(self, pair: tuple[int, int], cost: float) -> tuple[float, Side, Counts] | None:
        """The largest leak found between two values, about, with the initial law and the count that attain it."""
        best: tuple[float, Side, Counts] | None = None
        for law in self._begin(pair):
            value, counts = -math.inf, None
            for _ in range(_ROUNDS):
                side = self._side(law)
                if not side.can_be(pair):
                    break
                leak, counts, message = side.ascent(pair, cost, counts)
                if best is None or leak > best[0]:
                    best = leak, side, counts
                if not leak > value * (1 + 1e-7) + 1e-15:
                    break
                value = leak
                far, _ = side.repeated(counts, cost, self._far(counts.entries).T, 0.0)
                law = self._two_states(message @ far, self._laws[:, list(pair)].T)
        return best

    def _far(self, entries: int) -> Floats:
        """Laws of the last of so many entries, or of the secret where there is none, given the first of all."""
        if entries not in self._powers:
            self._powers[entries] = np.linalg.matrix_power(self._matrix, self._steps - entries)
        return self._powers[entries]

    def _side(self, law: Floats) -> Side:
        def end(entries: int) -> End:
            values = np.ascontiguousarray(law @ self._far(entries))
            return End(values, lost_of(values), 8.0 * (len(law) + 8) * UNIT_ROUNDOFF * (self._steps - entries))

        beyond = min(self._steps, self._most) - self._counted
        return Side(self._back, self._counted, end, exact=True, beyond=beyond, law=law)

    def _begin(self, pair: tuple[int, int]) -> Iterator[Floats]:
        """Laws to begin with: on two states, as likely to lead to the two values as can be."""
        k = len(self._back)
        first, second = self._laws[:, pair[0]], self._laws[:, pair[1]]
        yield np.full(k, 1.0 / k)
        with np.errstate(all="ignore"):
            toward = np.log(first / second)
        order = np.argsort(np.where(np.isnan(toward), 0.0, toward))
        for x, y in combinations(range(k), 2) if k <= 3 else [(int(order[0]), int(order[-1]))]:
            law = np.zeros(k)
            law[x], law[y] = self._balanced(x, y, pair)
            yield law

    def _balanced(self, x: int, y: int, pair: tuple[int, int]) -> tuple[float, float]:
        with np.errstate(all="ignore"):
            odds = np.sqrt(self._laws[x, pair[0]] * self._laws[x, pair[1]])
            odds = odds / np.sqrt(self._laws[y, pair[0]] * self._laws[y, pair[1]])
        odds = float(odds) if 0 < odds < np.inf else 1.0
        return 1 / (1 + odds), odds / (1 + odds)

    def _two_states(self, tilted: Floats, plain: Floats) -> Floats:
        """The law on two states that makes the ratio of tilted averages over that of plain ones largest.

        Parameters
        ----------
        tilted, plain : float arrays, shape (2, k)
            What each state gives for the first and for the second value.
        """
        k = len(self._back)
        x, y = np.triu_indices(k, 1)
        law = np.zeros(k)
        if not len(x):
            return law + 1.0
        # ((a + b o)/(e + f o)) ((p + q o)/(g + h o)): stationary where a quadratic in the odds o vanishes
        (a, e), (b, f) = tilted[:, x], tilted[:, y]
        (g, p), (h, q) = plain[:, x], plain[:, y]
        over = b * q, a * q + b * p, a * p
        under = f * h, e * h + f * g, e * g
        second, first, constant = (
            over[0] * under[1] - over[1] * under[0],
            2 * (over[0] * under[2] - over[2] * under[0]),
            over[1] * under[2] - over[2] * under[1],
        )
        with np.errstate(all="ignore"):
            root = np.sqrt(np.maximum(first * first - 4 * second * constant, 0.0))
            turning = [(-first + root) / (2 * second), (-first - root) / (2 * second), -constant / first]
            odds = np.array([*turning, *(np.full_like(root, one) for one in _ODDS)])
            odds = np.where((odds > 0) & np.isfinite(odds), odds, 1.0)
            values = (over[0] * odds**2 + over[1] * odds + over[2]) / (under[0] * odds**2 + under[1] * odds + under[2])
        i, j = np.unravel_index(int(np.where(np.isfinite(values), values, -1.0).argmax()), values.shape)
        law[x[j]], law[y[j]] = 1 / (1 + odds[i, j]), odds[i, j] / (1 + odds[i, j])
        return law


def lost_of(law: Floats) -> float:
    """How much of a law of floats underflow may have taken."""
    return 3 * len(law) * UNDERFLOW
