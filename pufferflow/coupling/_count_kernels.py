"""Kernels of the bound from below: counts of visits under an exponential tilt, and the sets that leak most.

A side of a secret is a product K D_1 K D_2 … K D_n · end of a matrix K ≥ 0 and diagonal matrices: D_t is 1 on the
states that the query counts t entries away and e^{-c} on the others. Vectors are kept at a largest entry of 1; only
ratios of their entries are used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._jit import kernel

UNDERFLOW = 2.3e-308
"""Error of a product that leaves the normal floats, at most."""

LIFT = 2.0**900
"""What underflow takes is kept times this, as it would vanish itself."""

_TIE = 1e-13
_LEAST_GAIN = 1e-12


@kernel
def _scaled(values: Any) -> float:
    """Divide by the largest entry, which is returned; nothing where it is 0."""
    top = 0.0
    for z in range(len(values)):
        top = max(top, values[z])
    if top > 0:
        for z in range(len(values)):
            values[z] /= top
    return top


@kernel
def _multiply(rows: Any, values: Any, out: Any) -> None:
    """Fill ``out`` with Σ_y values[y] · rows[y]; the inner loop runs along memory."""
    for z in range(len(out)):
        out[z] = 0.0
    for y in range(len(values)):
        factor = values[y]
        if factor > 0:
            for z in range(len(out)):
                out[z] += factor * rows[y, z]


@kernel
def _carry(rows: Any, lost: Any, out: Any) -> None:
    """The same of errors, which may be infinite: those of states that cannot be reached stay where they are."""
    for z in range(len(out)):
        out[z] = 0.0
        for y in range(len(lost)):
            if rows[y, z] > 0:
                out[z] += lost[y] * rows[y, z]


@kernel
def _weigh(values: Any, inside: Any, low: float, out: Any) -> None:
    for z in range(len(values)):
        out[z] = values[z] if inside[z] else low * values[z]


@kernel
def _pull_back(transposed: Any, end: Any, sets: Any, low: float, weighed: Any, values: Any) -> None:
    """Fill ``values[t]`` with the product behind entry t, for t from n down to 1, each up to a factor."""
    n, k = sets.shape
    for z in range(k):
        values[n, z] = end[z]
    _scaled(values[n])
    for t in range(n - 1, 0, -1):
        _carried(transposed, sets, low, t, values, (t + 1, t), weighed)


@kernel
def _choose(first: Any, second: Any, values: Any, low: float, sets: Any, t: int) -> bool:
    """Let the set of entry t be the one that makes (first·D·values)/(second·D·values) largest; whether it changed.

    That ratio R is largest where the set holds the states whose own ratio is above R (Dinkelbach's method).
    """
    changed = False
    k = values.shape[1]
    for _ in range(k + 1):
        over, under = 0.0, 0.0
        for z in range(k):
            weight = values[t + 1, z] if sets[t, z] else low * values[t + 1, z]
            over += first[t, z] * weight
            under += second[t, z] * weight
        moved = False
        for z in range(k):
            better = first[t, z] * values[t + 1, z] * under > second[t, z] * values[t + 1, z] * over * (1 + _TIE)
            if better != sets[t, z]:
                sets[t, z] = better
                moved = True
        if not moved:
            break
        changed = True
    return changed


@kernel
def _carried(rows: Any, sets: Any, low: float, t: int, values: Any, places: Any, weighed: Any) -> None:
    """Fill row ``places[1]`` of ``values`` with Σ_y values[places[0], y] D_t[y] · rows[y], over its largest entry."""
    k = values.shape[1]
    here, there = places
    for y in range(k):
        weighed[y] = values[here, y] if sets[t, y] else low * values[here, y]
    for z in range(k):
        values[there, z] = 0.0
    for y in range(k):
        factor = weighed[y]
        if factor > 0:
            for z in range(k):
                values[there, z] += factor * rows[y, z]
    top = 0.0
    for z in range(k):
        top = max(top, values[there, z])
    if top > 0:
        for z in range(k):
            values[there, z] /= top


@kernel
def _ratio(first: Any, second: Any, values: Any) -> float:
    over, under = 0.0, 0.0
    for z in range(len(values)):
        over += first[z] * values[z]
        under += second[z] * values[z]
    return over / under if under > 0 else np.nan


@kernel
def ascend(
    law: Any, sets: Any, cost: float, pair: Any, sweeps: tuple[int, int], tables: Any, state: Any, filled: Any
) -> bool:
    """Change the sets of one entry after another as long as the two values of the secret can be told apart better.

    Where no set of a single entry can be improved no query at all is better (Theorem 10 of docs/leakage.md).
    A sweep back begins where the one there changed a set last, and the next one there where that changed one last:
    elsewhere every entry would be chosen from what it was chosen from before.

    A call does some of the sweeps, so that signals arrive between calls.

    Parameters
    ----------
    law : tuple of float arrays
        K and its transpose, shape (k, k), and what stands behind the entries, shape (k,).
    sets : bool array, shape (n, k)
        Where to start; left as the sets found.
    cost : float
        c.
    pair : pair of int
        Rows of K whose ratio is to be large.
    sweeps : tuple of int
        How often to go there and back at most, in all calls and in this one.
    tables : tuple of float arrays, shapes (n + 1, k), (n, k) and (n, k)
        What stands behind each entry, and what the two rows give there; left alone between calls.
    state : float array, shape (3,)
        Zeros at first, left alone between calls: sweeps done, the entry where the next one begins, and at last the
        logarithm of the ratio of the two entries of the product, not rounded in any direction.
    filled : tuple of float arrays
        ``apart``, shape (n,): the total variation between the tilted laws of each entry; ``message``, shape (2, k):
        what the two rows give at the last entry, its own weight included, each up to a factor.

    Returns
    -------
    bool
        Whether that was the last one.
    """
    (matrix, transposed, end), (values, first, second), (apart, message) = law, tables, filled
    n, k = sets.shape
    low = math.exp(-cost)
    weighed = np.empty(k)
    value, begin = -np.inf, int(state[1])
    if state[0] == 0:
        _pull_back(transposed, end, sets, low, weighed, values)
        for z in range(k):
            first[0, z], second[0, z] = matrix[pair[0], z], matrix[pair[1], z]
    else:
        value = state[2]
    for _ in range(sweeps[1]):
        last = -1
        for t in range(begin, n):
            if _choose(first, second, values, low, sets, t):
                last = t
            if t + 1 < n:
                _carried(matrix, sets, low, t, first, (t, t + 1), weighed)
                _carried(matrix, sets, low, t, second, (t, t + 1), weighed)
        again = False
        begin = last
        for t in range(last, -1, -1):
            if _choose(first, second, values, low, sets, t):
                begin, again = t, True
            if t > 0:
                _carried(transposed, sets, low, t, values, (t + 1, t), weighed)
        _weigh(values[1], sets[0], low, weighed)
        new = math.log(_ratio(matrix[pair[0]], matrix[pair[1]], weighed))
        state[0], state[1], state[2] = state[0] + 1, begin, new
        if state[0] >= sweeps[0] or not again or not new > value + _LEAST_GAIN * abs(new):
            break
        value = new
    else:
        return False
    for t in range(n):
        _weigh(values[t + 1], sets[t], low, weighed)
        over, under = 0.0, 0.0
        for z in range(k):
            over += first[t, z] * weighed[z]
            under += second[t, z] * weighed[z]
        apart[t] = 0.0
        for z in range(k):
            apart[t] += 0.5 * abs(first[t, z] / over - second[t, z] / under) * weighed[z]
    _weigh(first[n - 1], sets[n - 1], low, message[0])
    _weigh(second[n - 1], sets[n - 1], low, message[1])
    return True


@kernel
def profile(transposed: Any, end: Any, sets: Any, cost: float, careful: bool, values: Any, lost: Any) -> None:
    """Fill ``values`` with K D_1 K D_2 … K D_n · end, over its largest entry, and bound what underflow took.

    Parameters
    ----------
    transposed : float array, shape (k, k)
        The transpose of K.
    end : float array, shape (k,)
    sets : bool array, shape (n, k)
    cost : float
    careful : bool
        Whether to bound what underflow takes; else ``lost`` is left alone and ``values`` are logarithms.
    values : float array, shape (k,)
        Filled; relative errors are at most (k + 6) roundings for each factor, beside ``lost``.
    lost : float array, shape (k,)
        What underflow has taken from ``end`` at most, and after that from ``values``, times :data:`LIFT`.
    """
    n, k = sets.shape
    low = math.exp(-cost)
    weighed, carried, following = np.empty(k), np.empty(k), np.empty(k)
    for z in range(k):
        values[z] = end[z]
    top = _scaled(values)
    for z in range(k):
        lost[z] /= top
    for t in range(n - 1, -1, -1):
        _weigh(values, sets[t], low, weighed)
        _multiply(transposed, weighed, values)
        top = _scaled(values)
        if not careful:
            continue
        _weigh(lost, sets[t], low, carried)
        _carry(transposed, carried, following)
        if not top > 0:  # no step is possible, or underflow took all
            lost[:] = np.inf
            return
        for z in range(k):
            lost[z] = following[z] / top + 3 * k * UNDERFLOW * LIFT / min(top, 1.0)
    if not careful:
        for z in range(k):
            values[z] = math.log(values[z]) if values[z] > 0 else -np.inf


@kernel
def distances(matrix: Any, power: Any, steps: int, least: float, total: Any) -> bool:
    """Add to ``total`` the total variation between rows x and x' of powers of K, until it is below ``least`` for all.

    Parameters
    ----------
    matrix : float array, shape (k, k)
        K, whose rows are laws.
    power : float array, shape (k, k)
        The first of the powers; replaced by the one after the last.
    steps : int
        Powers at most.
    least : float
    total : float array, shape (k, k)

    Returns
    -------
    bool
        Whether it is below ``least``.
    """
    k = len(matrix)
    following = np.empty_like(power)
    for _ in range(steps):
        largest = 0.0
        for x in range(k):
            for y in range(x):
                distance = 0.0
                for z in range(k):
                    distance += abs(power[x, z] - power[y, z])
                total[x, y] += distance / 2
                total[y, x] += distance / 2
                largest = max(largest, distance / 2)
        if largest < least:
            return True
        for x in range(k):
            _multiply(matrix, power[x], following[x])
        power[:] = following
    return False


@kernel
def signs(matrix: Any, pair: Any, sets: Any) -> None:
    """Fill ``sets`` with the states that are likelier after one row of K than after the other: best as c → 0.

    Parameters
    ----------
    matrix : float array, shape (k, k)
    pair : pair of int
    sets : bool array, shape (n, k)
    """
    n, k = sets.shape
    first, second, following = matrix[pair[0]].copy(), matrix[pair[1]].copy(), np.empty(k)
    for t in range(n):
        over, under = first.sum(), second.sum()
        for z in range(k):
            sets[t, z] = first[z] * under > second[z] * over * (1 + _TIE)
        _multiply(matrix, first, following)
        _scaled(following)
        first, following = following, first
        _multiply(matrix, second, following)
        _scaled(following)
        second, following = following, second


@kernel
def gains(matrix: Any, transposed: Any, end: Any, sets: Any, cost: float, pair: Any, total: Any) -> None:
    """Add to ``total`` how much likelier each state is in the tilted laws of one row than in those of the other.

    That is the derivative of the logarithm of the ratio when the weight of a state grows at all entries alike.

    Parameters
    ----------
    matrix, transposed, end, sets, cost, pair
        As for :func:`ascend`; the sets are left alone.
    total : float array, shape (k,)
    """
    n, k = sets.shape
    low = math.exp(-cost)
    values = np.empty((n + 1, k))
    weighed = np.empty(k)
    _pull_back(transposed, end, sets, low, weighed, values)
    for row, sign in ((pair[0], 1.0), (pair[1], -1.0)):
        ahead, following = matrix[row].copy(), np.empty(k)
        for t in range(n):
            _weigh(ahead, sets[t], low, weighed)
            mass = 0.0
            for z in range(k):
                mass += weighed[z] * values[t + 1, z]
            for z in range(k):
                total[z] += sign * weighed[z] * values[t + 1, z] / mass
            _multiply(matrix, weighed, following)
            _scaled(following)
            ahead, following = following, ahead


@kernel
def farthest_windows(possible: Any, cost: float, steps: int, best: Any, back: Any, layers: tuple[int, int]) -> int:
    """Pairs of windows that differ most: values of the best ones by their last two records, and how to trace them.

    Parameters
    ----------
    possible : bool array, shape (k, k)
        Steps of positive probability.
    cost : float
        What a record in which they differ is worth.
    steps : int
        Records of a window, less one.
    best : float array, shape (k, k)
        What two values of the first record are worth, −∞ where they cannot be; at last what the best pair of windows
        is that ends in the two values.
    back : int array, shape (at most ``steps``, k, k)
        Filled with the two values before, x · k + x'; −1 where there are none.
    layers : tuple of int
        From which layer of ``back`` on, and before which one, to go on.

    Returns
    -------
    int
        Layers of ``back`` that are filled once all others repeat the last one, so that ``best`` is that of all steps;
        0 before.
    """
    k = len(possible)
    half, who, following = np.empty((k, k)), np.empty((k, k), np.int64), np.empty((k, k))
    for t in range(layers[0], layers[1]):
        for x in range(k):
            for z in range(k):
                half[x, z], who[x, z] = -np.inf, -1
                for y in range(k):
                    if possible[y, z] and best[x, y] > half[x, z]:
                        half[x, z], who[x, z] = best[x, y], y
        same = True
        for z in range(k):
            for v in range(k):
                following[z, v], back[t, z, v] = -np.inf, -1
                for x in range(k):
                    if possible[x, z] and half[x, v] > following[z, v]:
                        following[z, v], back[t, z, v] = half[x, v], x * k + who[x, v]
                if z != v:
                    following[z, v] += cost
                # at this point every step adds the same to all
                grown = following[z, v] - best[z, v]
                same &= (following[z, v] == -np.inf and best[z, v] == -np.inf) or abs(grown - cost) <= 1e-12 * cost
        for z in range(k):
            for v in range(k):
                best[z, v] = following[z, v]
        if same:
            for z in range(k):
                for v in range(k):
                    best[z, v] += cost * (steps - t - 1)
            return t + 1
    return 0
