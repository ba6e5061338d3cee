"""From leakages of both sides of a node to the loss of a mechanism and its smallest scale."""

import numpy as np

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.bounds.distribution_sets import ExactRows, no_trees
from pufferflow.bounds.process import Process, Side
from pufferflow.bounds.robust import AffineRows
from pufferflow.bounds.roots import SMALLEST_EPSILON, TOLERANCE, Loss, scale_below
from pufferflow.bounds.rounds import at_once
from pufferflow.bounds.solver import beginning, post_fixed_point
from pufferflow.models.powers import largest_after

_SLOWLY = 5e-4
"""Tolerance where a period takes seconds."""


class ProcessLoss:
    """Upper bounds of the loss over the windows of a process, for all c-DP mechanisms.

    Short processes use the recursion (c) node by node, long ones its post-fixed points, or rounds
    of a period; (b) caps both.
    """

    def __init__(self, process: Process) -> None:
        self._process, both = process, (process.forward, process.backward)
        self._cycles = [side.cycle for side in both if side.cycle]
        self._others = [_Leakages(process, side) for side in both if not side.cycle]

    def loss(self, cost: float) -> Loss:
        """Return a bound for mechanisms whose density changes by at most e^cost with one entry."""
        self._begin()  # results do not depend on earlier searches
        return self._nearby(cost)

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Return the smallest scale with loss ≤ ε, rounded up, and a node; None if ≥ ``upper``."""
        if epsilon < SMALLEST_EPSILON:
            return None
        growth = self._begin()
        cost = max(1 / upper, epsilon / growth if growth else 0.0)
        slow = any(cycle.is_slow for cycle in self._cycles)
        return scale_below(self._nearby, epsilon, upper, cost, _SLOWLY if slow else TOLERANCE)

    def _begin(self) -> float:
        """Discard earlier results; return the loss over c at small c, estimated high, or 0."""
        known = [side.begin() for side in self._cycles or self._others]
        return self._process.window + 1.25 * sum(known) if any(known) else 0.0

    def _nearby(self, cost: float) -> Loss:
        """Return the loss, starting from the post-fixed points of the last cost."""
        process, value, node = self._process, 0.0, 1
        most = process.length * cost
        if self._cycles:
            forward, backward = at_once(self._cycles, cost)
        else:
            forward, backward = (side.tables(cost) for side in self._others)
        ends, early = [self._of_windows(table) for table in forward], len(backward) - process.phases
        for before, table in enumerate(backward):
            after = process.around - before
            if not process.exact:
                after = (before + process.window - 1) % process.phases - process.phases
            found = self._read(cost, before, ends[after], table)
            found = found if found < most else most  # NaN proves nothing
            if found > value:
                value, node = found, before + 1
                if not process.exact and before >= early:
                    node = max(early + 1, (process.around + 3) // 2)
        return Loss(value * (1 + 8 * UNIT_ROUNDOFF), node)

    def _of_windows(self, leakages: Floats) -> Floats:
        """Return the largest leakage of the last values of two windows, by their first values."""
        if self._process.window == 1:
            return leakages
        if self._process.last is None:
            return np.full_like(leakages, leakages.max())
        return largest_after(leakages, self._process.last)

    def _read(self, cost: float, node: int, after: Floats, before: Floats) -> float:
        """Return the loss of a window that begins at a node, from the leakages of its sides."""
        process, both = self._process, after + before
        values = process.possible[min(node, len(process.possible) - 1)]
        possible = values[:, None] & values
        if process.window > 1:
            return max(process.window, len(process.secrets)) * cost + float(both[possible].max())
        both = both + cost * process.distance
        value = min(both[possible & pairs].max(initial=cost) for pairs in process.secrets)
        if rows := process.observed[min(node, len(process.observed) - 1)]:
            value = max(cost, min(value, rows.bound(both).max()))
        return float(value)


class _Leakages:
    """Leakages of the nodes of one side, at successive c."""

    def __init__(self, process: Process, side: Side) -> None:
        self.side, self._process = side, process
        self._starts: list[Floats] = []  # leakages of the last c, in units of it
        k = len(process.distance)
        self._zeros, self._away = np.zeros((k, k)), 1 - np.eye(k)
        self._trees = no_trees(k if side.early is not None else 0)
        late = () if process.exact else side.sets
        self._beginnings = [beginning(rows, process.around) for rows in late]

    def tables(self, cost: float) -> list[Floats]:
        """Return leakages through 0, 1, … nodes: all, or early ones and a bound.

        The bound holds for every later node.
        """
        process, costs = self._process, cost * self._process.distance
        most = (process.around if len(process.secrets) == 1 else process.length) * cost
        whole = most * (1 + 16 * UNIT_ROUNDOFF) * self._away
        cap = self.side.blocks.caps(whole, cost, costs)
        # flows between sets of rows pass through values of which blocks and other sets say nothing:
        # recursions run separately, and only their results are compared (Theorem I1)
        caps = [whole if isinstance(rows, AffineRows) else cap for rows in self.side.sets]
        if self.side.early is not None:
            stored, _ = self.side.early.walk(self._zeros, costs, cap, self._trees)
            found = list(stored.astype(np.float64))
        else:
            found = [self._zeros] + [cap] * (process.around if process.exact else 0)
            for rows, own in zip(self.side.sets, caps, strict=True):
                now = self._zeros
                for node in range(1, len(found)):
                    now = np.fmin(np.fmin(rows.bound(now + costs), rows.limit), own)
                    found[node] = np.minimum(found[node], now)
        if process.exact:
            return found
        tail = cap
        for number, (rows, own) in enumerate(zip(self.side.sets, caps, strict=True)):
            start = self._starts[number] * cost
            above = post_fixed_point(rows, costs, own, start, floor=found[-1])
            self._starts[number] = above / cost
            tail = np.minimum(tail, above)
            if isinstance(rows, ExactRows) and rows.spread < 1e-7 * cost:
                break
        return [*found, tail]

    def begin(self) -> float:
        """Start from leakages at small c; return the largest of the smallest, in units of c."""
        self._starts = list(self._beginnings)
        return min((float(start.max()) for start in self._starts), default=0.0)
