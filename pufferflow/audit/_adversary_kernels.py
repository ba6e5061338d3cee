"""Compiled inner loops: the largest log-ratio of the distributions of two paths through a node."""

from __future__ import annotations

import math

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.types import Bools, Floats


@kernel
def largest_ratio(
    ratios: tuple[Floats, Floats],
    chain: tuple[Floats, Floats],
    other: tuple[Floats, Floats],
    secrets: Bools,
    constant: bool,
    length: int,
    smallest: float,
) -> tuple[float, int, int, float]:
    """Maximum over nodes i, states x and paths through x at i of Σ log-ratios − log m_i(x)/m'_i(x).

    Parameters
    ----------
    ratios : tuple of float arrays, shapes (k,) and (k, k)
        Log-ratios of the initial distributions and of the transition probabilities, -∞ where a path
        cannot go.
    chain, other : tuple of float arrays, shapes (k,) and (k, k)
        Distribution of the first record and transition matrix of both, whose distributions of X_i
        are m and m'.
    secrets : bool array, shape (length, k)
        Which states count at each node; all others do not.
    constant : bool
        Whether both distributions are the same at all nodes.
    smallest : float
        An entry of m below it counts as 0, one of m' as ``smallest``.

    Returns
    -------
    value : float
    node, state : int
        Where, both from 0; -1 where there is no secret.
    size : float
        Largest modulus of a sum of log-ratios, infinities apart.
    """
    start, steps = ratios
    (own_start, matrix), (other_start, other_matrix) = chain, other
    k = len(start)
    after = np.zeros((length, k))
    size = 0.0
    for i in range(length - 2, -1, -1):
        for x in range(k):
            most = -np.inf
            for y in range(k):
                most = max(most, steps[x, y] + after[i + 1, y])
            after[i, x] = most
            if abs(most) < 1e90:
                size = max(size, abs(most))
    before, other_before = start.copy(), np.empty(k)
    m, n = own_start.copy(), other_start.copy()
    best, node, state = -np.inf, -1, -1
    for i in range(length):
        if i > 0:
            for y in range(k):
                most = -np.inf
                for x in range(k):
                    most = max(most, before[x] + steps[x, y])
                other_before[y] = most
            before, other_before = other_before, before
            if not constant:
                m, n = np.dot(m, matrix), np.dot(n, other_matrix)
        for x in range(k):
            if abs(before[x]) < 1e90:
                size = max(size, abs(before[x]))
            if secrets[i, x]:
                own = math.log(m[x]) if m[x] >= smallest else -np.inf
                value = before[x] + after[i, x] + math.log(max(n[x], smallest)) - own
                if value > best:
                    best, node, state = value, i, x
    return best, node, state, size
