"""Max-influence tables of one chain, computed at the distances that are asked for.

Rounding. Every table is an upper bound. P^n is a product of non-negative numbers, so each entry of a
computed power has a relative error of at most about n (k + 3) roundings, whatever the order of the
products; ratios, logarithms and the later sums of three tables are covered by a few more roundings
relative to the size of the entry. Probabilities that underflow are told from zeros by the support of
P^n, kept beside it: below the smallest safe number a denominator counts as 0 and a numerator as that number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from pufferflow.influence._kernels import max_ratios
from pufferflow.markov.chain import SAFE_MINIMUM, UNIT_ROUNDOFF, Bools, Floats, MarkovChain

Convention: TypeAlias = Literal["exact", "published"]

INFINITE = 1e100
"""Stands for +∞ in the tables (finite, so sums never give NaN)."""

MASKED = -1e200
"""Marks a pair of states that are not both secrets; outweighs ``INFINITE``."""

_POWERS_KEPT_BYTES = 64 * 2**20


class Power(NamedTuple):
    """P^n with its support; ``values`` may underflow where ``support`` is true."""

    values: Floats
    support: Bools


class Stack:
    """A growing array of k × k tables, found by key."""

    def __init__(self, k: int) -> None:
        self.tables = np.zeros((4, k, k))
        self.slots: dict[Hashable, int] = {}

    def slot(self, key: Hashable, make: Callable[[], Floats]) -> int:
        """Return the slot of ``key``, calling ``make`` for its table the first time."""
        slot = self.slots.get(key)
        if slot is None:
            table = make()
            slot = len(self.slots)
            if slot == len(self.tables):
                self.tables = np.concatenate([self.tables, np.zeros_like(self.tables)])
            self.tables[slot] = table
            self.slots[key] = slot
        return slot


class InfluenceTables:
    """The three terms of eq. 5 for one chain, as tables over pairs of secrets (x, x').

    Parameters
    ----------
    chain : MarkovChain
    convention : {"exact", "published"}
        Whether the backward term looks only at states the left quilt node can take (Definition 4.1), or
        at all states, as the paper's eq. 5 is printed.
    """

    def __init__(self, chain: MarkovChain, convention: Convention) -> None:
        self.chain = chain
        self.convention = convention
        self.step_error = 2.0 * (chain.states + 3) * UNIT_ROUNDOFF
        k = chain.states
        self.laws = Stack(k)
        self.lefts = Stack(k)
        self.rights = Stack(k)
        self._none = np.zeros((k, k))
        matrix = chain.transition_matrix
        self._first = (Power(np.eye(k), np.eye(k, dtype=np.bool_)), Power(matrix, matrix > 0))
        self._powers: OrderedDict[int, Power] = OrderedDict()
        self._power_limit = max(64, _POWERS_KEPT_BYTES // (9 * k * k))

    def power(self, n: int) -> Power:
        """P^n from stored powers: the highest bits of n, times the lowest one."""
        if n < 2:
            return self._first[n]
        found = self._powers.get(n)
        if found is not None:
            self._powers.move_to_end(n)
            return found
        low = n & -n
        first, second = (n - low, low) if n != low else (n // 2, n // 2)
        a, b = self.power(first), self.power(second)
        with np.errstate(under="ignore"):
            values = a.values @ b.values
        # exact: a sum of k ones is far below 2^24
        support = (a.support.astype(np.float32) @ b.support.astype(np.float32)) > 0
        power = self._powers[n] = Power(values, support)
        while len(self._powers) > self._power_limit:
            self._powers.popitem(last=False)
        return power

    def none_left(self) -> int:
        """Slot of the empty left term."""
        return self.lefts.slot(None, lambda: self._none)

    def none_right(self) -> int:
        """Slot of the empty right term."""
        return self.rights.slot(None, lambda: self._none)

    def right(self, b: int) -> int:
        """Slot of max over z of log P^b(x, z) / P^b(x', z)."""
        return self.rights.slot(b, lambda: self._log_ratios(*self.power(b), steps=b))

    def left(self, a: int, support: Bools) -> int:
        """Slot of max over z of log P^a(z, x) / P^a(z, x').

        ``support`` (shape (k,)) marks the states the left quilt node can take; the published
        convention looks at every z instead.
        """
        if self.convention == "published":
            support = np.ones_like(support)

        def make() -> Floats:
            power = self.power(a)
            return self._log_ratios(power.values[support].T, power.support[support].T, steps=a)

        return self.lefts.slot((a, support.tobytes()), make)

    def law_given(self, law: Floats, support: Bools, error: float) -> Floats:
        """Table of log m(x') / m(x) for a law m with relative entry error ``error``, masked to its support."""
        column = law[:, None]
        table = self._log_ratios(column, support[:, None], steps=0).T + 2.0 * error
        return _mask(table, support)

    def law_any(self, n: int, support: Bools) -> Floats:
        """Table of max over z of log P^n(z, x') / P^n(z, x), masked to ``support`` (C.4).

        An upper bound of log m_i(x') / m_i(x) for every initial distribution and every i > n: both laws
        are mixtures of the rows of P^n, and a ratio of mixtures is at most the largest ratio.
        """
        return _mask(self.law_any_unmasked(n), support)

    def law_any_unmasked(self, n: int) -> Floats:
        """As :meth:`law_any`, for all pairs of states."""
        power = self.power(n)
        return self._log_ratios(power.values.T, power.support.T, steps=n).T

    def law_mask(self, support: Bools) -> Floats:
        """Table of zeros, masked to ``support``: the first term where the quilt has no left node."""
        return _mask(self._none, support)

    def _log_ratios(self, rows: Floats, support: Bools, steps: int) -> Floats:
        """Upper bound of max over z of log rows[x, z] / rows[x', z], shape (k, k)."""
        safe = rows >= SAFE_MINIMUM
        numerators = np.where(safe, rows, np.where(support, SAFE_MINIMUM, 0.0))
        denominators = np.where(safe, rows, 0.0)
        out = np.empty((len(rows), len(rows)))
        with np.errstate(divide="ignore", under="ignore"):
            max_ratios(np.ascontiguousarray(numerators), np.ascontiguousarray((1.0 / denominators).T), out)
            table = np.clip(np.log(out), -INFINITE, INFINITE)
        table += steps * self.step_error + 4 * UNIT_ROUNDOFF + 8 * UNIT_ROUNDOFF * np.abs(table)
        return table


def _mask(table: Floats, support: Bools) -> Floats:
    return np.where(support[:, None] & support[None, :], table, MASKED)


@lru_cache(maxsize=16)
def influence_tables(chain: MarkovChain, convention: Convention) -> InfluenceTables:
    """Tables of ``chain``, shared by all calls on the same object (a grid of ε costs little more than one)."""
    return InfluenceTables(chain, convention)
