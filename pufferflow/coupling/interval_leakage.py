"""Upper bounds of the loss for chains known by bounds of their rows, each step free to be another one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pufferflow._protection import Protection
from pufferflow._rounding import UNIT_ROUNDOFF
from pufferflow._types import Floats
from pufferflow.bounded_family import BoundedFamily
from pufferflow.coupling.affine import AffineSide
from pufferflow.coupling.calibration import Loss, largest_cost, rounded_scale, small_budget
from pufferflow.coupling.robust import MOST_ORDERED_STATES, AscendingSide, RatioSide, RobustSide
from pufferflow.coupling.sides import LeakageEquation, costs_of, post_fixed_point, scattered
from pufferflow.influence.intervals import interval_influence
from pufferflow.markov.row_sets import RowSets

_EXACT_WORK = 10**6
_EXACT_NODES = 64
_FAR = 600.0

_Side = RobustSide | AffineSide | AscendingSide | RatioSide

MOST_ROBUST_STATES = 12
"""Largest number of states of a family between bounds for which couplings are computed."""


def never_forgets(family: BoundedFamily) -> str:
    """Say in which states chains may stay for ever, so that no bound holds for all lengths; empty if they forget."""
    for rows in (family.rows, *([] if family.backward is None else [family.backward.rows])):
        if (apart := rows.kept_apart()) is not None:
            these, those = (_listed(states) for states in apart)
            return (
                f"under these bounds a chain may stay for ever in {these}, and for ever in {those}, so it need not "
                "forget; merge these states with others, or fit to more records"
            )
    return ""


def _listed(states: tuple[int, ...]) -> str:
    names = [str(x + 1) for x in states]
    return f"state {names[0]}" if len(names) == 1 else f"states {', '.join(names[:-1])} and {names[-1]}"


class ReweightedBlocks:
    """What is told through several steps where the law of the node there may be reweighted in any way.

    By the bounds of ψ at distances, cross ratios of P^m, on either side.
    """

    def __init__(self, family: BoundedFamily, length: int) -> None:
        influence = None if family.states == 1 else interval_influence(family)
        distances = np.array([] if influence is None else influence.distances, dtype=float)
        near = distances < length
        self._distances: Floats = distances[near]
        self._ratios: Floats = np.array([] if influence is None else influence.backward, dtype=float)[near]

    def reach(self, cost: float, most: float) -> tuple[float, int | None]:
        """Bound, rounded up, for all nodes, of leakages that are at most ``most``; and the distance it is found at."""
        distance = None
        before = math.inf
        while most < before * (1 - 1e-6) and len(self._distances):
            before = most
            bounds = (self._distances - 1) * cost + _reweighted(self._ratios, most + cost)
            best = int(np.argmin(bounds))
            if bounds[best] < most:
                most, distance = float(bounds[best]), int(self._distances[best])
        return most, distance


class IntervalLeakage:
    """Bounds of the loss over the nodes of all chains of a family, for mechanisms known only by c.

    Every one is that of the worst steps, which need not be those of one homogeneous chain. Short chains get the
    recursion node by node, long ones its post-fixed points.

    Parameters
    ----------
    guess : bool
        Where not all orders of the states are looked at: to take what some laws attain, which is less than a bound.
    """

    def __init__(self, family: BoundedFamily, length: int, protection: Protection, *, guess: bool = False) -> None:
        self._length, self._window = length, min(protection.window, length)
        self._states = family.states
        rows, backward = family.rows, family.backward
        columns = RatioSide(rows.log_column_ratios())
        self._ahead: list[_Side]
        self._past: list[_Side] = [columns]
        informed = protection.knows == "any records"
        self._guide: IntervalLeakage | None = None

        def known(sets: RowSets) -> _Side:
            return RatioSide(sets.log_ratios()) if informed else _side(sets, guess)

        self._ahead = [known(rows)]
        if backward is not None:
            self._past.append(known(backward.rows))
        if any(isinstance(side, AffineSide) for side in [*self._ahead, *self._past]):
            self._guide = IntervalLeakage(family, length, protection, guess=True)
        self._blocks = ReweightedBlocks(family, length)
        work = sum(side.work for side in [*self._ahead, *self._past])
        self._exact = length <= max(2, min(_EXACT_NODES, _EXACT_WORK // work))
        self._starts: dict[tuple[int, bool], Floats] = {}
        self._farthest = 0.0  # largest leakage of a pair at the last loss

    def loss(self, cost: float) -> Loss:
        """Bound, rounded up, at c."""
        return self._loss(cost)

    def _loss(self, cost: float, linear: bool = False, kappa: float = 0.0) -> Loss:
        most = self._length * cost
        if self._length == self._window:
            return Loss(most * (1 + 4 * UNIT_ROUNDOFF), 1)
        ahead = self._leakages(self._ahead, 0, cost, linear, kappa)
        past = self._leakages(self._past, len(self._ahead), cost, linear, kappa)
        self._farthest = max(float(bound.max()) for bound in [*ahead, *past])
        last = self._length - self._window  # nodes beside the window
        value, node = 0.0, 1
        for before in range(last + 1) if self._exact else [0, last]:
            one, other = past[min(before, len(past) - 1)], ahead[(last - before) if self._exact else -1]
            both = float((one + other).max()) if self._window == 1 else float(one.max()) + float(other.max())
            if both > value:
                value, node = both, 1 + (before if self._exact else last // 2)
        return Loss(min(self._window * cost + value, most) * (1 + 8 * UNIT_ROUNDOFF), node)

    def _leakages(self, sides: Sequence[_Side], key: int, cost: float, linear: bool, kappa: float) -> list[Floats]:
        """Leakages through 0, 1, … nodes; or through none and through any number of them. Each side bounds them."""
        zero = np.zeros((self._states, self._states))
        lists: list[list[Floats]] = []
        for number, side in enumerate(sides, key):
            cap, extra = self._cap(side, cost, linear), kappa * side.distances
            if not self._exact:
                lists.append([zero, self._fixed(number, side, cost, cap, linear, extra)])
                continue
            images = [zero]
            for _ in range(self._length - self._window):
                image = np.minimum(side.apply(costs_of(images[-1], cost), linear) + extra, cap)
                np.fill_diagonal(image, 0.0)
                images.append(image)
            lists.append(images)
        return [np.minimum.reduce(bounds) for bounds in zip(*lists, strict=True)]

    def _fixed(self, number: int, side: _Side, cost: float, cap: Floats, linear: bool, extra: Floats) -> Floats:
        if self._guide is not None and (number, linear) not in self._starts:
            self._guide.loss(cost)
            self._starts |= self._guide._starts
        known = self._starts.get((number, linear))
        start = scattered(self._states) if known is None else known
        leakages = post_fixed_point(LeakageEquation(side, cost, cap, linear=linear, extra=extra), start * cost)
        self._starts[number, linear] = leakages / cost
        return leakages

    def _cap(self, side: _Side, cost: float, linear: bool) -> Floats:
        """Bounds of the leakages of pairs from the number of nodes, for reweighted laws from cross ratios of P^m."""
        most = (self._length - self._window) * cost
        if isinstance(side, RatioSide) and not linear:
            most, _ = self._blocks.reach(cost, most)
        cap = np.full((self._states,) * 2, most * (1 + 16 * UNIT_ROUNDOFF))
        np.fill_diagonal(cap, 0.0)
        return cap

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale whose loss is at most ε, rounded up, with a node that decides; None if not below ``upper``."""
        small, decided = small_budget(self._linear, epsilon, upper) if self._guide is None else (None, False)
        if decided:
            return small
        upper = upper if small is None else small[0]
        low = 1 / upper
        guess = None if self._guide is None else self._guide.scale(epsilon, upper)
        if guess is not None:
            low = max(low, 0.97 / guess[0])
        at_low = self.loss(low)
        if at_low.value > epsilon and guess is not None:
            low = 1 / upper
            at_low = self.loss(low)
        if at_low.value > epsilon:
            return small
        cost, loss = largest_cost(self.loss, epsilon, low, at_low, epsilon)
        return rounded_scale(cost), loss.node

    def _linear(self, kappa: float) -> tuple[Loss, float]:
        """Loss in the limit of small c with an allowance of κ, in units of c, and the largest leakage of a pair."""
        return self._loss(1.0, True, kappa), self._farthest


def _side(rows: RowSets, guess: bool) -> _Side:
    if rows.states <= MOST_ORDERED_STATES:
        return RobustSide(rows)
    return AscendingSide(rows) if guess else AffineSide(rows)


def _reweighted(cross_ratios: Floats, reach: float) -> Floats:
    """Return log ((1 + √(RH)) / (√R + √H))² for bounds of log R, H = e^reach."""
    if reach > _FAR:
        return np.minimum(cross_ratios, reach)
    half = np.exp(np.minimum(cross_ratios, _FAR) / 2)
    through = 2 * np.log1p((half - 1) * math.expm1(reach / 2) / (half + math.exp(reach / 2)))
    return np.where(cross_ratios >= _FAR, reach, through * (1 + 16 * UNIT_ROUNDOFF))
