"""Trees that prove leakages all round a period, see :mod:`pufferflow.verify.rounds`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._protection import NARROWEST, Protection
from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Floats
from pufferflow.coupling.labelled import LabelledLeakage
from pufferflow.coupling.periodic import (
    CouplingWay,
    PeriodicLeakage,
    Rounds,
    average_leakages,
    tree_parents,
    walk_once,
)
from pufferflow.errors import ParameterError
from pufferflow.markov.chain import STATIONARY
from pufferflow.markov.labelled import LabelledChain
from pufferflow.markov.periodic import PeriodicChain

_ROOM = 1e-9
_CLOSE = 1e-9
_TRIES = 60
_FAR = 0.5
"""Of the c that the search found: where one tree for all steps of a matrix proves less, it is no proof to offer."""
_LESS = 0.9
"""Of a c at which leakages grow without end, the next one to try."""
_MOST = 1e30
"""Leakages beyond which nobody need look: floats of 32 bits hold them, and the trees of a whole round."""
_STEPS = 20_000
"""Of all the rounds of one side at one c."""


def rounds_of_phases(
    family: PeriodicChain, length: int, epsilon: float, protection: Protection = NARROWEST
) -> dict[str, Any]:
    """Return the fields of a proof by rounds for about the largest c that they allow.

    Raises ParameterError: the start is not stationary, a state does not occur in the long run, more is to be hidden
    than single records from those who know no other, or the search found no cost that can be proved.
    """
    _check(family.start, protection)
    sides = _Sides(family, length, None)
    return _proved(sides, PeriodicLeakage(family, length, protection), length, epsilon)


def rounds_of_labels(
    family: LabelledChain, length: int, epsilon: float, protection: Protection = NARROWEST
) -> dict[str, Any]:
    """The same of a chain of which labels are recorded: it has a clock of one phase."""
    _check(family.chain.start, protection)
    sides = _Sides(PeriodicChain([family.chain.transition_matrix]), length, family.labels)
    return _proved(sides, LabelledLeakage(family, length), length, epsilon)


def _check(start: str, protection: Protection) -> None:
    if protection != NARROWEST:
        raise ParameterError('chains with a clock or with labels have proofs for single records and knows="nothing"')
    if start != STATIONARY:
        raise ParameterError("only stationary starts have proofs of chains with a clock or with labels; use group-dp")


def _proved(sides: _Sides, bound: PeriodicLeakage | LabelledLeakage, length: int, epsilon: float) -> dict[str, Any]:
    scale = bound.scale(epsilon, length / epsilon)
    wanted = cost = epsilon / length if scale is None else 1 / scale[0]
    for _ in range(_TRIES):
        loss = sides.loss(cost)
        if loss <= epsilon * (1 - _CLOSE):
            return {"cost": repr(cost)} | sides.document()
        cost *= _LESS if loss == math.inf else epsilon / loss * (1 - 3 * _CLOSE)
        if loss == math.inf and cost <= epsilon / length:  # what every record of a segment costs is as little
            break
        if cost < _FAR * wanted:  # trees of states that occur at some of its steps alone may prove little at others
            break
    raise ParameterError("no round suffices near the cost that the search found")


class _Sides:
    """Both rounds, with the trees of one cost frozen at another."""

    def __init__(self, chain: PeriodicChain, length: int, labels: NDArray[np.intp] | None) -> None:
        if labels is not None and not chain.possible.all():
            raise ParameterError("some hidden states do not occur in the long run; leave them out of the model")
        self._chain, self._length, self._labels = chain, length, labels
        k = chain.states
        named = np.arange(k) if labels is None else labels
        self._differ = (named[:, None] != named[None, :]).astype(np.float64)
        self._ways = [CouplingWay(chain, ahead=ahead, differ=self._differ, trees_alone=True) for ahead in (True, False)]
        self._starts: list[Floats] = []
        self._nodes: list[list[Any]] = []

    def loss(self, cost: float) -> float:
        """What the trees prove, ∞ where leakages grow without end; the trees are found at the first call."""
        chain = self._chain
        cap = self._length * cost
        if not self._starts:
            for way, ahead in zip(self._ways, (True, False), strict=True):
                guess = cost * average_leakages(chain, self._length, ahead=ahead)
                self._starts.append(Rounds(way, chain.period, cost, cap).family(guess).start / cost)
            for way in self._ways:
                way.freeze()
        tables, begins = [], []
        for way, start in zip(self._ways, self._starts, strict=True):
            closed = self._closed(way, start * cost, cost)
            if closed is None:
                return math.inf
            begins.append(closed[0])
            tables.append(closed[1])
        self._begins = begins
        largest = max(self._told(a.astype(np.float64) + b, cost) for a, b in zip(*tables, strict=True))
        return min(largest, cap) * (1 + 4 * UNIT_ROUNDOFF)

    def _closed(self, way: CouplingWay, begin: Floats, cost: float) -> tuple[Floats, NDArray[np.float32]] | None:
        """Where a round begins that ends below, from ``begin`` up, and its leakages; None where they leave the floats.

        Raises ParameterError: so many rounds are not enough.
        """
        period, apart = self._chain.period, 1 - np.eye(self._chain.states)
        for _ in range(20 + _STEPS // period):
            if not begin.max() <= _MOST:  # from there on ∞ would end where it starts
                return None
            each = Rounds(way, period, cost, np.inf)
            end = each.once(begin)
            if (end * (1 + _ROOM) <= begin).all():
                return begin, each.found
            begin = np.maximum(begin, end * (1 + 2 * _ROOM) + 2 * _ROOM * cost * apart)
        raise ParameterError("no round ends below where it starts: the chain forgets too slowly")

    def _told(self, both: Floats, cost: float) -> float:
        if self._labels is None:
            return cost + float(both.max())
        law = self._chain.stationary_distributions[0]
        rows = np.zeros_like(both)
        there = np.unique(self._labels)
        for row, label in zip(rows, there, strict=False):
            alike = self._labels == label
            row[alike] = law[alike] / law[alike].sum()
        possible = np.arange(len(law)) < len(there)
        value, trees = walk_once(rows, possible, both, cost * self._differ)
        self._nodes = [[int(there[x]) + 1, int(there[y]) + 1, parents] for x, y, parents in tree_parents(trees)]
        return float(max(cost, value * (1 + 1e-12)))

    def document(self) -> dict[str, Any]:
        """What was found last."""
        sides = [
            {
                "start": [[repr(a) for a in row] for row in begin.tolist()],
                "trees": [
                    [[x + 1, y + 1, parents] for x, y, parents in way.trees(piece)] for piece in range(way.pieces)
                ],
            }
            for way, begin in zip(self._ways, self._begins, strict=True)
        ]
        return {"ahead": sides[0], "past": sides[1], "nodes": self._nodes}
