"""Leakage of a node through its neighbours at a distance: theorem (b) of ``docs/leakage.md``.

For every distance m the entries up to there cost at most (m − 1)·c and the rest passes through P^m. With the leakage of
the rest taken as infinite this is the bound of a Markov quilt, so nothing here is above MQMExact where its quilt fits.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.coupling._clock_kernels import PASSED
from pufferflow.coupling.sides import (
    ForgettingSide,
    largest_log_cross_ratios,
    largest_log_ratios,
    reached,
)
from pufferflow.models.powers import matrix_power

MOST_DISTANCES = 40
_FARTHEST_PAST = 10**6  # as far as a verifier goes
_FORGOTTEN = 0.02  # nats: more steps only cost more


class Block(NamedTuple):
    """So many steps to a node, and what they reveal of pairs of its values at most; or several of them, stacked."""

    steps: Ints
    limit: Floats
    """Largest log ratios of entries of P^m, or log cross ratios where the neighbour's distribution is unknown."""
    distance: Floats | None
    """Total variation of the distributions at the other end, where these are known."""

    def leakages(self, rest: float, cost: float) -> Floats:
        """Bounds, rounded up, of the leakages of a node where those at the other end are at most ``rest`` − c."""
        if self.distance is None:
            passed = forgotten(self.limit, rest)
        elif rest > PASSED:
            passed = np.minimum(self.limit, rest)
        else:
            passed = np.log1p(self.distance * math.expm1(rest)) * (1 + 16 * UNIT_ROUNDOFF)
            passed = np.minimum(self.limit, passed)
        return np.asarray(passed + (self.steps - 1) * cost)


class Blocks:
    """Bounds of the leakages of pairs through one side of a node, for every node and every length.

    Parameters
    ----------
    rows : float array, shape (k, k)
        Distribution of the neighbour given each value: P, or P* for the past of a stationary chain.
    error : float
        Bound on the relative error of the entries of ``rows`` and of all its powers, beyond rounding.
    forget : bool
        Whether ``rows`` is P and the past under all distributions is meant, through cross ratios of its columns.
    farthest : int, optional
        Largest number of steps that is used.
    """

    def __init__(
        self, rows: Floats, error: float, length: int, *, forget: bool = False, farthest: int | None = None
    ) -> None:
        self._rows, self._error, self._length, self._forget = rows, error, length, forget
        self._grid = grid(length if farthest is None else min(length, farthest + 1))

    @cached_property
    def blocks(self) -> list[Block]:
        """Those of 1, 2, 3, 4, 6, … steps, as far as they reveal anything."""
        k, steps, blocks = len(self._rows), 0, list[Block]()
        known: dict[int, tuple[Floats, Bools]] = {1: (self._rows, self._rows > 0)}
        for m in self._grid:
            power, support = known.get(m - steps) or matrix_power(self._rows, m - steps)
            if steps:
                power, support = np.dot(known[steps][0], power), (known[steps][1].astype(np.float32) @ support) > 0
            known[m], steps = (power, support), m
            margin = 2 * self._error + 4 * m * (k + 3) * UNIT_ROUNDOFF
            blocks.append(self._block(m, np.where(support, np.maximum(power, 0.0), 0.0), support, margin))
            if float(blocks[-1].limit.max()) < max(1e-9, 2 * margin):
                break
        return blocks

    def _block(self, m: int, values: Floats, support: Bools, margin: float) -> Block:
        k = len(values)
        secret: Bools = reached(np.ones(k, dtype=np.bool_), self._rows) if self._forget else np.ones(k, dtype=np.bool_)
        table = np.ascontiguousarray(values.T) if self._forget else values
        limit = (largest_log_cross_ratios if self._forget else largest_log_ratios)(table, secret) + 2 * margin
        unsure: Bools = np.asarray((support & (values < SAFE_MINIMUM)).any(axis=0 if self._forget else 1))
        limit[unsure[:, None] | unsure[None, :]] = np.inf
        distance = None
        if not self._forget:
            distance = np.array([np.abs(values - row).sum(axis=1) for row in values]) / 2 + margin
        # rows of powers that look equal still differ by rounding, unless those of P are equal
        equal = ~(secret[:, None] & secret[None, :]) | np.eye(k, dtype=np.bool_)
        if not (self._forget or self._error):
            equal |= np.array([(self._rows == row).all(axis=-1) for row in self._rows])
        for bound in (limit, distance):
            if bound is not None:
                bound[equal] = 0.0
        return Block(np.array(m), limit, distance)

    @cached_property
    def _stacked(self) -> tuple[Block, Block]:
        """All of them, and what they reveal of any pair of values."""
        steps, limits = (np.array([block[i] for block in self.blocks]) for i in range(2))
        steps, distances = steps[:, None, None], None
        if not self._forget:
            distances = np.array([block.distance for block in self.blocks])
        largest = None if distances is None else distances.max(axis=(1, 2), keepdims=True)
        return Block(steps, limits, distances), Block(steps, limits.max(axis=(1, 2), keepdims=True), largest)

    def caps(self, cost: float) -> Floats:
        """Bounds of the leakages of all pairs for a mechanism with cost c, shape (k, k)."""
        (all_pairs, largest), low, alpha = self._stacked, cost, self._length * cost
        while alpha > low * (1 + 1e-5):  # an α = c + leakage that the blocks map to or below itself is one
            middle = math.sqrt(low * alpha)
            if cost + float(largest.leakages(middle, cost).min()) <= middle:
                alpha = middle
            else:
                low = middle
        best = np.minimum(all_pairs.leakages(alpha, cost).min(axis=0), (self._length - 1) * cost)
        np.fill_diagonal(best, 0.0)
        return np.asarray(best * (1 + 8 * UNIT_ROUNDOFF))


