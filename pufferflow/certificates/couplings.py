"""Couplings that serve all nodes, for certificates of leakage, see :mod:`pufferflow.verify.couplings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pufferflow._protection import NARROWEST, Protection
from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling.calibration import MOST_STATES
from pufferflow.coupling.roots import Loss, largest_cost
from pufferflow.coupling.sides import (
    ChainSide,
    CouplingSide,
    ForgettingSide,
    LeakageEquation,
    Side,
    costs_of,
    post_fixed_point,
    reached,
    scattered,
)
from pufferflow.errors import ParameterError
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.windows import followers, largest_after

CLOSE = 1e-9
STEP = 1e-7
DIGITS = 15
ROOM = 1e-9


def couplings(
    chains: tuple[MarkovChain, ...], length: int, epsilon: float, protection: Protection = NARROWEST
) -> dict[str, Any]:
    """Return the fields of a proof by post-fixed points for the largest c that they allow all chains.

    Raises ChainError: a stationary probability is too small to divide by; ParameterError: the search found no cost that
    can be proved, or there are more states than plans are made for.
    """
    states = max(chain.states for chain in chains)
    if states > MOST_STATES:
        raise ParameterError(
            f"{states} states; plans for all pairs are made for at most {MOST_STATES}, use mqm-exact or fewer states"
        )
    sides = [FixedPoints(chain, length, protection) for chain in chains]
    cost = provable_cost(sides, length, epsilon)
    return {"cost": repr(cost), "couplings": [side.document(cost) for side in sides]}


class Provable(Protocol):
    """Bounds of the loss of a chain that a certificate can list."""

    def loss(self, cost: float) -> float:
        """Bound of the loss at c."""


def provable_cost(bounds: Sequence[Provable], length: int, epsilon: float) -> float:
    """Return about the largest c at which all bounds, evaluated there last, prove ε.

    Raises ParameterError: the search found none.
    """

    def loss(cost: float) -> Loss:
        return Loss(max(bound.loss(cost) for bound in bounds), 1)

    target = epsilon * (1 - CLOSE)
    low = target / length * (1 - CLOSE)
    found = largest_cost(loss, target, low)
    cost = low if found is None else found[0]
    # post-fixed points depend a little on where they were started from: go down until one suffices
    step = STEP
    while loss(cost).value > target:
        cost, step = cost * (1 - step), 2 * step
        if step > 1:
            raise ParameterError("no post-fixed point suffices near the cost that the search found")
    return cost


class FixedPoints:
    """Bounds for all windows of a chain at once, as the verifier checks them."""

    def __init__(self, chain: MarkovChain, length: int, protection: Protection = NARROWEST) -> None:
        self._window = min(protection.window, length)
        self._length = length - self._window + 1  # windows, as far as either side goes
        self._states = chain.states
        stationary = chain.start == "stationary"
        self._inside = np.flatnonzero(chain.initial_support) if stationary else np.arange(chain.states)
        if stationary:  # transient states never occur
            chain = chain.restricted(chain.initial_support)
        matrix = chain.transition_matrix
        self._last = followers(matrix, self._window)
        informed = protection.knows != "nothing"
        self._ahead: ChainSide = ForgettingSide(matrix.T) if informed else CouplingSide(matrix)
        self._past: ChainSide
        if stationary and not informed:
            self._past = CouplingSide(chain.time_reversal, 2 * chain.stationary_error + 4 * UNIT_ROUNDOFF)
        else:
            self._past = ForgettingSide(matrix)
        self._first = chain.initial_support
        self._later = reached(np.ones(chain.states, dtype=np.bool_), matrix)
        self._leakages = [scattered(chain.states)] * 2  # in units of c

    def loss(self, cost: float) -> float:
        """Bound of the loss at c, rounded up."""
        cap = np.full((len(self._inside),) * 2, (self._length - 1) * cost * (1 + 4 * UNIT_ROUNDOFF))
        room = ROOM * cost * (1 - np.eye(len(self._inside)))  # for the rounding of flows
        ahead, past = (
            self._fixed(side, LeakageEquation(side, cost, cap, extra=room), start * cost, cost)
            for side, start in zip((self._ahead, self._past), self._leakages, strict=True)
        )
        self._leakages = [ahead / cost, past / cost]
        self._found = ahead, past
        beyond = largest_after(ahead, self._last) if self._window > 1 else ahead
        largest = max(_largest(beyond, self._first), _largest(beyond + past, self._later))
        most = (self._length + self._window - 1) * cost
        return min(self._window * cost + largest, most) * (1 + 4 * UNIT_ROUNDOFF)

    def _fixed(self, side: ChainSide, equation: LeakageEquation, start: Floats, cost: float) -> Floats:
        """A post-fixed point from ``start``, or anew where that led to the cap: it is one, and leads nowhere else."""
        found = post_fixed_point(equation, start)
        if found.max() < equation.cap.max():
            return found
        again = post_fixed_point(equation, side.start() * cost)
        return again if again.max() < found.max() else found

    def document(self, cost: float) -> dict[str, Any]:
        """The post-fixed points found last, which were at c, and the flows that prove them."""
        return {
            name: self._side(side, leakages, cost)
            for name, side, leakages in zip(("ahead", "past"), (self._ahead, self._past), self._found, strict=True)
        }

    def _side(self, side: Side, leakages: Floats, cost: float) -> dict[str, Any]:
        inside = self._inside
        full = np.zeros((self._states, self._states))
        full[np.ix_(inside, inside)] = leakages
        flows = []
        if isinstance(side, CouplingSide):
            flows = [entry for entry in flows_of(side, costs_of(leakages, cost), leakages > 0, inside) if entry["flow"]]
        return {"leakages": [[repr(a) for a in row] for row in full.tolist()], "flows": flows}


def flows_of(side: CouplingSide, costs: Floats, planned: Bools, names: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Write the flows that prove the ``planned`` pairs of values, shape (k, k), whose states have other ``names``."""
    arcs, amounts = side.plans(costs)
    return [
        {"value": int(names[x]) + 1, "other": int(names[y]) + 1, "flow": _parts(arcs[x, y], amounts[x, y], names)}
        for x, y in np.argwhere(planned & ~np.eye(len(costs), dtype=np.bool_)).tolist()
    ]


def _parts(arcs: NDArray[Any], amounts: Floats, names: NDArray[np.intp]) -> list[list[Any]]:
    k = len(names)
    return [
        [int(names[arc // k]) + 1, int(names[arc % k]) + 1, f"{amount:.{DIGITS}g}"]
        for arc, amount in zip(arcs.tolist(), amounts.tolist(), strict=True)
        if arc >= 0 and amount > 0
    ]


def _largest(leakages: Floats, states: NDArray[np.bool_]) -> float:
    return float(leakages[np.ix_(states, states)].max(initial=0.0))
