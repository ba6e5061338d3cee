"""Leakage through neighbours whose distributions lie in sets; proofs: ``docs/leakage.md``.

The flows of Lemma 3 from a distribution p to a distribution q, which may depend on both, are
g(z, y) for all p and q; in addition every unit of a part of p at z goes to y in the share
``surplus``(z, y), and every unit of a part of q at y receives from z in the share ``reserve``(y,
z). Then the inequality of Lemma 3 is linear in p and q, and its worst case a greedy sum (Lemma I2):
one linear program, and a short proof.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.bounds.distribution_sets import Arcs, ExactRows, ReweightedRows
from pufferflow.models.bounded import RowSets

_TOLERANCE = 1e-10
_LARGEST = 1e100
_TOGETHER = 4000
"""Columns of programs that are solved as one: a call costs as much as about a hundred columns."""
_SMALLEST = 2e-9  # HiGHS drops entries of up to 1e-9


class RobustFlows(NamedTuple):
    """Flows g, and a table of shares for each part of p and q; all (k, k), from row to column."""

    flow: Floats
    surplus: list[Floats]
    reserve: list[Floats]


Pair: TypeAlias = tuple[int, int]
Solved: TypeAlias = tuple[RobustFlows, float, Floats]
"""Flows for a pair of values, the smallest Λ, and the derivative of log Λ by the costs."""


class AffineRows:
    """Distributions of the neighbour in given sets: flows that are affine in them (Lemma I2).

    Parameters
    ----------
    rows : RowSets
    """

    def __init__(self, rows: RowSets) -> None:
        k = rows.states
        self._rows, self._weights = rows, np.zeros((k * k, k * k))
        self.flows: dict[Pair, RobustFlows] = {}
        """Flows of the last costs; pairs whose program was not solved are left out."""
        margin = 4.1 * rows.error + 32 * (k + 4) * UNIT_ROUNDOFF
        self.limit = np.maximum(rows.log_ratios().max(axis=2), 0.0) + margin
        np.fill_diagonal(self.limit, 0.0)

    def bound(self, costs: Floats) -> Floats:
        """As :meth:`PairBound.bound`."""
        values: Floats = np.fmin(self.limit, costs.max())  # the range of log h
        np.fill_diagonal(values, 0.0)
        with np.errstate(over="ignore"):
            growth = np.exp(costs)
        self._weights[:], self.flows = 0.0, {}
        pairs = [(x, y) for x, y in np.argwhere(values > 0).tolist()]
        for (x, y), solved in zip(pairs, solve(self._rows, pairs, growth), strict=True):
            if solved is not None:
                flows, least, weights = solved
                self.flows[x, y] = flows
                self._weights[x * len(costs) + y] = weights.ravel()
                values[x, y] = min(values[x, y], self._proved(x, y, growth, flows, least))
        return values

    def derivative(self) -> Arcs:
        """As :meth:`PairBound.derivative`."""
        pairs, arcs = np.nonzero(self._weights)
        return pairs, arcs, self._weights[pairs, arcs]

    def _proved(self, x: int, y: int, growth: Floats, flows: RobustFlows, ratio: float) -> float:
        """Return the bound proved by any flows, rounded up; about log ``ratio``."""
        rows, k = self._rows, self._rows.states
        into = (flows.flow * growth).sum(axis=0)
        above = rows.base[x] - flows.flow.sum(axis=1) + into
        size = rows.base[x] + flows.flow.sum(axis=1) + into
        below = rows.base[y].copy()
        for part, shares in zip(rows.parts, flows.surplus, strict=True):
            most = greedy(part.widths[x], part.totals[x], shares * growth, largest=True)
            above, size = above + most, size + most
        for part, shares in zip(rows.parts, flows.reserve, strict=True):
            below += greedy(part.widths[y], part.totals[y], shares / growth.T, largest=False)
        rounding = 16 * (k + 8) * UNIT_ROUNDOFF * (1 + float(np.log(growth).max()))
        above += rounding * size
        below = np.maximum(below * (1 - rounding) - rounding * UNIT_ROUNDOFF, 0.0)
        # excess over a ratio moves to a store, whose requirement falls with the ratio
        store = int(np.argmax(below))
        beyond = np.maximum(above - ratio * below, 0.0)
        beyond[store] = 0.0
        needed = float((above[store] + (beyond * growth[:, store]).sum()) / below[store])
        ratio = max(1.0, ratio, needed)
        return float(np.log(ratio)) * (1 + 8 * UNIT_ROUNDOFF) + rounding + rows.error * 4.1


def greedy(widths: Floats, total: float, values: Floats, largest: bool) -> Floats:
    """Return the largest (smallest) Σ e·values[:, y], 0 ≤ e ≤ widths with this sum, for every y."""
    order = np.argsort(-values if largest else values, axis=0, kind="stable")
    slack = 8 * len(widths) * UNIT_ROUNDOFF * (1 if largest else -1)
    wide = widths[order]
    before = np.cumsum(wide, axis=0) - wide
    taken = np.minimum(wide, np.maximum(total + slack - before, 0.0))
    return np.asarray((taken * np.take_along_axis(values, order, axis=0)).sum(axis=0))


# -- the linear program ----------------------------------------------------------------------------


def solve(rows: RowSets, pairs: list[Pair], growth: Floats) -> list[Solved | None]:
    """Return flows for the distributions given each pair of values, with shares of sum 1.

    It is None for pairs without a solution. The programs of several pairs are solved as one.
    """
    from scipy.optimize import linprog  # loading it takes longer than most noise scales
    from scipy.sparse import block_diag, csr_array, kron

    k, parts = rows.states, 2 * len(rows.parts)
    columns = k * k + parts * (2 * k * k + k) + 1
    if not pairs or not float(growth.max()) < _LARGEST:  # beyond the precision of the program
        return [None] * len(pairs)
    if len(pairs) > (most := max(1, _TOGETHER // columns)):
        some = (pairs[start : start + most] for start in range(0, len(pairs), most))
        return [solved for part in some for solved in solve(rows, part, growth)]
    count, programs = len(pairs), [_program(rows, x, y, growth) for x, y in pairs]
    equal, right = _sums(k, parts)
    at_least = np.zeros((columns, 2))
    at_least[:, 1] = np.inf
    for _, _, level in map(_places, [k] * parts, range(parts)):
        at_least[level, 0] = -np.inf
    names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
    options: Any = dict.fromkeys(names, _TOLERANCE)
    solution = linprog(  # type: ignore[call-overload]  # its stubs take no array of bounds
        np.tile(np.eye(columns)[-1], count),
        A_ub=block_diag([csr_array(left) for left, _ in programs], format="csr"),
        b_ub=np.concatenate([bound for _, bound in programs]),
        A_eq=kron(np.eye(count), csr_array(equal), format="csr"),
        b_eq=np.tile(right, count),
        bounds=np.tile(at_least, (count, 1)),
        method="highs",
        options=options,
    )
    if solution.status == 0:
        found = solution.x.reshape(count, -1), -solution.ineqlin.marginals.reshape(count, -1)
        every = zip(*found, strict=True)
        # no ratio is 0: a program beyond its precision has no solution
        return [_read(rows, *each, growth) if each[0][-1] > 0 else None for each in every]
    if count == 1:
        return [None]
    return [solve(rows, [pair], growth)[0] for pair in pairs]  # perhaps a single pair fails


def _places(k: int, part: int) -> tuple[slice, slice, slice]:
    """Return columns of a part's shares, their excesses over thresholds, and thresholds.

    Flows come first, then parts of p, then those of q; the last column is Λ.
    """
    start = k * k + part * (2 * k * k + k)
    middle, end = start + k * k, start + 2 * k * k
    return slice(start, middle), slice(middle, end), slice(end, end + k)


def _program(rows: RowSets, x: int, y: int, growth: Floats) -> tuple[Floats, Floats]:
    """Return both sides of the inequalities for the distributions given x and y.

    Greedy sums are duals: the largest Σ e a is the least t·total + Σ widths (a − t)⁺ over t, and
    the smallest Σ e b the largest t·total − Σ widths (t − b)⁺.
    """
    k, square = rows.states, rows.states**2
    leaves, enters = np.kron(np.eye(k), np.ones(k)), np.tile(np.eye(k), k)
    sides = [(part, x, 1.0, growth) for part in rows.parts]
    sides += [(part, y, -1.0, -1 / growth.T) for part in rows.parts]
    left = np.zeros((k + len(sides) * square, square + len(sides) * (2 * square + k) + 1))
    left[:k, :square] = enters * growth.ravel() - leaves
    left[:k, -1] = -rows.base[y]
    for i, (part, value, sign, factors) in enumerate(sides):
        widths, total = part.widths[value], part.totals[value]
        wide = np.where(widths > _SMALLEST, widths, 0.0)
        if (wide != widths).any():  # widths below the sum would make it unbounded
            total = min(total, float(wide.sum()))
        shares, excess, level = _places(k, i)
        left[:k, excess] = enters * np.repeat(wide, k)
        left[:k, level] = sign * total * np.eye(k)
        below = left[k + i * square : k + (i + 1) * square]
        below[:, shares], below[:, excess] = np.diag(factors.ravel()), -np.eye(square)
        below[:, level] = -sign * enters.T
    return left, np.concatenate([-rows.base[x], np.zeros(len(left) - k)])


def _sums(k: int, parts: int) -> tuple[Floats, Floats]:
    """Return equations: shares of p have sum 1, those of q, multiplied by Λ, sum Λ."""
    left = np.zeros((parts * k, k * k + parts * (2 * k * k + k) + 1))
    for i in range(parts):
        left[i * k : (i + 1) * k, _places(k, i)[0]] = np.kron(np.eye(k), np.ones(k))
    of_p = np.arange(parts * k) < parts * k // 2
    left[:, -1] = np.where(of_p, 0.0, -1.0)
    return left, np.where(of_p, 1.0, 0.0)


def _read(rows: RowSets, values: Floats, multipliers: Floats, growth: Floats) -> Solved:
    """Return the solution of one pair; the derivative is that of e^±w, by their multipliers."""
    k, square, parts = rows.states, rows.states**2, len(rows.parts)
    values, multipliers = np.maximum(values, 0.0), np.maximum(multipliers, 0.0)
    flow, all_shares = values[:square].reshape(k, k), []
    weights = multipliers[:k] * flow * growth
    for i in range(2 * parts):
        shares = values[_places(k, i)[0]].reshape(k, k)
        duals = multipliers[k + i * square : k + (i + 1) * square].reshape(k, k)
        weights += duals * shares * growth if i < parts else (duals * shares).T / growth
        total = shares.sum(axis=1, keepdims=True)
        all_shares.append(np.where(total > 0, shares / np.where(total > 0, total, 1.0), np.eye(k)))
    flow, weights = flow * (1 - np.eye(k)), weights * (1 - np.eye(k))
    flows = RobustFlows(flow, all_shares[:parts], all_shares[parts:])
    return flows, float(values[-1]), weights / values[-1]


DistributionSet: TypeAlias = ExactRows | AffineRows | ReweightedRows
