"""Leakage of a node through its neighbours at a distance: theorem (b) of ``docs/leakage.md``.

For every distance m the entries up to there cost at most (m − 1)·c and the rest passes through P^m. With the leakage of
the rest taken as infinite this is the bound of a Markov quilt, so nothing here is above MQMExact where its quilt fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pufferflow._util.jit import constant
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.coupling._clock_kernels import PASSED
from pufferflow.coupling._set_kernels import set_leakages, sets_leak
from pufferflow.coupling.sides import (
    ForgettingSide,
    largest_log_cross_ratios,
    largest_log_ratios,
    portions,
    reached,
)
from pufferflow.models.powers import matrix_power

MOST_DISTANCES = 40
_FARTHEST_PAST = 10**6  # as far as a verifier goes
_FORGOTTEN = 0.02  # nats: more steps only cost more


class _Distance(NamedTuple):
    steps: int
    rows: Floats
    limit: Floats  # of the leakages of pairs, for a rest of any leakage
    margin: float


class Blocks:
    """Bounds of the leakages of pairs through one side of a node, for every node and every length.

    Parameters
    ----------
    rows : float array, shape (k, k)
        Law of the neighbour given each value: P, or P* for the past of a stationary chain.
    error : float
        Bound on the relative error of the entries of ``rows`` and of all its powers, beyond rounding.
    forget : bool
        Whether ``rows`` is P and the past under all laws is meant, through cross ratios of its columns.
    farthest : int, optional
        Largest distance that is used.
    """

    def __init__(
        self, rows: Floats, error: float, length: int, *, forget: bool = False, farthest: int | None = None
    ) -> None:
        self._forget = forget
        self._length = length
        k = len(rows)
        self._secret: Bools = reached(np.ones(k, dtype=np.bool_), rows) if forget else np.ones(k, dtype=np.bool_)
        # pairs that are told apart at no distance
        self._alike = ~(self._secret[:, None] & self._secret[None, :]) | np.eye(k, dtype=np.bool_)
        if not (forget or error):
            self._alike |= np.array([(rows == row).all(axis=-1) for row in rows])
        self._rows, self._error = rows, error
        self._grid = grid(length if farthest is None else min(length, farthest + 1))
        self._found: list[_Distance] = []
        self._others = self._farther()

    @property
    def _distances(self) -> Iterator[_Distance]:
        """All distances that are used, the nearest first, each worked out when it is asked for the first time."""
        for i in range(len(self._grid)):
            if i == len(self._found):
                following = next(self._others, None)
                if following is None:
                    return
                self._found.append(following)
            yield self._found[i]

    def _farther(self) -> Iterator[_Distance]:
        k, steps = len(self._rows), 0
        known = {1: (self._rows, self._rows > 0)}
        for m in self._grid:
            power, support = known.get(m - steps) or matrix_power(self._rows, m - steps)
            if steps:
                last = known[steps]
                power, support = np.dot(last[0], power), (last[1].astype(np.float32) @ support) > 0
            known[m] = power, support
            steps = m
            margin = 2 * self._error + 4 * m * (k + 3) * UNIT_ROUNDOFF
            distance = self._at(m, power, support, margin)
            yield distance
            if float(distance.limit.max()) < max(1e-9, 2 * margin):
                return

    def _at(self, m: int, power: Floats, support: Bools, margin: float) -> _Distance:
        values = np.where(support, np.maximum(power, 0.0), 0.0)
        table = values.T if self._forget else values
        ratios = largest_log_cross_ratios if self._forget else largest_log_ratios
        limit = ratios(np.ascontiguousarray(table), self._secret)
        unsure: Bools = np.asarray((support & (values < SAFE_MINIMUM)).any(axis=0 if self._forget else 1))
        limit[unsure[:, None] | unsure[None, :]] = np.inf
        # rows of powers that look alike still differ by rounding, unless those of P are alike
        return _Distance(m, values, np.where(self._alike, 0.0, limit + 2 * margin), margin)

    def caps(self, cost: float) -> Floats:
        """Bounds of the leakages of all pairs for a mechanism with cost c, shape (k, k)."""
        near = [d for d in self._distances if d.steps <= self._length]
        # α = c + leakage; every iterate from a valid one is valid
        alpha = self._length * cost
        for d in near:
            alpha = min(alpha, d.steps * cost + float(d.limit.max()))
        while True:
            before = alpha
            useful = [d for d in near if (d.steps - 1) * cost < alpha]
            caps = [self._through(d, alpha, cost) for d in useful]
            best = np.minimum.reduce(caps) if caps else np.full_like(near[0].limit, alpha - cost)
            alpha = min(alpha, cost + float(best.max()))
            if alpha > before * (1 - 1e-2):
                break
            # go on with the distance that does most before all are asked again
            lowest = useful[min(range(len(caps)), key=lambda i: float(caps[i].max()))]
            jump, last = 1.0, math.inf
            while alpha < last * (1 - 1e-3):
                # a smaller trial that is a post-fixed point is valid as well
                trial = alpha - jump * (last - alpha) if last < math.inf else alpha
                last = alpha
                image = cost + float(self._through(lowest, trial, cost).max()) if trial > cost else math.inf
                if image <= trial:
                    alpha, jump = min(alpha, image), 2 * jump
                else:
                    alpha, jump = min(alpha, cost + float(self._through(lowest, alpha, cost).max())), 1.0
        bound = np.minimum(best, (self._length - 1) * cost)
        np.fill_diagonal(bound, 0.0)
        return np.asarray(bound * (1 + 8 * UNIT_ROUNDOFF))

    def bind(self, cost: float, leakages: Floats) -> bool:
        """Whether :meth:`caps` can be below ``leakages``, bounds for every node, of a pair of values.

        They are as valid an α to start from as any, and what passes through P^m grows with α: if nothing that they
        let through is below them, they are no larger than the caps.
        """
        largest = float(leakages.max())
        for d in self._distances:
            beyond = leakages - (d.steps - 1) * cost
            if d.steps > self._length or not (beyond > 0).any():
                break
            if (beyond > d.limit).any():
                return True
            if self._forget or cost + largest > PASSED:
                if (self._through(d, cost + largest, cost) < leakages).any():
                    return True
                continue
            k, growth = len(leakages), math.expm1(cost + largest)
            beyond[leakages >= largest * (1 - 1e-9)] *= 1 - 1e-9  # α itself, up to rounding
            if not all(sets_leak(constant(d.rows), self._secret, growth, beyond, *part) for part in portions(k, 4 * k)):
                return True
        return False

    def _through(self, d: _Distance, alpha: float, cost: float) -> Floats:
        """(m − 1)·c plus what P^m lets through of a rest that leaks at most α."""
        out = np.empty_like(d.limit)
        if self._forget or alpha > PASSED:
            out = forgotten(d.limit, alpha)
        else:
            k = len(out)
            for pairs in portions(k, 4 * k):
                set_leakages(constant(d.rows), self._secret, math.expm1(alpha), out, *pairs)
            out = np.where(d.limit > 0, np.minimum(out * (1 + 1e-13) + 2 * d.margin, alpha), 0.0)
        return np.asarray(np.minimum(out, d.limit) + (d.steps - 1) * cost)


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
