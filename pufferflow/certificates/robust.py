"""Couplings for chains known by bounds, for certificates of leakage, see :mod:`pufferflow.verify.robust`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pufferflow._protection import NARROWEST, Protection
from pufferflow._types import Floats
from pufferflow.bounded_family import BoundedFamily
from pufferflow.certificates.couplings import CLOSE, DIGITS, ROOM
from pufferflow.coupling.affine import AffineSide, RobustFlows
from pufferflow.coupling.interval_leakage import IntervalLeakage
from pufferflow.coupling.robust import AscendingSide
from pufferflow.coupling.roots import Loss, largest_cost
from pufferflow.coupling.sides import LeakageEquation, RatioSide, costs_of, post_fixed_point, scattered
from pufferflow.errors import ParameterError

_STEP = 1e-6
_BELOW = 1 - 4e-15  # rounded to decimals, shares still sum to at most 1; what is left stays where it is


def robust_couplings(
    family: BoundedFamily, length: int, epsilon: float, protection: Protection = NARROWEST
) -> dict[str, Any]:
    """Return the fields of a proof by post-fixed points for the largest c that they allow.

    Raises ParameterError: the search found no cost that can be proved.
    """
    scaled = IntervalLeakage(family, length, protection, guess=True).scale(epsilon, length / epsilon)
    target = epsilon * (1 - CLOSE)
    points = RobustPoints(family, length, protection)
    low = target / length * (1 - CLOSE) if scaled is None else 0.97 / scaled[0]
    found = largest_cost(points.loss, target, low)
    cost = low if found is None else found[0]
    step = _STEP
    while points.loss(cost).value > target:
        cost, step = cost * (1 - step), 2 * step
        if step > 1:
            raise ParameterError("no post-fixed point suffices near the cost that the search found")
    return {"cost": repr(cost), "couplings": [points.document(cost)]}


class RobustPoints:
    """Bounds for all windows at once, as the verifier checks them."""

    def __init__(self, family: BoundedFamily, length: int, protection: Protection = NARROWEST) -> None:
        self._length, self._window = length, min(protection.window, length)
        rows = [family.rows, *([] if family.backward is None else [family.backward.rows]), None]
        self._sides: list[AffineSide | RatioSide] = []  # of what lies ahead, and of the past; the last of columns
        self._guesses: list[AscendingSide | None] = []
        for known in rows:
            coupled = known is not None and protection.knows == "nothing"
            self._guesses.append(AscendingSide(known) if known is not None and coupled else None)
            if known is None:
                self._sides.append(RatioSide(family.rows.log_column_ratios()))
            else:
                self._sides.append(AffineSide(known) if coupled else RatioSide(known.log_ratios()))
        self._away = 1 - np.eye(family.states)
        self._leakages: list[Floats] = [scattered(family.states)] * len(rows)  # in units of c

    def loss(self, cost: float) -> Loss:
        """Bound of the loss at c."""
        most = (self._length - self._window) * cost * (1 + 1e-15)
        caps = [most * self._away] * len(self._sides)
        starts = [
            start * cost if side is None else post_fixed_point(LeakageEquation(side, cost, cap), start * cost)
            for side, start, cap in zip(self._guesses, self._leakages, caps, strict=True)
        ]
        self._guesses = [None] * len(self._sides)  # from now on the proofs start from one another
        self._found = [
            post_fixed_point(LeakageEquation(side, cost, cap, extra=ROOM * cost * self._away), start)
            for side, start, cap in zip(self._sides, starts, caps, strict=True)
        ]
        self._leakages = [leakages / cost for leakages in self._found]
        ahead, past = self._found[0], np.minimum.reduce(self._found[1:])
        largest = float((ahead + past).max()) if self._window == 1 else float(ahead.max()) + float(past.max())
        return Loss(min(self._window * cost + largest, self._length * cost) * (1 + 1e-15), 1)

    def document(self, cost: float) -> dict[str, Any]:
        """The post-fixed points found last, which were at c, and the flows that prove them."""
        useful = (self._found[-1] < self._found[1]).any()
        names = ("ahead", "past", "columns") if useful else ("ahead", "past")
        return {
            name: _side(side, told, cost) for name, side, told in zip(names, self._sides, self._found, strict=False)
        }


def _side(side: AffineSide | RatioSide, leakages: Floats, cost: float) -> dict[str, Any]:
    flows = []
    if isinstance(side, AffineSide):
        with np.errstate(over="ignore"):
            growth = np.exp(costs_of(leakages, cost))
        for x, y in np.argwhere(leakages > 0).tolist():
            solved = side.flows(x, y, growth)
            if solved is not None:
                flows.append({"value": x + 1, "other": y + 1} | _document(solved))
    return {"leakages": [[repr(a) for a in row] for row in leakages.tolist()], "flows": flows}


def _document(flows: RobustFlows) -> dict[str, Any]:
    return {
        "flow": _parts(flows.flow),
        "surplus": [_parts(shares * _BELOW) for shares in flows.surplus],
        "reserve": [_parts(shares * _BELOW) for shares in flows.reserve],
    }


def _parts(table: Floats) -> list[list[Any]]:
    return [[z + 1, y + 1, f"{table[z, y]:.{DIGITS}g}"] for z, y in np.argwhere(table > 0).tolist() if z != y]
