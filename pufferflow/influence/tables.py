"""Max-influence tables of one chain, computed at the distances that are asked for.

Rounding. Every table is an upper bound. P^n is a product of non-negative numbers, so each entry of a
computed power has a relative error of at most about n (k + 3) roundings, whatever the order of the
products; ratios, logarithms and the later sums of three tables are covered by a few more roundings
relative to the size of the entry. Probabilities that underflow are told from zeros by the support of
P^n, kept beside it: below the smallest safe number a denominator counts as 0 and a numerator as that number.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from pufferflow._util.jit import constant
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.influence._kernels import insert_sorted, max_ratios, round_up
from pufferflow.models.chain import MarkovChain
from pufferflow.models.powers import followers, largest_after

Convention: TypeAlias = Literal["exact", "published"]

INFINITE = 1e100
"""Stands for +∞ in the tables (finite, so sums never give NaN)."""

MASKED = -1e200
"""Marks a pair of states that are not both secrets; outweighs ``INFINITE``."""

_KEPT_BYTES = 64 * 2**20
_OBJECT_BYTES = 512  # of an array or two, besides what they hold
_TABLE_BYTES = 2**28
_RESERVED_BYTES = 2**28  # of addresses; memory is taken as tables are written
_DECIDING_KEPT = 24
_QUILTS_KEPT = 6
_CHAINS_KEPT = 16
_ROWS_PER_THREAD = 100
_CORES = int(os.environ.get("NUMBA_NUM_THREADS") or os.cpu_count() or 1)


class Power(NamedTuple):
    """P^n with its support; ``values`` may underflow where ``support`` is true."""

    values: Floats
    support: Bools
    full: bool
    """Whether the support is everything, and so is that of all higher powers."""


class DistanceIndex:
    """Which slot holds the table of which distance, as sorted arrays that grow in place; ``number`` is its own."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._distances = np.zeros(64, dtype=np.int64)
        self._slots = np.zeros(64, dtype=np.int64)
        self._used = 1
        self.slots = {0: 0}  # distance 0, no quilt node, is in slot 0

    def arrays(self) -> tuple[Ints, Ints]:
        """Distances, increasing, and their slots."""
        return self._distances[: self._used], self._slots[: self._used]

    def insert(self, distance: int, slot: int) -> None:
        """Add a distance that is not there."""
        if self._used == len(self._slots):
            self._distances = np.concatenate([self._distances, np.zeros_like(self._distances)])
            self._slots = np.concatenate([self._slots, np.zeros_like(self._slots)])
        insert_sorted(self._distances, self._slots, self._used, distance, slot)
        self._used += 1
        self.slots[distance] = slot


