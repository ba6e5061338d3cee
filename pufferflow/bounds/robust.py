"""Leakage through neighbours whose distributions lie in sets; proofs: ``docs/leakage.md``.

The flows of Lemma 3 from a distribution p to a distribution q, which may depend on both, are
g(z, y) for all p and q; in addition every unit of a part of p at z goes to y in the share
``surplus``(z, y), and every unit of a part of q at y receives from z in the share ``reserve``(y,
z). Then the inequality of Lemma 3 is linear in p and q, and its worst case a greedy sum (Lemma I2):
one linear program, and a short proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats, Ints
from pufferflow.bounds.distribution_sets import Arcs, ExactRows
from pufferflow.models.bounded import RowSets, greedy

if TYPE_CHECKING:
    from highspy import Highs, HighsBasis

_TOLERANCE = 1e-10
_LARGEST = 1e100
_TOGETHER = 4000
"""Columns of programs that are solved as one: a call costs as much as about a hundred columns."""
_SMALLEST = 2e-9  # HiGHS drops entries of up to 1e-9


class Solved(NamedTuple):
    """Solutions for n pairs of values: flows g, shares of each part of p and q, the smallest Λ.

    Flows and shares, from row to column, and the derivative of log Λ by costs have shape (n, k, k).
    """

    pairs: Ints
    flow: Floats
    surplus: list[Floats]
    reserve: list[Floats]
    ratios: Floats
    weights: Floats


class AffineRows:
    """Distributions of the neighbour in given sets: flows that are affine in them (Lemma I2).

    Parameters
    ----------
    rows : RowSets
    """

    def __init__(self, rows: RowSets) -> None:
        k = rows.states
        self._rows, self._weights = rows, np.zeros((k * k, k * k))
        self.solved: list[Solved] = []
        """Solutions for the last costs; pairs whose program was not solved are left out."""
        margin = 4.1 * rows.error + 32 * (k + 4) * UNIT_ROUNDOFF
        self.limit = np.maximum(rows.log_ratios().max(axis=2), 0.0) + margin
        np.fill_diagonal(self.limit, 0.0)
        pairs = np.argwhere(self.limit > 0)
        parts = np.array_split(pairs, 1 + len(pairs) * _columns(rows) // _TOGETHER)
        self._programs = [_Programs(rows, part) for part in parts if len(part)]

    @property
    def middle(self) -> ExactRows:
        """One row of each set, for a rough start."""
        rows = self._rows.base
        for widths, totals in self._rows.parts:
            rows = rows + widths * (totals / widths.sum(axis=1).clip(SAFE_MINIMUM))[:, None]
        return ExactRows(rows)

    def bound(self, costs: Floats) -> Floats:
        """As :meth:`PairBound.bound`."""
        values: Floats = np.fmin(self.limit, costs.max())  # the range of log h
        np.fill_diagonal(values, 0.0)
        self._weights[:], self.solved = 0.0, []
        if not 0 < costs.max() < np.log(_LARGEST):  # beyond the precision of the programs
            return values
        growth = np.exp(costs)
        self.solved = [solved for one in self._programs for solved in one.solve(growth)]
        for solved in self.solved:
            x, y = solved.pairs.T
            values[x, y] = np.fmin(values[x, y], self._proved(growth, solved))
            self._weights[x * len(costs) + y] = solved.weights.reshape(len(x), costs.size)
        return values

    def derivative(self) -> Arcs:
        """As :meth:`PairBound.derivative`."""
        pairs, arcs = np.nonzero(self._weights)
        return pairs, arcs, self._weights[pairs, arcs]

    def _proved(self, growth: Floats, solved: Solved) -> Floats:
        """Return bounds proved by any flows, rounded up; about log Λ."""
        rows, k, (x, y), every = self._rows, len(growth), solved.pairs.T, np.arange(len(solved[0]))
        flow = solved.flow
        into = (flow * growth).sum(axis=1)
        above = rows.base[x] - flow.sum(axis=2) + into
        size = rows.base[x] + flow.sum(axis=2) + into
        below = rows.base[y]
        for part, shares in zip(rows.parts, solved.surplus, strict=True):
            most = greedy(part.widths[x], part.totals[x], shares * growth, largest=True)
            above, size = above + most, size + most
        for part, shares in zip(rows.parts, solved.reserve, strict=True):
            below = below + greedy(part.widths[y], part.totals[y], shares / growth.T, largest=False)
        rounding = 16 * (k + 8) * UNIT_ROUNDOFF * (1 + float(np.log(growth).max()))
        above += rounding * size
        below = np.maximum(below * (1 - rounding) - rounding * UNIT_ROUNDOFF, 0.0)
        # excess over a ratio moves to a store, whose requirement falls with the ratio
        store = below.argmax(axis=1)
        beyond = np.maximum(above - solved.ratios[:, None] * below, 0.0)
        beyond[every, store] = 0.0
        needed = above[every, store] + (beyond * growth[:, store].T).sum(axis=1)
        with np.errstate(all="ignore"):  # NaN proves nothing
            ratios = np.maximum(np.maximum(solved.ratios, 1.0), needed / below[every, store])
        return np.asarray(np.log(ratios) * (1 + 8 * UNIT_ROUNDOFF) + rounding + rows.error * 4.1)


# -- the linear programs ---------------------------------------------------------------------------


class _Programs:
    """The linear programs of some pairs of values, solved as one.

    Greedy sums are duals: the largest Σ e a is the least t·total + Σ widths (a − t)⁺ over t, and
    the smallest Σ e b the largest t·total − Σ widths (t − b)⁺. Shares of p have sum 1, those of q,
    multiplied by Λ, sum Λ. Each search starts from the last solution: costs change little, and it
    mostly stays optimal.
    """

    def __init__(self, rows: RowSets, pairs: Ints) -> None:
        self._rows, self._pairs = rows, pairs
        self._basis: HighsBasis | None = None
        (x, y), k, square = pairs.T, rows.states, rows.states**2
        sides = [(part, x, 1.0) for part in rows.parts] + [(part, y, -1.0) for part in rows.parts]
        sums = k + len(sides) * square  # from here on rows are equations
        left = np.zeros((len(pairs), sums + len(sides) * k, _columns(rows)))
        right, least = np.zeros(left.shape[:2]), np.zeros(left.shape[2])
        leaves, enters = np.kron(np.eye(k), np.ones(k)), np.tile(np.eye(k), k)
        left[:, :k, :square] = enters - leaves
        left[:, :k, -1], right[:, :k] = -rows.base[y], -rows.base[x]
        # the number of an entry in a list of e^w and −e^−w; here these are 1 and −1
        cells, varying = np.arange(square), np.full(left.shape[1:], -1)
        varying[cells % k, cells] = cells
        for i, (part, value, sign) in enumerate(sides):
            shares, excess, level = _places(k, i)
            wide = np.where((widths := part.widths[value]) > _SMALLEST, widths, 0.0)
            # a sum above that of the widths would make it unbounded
            totals = np.minimum(part.totals[value], wide.sum(axis=1))
            left[:, :k, excess] = enters * np.repeat(wide, k, axis=1)[:, None]
            left[:, :k, level] = sign * totals[:, None, None] * np.eye(k)
            below = left[:, k + i * square : k + (i + 1) * square]
            below[..., shares], below[..., excess] = sign * np.eye(square), -np.eye(square)
            below[..., level], least[level] = -sign * enters.T, -np.inf
            varying[k + i * square + cells, shares.start + cells] = cells + (sign < 0) * square
            whole = slice(sums + i * k, sums + (i + 1) * k)
            left[:, whole, shares] = leaves
            right[:, whole], left[:, whole, -1] = sign > 0, min(sign, 0)
        entries = np.nonzero(left)
        self._values, varying = left[entries], varying[entries[1:]]
        self._changed = np.flatnonzero(varying >= 0)
        self._factors = varying[self._changed]
        self._solver, self._model = _solver(), _model(entries, self._values, right, least, sums)

    def solve(self, growth: Floats) -> list[Solved]:
        """Return flows for the distributions given each pair, with shares of sum 1.

        Pairs without a solution are left out.
        """
        if self._basis is None and len(self._pairs) > 1:  # bases of pairs are alike
            one, count = _Programs(self._rows, self._pairs[:1]), len(self._pairs)
            if one.solve(growth) and (basis := one._basis) is not None:
                basis.col_status = basis.col_status * count
                basis.row_status = basis.row_status * count
                self._basis = basis
        factors = np.concatenate([growth.ravel(), -1 / growth.T.ravel()])
        self._values[self._changed] = factors[self._factors]
        self._solver.passModel(*self._model)
        if self._basis is not None:
            self._solver.setBasis(self._basis)
        self._solver.run()
        if self._solver.getModelStatus().name == "kOptimal":
            self._basis = self._solver.getBasis()
            return [self._solved(growth)]
        if len(self._pairs) == 1:
            return []
        alone = (_Programs(self._rows, pair[None]) for pair in self._pairs)
        return [solved for one in alone for solved in one.solve(growth)]  # perhaps a few fail

    def _solved(self, growth: Floats) -> Solved:
        """Return the solution; the derivative is that of e^±w, by the multipliers."""
        solution, n, k = self._solver.getSolution(), len(self._pairs), self._rows.states
        values = np.maximum(np.reshape(solution.col_value, (n, -1)), 0.0)
        multipliers = np.maximum(-np.reshape(solution.row_dual, (n, -1)), 0.0)
        # no ratio is 0: a program beyond its precision has no solution
        solved, parts = values[:, -1] > 0, len(self._rows.parts)
        values, multipliers, n = values[solved], multipliers[solved], int(solved.sum())
        flow = values[:, : k * k].reshape(n, k, k)
        weights, every = multipliers[:, None, :k] * flow * growth, list[Floats]()
        for i in range(2 * parts):
            shares = values[:, _places(k, i)[0]].reshape(n, k, k)
            moved = shares * multipliers[:, k + i * k * k :][:, : k * k].reshape(n, k, k)
            weights += moved * growth if i < parts else moved.transpose(0, 2, 1) / growth
            total = shares.sum(axis=2, keepdims=True)
            every.append(np.where(total > 0, shares / np.where(total > 0, total, 1.0), np.eye(k)))
        away, ratios = 1 - np.eye(k), values[:, -1]
        weights = weights * away / ratios[:, None, None]
        given = self._pairs[solved], flow * away, every[:parts], every[parts:]
        return Solved(*given, ratios, weights)


def _columns(rows: RowSets) -> int:
    """Return the number of variables of one pair: flows, those of :func:`_places`, and Λ."""
    return int(_places(rows.states, 2 * len(rows.parts))[0].start) + 1


def _places(k: int, part: int) -> tuple[slice, slice, slice]:
    """Return columns of a part's shares, their excesses over thresholds, and thresholds.

    Flows come first, then parts of p, then those of q; the last column is Λ.
    """
    start = k * k + part * (2 * k * k + k)
    middle, end = start + k * k, start + 2 * k * k
    return slice(start, middle), slice(middle, end), slice(end, end + k)


def _model(entries: Any, values: Floats, right: Floats, least: Floats, sums: int) -> Any:
    """Return the smallest sum of Λ of n programs, as HiGHS takes it; ``values`` may change.

    Rows from ``sums`` on are equations.
    """
    from highspy import MatrixFormat, ObjSense  # loading it takes longer than most noise scales

    (pair, row, column), (n, height), columns = entries, right.shape, len(least)
    sizes = n * columns, right.size, len(row)
    kind = int(MatrixFormat.kRowwise), int(ObjSense.kMinimize), 0.0
    objective, at_least = np.tile(np.eye(columns)[-1], n), np.tile(least, n)
    right_at_least = np.where(np.arange(height) < sums, -np.inf, right).ravel()
    bounds = at_least, np.full(n * columns, np.inf), right_at_least, right.ravel()
    starts = np.searchsorted(pair * height + row, np.arange(right.size + 1))
    places = starts.astype(np.int32), (pair * columns + column).astype(np.int32)
    return *sizes, *kind, objective, *bounds, *places, values, np.zeros(n * columns, np.int32)


def _solver() -> Highs:
    """Return a silent solver."""
    from highspy import Highs

    solver = Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("primal_feasibility_tolerance", _TOLERANCE)
    solver.setOptionValue("dual_feasibility_tolerance", _TOLERANCE)
    # after small changes of costs the last solution is nearly feasible: the primal simplex method
    solver.setOptionValue("simplex_strategy", 4)
    solver.setOptionValue("simplex_scale_strategy", 0)
    solver.setOptionValue("presolve", "off")
    return solver
