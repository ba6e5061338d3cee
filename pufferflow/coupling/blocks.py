"""Leakage of a node through its neighbours at a distance: theorem (b) of ``docs/leakage.md``.

For every distance m the entries up to there cost at most (m − 1)·c and the rest passes through P^m. With the leakage of
the rest taken as infinite this is the bound of a Markov quilt, so nothing here is above MQMExact where its quilt fits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling._set_kernels import set_leakages
from pufferflow.coupling.sides import largest_log_cross_ratios, largest_log_ratios, portions, reached

MOST_DISTANCES = 40
_LARGEST = 500.0  # leakages above it are not passed through P^m


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
    """

    def __init__(self, rows: Floats, error: float, length: int, *, forget: bool = False) -> None:
        self._forget = forget
        self._length = length
        k = len(rows)
        self._secret: Bools = reached(np.ones(k, dtype=np.bool_), rows) if forget else np.ones(k, dtype=np.bool_)
        # pairs that are told apart at no distance
        self._alike = ~(self._secret[:, None] & self._secret[None, :]) | np.eye(k, dtype=np.bool_)
        if not (forget or error):
            self._alike |= np.array([(rows == row).all(axis=-1) for row in rows])
        self._distances: list[_Distance] = []
        steps, power, support = 0, np.eye(k), np.eye(k, dtype=np.bool_)
        known = {1: (rows, rows > 0)}
        for m in _grid(length):
            power, support = known.get(m - steps) or _power(rows, m - steps)
            if steps:
                last = known[steps]
                power, support = np.dot(last[0], power), (last[1].astype(np.float32) @ support) > 0
            known[m] = power, support
            steps = m
            margin = 2 * error + 4 * m * (k + 3) * UNIT_ROUNDOFF
            self._distances.append(self._at(m, power, support, margin))
            if float(self._distances[-1].limit.max()) < max(1e-9, 2 * margin):
                break

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

    def _through(self, d: _Distance, alpha: float, cost: float) -> Floats:
        """(m − 1)·c plus what P^m lets through of a rest that leaks at most α."""
        out = np.empty_like(d.limit)
        if alpha > _LARGEST:
            out = np.minimum(d.limit, alpha)
        elif self._forget:
            half = np.exp(np.minimum(d.limit, 600.0) / 2)  # √R
            with np.errstate(over="ignore", invalid="ignore"):
                through = 2 * np.log1p((half - 1) * math.expm1(alpha / 2) / (half + math.exp(alpha / 2)))
            out = np.where(d.limit >= 600, alpha, through * (1 + 16 * UNIT_ROUNDOFF))
        else:
            k = len(out)
            for pairs in portions(k, 4 * k):
                set_leakages(d.rows, self._secret, math.expm1(alpha), out, *pairs)
            out = np.where(d.limit > 0, np.minimum(out * (1 + 1e-13) + 2 * d.margin, alpha), 0.0)
        return np.asarray(np.minimum(out, d.limit) + (d.steps - 1) * cost)


def _grid(length: int) -> list[int]:
    """Distances 1, 2, 3, 4, 6, 8, 12, … below T."""
    distances: list[int] = []
    m = 1
    while m < max(length, 2) and len(distances) < MOST_DISTANCES:
        distances.append(m)
        m = m + 1 if m < 4 else (m * 3 // 2 if m & (m - 1) == 0 else m * 4 // 3)
    return distances


def _power(rows: Floats, n: int) -> tuple[Floats, Bools]:
    values, support = rows, rows > 0
    result: tuple[Floats, Bools] | None = None
    while n:
        if n & 1:
            result = (
                (values, support)
                if result is None
                else (np.dot(result[0], values), (result[1].astype(np.float32) @ support) > 0)
            )
        n >>= 1
        if n:
            values, support = np.dot(values, values), (support.astype(np.float32) @ support) > 0
    assert result is not None
    return result
