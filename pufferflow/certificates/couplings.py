"""Couplings that serve all nodes, for certificates of leakage, see :mod:`pufferflow.verify.couplings`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Floats
from pufferflow.coupling.calibration import MOST_STATES, Loss, largest_cost
from pufferflow.coupling.sides import CouplingSide, ForgettingSide, Side, costs_of, post_fixed_point, reached
from pufferflow.errors import ParameterError
from pufferflow.markov.chain import MarkovChain

_CLOSE = 1e-9
_STEP = 1e-7
_DIGITS = 15
_ROOM = 1e-9


def couplings(chains: tuple[MarkovChain, ...], length: int, epsilon: float) -> dict[str, Any]:
    """Return the fields of a proof by post-fixed points for the largest c that they allow all chains.

    Raises ChainError: a stationary probability is too small to divide by; ParameterError: the search found no cost that
    can be proved, or there are more states than plans are made for.
    """
    states = max(chain.states for chain in chains)
    if states > MOST_STATES:
        raise ParameterError(
            f"{states} states; plans for all pairs are made for at most {MOST_STATES}, use mqm-exact or fewer states"
        )
    sides = [FixedPoints(chain, length) for chain in chains]

    def loss(cost: float) -> Loss:
        return Loss(max(side.loss(cost) for side in sides), 1)

    target = epsilon * (1 - _CLOSE)
    low = target / length * (1 - _CLOSE)
    cost, _ = largest_cost(loss, target, low, loss(low), target)
    # post-fixed points depend a little on where they were started from: go down until one suffices
    step = _STEP
    while loss(cost).value > target:
        cost, step = cost * (1 - step), 2 * step
        if step > 1:
            raise ParameterError("no post-fixed point suffices near the cost that the search found")
    return {"cost": repr(cost), "couplings": [side.document(cost) for side in sides]}


class FixedPoints:
    """Bounds for all nodes of a chain at once, as the verifier checks them."""

    def __init__(self, chain: MarkovChain, length: int) -> None:
        self._length = length
        self._states = chain.states
        stationary = chain.start == "stationary"
        self._inside = np.flatnonzero(chain.initial_support) if stationary else np.arange(chain.states)
        if stationary:  # transient states never occur
            chain = chain.restricted(chain.initial_support)
        matrix = chain.transition_matrix
        self._ahead = CouplingSide(matrix)
        self._past: Side
        if stationary:
            self._past = CouplingSide(chain.time_reversal, 2 * chain.stationary_error + 4 * UNIT_ROUNDOFF)
        else:
            self._past = ForgettingSide(matrix)
        self._first = chain.initial_support
        self._later = reached(np.ones(chain.states, dtype=np.bool_), matrix)
        k = chain.states
        self._leakages = [np.random.default_rng(0).random((k, k)) / 2] * 2  # in units of c

    def loss(self, cost: float) -> float:
        """Bound of the loss at c, rounded up."""
        cap = np.full((len(self._inside),) * 2, (self._length - 1) * cost * (1 + 4 * UNIT_ROUNDOFF))
        room = _ROOM * cost * (1 - np.eye(len(self._inside)))  # for the rounding of flows
        ahead, past = (
            post_fixed_point(side, cost, cap, start * cost, extra=room)
            for side, start in zip((self._ahead, self._past), self._leakages, strict=True)
        )
        self._leakages = [ahead / cost, past / cost]
        self._found = ahead, past
        largest = max(_largest(ahead, self._first), _largest(ahead + past, self._later))
        return min(cost + largest, self._length * cost) * (1 + 4 * UNIT_ROUNDOFF)

    def document(self, cost: float) -> dict[str, Any]:
        """The post-fixed points found last, which were at c, and the flows that prove them."""
        return {
            name: self._side(side, leakages, cost)
            for name, side, leakages in zip(("ahead", "past"), (self._ahead, self._past), self._found, strict=True)
        }

    def _side(self, side: Side, leakages: Floats, cost: float) -> dict[str, Any]:
        inside, k = self._inside, len(self._inside)
        full = np.zeros((self._states, self._states))
        full[np.ix_(inside, inside)] = leakages
        flows = []
        if isinstance(side, CouplingSide):
            arcs, amounts = side.plans(costs_of(leakages, cost))
            for x in range(k):
                for y in range(k):
                    parts = _parts(arcs[x, y], amounts[x, y], inside)
                    if parts:
                        flows.append({"value": int(inside[x]) + 1, "other": int(inside[y]) + 1, "flow": parts})
        return {"leakages": [[repr(a) for a in row] for row in full.tolist()], "flows": flows}


def _parts(arcs: NDArray[Any], amounts: Floats, names: NDArray[np.intp]) -> list[list[Any]]:
    k = len(names)
    return [
        [int(names[arc // k]) + 1, int(names[arc % k]) + 1, f"{amount:.{_DIGITS}g}"]
        for arc, amount in zip(arcs.tolist(), amounts.tolist(), strict=True)
        if arc >= 0 and amount > 0
    ]


def _largest(leakages: Floats, states: NDArray[np.bool_]) -> float:
    return float(leakages[np.ix_(states, states)].max(initial=0.0))
