"""Leakage of a node through its neighbours at a distance: theorem (b) of ``docs/leakage.md``.

For every distance m the entries up to there cost at most (m − 1)·c and the rest passes through P^m.
With the leakage of the rest taken as infinite this is the bound of a Markov quilt, so nothing here
is above MQMExact where its quilt fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.bounds.affine import greedy
from pufferflow.bounds.distribution_sets import (
    ReweightedRows,
    clear_diagonal,
    costs_of,
    largest_log_cross_ratios,
    largest_log_ratios,
    reached,
    reweighted_columns,
    reweighted_within,
)
from pufferflow.models.powers import matrix_power
from pufferflow.models.row_sets import RowSets, between

PASSED = 500.0
"""Leakages above it are not passed through a product of matrices."""
_MOST_DISTANCES = 40
_FARTHEST, _STEP_BY_STEP = 10**5, 64
"""Steps of products of sets of rows, and how many of them are taken one by one."""
_MIXED = 0.02  # nats: more steps only cost more
_FAR = 600.0


class Block(NamedTuple):
    """Some steps to a node, and a bound of what they reveal of pairs of its values; or a stack."""

    steps: Ints
    limit: Floats
    """Largest log ratios of entries of P^m; cross ratios if the distribution is unknown."""
    distance: Floats | None = None
    """Total variation of the distributions at the other end, where these are known."""
    rows: ReweightedRows | None = None
    """What pairs of values at the other end reveal."""
    margin: float = 0.0

    def leakages(self, rest: float, cost: float) -> Floats:
        """Bounds, rounded up, of a node's leakages if those at the other end are ≤ ``rest`` − c."""
        if self.distance is None:
            passed = forgotten(self.limit, rest)
        elif rest > PASSED:
            passed = np.minimum(self.limit, rest)
        else:
            passed = np.log1p(self.distance * math.expm1(rest)) * (1 + 16 * UNIT_ROUNDOFF)
            passed = np.minimum(self.limit, passed)
        return np.asarray(passed + (self.steps - 1) * cost)

    def extra(self, cost: float) -> float:
        """What is added to what ``rows`` let through: the nodes between, and rounding."""
        return float(self.steps - 1) * cost * (1 + 4 * UNIT_ROUNDOFF) + self.margin


class Blocks:
    """Bounds of the leakages of pairs through one side of a node, for every node and every length.

    Parameters
    ----------
    blocks : iterable of Block
        The nearest first.
    pairwise : bool
        Whether to look at what each pair of values at the other end reveals, where that is known.
    """

    def __init__(self, blocks: Iterator[Block], *, pairwise: bool = False) -> None:
        self.blocks = list(blocks)
        self.pairwise: list[Block] = []
        """Of at least two steps, as far as they mix more and more."""
        last = np.inf
        for block in self.blocks if pairwise else []:
            largest = math.inf if block.rows is None else float(block.rows.limit.max())
            if largest < 0.9 * last:
                last = largest
                self.pairwise += [block] * int(block.steps > 1)

    @cached_property
    def _stacked(self) -> tuple[Block, Block]:
        """All of them, and what they reveal of any pair of values."""
        steps = np.array([block.steps for block in self.blocks])[:, None, None]
        limits, distances = np.array([block.limit for block in self.blocks]), None
        if self.blocks[0].distance is not None:
            distances = np.array([block.distance for block in self.blocks])
        largest = None if distances is None else distances.max(axis=(1, 2), keepdims=True)
        return Block(steps, limits, distances), Block(
            steps, limits.max(axis=(1, 2), keepdims=True), largest
        )

    def caps(self, cap: Floats, cost: float, costs: Floats | float) -> Floats:
        """Bounds of all leakages for a mechanism with cost c, where these are ≤ ``cap``, (k, k)."""
        if not self.blocks or not cost:
            return cap
        (all_pairs, largest), low, alpha = self._stacked, cost, cost + float(cap.max())
        # an α = c + leakage that the blocks map to or below itself is one
        while alpha > low * (1 + 1e-5):
            middle = math.sqrt(low * alpha)
            if cost + float(largest.leakages(middle, cost).min()) <= middle:
                alpha = middle
            else:
                low = middle
        cap = np.minimum(cap, all_pairs.leakages(alpha, cost).min(axis=0) * (1 + 8 * UNIT_ROUNDOFF))
        before = math.inf
        while self.pairwise and cap.sum() < before * (1 - 3e-4):
            before = float(cap.sum())
            for block in self.pairwise:
                assert block.rows is not None
                if (between := block.extra(cost)) < cap.max():
                    cap = np.fmin(cap, between + block.rows.bound(costs_of(cap, costs)))
                    clear_diagonal(cap)
        return cap


def known_blocks(rows: Floats, error: float, length: int) -> Iterator[Block]:
    """Of known distributions of the neighbour.

    P, or P* with a bound on the relative errors of all its powers.
    """
    k = len(rows)
    equal: Bools = np.eye(k, dtype=np.bool_)
    # rows of powers that look equal still differ by rounding, unless those of P are equal
    if not error:
        equal |= np.array([(rows == row).all(axis=-1) for row in rows])
    for m, values, support in _powers(rows, length):
        margin = 2 * error + 4 * m * (k + 3) * UNIT_ROUNDOFF
        limit = largest_log_ratios(values, np.ones(k, dtype=np.bool_)) + 2 * margin
        unsure: Bools = np.asarray((support & (values < SAFE_MINIMUM)).any(axis=1))
        limit[unsure[:, None] | unsure[None, :]] = np.inf
        distance = np.array([np.abs(values - row).sum(axis=1) for row in values]) / 2 + margin
        limit[equal] = distance[equal] = 0.0
        yield Block(np.array(m), limit, distance)
        if float(limit.max()) < max(1e-9, 2 * margin):
            return


