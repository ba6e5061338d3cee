"""Leakage of a node through its neighbours at a distance: theorem (b) of ``docs/leakage.md``.

For every distance m the entries up to there cost at most (m − 1)·c and the rest passes through P^m.
With infinite leakage of the rest this is the bound of a Markov quilt, so no bound here is above
MQMExact if its quilt fits.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.distribution_sets import ReweightedRows, conditional, largest_log_ratios
from pufferflow.models.bounded import RowSets, between, greedy
from pufferflow.models.powers import followed

_LARGE = 500.0
"""Larger leakages and log ratios are not passed through a product of matrices."""
_DISTANCES = [1, *(m << j for j in range(20) for m in (2, 3))]
"""Steps of blocks: 1, 2, 3, 4, 6, 8, 12, …; each is the sum of two before it."""
_FARTHEST, _STEP_BY_STEP = 10**5, 64
"""Largest number of steps of products of row sets, and number of consecutive ones."""
_MIXED = 0.02  # nats: more steps only cost more


class Block(NamedTuple):
    """Bounds of the leakage of a node's pairs of values through some steps; or a stack of them."""

    steps: NDArray[np.intp]
    limit: Floats
    """Largest log ratios of entries of P^m; cross ratios if the distribution is unknown."""
    distance: Floats | None = None
    """Total variation of the distributions at the other end, if these are known."""
    rows: ReweightedRows | None = None
    """Leakages of pairs of values at the other end."""

    def leakages(self, rest: float, cost: float) -> Floats:
        """Return bounds, rounded up, of a node's leakages if the others are ≤ ``rest`` − c.

        If the distribution of the node between is unknown, Lemma 6 with the largest cross ratios.
        """
        passed = np.full_like(self.limit, rest)
        if rest <= _LARGE and self.distance is not None:
            passed = np.log1p(self.distance * math.expm1(rest))
        elif rest <= _LARGE:
            more = np.expm1(np.minimum(self.limit, _LARGE) / 2)  # √R − 1
            passed = 2 * np.log1p(more * math.expm1(rest / 2) / (more + 1 + math.exp(rest / 2)))
            passed[self.limit >= _LARGE] = rest
        passed = np.minimum(self.limit, passed * (1 + 16 * UNIT_ROUNDOFF))
        return np.asarray(passed + (self.steps - 1) * cost)


class Blocks:
    """Bounds of the leakages of pairs through one side of a node, for all nodes and lengths.

    Parameters
    ----------
    blocks : iterable of Block
        Blocks of one kind, the nearest first.
    """

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.pairwise: list[Block] = []
        """Blocks that bound pairs of values at the other end, as long as their mixing improves."""
        self.stacked: Block | None = None
        found, last = list(blocks), np.inf
        for block in found:
            largest = math.inf if block.rows is None else float(block.rows.limit.max())
            if largest < 0.9 * last:
                last = largest
                self.pairwise += [block] * int(block.steps > 1)
        if found:
            steps, limits, distances, *_ = map(np.array, zip(*found, strict=True))
            known = None if found[0].distance is None else distances
            self.stacked = Block(steps[:, None, None], limits, known)

    def caps(self, cap: Floats, cost: float, costs: Floats) -> Floats:
        """Return bounds of all leakages for a mechanism with cost c, (k, k), at most ``cap``."""
        if self.stacked is None or not cost:
            return cap
        steps, limits, distances, *_ = self.stacked
        worst = Block(steps, limits.max(axis=(1, 2), keepdims=True))
        if distances is not None:
            worst = worst._replace(distance=distances.max(axis=(1, 2), keepdims=True))
        low, alpha = cost, cost + float(cap.max())
        # an α = c + leakage that the blocks map to at most itself is a bound
        while alpha > low * (1 + 1e-5):
            middle = math.sqrt(low * alpha)
            bounds = cost + float(worst.leakages(middle, cost).min()) <= middle
            low, alpha = (low, middle) if bounds else (middle, alpha)
        image = self.stacked.leakages(alpha, cost).min(axis=0)
        cap, before = np.minimum(cap, image * (1 + 8 * UNIT_ROUNDOFF)), math.inf
        while self.pairwise and cap.sum() < before * (1 - 3e-4):
            before = float(cap.sum())
            for block in self.pairwise:
                assert block.rows is not None
                if (between := (block.steps - 1) * cost) < cap.max():
                    image = between + block.rows.bound(cap + costs)
                    cap = np.fmin(cap, image * (1 + 8 * UNIT_ROUNDOFF))
        return cap


def block(
    steps: int,
    power: tuple[Floats, Bools],
    distinct: Bools,
    error: float | None,
    *,
    pairwise: bool = False,
) -> Block:
    """Return the block of the product of the matrices of some steps, with its exact support.

    Its rows are distributions of the node at that distance, with a relative ``error``; or, if
    that is None, weights of its values, which may be reweighted in any way. Pairs of values that
    are not ``distinct`` have leakage 0. Entries that underflow have no bound.
    """
    values, support = power
    rows = np.where(support, np.maximum(values, 0.0), 0.0)
    small: Bools = np.asarray((support & (rows < SAFE_MINIMUM)).any(axis=1))
    unsure: Bools = small[:, None] | small
    margin = 2 * (error or 0.0) + 4 * steps * (len(rows) + 3) * UNIT_ROUNDOFF
    largest = largest_log_ratios(conditional(rows) if error is None else rows, distinct)
    largest = largest + largest.T if error is None else largest  # of cross ratios
    limit = np.where(distinct, np.where(unsure, np.inf, largest + 2 * margin), 0.0)
    if error is not None:
        distance = np.array([np.abs(rows - row).sum(axis=1) for row in rows]) / 2 + margin
        return Block(np.array(steps), limit, np.where(distinct, distance, 0.0))
    if not pairwise:
        return Block(np.array(steps), limit)
    log_ratios = np.where(unsure[:, :, None], np.inf, RowSets(rows, ()).log_ratios())
    return Block(np.array(steps), limit, rows=ReweightedRows(log_ratios + 2 * margin))


