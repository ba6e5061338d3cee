"""Flows for all distributions of two sets at once: one linear program, and a short proof.

Lemma 3 asks for flows from a distribution p to a distribution q. For p in one set and q in another
they may depend on both. Here they are g(z, y), whatever p and q are, and besides, every unit of a
part of p at z goes to y in the share ``surplus``(z, y), and every unit of a part of q at y receives
from z in the share ``reserve``(y, z). Then the inequality of Lemma 3 is linear in p and q, and its
worst case a greedy sum: Lemma I3 of ``docs/leakage.md``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats, Ints
from pufferflow.bounds.robust import centre, largest_leakages
from pufferflow.models.row_sets import RowSets

_TOLERANCE = 1e-10
_LARGEST = 1e100
_TOGETHER = 4000
"""Columns of programs that are solved as one.

To ask takes as long as some hundred, and large ones take longer.
"""
_SMALLEST = 2e-9  # HiGHS drops entries of up to 1e-9


class RobustFlows(NamedTuple):
    """Flows g, and a table of shares for each part of p and q; all (k, k), from row to column."""

    flow: Floats
    surplus: list[Floats]
    reserve: list[Floats]


Pair: TypeAlias = tuple[int, int]
Solved: TypeAlias = tuple[RobustFlows, Floats]
"""Flows for a pair of values, and the derivative of log Λ by the costs."""


class AffineRows:
    """As ``VertexRows``, but for a little more: the flows are affine in the distributions.

    Parameters
    ----------
    rows : RowSets
    """

    def __init__(self, rows: RowSets) -> None:
        k = rows.states
        self._rows = rows
        self._program = _Program(k, len(rows.parts))
        self._weights = np.zeros((k, k, k, k))
        self._growth = np.zeros((k, k))
        self._solved: dict[Pair, Solved | None] = {}  # at that growth
        self.limit, self.centre = largest_leakages(rows), centre(rows)

    @property
    def work(self) -> int:
        """Operations of :meth:`bound`, about."""
        return 10**5 * self._rows.states**3

    def bound(self, costs: Floats) -> Floats:
        """As :meth:`PairBound.apply`."""
        values: Floats = np.fmin(self.limit, costs.max())  # h ranges over no more
        np.fill_diagonal(values, 0.0)
        growth = _growth(costs)
        self._weights[:] = 0.0
        pairs = [(x, y) for x, y in np.argwhere(values > 0).tolist()]
        for (x, y), solved in zip(pairs, self._solve(pairs, growth), strict=True):
            if solved is not None:
                flows, self._weights[x, y] = solved
                values[x, y] = min(values[x, y], self.proved(x, y, growth, flows))
        return values

    def derivative(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """As :meth:`PairBound.derivative`."""
        k = self._rows.states
        weights = self._weights.reshape(k * k, k * k)
        pairs, arcs = np.nonzero(weights)
        return pairs, arcs, weights[pairs, arcs]

    def flows(self, x: int, y: int, growth: Floats) -> RobustFlows | None:
        """Flows for the distributions given x and y, growth e^costs; None where not solved."""
        (solved,) = self._solve([(x, y)], growth)
        return None if solved is None else solved[0]

    def _solve(self, pairs: list[Pair], growth: Floats) -> list[Solved | None]:
        """As :meth:`_Program.solve`; a search ends at costs that it and the proof ask for again."""
        if not np.array_equal(growth, self._growth):
            self._growth, self._solved = growth.copy(), {}
        if new := [pair for pair in pairs if pair not in self._solved]:
            self._solved |= zip(new, self._program.solve(self._rows, new, growth), strict=True)
        return [self._solved[pair] for pair in pairs]

    def proved(self, x: int, y: int, growth: Floats, flows: RobustFlows) -> float:
        """What flows prove, whether or not they are optimal, rounded up."""
        k = self._rows.states
        above = self._rows.base[x] - flows.flow.sum(axis=1) + (flows.flow * growth).sum(axis=0)
        size = self._rows.base[x] + flows.flow.sum(axis=1) + (flows.flow * growth).sum(axis=0)
        below = self._rows.base[y].copy()
        for part, shares in zip(self._rows.parts, flows.surplus, strict=True):
            most = greedy(part.widths[x], part.totals[x], shares * growth, largest=True)
            above, size = above + most, size + most
        for part, shares in zip(self._rows.parts, flows.reserve, strict=True):
            below += greedy(part.widths[y], part.totals[y], shares / growth.T, largest=False)
        rounding = 16 * (k + 8) * UNIT_ROUNDOFF * (1 + float(np.log(growth).max()))
        above += rounding * size
        below = np.maximum(below * (1 - rounding) - rounding * UNIT_ROUNDOFF, 0.0)
        store = int(np.argmax(below))

        def needed(ratio: float) -> float:
            """The ratio at the store, to which goes what the others have beyond their share."""
            beyond = np.maximum(above - ratio * below, 0.0)
            beyond[store] = 0.0
            return float((above[store] + (beyond * growth[:, store]).sum()) / below[store])

        least, ratio = 1.0, max(1.0, needed(0.0))  # falls with the ratio, so that this one suffices
        for _ in range(60):
            middle = (least + ratio) / 2
            least, ratio = (least, middle) if needed(middle) <= middle else (middle, ratio)
        return float(np.log(ratio)) * (1 + 8 * UNIT_ROUNDOFF) + rounding + self._rows.error * 4.1


def _growth(costs: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(costs))


def greedy(widths: Floats, total: float, values: Floats, largest: bool) -> Floats:
    """Largest (smallest) Σ e·values[:, y] over 0 ≤ e ≤ widths with the given sum, for every y."""
    order = np.argsort(-values if largest else values, axis=0, kind="stable")
    slack = 8 * len(widths) * UNIT_ROUNDOFF * (1 if largest else -1)
    wide = widths[order]
    before = np.cumsum(wide, axis=0) - wide
    taken = np.minimum(wide, np.maximum(total + slack - before, 0.0))
    return np.asarray((taken * np.take_along_axis(values, order, axis=0)).sum(axis=0))


def _resolved(widths: Floats, total: float) -> tuple[Floats, float]:
    """A part without what the solver takes for 0.

    The sum would be left without widths, and the program unbounded.
    """
    kept = np.where(widths > _SMALLEST, widths, 0.0)
    return (widths, total) if (kept == widths).all() else (kept, min(total, float(kept.sum())))


class _Program:
    """The linear program of one pair: the least Λ, its structure kept.

    Greedy sums are duals: max Σ e a = min over t of t·total + Σ widths (a − t)⁺.
    """

    def __init__(self, k: int, parts: int) -> None:
        self._k, self._parts = k, parts
        square = k * k
        self._flow = 0
        self._size = 2 * square + k  # shares, excesses and a threshold a state
        self._last = square + 2 * parts * self._size
        z, y = (index.ravel() for index in np.indices((k, k)))
        off = z != y
        rows: list[Ints] = [z[off], y[off]]
        columns: list[Ints] = [(z * k + y)[off], (z * k + y)[off]]
        states = np.arange(k)
        row = k
        for part in range(2 * parts):
            shares, excess, level = self._of(part)
            rows += [y, states, row + z * k + y, row + z * k + y, row + z * k + y]
            arc = z * k + y
            columns += [excess + arc, level + states, shares + arc, excess + arc, level + y]
            row += square
        rows.append(states)
        columns.append(np.full(k, self._last))
        self._rows, self._columns, self._count = np.concatenate(rows), np.concatenate(columns), row
        equal_rows, equal_columns = [], []
        for part in range(2 * parts):
            equal_rows.append(part * k + z)
            equal_columns.append(self._of(part)[0] + z * k + y)
        equal_rows.append(np.arange(parts * k, 2 * parts * k))
        equal_columns.append(np.full(parts * k, self._last))
        entries = np.concatenate([np.ones(2 * parts * square), -np.ones(parts * k)])
        shape = 2 * parts * k, self._last + 1
        self._equal = np.zeros(shape)
        self._equal[np.concatenate(equal_rows), np.concatenate(equal_columns)] = entries
        self._right = np.concatenate([np.ones(parts * k), np.zeros(parts * k)])
        self._off = off
        self._bounds = np.zeros((self._last + 1, 2))
        self._bounds[:, 1] = np.inf
        self._bounds[:square][~off, 1] = 0
        for part in range(2 * parts):
            level = self._of(part)[2]
            self._bounds[level : level + k, 0] = -np.inf
        self._objective = np.zeros(self._last + 1)
        self._objective[-1] = 1.0

    def _of(self, part: int) -> tuple[int, int, int]:
        """Where shares, excesses and thresholds of a part start, those of p first."""
        start = self._k**2 + part * self._size
        return start, start + self._k**2, start + 2 * self._k**2

    def solve(self, rows: RowSets, pairs: list[Pair], growth: Floats) -> list[Solved | None]:
        """Flows for the distributions given each pair of values, and the derivative of log Λ.

        Their shares have sum 1.

        None where none were found. The programs of several pairs are one.
        """
        from scipy.optimize import linprog  # loading it takes longer than most noise scales
        from scipy.sparse import csr_array, kron

        if not float(growth.max()) < _LARGEST:  # nothing that the program could resolve
            return [None] * len(pairs)
        if len(pairs) > (most := max(1, _TOGETHER // (self._last + 1))):
            parts = (pairs[start : start + most] for start in range(0, len(pairs), most))
            return [solved for part in parts for solved in self.solve(rows, part, growth)]
        count, right = len(pairs), np.zeros((len(pairs), self._count))
        right[:, : self._k] = [-rows.base[x] for x, _ in pairs]
        entries = [entry for x, y in pairs for entry in self._entries(rows, x, y, growth)]
        blocks = np.arange(count)[:, None]
        columns = blocks * (self._last + 1) + self._columns
        places = (blocks * self._count + self._rows).ravel(), columns.ravel()
        shape = count * self._count, count * (self._last + 1)
        names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
        options: Any = dict.fromkeys(names, _TOLERANCE)
        solution = linprog(  # type: ignore[call-overload]  # its stubs take no array of bounds
            np.tile(self._objective, count),
            A_ub=csr_array((np.concatenate(entries), places), shape=shape),
            b_ub=right.ravel(),
            A_eq=kron(np.eye(count), csr_array(self._equal), format="csr"),
            b_eq=np.tile(self._right, count),
            bounds=np.tile(self._bounds, (count, 1)),
            method="highs",
            options=options,
        )
        if solution.status == 0:
            found = solution.x.reshape(count, -1), -solution.ineqlin.marginals.reshape(count, -1)
            return [
                self._read(values, multipliers, growth)
                for values, multipliers in zip(*found, strict=True)
            ]
        if count == 1:
            return [None]
        return [self.solve(rows, [pair], growth)[0] for pair in pairs]  # perhaps one alone fails

    def _entries(self, rows: RowSets, x: int, y: int, growth: Floats) -> list[Floats]:
        """Those of the inequalities for the distributions given x and y."""
        k, square = self._k, self._k**2
        flat, back = growth.ravel(), growth.T.ravel()
        ones = np.ones(square)
        entries = [-ones[self._off], flat[self._off]]
        for part in rows.parts:
            widths, total = _resolved(part.widths[x], part.totals[x])
            entries += [np.repeat(widths, k), np.full(k, total), flat, -ones, -ones]
        for part in rows.parts:  # the smallest sum: max over t of t·total − Σ widths (t − b)⁺
            widths, total = _resolved(part.widths[y], part.totals[y])
            entries += [np.repeat(widths, k), np.full(k, -total), -1 / back, -ones, ones]
        return [*entries, -rows.base[y]]

    def _read(self, values: Floats, multipliers: Floats, growth: Floats) -> Solved:
        """What a solution says of one pair."""
        k, square = self._k, self._k**2
        flow = np.maximum(values[:square], 0.0).reshape(k, k)
        shares = []
        for place in range(2 * self._parts):
            start = self._of(place)[0]
            given = np.maximum(values[start : start + square], 0.0).reshape(k, k)
            total = given.sum(axis=1, keepdims=True)
            shares.append(np.where(total > 0, given / np.where(total > 0, total, 1.0), np.eye(k)))
        flows = RobustFlows(flow, shares[: self._parts], shares[self._parts :])
        return flows, self._derivative(values, np.maximum(multipliers, 0.0), growth)

    def _derivative(self, values: Floats, multipliers: Floats, growth: Floats) -> Floats:
        """Derivative of log Λ by w[z, y]: factors of e^±w in the program, with multipliers."""
        k, square = self._k, self._k**2
        weights = multipliers[:k] * values[:square].reshape(k, k) * growth
        for part in range(2 * self._parts):
            start, row = self._of(part)[0], k + part * square
            shares = values[start : start + square].reshape(k, k)
            mine = multipliers[row : row + square].reshape(k, k)
            weights += mine * shares * growth if part < self._parts else (mine * shares).T / growth
        np.fill_diagonal(weights, 0.0)
        return np.asarray(np.maximum(weights, 0.0) / values[-1])