def reweighted_blocks(matrix: Floats, length: int, *, pairwise: bool) -> Iterator[Block]:
    """Of the past under every distribution, from the matrix of a step."""
    k = len(matrix)
    secret = reached(np.ones(k, dtype=np.bool_), matrix)
    apart = secret[:, None] & secret[None, :] & ~np.eye(k, dtype=np.bool_)
    for m, values, support in _powers(matrix, length):
        margin = 4 * m * (k + 3) * UNIT_ROUNDOFF
        limit = largest_log_cross_ratios(np.ascontiguousarray(values.T), secret) + 2 * margin
        unsure: Bools = np.asarray((support & (values < SAFE_MINIMUM)).any(axis=0))
        limit[unsure[:, None] | unsure[None, :]] = np.inf
        limit[~apart] = 0.0
        pairwise = pairwise and not unsure.any()
        rows = reweighted_columns(values) if pairwise else None
        yield Block(np.array(m), limit, rows=rows, margin=8 * margin)
        if float(limit.max()) < max(1e-9, 2 * margin):
            return
        pairwise = pairwise and limit.max() >= _MIXED


def _powers(rows: Floats, length: int) -> Iterator[tuple[int, Floats, Bools]]:
    """P^m for m = 1, 2, 3, 4, 6, … below the length, and which entries are exactly positive."""
    known: dict[int, tuple[Floats, Bools]] = {1: (rows, rows > 0)}
    steps = 0
    for m in _grid(length):
        power, support = known.get(m - steps) or matrix_power(rows, m - steps)
        if steps:
            last = known[steps]
            power, support = np.dot(last[0], power), (last[1].astype(np.float32) @ support) > 0
        known[m], steps = (power, support), m
        yield m, np.where(support, np.maximum(power, 0.0), 0.0), support


def blocks_of_sets(rows: RowSets, length: int, *, columns: bool) -> Iterator[Block]:
    """Of distributions reweighted in any way, of chains with steps free within sets of rows.

    Entries of P^m lie between bounds, whatever chain each step follows, and so do their ratios.
    Besides, P^{m+n}(x, z) = p·h with p = P^m(x, ·) and h = P^n(·, z), whose values lie within a
    factor e^φ, so that P^{m+n}(x, z) / P^{m+n}(x', z) ≤ 1 + (e^φ − 1) d, d the total variation of p
    and p'.

    ``rows`` are distributions of the neighbour given each value, or those of a node given its
    neighbour if ``columns``.
    """
    known, now, ratios, steps = {1: rows}, rows, np.maximum(rows.log_ratios(), 0.0), 1
    for m in _grid(min(length, _FARTHEST))[1:]:
        while steps < m:
            hop = 1 if m <= _STEP_BY_STEP else m - steps
            spread = np.minimum(ratios.max(axis=(0, 1)), _FAR)
            through = np.log1p(np.expm1(spread) * known[hop].distances()[:, :, None]) * (
                1 + 8 * UNIT_ROUNDOFF
            )
            through[..., spread == _FAR] = np.inf
            now, steps = _product(known[hop], now), steps + hop
            ratios = np.minimum(np.maximum(now.log_ratios(), 0.0), through)
            known[steps] = now
        if columns:  # of y to y' given x, and of y' to y given x'
            of_y = ratios.transpose(2, 1, 0)
            both = np.array([(of_x + of_y).max(axis=(1, 2)) for of_x in ratios.transpose(2, 0, 1)])
            sets = reweighted_within(now.log_column_ratios())
        else:
            both, sets = ratios.max(axis=2) + ratios.max(axis=2).T, reweighted_within(ratios)
        clear_diagonal(both)
        yield Block(np.array(m), both * (1 + 8 * UNIT_ROUNDOFF), rows=sets)
        if both.max() < _MIXED:
            return


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
            greedy(widths, total, values, largest)
            for widths, total in zip(part.widths, part.totals, strict=True)
        ]
    return found


def forgotten(limit: Floats, alpha: float) -> Floats:
    """What passes from a rest that leaks at most α, rounded up (Lemma 6).

    It holds under any distribution of the node between.

    ``limit`` has the largest logarithms of cross ratios of each pair of values, which bound it for
    every α.
    """
    if alpha > PASSED:
        return np.minimum(limit, alpha)
    half = np.exp(np.minimum(limit, 600.0) / 2)  # √R
    with np.errstate(over="ignore", invalid="ignore"):
        through = 2 * np.log1p((half - 1) * math.expm1(alpha / 2) / (half + math.exp(alpha / 2)))
    return np.minimum(np.where(limit >= 600, alpha, through * (1 + 16 * UNIT_ROUNDOFF)), limit)


def _grid(length: int) -> list[int]:
    """Distances 1, 2, 3, 4, 6, 8, 12, … below T."""
    distances: list[int] = []
    m = 1
    while m < max(length, 2) and len(distances) < _MOST_DISTANCES:
        distances.append(m)
        m = m + 1 if m < 4 else (m * 3 // 2 if m & (m - 1) == 0 else m * 4 // 3)
    return distances