def blocks_of(
    rows: Floats, error: float | None, length: int, *, pairwise: bool = False
) -> Iterator[Block]:
    """Yield blocks of 1, 2, 3, 4, 6, … steps below the length with these rows, as :func:`block`.

    A bound on the relative error of P* holds for all its powers.
    """
    there: Bools = np.asarray(rows.any(axis=1))
    distinct: Bools = there[:, None] & there & ~np.eye(len(rows), dtype=np.bool_)
    # equal rows of powers may differ by rounding, unless those of P are equal
    if error == 0:
        distinct &= np.array([(rows != row).any(axis=-1) for row in rows])
    known, steps = {1: (rows, rows > 0)}, 0
    for m in _grid(length):
        if steps:
            known[m] = times(known[steps], known[m - steps])
        steps, found = m, block(m, known[m], distinct, error, pairwise=pairwise)
        yield found
        rounding = 4 * (error or 0.0) + 8 * m * (len(rows) + 3) * UNIT_ROUNDOFF
        if float(found.limit.max()) < max(1e-9, rounding):
            return
        pairwise = pairwise and found.limit.max() >= _MIXED


def times(one: tuple[Floats, Bools], other: tuple[Floats, Bools]) -> tuple[Floats, Bools]:
    """Return the product of two matrices, and the mask of its positive entries."""
    return np.dot(one[0], other[0]), followed(one[1], other[1], 1)


def blocks_of_sets(rows: RowSets, length: int) -> Iterator[tuple[Block, Block]]:
    """Yield blocks forward and backward of chains whose steps vary within row sets.

    Entries of P^m lie between bounds for all such chains, and so do their ratios. Besides,
    P^{m+n}(x, z) = p·h with p = P^m(x, ·) and h = P^n(·, z), whose values lie within a
    factor e^φ, so that P^{m+n}(x, z) / P^{m+n}(x', z) ≤ 1 + (e^φ − 1) d, d the total variation of p
    and p'. Distributions at the other end may be reweighted.
    """
    known, now, ratios, steps = {1: rows}, rows, np.maximum(rows.log_ratios(), 0.0), 1
    for m in _grid(min(length, _FARTHEST))[1:]:
        while steps < m:
            hop = 1 if m <= _STEP_BY_STEP else m - steps
            spread = np.minimum(ratios.max(axis=(0, 1)), _LARGE)
            through = np.log1p(np.expm1(spread) * known[hop].distances[:, :, None]) * (
                1 + 8 * UNIT_ROUNDOFF
            )
            through[..., spread == _LARGE] = np.inf
            now, steps = _product(known[hop], now), steps + hop
            ratios = np.minimum(np.maximum(now.log_ratios(), 0.0), through)
            known[steps] = now
        largest, of_y = ratios.max(axis=2), ratios.transpose(2, 1, 0)
        # backward ratios of y to y' given x, and of y' to y given x'
        back = np.array([(of_x + of_y).max(axis=(1, 2)) for of_x in ratios.transpose(2, 0, 1)])
        limits = np.where(np.eye(rows.states), 0.0, [largest + largest.T, back])
        limits *= 1 + 8 * UNIT_ROUNDOFF
        ahead, behind = ReweightedRows(ratios), ReweightedRows(now.log_ratios(columns=True))
        here = np.array(m)
        yield Block(here, limits[0], rows=ahead), Block(here, limits[1], rows=behind)
        if limits.max() < _MIXED:
            return


def _product(first: RowSets, second: RowSets) -> RowSets:
    """Return bounds of the rows of a product of two matrices, rounded outwards."""
    rounding = 16 * (first.states + 8) * UNIT_ROUNDOFF
    low, high = second.base, second.high
    least = _extreme(first, low, largest=False) * (1 - rounding)
    least = np.where(least >= SAFE_MINIMUM, least, 0.0)
    possible = followed(first.high > 0, high > 0, 1)
    most = np.clip(_extreme(first, high, largest=True) * (1 + rounding), SAFE_MINIMUM, 1.0)
    most = np.maximum(np.where(possible, most, 0.0), least)
    return between(least, most)


def _extreme(rows: RowSets, values: Floats, *, largest: bool) -> Floats:
    """Return the largest or smallest p·h of each state's rows p and the columns h of ``values``."""
    parts = (greedy(*part, values[None], largest=largest) for part in rows.parts)
    return np.asarray(sum(parts, rows.base @ values))


def _grid(length: int) -> list[int]:
    """Return the distances below T."""
    return [m for m in _DISTANCES if m < max(length, 2)]
