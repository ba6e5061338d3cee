"""Couplings for one node after the other, for certificates of leakage, see :mod:`pufferflow.verify.stepwise`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats, Ints
from pufferflow.certificates.couplings import CLOSE, ROOM, STEP, flows_of, provable_cost
from pufferflow.coupling._node_kernels import beyond_stationary
from pufferflow.coupling.calibration import NEAR, ChainLeakage
from pufferflow.coupling.sides import (
    ChainSide,
    CouplingSide,
    ForgettingSide,
    LeakageEquation,
    Side,
    costs_of,
    post_fixed_point,
    reached,
)
from pufferflow.errors import ParameterError
from pufferflow.markov.chain import MarkovChain

_EARLY = (1, 12, 60, 400)
ENOUGH = 1.002
"""Excess of a scale that is not worth a longer proof."""
_GUESSES = 6


def stepwise(
    chains: tuple[MarkovChain, ...], length: int, epsilon: float, scale: float
) -> tuple[float, dict[str, Any]]:
    """Return about the largest c that bounds node by node allow all chains, and the fields of its proof.

    The fewer nodes are looked at one by one, the shorter the proof: their number grows until ``scale`` is nearly met.

    Raises ParameterError: the search found no cost that can be proved.
    """
    best: tuple[float, list[Steps]] | None = None
    for early in _EARLY:
        steps = [Steps(chain, length, early) for chain in chains]
        if best is not None and [side.early for side in steps] == [side.early for side in best[1]]:
            break
        try:
            cost = provable_cost(steps, length, epsilon)
        except ParameterError:
            continue
        if best is None or cost > best[0] * (1 + STEP):
            best = cost, steps
        if best[0] * scale * ENOUGH >= 1:
            break
    if best is None:
        raise ParameterError("no bounds node by node suffice near the cost that the search found")
    cost, steps = best
    if max(side.loss(cost) for side in steps) > epsilon * (1 - CLOSE):
        cost = provable_cost(steps, length, epsilon)
    return cost, {"cost": repr(cost), "steps": [side.document(cost) for side in steps]}


class _Entry(NamedTuple):
    """Bounds of what one side of a node tells, and what proves them."""

    leakages: Floats
    before: Floats  # those of the neighbour; the same where they serve all nodes
    side: CouplingSide | None  # whose plans prove
    planned: Bools  # these pairs
    steps: Ints  # others, through the node so many steps before, whatever its law


class Steps:
    """Bounds of the loss of the nodes of a chain, as the verifier checks them.

    Parameters
    ----------
    early : int
        Nodes at most that are looked at one by one.
    """

    def __init__(self, chain: MarkovChain, length: int, early: int) -> None:
        self._states, self._length = chain.states, length
        self._stationary = chain.start == "stationary"
        self._inside = np.flatnonzero(chain.initial_support) if self._stationary else np.arange(chain.states)
        self._sides = ChainLeakage(chain, length)
        self._chain = self._sides.chain  # without transient states, where they never occur
        self._ahead_side, self._forget = (
            CouplingSide(self._chain.transition_matrix),
            ForgettingSide(self._chain.transition_matrix),
        )
        few = self._sides.early
        self.early = length if early >= length == few else (1 if self._stationary else min(early, few, length - 1))
        self._all = np.ones((self._chain.states,) * 2, dtype=np.bool_)
        self._zeros = np.zeros((self._chain.states,) * 2)
        self._next: Ints = np.ones((self._chain.states,) * 2, dtype=np.int64)
        self._known: dict[str, Floats] = {}
        self._supports = [self._chain.initial_support]
        for _ in range(self.early - 1):
            self._supports.append(reached(self._supports[-1], self._chain.transition_matrix))
        self._later = reached(self._all[0], self._chain.transition_matrix)

    def loss(self, cost: float) -> float:
        """Bound of the loss at c, up to rounding, for which there is room."""
        self._room = ROOM * cost * (1 - np.eye(len(self._zeros)))
        self._ahead, self._past = list(self._entries_ahead(cost)), list(self._entries_past(cost))
        largest = 0.0
        for node in self._nodes():
            ahead, past = self._at(self._ahead, self._length - node), self._at(self._past, node - 1)
            secrets = self._supports[node - 1] if node <= len(self._supports) else self._later
            largest = max(largest, float((ahead + past)[np.ix_(secrets, secrets)].max(initial=0.0)))
        return float(min(cost + largest, self._length * cost) * (1 + 8 * UNIT_ROUNDOFF))

    def _nodes(self) -> Iterator[int]:
        """Nodes that stand for all: those near either end, and one between."""
        first = min(self._length, len(self._past) + 1)
        yield from range(1, first + 1)
        yield from range(max(first + 1, self._length - len(self._ahead) + 1), self._length + 1)

    def _at(self, entries: list[_Entry], beyond: int) -> Floats:
        return entries[min(beyond, len(entries)) - 1].leakages if beyond else self._zeros

    def _cap(self, cost: float, beyond: int) -> Floats:
        """What so many nodes tell together."""
        return np.full_like(self._zeros, beyond * cost * (1 + 4 * UNIT_ROUNDOFF))

    def _entries_ahead(self, cost: float) -> Iterator[_Entry]:
        side = self._ahead_side
        if self.early < self._length:
            leakages = self._fixed("ahead", side, cost)
            yield _Entry(leakages, leakages, side, self._all, self._next)
            return
        before = self._zeros
        for beyond in range(1, self._length):
            leakages = self._image(side, cost, before, beyond)
            yield _Entry(leakages, before, side, self._all, self._next)
            before = leakages

    def _entries_past(self, cost: float) -> Iterator[_Entry]:
        stationary, entries = self._sides.reversed, [self._zeros]
        for node in range(2, self.early + 1):
            before = entries[-1]
            given = stationary if self._stationary else self._sides.conditional(node)
            if given is not None:
                image = self._image(given, cost, before, node - 1)
                entry = _Entry(image, before, given, self._all, self._next)
            else:
                entry = self._of_any_law(cost, entries)
            yield entry
            entries.append(entry.leakages)
        if self.early == self._length:
            return
        if self._stationary:
            assert stationary is not None
            leakages = self._fixed("stationary", stationary, cost)
            yield _Entry(leakages, leakages, stationary, self._all, self._next)
            return
        near = self._near_stationary(cost, entries[-1])
        if near is not None:
            tail = self._fixed("forget", self._forget, cost, floor=entries[-1])
            least = np.minimum(tail, near)
            yield _Entry(least, least, stationary, near < tail, self._next)
            return
        floor = np.maximum.reduce(entries)
        least, steps = self._fixed("forget", self._forget, cost, floor=floor), self._next.copy()
        for block in self._sides.past_blocks:
            far = self._fixed(f"forget {block.steps}", block.side, cost, block.extra(cost), floor)
            steps[far < least] = block.steps
            least = np.minimum(least, far)
        yield _Entry(least, least, None, ~self._all, steps)

    def _of_any_law(self, cost: float, entries: list[Floats]) -> _Entry:
        """Under all laws of the node before, or of an earlier one, or under those not far from the stationary one."""
        before, beyond = entries[-1], len(entries)
        leakages, steps = self._image(self._forget, cost, before, beyond), self._next.copy()
        for block in self._sides.past_blocks:
            if block.steps <= beyond:
                far = self._image(block.side, cost, entries[-block.steps], beyond, block.extra(cost))
                steps[far < leakages] = block.steps
                leakages = np.minimum(leakages, far)
        stationary, spread = self._sides.reversed, self._sides.spread(beyond)
        if self._chain.start != "any" or stationary is None or not np.isfinite(spread):
            return _Entry(leakages, before, None, ~self._all, steps)
        more = beyond_stationary(spread, self._sides.spread(beyond + 1), cost + float(before.max()))
        near = self._image(stationary, cost, before, beyond, more)
        return _Entry(np.minimum(leakages, near), before, stationary, near < leakages, steps)

    def _near_stationary(self, cost: float, before: Floats) -> Floats | None:
        """As :class:`ChainLeakage` bounds all nodes after the early ones."""
        spread = self._sides.spread(self.early)
        if self._sides.reversed is None or not spread < NEAR:
            return None
        largest = max(float(before.max()), float(self._known.get("near", self._zeros).max()) * cost)
        for _ in range(_GUESSES):
            more = beyond_stationary(spread, spread, cost + largest)
            leakages = self._fixed("near", self._sides.reversed, cost, more, before)
            if leakages.max() <= largest:
                return leakages
            largest = float(leakages.max()) * 1.01
        return None

    def _image(self, side: Side, cost: float, before: Floats, beyond: int, more: float = 0.0) -> Floats:
        image = side.apply(costs_of(before, cost)) + (self._room + more)
        image = np.minimum(image, self._cap(cost, beyond))
        np.fill_diagonal(image, 0.0)
        return image

    def _fixed(self, name: str, side: ChainSide, cost: float, more: float = 0.0, floor: Floats | float = 0.0) -> Floats:
        start = side.start() if (known := self._known.get(name)) is None else known
        extra = self._room + more * (1 - np.eye(len(self._zeros)))
        cap = self._cap(cost, self._length - 1)
        leakages = post_fixed_point(LeakageEquation(side, cost, cap, extra=extra, floor=floor), start * cost)
        self._known[name] = leakages / cost
        return leakages

    # -- the certificate ---------------------------------------------------------------------------

    def document(self, cost: float) -> dict[str, Any]:
        """The bounds found last, which were at c, and the flows that prove them."""
        return {
            "ahead": [self._written(entry, cost) for entry in self._ahead],
            "past": [self._written(entry, cost) for entry in self._past],
        }

    def _written(self, entry: _Entry, cost: float) -> dict[str, Any]:
        full = np.zeros((self._states, self._states))
        full[np.ix_(self._inside, self._inside)] = entry.leakages
        written: dict[str, Any] = {"leakages": [[repr(a) for a in row] for row in full.tolist()], "flows": []}
        if entry.side is not None:
            written["flows"] = flows_of(entry.side, costs_of(entry.before, cost), entry.planned, self._inside)
        far = np.argwhere((entry.steps > 1) & ~entry.planned).tolist()
        if far:
            written["blocks"] = [[x + 1, y + 1, int(entry.steps[x, y])] for x, y in far]
        return written