def forgotten(limit: Floats, alpha: float) -> Floats:
    """What passes from a rest that leaks at most α, under any law of the node between, rounded up (Lemma 6).

    ``limit`` has the largest logarithms of cross ratios of each pair of values, which bound it for every α.
    """
    if alpha > PASSED:
        return np.minimum(limit, alpha)
    half = np.exp(np.minimum(limit, 600.0) / 2)  # √R
    with np.errstate(over="ignore", invalid="ignore"):
        through = 2 * np.log1p((half - 1) * math.expm1(alpha / 2) / (half + math.exp(alpha / 2)))
    return np.minimum(np.where(limit >= 600, alpha, through * (1 + 16 * UNIT_ROUNDOFF)), limit)


class PastBlock(NamedTuple):
    """The node so many steps before, whatever its law is."""

    steps: int
    side: ForgettingSide
    margin: float
    """What the rounding of P^m may add to a leakage."""

    def extra(self, cost: float) -> float:
        """What is added to what ``side`` lets through: the nodes between, and rounding."""
        return (self.steps - 1) * cost * (1 + 4 * UNIT_ROUNDOFF) + self.margin


def past_blocks(matrix: Floats, length: int) -> list[PastBlock]:
    """Pasts through P^2, P^3, P^4, P^6, … as far as they forget more and more."""
    blocks: list[PastBlock] = []
    k, steps = len(matrix), 1
    power, support = matrix, matrix > 0
    last = np.inf
    for m in grid(min(length, _FARTHEST_PAST))[1:]:
        more, there = matrix_power(matrix, m - steps)
        power, support = np.dot(power, more), (support.astype(np.float32) @ there) > 0
        steps = m
        values = np.where(support, power, 0.0)
        if (values[support] < SAFE_MINIMUM).any():
            break
        side = ForgettingSide(values)
        largest = float(side.limit.max())
        if largest < 0.9 * last:
            last = largest
            blocks.append(PastBlock(m, side, 32 * m * (k + 3) * UNIT_ROUNDOFF))
        if largest < _FORGOTTEN:
            break
    return blocks


def grid(length: int) -> list[int]:
    """Distances 1, 2, 3, 4, 6, 8, 12, … below T."""
    distances: list[int] = []
    m = 1
    while m < max(length, 2) and len(distances) < MOST_DISTANCES:
        distances.append(m)
        m = m + 1 if m < 4 else (m * 3 // 2 if m & (m - 1) == 0 else m * 4 // 3)
    return distances