class DistanceStack:
    """A growing stack of k × k tables, found by the distance of the quilt node and the states it can take.

    Table 0 is zero and stands for no quilt node, distance 0.
    """

    def __init__(self, k: int) -> None:
        self.tables = np.empty((max(8, min(512, _RESERVED_BYTES // (8 * k * k))), k, k))
        self.tables[0] = 0.0
        self._made = np.zeros((len(self.tables), 2), dtype=np.int64)  # distance of each, and number of its index
        self._indices: dict[bytes, DistanceIndex] = {}
        self.used = 1

    def index(self, states: bytes) -> DistanceIndex:
        """Index of the tables at hand for ``states``."""
        distances = self._indices.get(states)
        if distances is None:
            distances = self._indices[states] = DistanceIndex(len(self._indices))
        return distances

    def slot(self, distance: int, states: bytes, fill: Callable[[Floats], None]) -> int:
        """Return the slot of a table, calling ``fill`` on it the first time."""
        index = self.index(states)
        slot = index.slots.get(distance)
        if slot is None:
            slot = self.used
            if slot == len(self.tables):
                grown = np.empty((2 * slot, *self.tables.shape[1:]))
                grown[:slot] = self.tables
                self.tables = grown
                self._made = np.concatenate([self._made, self._made])
            fill(self.tables[slot])
            self._made[slot] = distance, index.number
            self.used += 1
            index.insert(distance, slot)
        return slot

    def arrays_by(self, index_at: Callable[[Ints], Ints], reach: int) -> tuple[Ints, Ints]:
        """As the arrays of an index where the states a node can take depend on its distance ≤ ``reach``.

        ``index_at`` gives the numbers of the indices that hold for given distances.
        """
        distances, numbers = self._made[: self.used].T
        slots = np.flatnonzero(distances <= reach)
        slots = slots[(slots == 0) | (index_at(distances[slots]) == numbers[slots])]
        slots = slots[np.argsort(distances[slots])]
        return distances[slots], slots


class InfluenceTables:
    """The three terms of eq. 5 for one chain, as tables over pairs of secrets (x, x').

    Parameters
    ----------
    convention : {"exact", "published"}
        Whether the backward term looks only at states the left quilt node can take (Definition 4.1), or
        at all states, as the paper's eq. 5 is printed.
    window : int
        How many records the secrets are of; pairs are of their first values, and the forward term is the largest over
        their last ones.
    """

    def __init__(self, chain: MarkovChain, convention: Convention, window: int = 1) -> None:
        self.chain = chain
        self.convention = convention
        self.window = window
        self.step_error = 2.0 * (chain.states + 3) * UNIT_ROUNDOFF
        k = chain.states
        self.lefts = DistanceStack(k)
        self.rights = DistanceStack(k)
        self.deciding = np.zeros((_DECIDING_KEPT + 1, 2), dtype=np.int64)
        """Pairs of secrets that decided somewhere, their number in row 0 (see ``search_quilts``)."""
        self.quilts: list[tuple[int, int]] = []
        """Distances of the best quilts found last, 0 for none on that side: a start for further searches."""
        self.everything = np.ones(k, dtype=np.bool_)
        matrix = chain.transition_matrix
        one = np.eye(k)
        self._first = tuple(Power(constant(m), m > 0, bool((m > 0).all())) for m in (one, matrix))
        self._powers: OrderedDict[int, Power] = OrderedDict()
        self._power_limit = max(64, _KEPT_BYTES // (9 * k * k + _OBJECT_BYTES))
        self._last = followers(chain.transition_matrix, window) if window > 1 else None
        self._laws: dict[Hashable, Floats] = {}
        self._law_limit = max(16, _KEPT_BYTES // (8 * k * k + _OBJECT_BYTES))

    @property
    def size(self) -> int:
        """Bytes held, roughly."""
        tables = self.lefts.used + self.rights.used + len(self._laws) + 2 * len(self._powers)
        return 8 * self.chain.states**2 * tables

    def trim(self) -> None:
        """Start anew where the tables by distance take too much room."""
        k = self.chain.states
        if 8 * k * k * (self.lefts.used + self.rights.used) > _TABLE_BYTES:
            self.lefts, self.rights = DistanceStack(k), DistanceStack(k)

    def remember(self, a: int, b: int) -> None:
        """Keep a quilt in ``quilts``, unless it is the trivial one."""
        if a or b:
            others = [quilt for quilt in self.quilts if quilt != (a, b)]
            self.quilts = [*others[1 - _QUILTS_KEPT :], (a, b)]

    def power(self, n: int) -> Power:
        """P^n from stored powers: the highest bits of n, times the lowest one."""
        if n < 2:
            return self._first[n]
        known = self._powers.get(n)
        if known is not None:
            self._powers.move_to_end(n)
            return known
        low = n & -n
        first, second = (n - low, low) if n != low else (n // 2, n // 2)
        a, b = self.power(first), self.power(second)
        values = np.dot(a.values, b.values)  # unlike @ it never warns of underflow, which is expected here
        if a.full:
            support, full = a.support, True  # no row of the other power is zero
        else:
            # exact: a sum of k ones is far below 2^24
            support = (a.support.astype(np.float32) @ b.support.astype(np.float32)) > 0
            full = bool(support.all())
        power = self._powers[n] = Power(constant(values), support, full)
        while len(self._powers) > self._power_limit:
            self._powers.popitem(last=False)
        return power

    def right(self, b: int) -> int:
        """Slot of max over z of log P^b(x, z) / P^b(x', z); of windows, the largest over their last values."""

        def fill(out: Floats) -> None:
            self._fill(out, b, self.everything, backward=False)
            if self._last is not None:
                out[:] = largest_after(out, self._last)

        return self.rights.slot(b, b"", fill)

    def left(self, a: int, support: Bools) -> int:
        """Slot of max over z of log P^a(z, x) / P^a(z, x').

        ``support`` (shape (k,)) marks the states the left quilt node can take; the published
        convention looks at every z instead.
        """
        states = self.left_states(support)

        return self.lefts.slot(a, states.tobytes(), lambda out: self._fill(out, a, states, backward=True))

    def left_states(self, support: Bools) -> Bools:
        """States z that the backward term looks at when the left quilt node can take ``support``."""
        return self.everything if self.convention == "published" else support

    def canonical(self, support: Bools) -> Bools:
        """Return ``everything`` itself for a support of all states, which saves looking again."""
        return self.everything if support.all() else support

    def law(self, key: Hashable, make: Callable[[], Floats]) -> Floats:
        """Return a first term by its name, calling ``make`` the first time."""
        table = self._laws.get(key)
        if table is None:
            if len(self._laws) >= self._law_limit:
                self._laws.clear()
            table = self._laws[key] = make()
        return table

    def law_given(self, law: Floats, support: Bools, error: float) -> Floats:
        """Table of log m(x') / m(x) for a law m with relative entry error ``error``, masked to its support."""
        numerators = np.log(np.maximum(law, SAFE_MINIMUM))
        denominators = np.where(law >= SAFE_MINIMUM, numerators, -INFINITE)
        table = numerators[None, :] - denominators[:, None]
        sizes = np.abs(numerators)[None, :] + np.abs(denominators)[:, None]
        return _mask(table + 2.0 * error + 8 * UNIT_ROUNDOFF * (1 + sizes), support)

    def law_any(self, n: int, support: Bools) -> Floats:
        """Table of max over z of log P^n(z, x') / P^n(z, x), masked to ``support`` (C.4).

        An upper bound of log m_i(x') / m_i(x) for every initial distribution and every i > n: both laws
        are mixtures of the rows of P^n, and a ratio of mixtures is at most the largest ratio.
        """

        def make() -> Floats:
            table = np.empty_like(self.chain.transition_matrix)
            self._fill(table, n, self.everything, backward=True)
            table = np.ascontiguousarray(table.T)
            return table if support is self.everything else _mask(table, support)

        return self.law(("any", n, support.tobytes()), make)

    def law_mask(self, support: Bools) -> Floats:
        """Table of zeros, masked to ``support``: the first term where the quilt has no left node."""
        return self.law(("mask", support.tobytes()), lambda: _mask(self.lefts.tables[0], support))

    def _fill(self, out: Floats, n: int, events: Bools, *, backward: bool) -> None:
        """Fill ``out`` with upper bounds of max over z in ``events`` of log P^n(x, z) / P^n(x', z), or backward."""
        power = self.power(n)
        arguments = power.values, power.support, events, backward, SAFE_MINIMUM
        if len(out) < 2 * _ROWS_PER_THREAD or _CORES == 1:
            max_ratios(*arguments, 0, len(out), out)
        else:  # each entry is computed alike, whichever core does it
            workers = min(_CORES, len(out) // _ROWS_PER_THREAD)
            cuts = [len(out) * i // workers for i in range(workers + 1)]
            with ThreadPoolExecutor(workers) as pool:
                for job in [pool.submit(max_ratios, *arguments, *part, out) for part in pairwise(cuts)]:
                    job.result()
        with np.errstate(divide="ignore"):
            np.log(out, out=out)
        round_up(out, n * self.step_error + 4 * UNIT_ROUNDOFF, 8 * UNIT_ROUNDOFF, INFINITE)


def _mask(table: Floats, support: Bools) -> Floats:
    return np.where(support[:, None] & support[None, :], table, MASKED)


_kept: OrderedDict[tuple[MarkovChain, Convention, int], InfluenceTables] = OrderedDict()


def influence_tables(chain: MarkovChain, convention: Convention, window: int = 1) -> InfluenceTables:
    """Tables of ``chain``, shared by all calls on the same object: a grid of ε costs little more than one.

    Those of the chains used last are kept, up to a gigabyte in all.
    """
    key = chain, convention, window
    tables = _kept.pop(key, None)
    if tables is None:
        tables = InfluenceTables(chain, convention, window)
        while _kept and (len(_kept) >= _CHAINS_KEPT or sum(t.size for t in _kept.values()) > 2**30):
            _kept.popitem(last=False)
    _kept[key] = tables
    return tables
