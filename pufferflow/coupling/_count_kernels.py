"""Kernels of the bound from below: products that give the laws of counts under an exponential tilt."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._jit import kernel
from pufferflow._rounding import UNIT_ROUNDOFF

UNDERFLOW = 2.3e-308  # error of a product that leaves the normal floats, at most


@kernel
def _multiply(left: Any, right: Any, out: Any) -> float:
    """Fill ``out`` with left · right, all ≥ 0, over its largest entry, which is returned."""
    top = 0.0
    for i in range(len(left)):
        for j in range(right.shape[1]):
            out[i, j] = 0.0
        for m in range(len(right)):
            factor = left[i, m]
            if factor > 0:
                for j in range(right.shape[1]):
                    out[i, j] += factor * right[m, j]
        for j in range(right.shape[1]):
            top = max(top, out[i, j])
    for i in range(len(left)):
        for j in range(right.shape[1]):
            out[i, j] /= top
    return top


@kernel
def _copy(source: Any, target: Any) -> None:
    for i in range(len(source)):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel
def _known(values: Any, lost: float) -> bool:
    """Whether what underflow took is below the rounding of every value."""
    for i in range(len(values)):
        for j in range(values.shape[1]):
            if not values[i, j] > lost / UNIT_ROUNDOFF:
                return False
    return True


@kernel
def _change(values: Any, others: Any, states: int) -> float:
    """Largest change of a difference of logarithms."""
    low, high = np.inf, -np.inf
    for i in range(len(values)):
        for j in range(states):
            change = math.log(values[i, j] / others[i, j])
            low, high = min(low, change), max(high, change)
    return high - low


@kernel
def _tilt(matrix: Any, inside: Any, turned: bool, cost: float, tilted: Any) -> None:
    """Rows of ``matrix`` times e^cost where the state counts, up to a factor.

    Where the set turns into its complement at odd distances, on pairs of a state and a parity: the first half of them
    holds what comes right before an odd distance.
    """
    k = len(matrix)
    for y in range(k):
        counted, other = (1.0, math.exp(-cost)) if inside[y] else (math.exp(-cost), 1.0)
        for x in range(k):
            if turned:
                tilted[y, x] = tilted[k + y, k + x] = 0.0
                tilted[k + y, x] = other * matrix[y, x]
                tilted[y, k + x] = counted * matrix[y, x]
            else:
                tilted[y, x] = counted * matrix[y, x]


@kernel
def _products(
    step: Any, begin: Any, steps: Any, settled: float, states: int, values: Any, counted: Any, lost: Any
) -> None:
    """Fill ``values[m]`` with ``begin`` times the steps[m]-th power of ``step``; see :func:`count_products`."""
    n = len(step)
    power, square = step.copy(), np.empty_like(step)
    following, whole = np.empty_like(begin), np.empty_like(begin)
    for m in range(len(steps)):
        _copy(begin, values[m])
        counted[m] = 0
        lost[m] = 0.0
    # ``whole`` is what ``known`` steps give, a power of two; ``missing`` and ``blur`` are what power and whole lost
    size, known, missing = 1, 1, 2 * UNDERFLOW
    blur = 2 * n * (missing + UNDERFLOW) / _multiply(begin, power, whole)
    while True:
        for m in range(len(steps)):
            if steps[m] & size:
                lost[m] = 2 * n * (lost[m] + missing + UNDERFLOW) / _multiply(values[m], power, following)
                counted[m] += size
                _copy(following, values[m])
                if settled >= 0 and not _known(following, lost[m]):
                    _copy(whole, values[m])
                    counted[m], lost[m] = known, blur
        finished = 2 * size
        if finished > steps.max():
            break
        missing = 2 * n * (2 * missing + UNDERFLOW) / _multiply(power, power, square)
        power, square = square, power
        size = finished
        if settled < 0:
            continue
        more = 2 * n * (missing + UNDERFLOW) / _multiply(begin, power, following)
        if not _known(following, more):
            break
        change = _change(following, whole, states)
        rounding = 4 * (states + 8) * UNIT_ROUNDOFF * (size - known)
        if change > rounding:  # else the steps bring less than they cost
            _copy(following, whole)
            known, blur = size, more
        if change < max(settled, rounding):
            _multiply(whole, step, following)  # a periodic chain can look settled from one power of two to the next
            if _change(following, whole, states) < max(settled, rounding):
                break
    for m in range(len(steps)):
        if steps[m] >= finished:
            _copy(whole, values[m])
            counted[m], lost[m] = known, blur


@kernel
def count_products(matrix: Any, queries: Any, cost: float, first: Any, steps: Any, settled: float, filled: Any) -> None:
    """Rows of ``first`` times the n-th power of diag(e^(cost · 1[state in set])) · ``matrix``, for many n and sets.

    By repeated squaring: slow chains cost no more than fast ones.

    Parameters
    ----------
    matrix : float array, shape (k, k)
        P with laws in ``first``, its transpose with functions of the state.
    queries : tuple of bool arrays, shapes (queries, k) and (queries,)
        Their sets, and whether a set turns into its complement at every odd distance from the last entry, n + 1.
    first : float array, shape (rows, k)
        At least 0, at most 1.
    steps : int64 array, shape (targets,)
        The n.
    settled : float
        Fewer steps are taken where twice as many change no difference of logarithms by more, or would be beyond
        floats; below 0: never.
    filled : tuple of arrays, shapes (queries, targets, rows, k), (queries, targets) and (queries, targets)
        The products, up to a factor for each query and target, of relative error (k + 6) roundings a step; the steps
        that were taken, int64; what underflow has taken from an entry at most. Where that is no less than an entry, the
        entry is unknown; where it is infinite, underflow took all of a product and the entries are NaN.
    """
    sets, alternating = queries
    products, counted, lost = filled
    k, rows = len(matrix), len(first)
    for j in range(len(sets)):
        n = 2 * k if alternating[j] else k
        step, begin = np.empty((n, n)), np.empty((rows, n))
        values = np.empty((len(steps), rows, n))
        _tilt(matrix, sets[j], alternating[j], cost, step)
        for i in range(rows):
            for x in range(n):
                begin[i, x] = first[i, x % k]
        _products(step, begin, steps, settled, k, values, counted[j], lost[j])
        for m in range(len(steps)):
            for i in range(rows):
                for x in range(k):
                    products[j, m, i, x] = values[m, i, x]
