"""Upper bounds of the loss for chains known by bounds of their rows, each step free to be another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pufferflow._util.protection import Protection
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.coupling.affine import AffineSide, greedy
from pufferflow.coupling.blocks import forgotten, grid
from pufferflow.coupling.robust import MOST_ORDERED_STATES, AscendingSide, RobustSide
from pufferflow.coupling.roots import Loss, scale_below
from pufferflow.coupling.sides import LeakageEquation, RatioSide, clear_diagonal, costs_of, post_fixed_point, scattered
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.row_sets import RowSets, between

_EXACT_WORK = 10**6
_EXACT_NODES = 64
_STEP_BY_STEP = 64
_FARTHEST = 10**5
_MIXED = 0.02  # nats: more steps only cost more
_FAR = 600.0

_Side = RobustSide | AffineSide | AscendingSide | RatioSide

MOST_ROBUST_STATES = 12
"""Largest number of states of a family between bounds for which couplings are computed."""

MOST_RATIO_STATES = 64
"""Largest number of states of such a family for which ratios of probabilities are compared instead."""


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


class _Block(NamedTuple):
    """So many steps, what they tell of pairs of values at most, and through weights of values beyond them."""

    steps: int
    limit: Floats
    side: RatioSide


class ReweightedBlocks:
    """What is told through several steps where the distribution of the node there may be reweighted in any way.

    Entries of P^m lie between bounds, whatever chain each step follows, and so do their ratios. Besides,
    P^{m+n}(x, z) = p·h with p = P^m(x, ·) and h = P^n(·, z), whose values lie within a factor e^φ, so that
    P^{m+n}(x, z) / P^{m+n}(x', z) ≤ 1 + (e^φ − 1) d, d the total variation of p and p'.

    Parameters
    ----------
    rows : RowSets
        Distributions of the neighbour given each value, or those of a node given its neighbour if ``columns``.
    length : int
        Largest number of steps.
    columns : bool
    """

    def __init__(self, rows: RowSets, length: int, *, columns: bool) -> None:
        self.blocks: list[_Block] = []
        known, now, ratios, steps = {1: rows}, rows, np.maximum(rows.log_ratios(), 0.0), 1
        for m in grid(min(length, _FARTHEST))[1:]:
            while steps < m:
                hop = 1 if m <= _STEP_BY_STEP else m - steps
                spread = np.minimum(ratios.max(axis=(0, 1)), _FAR)
                through = np.log1p(np.expm1(spread) * known[hop].distances()[:, :, None]) * (1 + 8 * UNIT_ROUNDOFF)
                through[..., spread == _FAR] = np.inf
                now, steps = _product(known[hop], now), steps + hop
                ratios = np.minimum(np.maximum(now.log_ratios(), 0.0), through)
                known[steps] = now
            if columns:  # of y to y' given x, and of y' to y given x'
                both = np.array(
                    [(of_x + ratios.transpose(2, 1, 0)).max(axis=(1, 2)) for of_x in ratios.transpose(2, 0, 1)]
                )
                side = RatioSide(now.log_column_ratios())
            else:
                both, side = ratios.max(axis=2) + ratios.max(axis=2).T, RatioSide(ratios)
            clear_diagonal(both)
            self.blocks.append(_Block(m, both * (1 + 8 * UNIT_ROUNDOFF), side))
            if both.max() < _MIXED:
                return

    def lowered(self, cap: Floats, cost: float) -> Floats:
        """Bounds, rounded up, for all nodes, of leakages that are at most ``cap``."""
        # the largest leakage alone costs little; then what each pair of values at the other end tells
        for each, tolerance in ((False, 1e-6), (True, 1e-4)):
            before = np.inf
            while cap.max() < before * (1 - tolerance):
                before = cap.max()
                for block in self.blocks:
                    between = (block.steps - 1) * cost * (1 + 4 * UNIT_ROUNDOFF)
                    if between >= cap.max():
                        break
                    told = forgotten(block.limit, float(cap.max()) + cost)
                    if each:
                        told = np.minimum(told, block.side.apply(costs_of(cap, cost)))
                    cap = np.fmin(cap, between + told)
                    clear_diagonal(cap)
        return cap


def _product(first: RowSets, second: RowSets) -> RowSets:
    """Bounds of the rows of a product of two matrices, rounded outwards."""
    rounding = 16 * (first.states + 8) * UNIT_ROUNDOFF
    low, high = second.low(), second.high()
    least = _extreme(first, low, largest=False) * (1 - rounding)
    least = np.where(least >= SAFE_MINIMUM, least, 0.0)
    possible = (first.high() > 0).astype(np.float32) @ (high > 0).astype(np.float32) > 0
    most = np.clip(_extreme(first, high, largest=True) * (1 + rounding), SAFE_MINIMUM, 1.0)
    most = np.maximum(np.where(possible, most, 0.0), least)
    return between(least, most)


def _extreme(rows: RowSets, values: Floats, *, largest: bool) -> Floats:
    """Largest or smallest p·h of the rows p of every state and the columns h ≥ 0 of ``values``."""
    found: Floats = rows.base @ values
    for part in rows.parts:
        found = found + [
            greedy(widths, total, values, largest) for widths, total in zip(part.widths, part.totals, strict=True)
        ]
    return found


class IntervalLeakage:
    """Bounds of the loss over the nodes of all chains of a family, for mechanisms known only by c.

    Every one is that of the worst steps, which need not be those of one homogeneous chain. Short chains get the
    recursion node by node, long ones its post-fixed points.

    Parameters
    ----------
    pairs : bool
        Whether to use couplings, of at most ``MOST_ROBUST_STATES`` states; without them the neighbours' distributions
        are bounded as if side information reweighted them.
    guess : bool
        Where not all orders of the states are looked at: to take what some laws attain, which is less than a bound.
    """

    def __init__(
        self, family: BoundedFamily, length: int, protection: Protection, *, pairs: bool = True, guess: bool = False
    ) -> None:
        self._length, self._window = length, min(protection.window, length)
        self._states = family.states
        coupled = pairs and protection.side_information == "none"
        backward = [] if family.backward is None else [family.backward.rows]
        self._blocks: dict[int, ReweightedBlocks] = {}
        self._ahead = [self._side(family.rows, 0, coupled, guess)]
        self._past: list[_Side] = [RatioSide(family.rows.log_column_ratios())]
        self._blocks[1] = ReweightedBlocks(family.rows, length, columns=True)
        self._past += [self._side(rows, 2, coupled, guess) for rows in backward]
        self._guide: IntervalLeakage | None = None
        if any(isinstance(side, AffineSide) for side in [*self._ahead, *self._past]):
            self._guide = IntervalLeakage(family, length, protection, guess=True)
        work = sum(side.work for side in [*self._ahead, *self._past])
        self._exact = length <= max(2, min(_EXACT_NODES, _EXACT_WORK // work))
        self._starts: dict[int, Floats] = {}

    def _side(self, rows: RowSets, number: int, coupled: bool, guess: bool) -> _Side:
        if not coupled:
            self._blocks[number] = ReweightedBlocks(rows, self._length, columns=False)
            return RatioSide(rows.log_ratios())
        if rows.states <= MOST_ORDERED_STATES:
            return RobustSide(rows)
        return AscendingSide(rows) if guess else AffineSide(rows)

    def loss(self, cost: float) -> Loss:
        """Bound, rounded up, at c."""
        self._starts.clear()
        return self._nearby(cost)

    def _nearby(self, cost: float) -> Loss:
        """The same, from post-fixed points found at the last cost."""
        most = self._length * cost
        if self._length == self._window:
            return Loss(most * (1 + 4 * UNIT_ROUNDOFF), 1)
        ahead, past = self._leakages(self._ahead, 0, cost), self._leakages(self._past, 1, cost)
        last = self._length - self._window  # nodes beside the window
        value, node = 0.0, 1
        for before in range(last + 1) if self._exact else [0, last]:
            one, other = past[min(before, len(past) - 1)], ahead[(last - before) if self._exact else -1]
            both = float((one + other).max()) if self._window == 1 else float(one.max()) + float(other.max())
            if not both <= value:
                value, node = both, 1 + (before if self._exact else last // 2)
        total = self._window * cost + value
        return Loss((total if total < most else most) * (1 + 8 * UNIT_ROUNDOFF), node)

    def _leakages(self, sides: Sequence[_Side], key: int, cost: float) -> list[Floats]:
        """Leakages through 0, 1, … nodes; or through none and through any number of them. Each side bounds them."""
        zero = np.zeros((self._states, self._states))
        lists: list[list[Floats]] = []
        for number, side in enumerate(sides, key):
            cap = np.full_like(zero, (self._length - self._window) * cost * (1 + 16 * UNIT_ROUNDOFF))
            clear_diagonal(cap)
            if number in self._blocks:
                cap = self._blocks[number].lowered(cap, cost)
            if not self._exact:
                lists.append([zero, self._fixed(number, side, cost, cap)])
                continue
            images = [zero]
            for _ in range(self._length - self._window):
                image = np.fmin(np.fmin(side.apply(costs_of(images[-1], cost)), side.limit), cap)
                clear_diagonal(image)
                images.append(image)
            lists.append(images)
        return [np.minimum.reduce(bounds) for bounds in zip(*lists, strict=True)]

    def _fixed(self, number: int, side: _Side, cost: float, cap: Floats) -> Floats:
        if self._guide is not None and number not in self._starts:
            self._guide.loss(cost)
            self._starts |= self._guide._starts
        start = self._starts.get(number)
        start = scattered(self._states) if start is None else start
        leakages = post_fixed_point(LeakageEquation(side, cost, cap), start * cost)
        self._starts[number] = leakages / cost
        return leakages

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale whose loss is at most ε, rounded up, with a node that decides; None if not below ``upper``."""
        self._starts.clear()
        guess = None if self._guide is None else self._guide.scale(epsilon, upper)
        return scale_below(self._nearby, epsilon, upper, None if guess is None else 0.97 / guess[0])
