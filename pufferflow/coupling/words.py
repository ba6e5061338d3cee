"""Loss of chains of order m to those who know records: words of m labels in ``docs/leakage.md``."""

from __future__ import annotations

import numpy as np

from pufferflow._util.protection import Protection
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.coupling.roots import Loss, scale_below
from pufferflow.coupling.sides import ForgettingSide, LeakageEquation, post_fixed_point, scattered
from pufferflow.models.hidden import HiddenChain
from pufferflow.models.powers import matrix_power

MOST_WORDS = 36
"""Largest number of words for which they are compared: seconds; time grows with their sixth power."""


class WordLeakage:
    """Upper bounds of the loss of a chain of order m, for adversaries who know any other records (Theorem L2).

    m records are a step of a chain on words, and what is known of them reweights its laws as any other knowledge does.

    Parameters
    ----------
    family : HiddenChain
        Of some order, see :attr:`HiddenChain.words`, and of at most ``MOST_WORDS`` words.
    length : int
        T, in records.
    protection : Protection
    """

    def __init__(self, family: HiddenChain, length: int, protection: Protection) -> None:
        words = family.words
        assert words is not None
        self._length, self._window = length, min(protection.window, length)
        k, order = words.shape
        self._order = order
        self._apart = words[:, None, :] != words[None, :, :]
        self._differ: Floats = self._apart.sum(axis=-1, dtype=np.float64)
        power, support = matrix_power(family.chain.transition_matrix, order)
        laws = np.where(support, power, 0.0)
        self._told = not (support & (power < SAFE_MINIMUM)).any()
        # of a cross ratio of four entries
        self._rounding = 16 * order * (k + 3) * UNIT_ROUNDOFF * (1 - np.eye(k))
        self._sides = ForgettingSide(np.ascontiguousarray(laws.T)), ForgettingSide(laws)
        self._starts: dict[int, Floats] = {}

    def loss(self, cost: float) -> Loss:
        """Bound, rounded up, at c; of all nodes alike."""
        self._starts.clear()
        return self._nearby(cost)

    def _nearby(self, cost: float) -> Loss:
        """The same, from post-fixed points found at the last cost."""
        most = self._length * cost
        if self._told:
            ahead, past = (self._leakages(place, cost) for place in range(2))
            if self._window == 1:
                both = cost * self._differ + ahead + past
                # the record may be any of its word
                told = min(float(both[apart].max(initial=cost)) for apart in np.moveaxis(self._apart, -1, 0))
            else:
                told = max(self._window, self._order) * cost + float(ahead.max() + past.max())
            most = min(most, told)
        return Loss(most * (1 + 8 * UNIT_ROUNDOFF), (self._length + 2 - self._window) // 2)

    def _leakages(self, place: int, cost: float) -> Floats:
        """Of all nodes, through any number of records on one side."""
        cap = np.full_like(self._differ, self._length * cost)
        np.fill_diagonal(cap, 0.0)
        equation = LeakageEquation(self._sides[place], cost * self._differ, cap, extra=self._rounding)
        start = self._starts.get(place, scattered(len(cap)))
        leakages = post_fixed_point(equation, start * cost)
        self._starts[place] = leakages / cost
        return leakages

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale whose loss is at most ε, rounded up, with a node that decides; None if not below ``upper``."""
        self._starts.clear()
        return scale_below(self._nearby, epsilon, upper)
