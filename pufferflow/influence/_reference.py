"""A plain twin of the fast search, in numpy: the yardstick of the benchmark."""

from __future__ import annotations

import numpy as np

from pufferflow._types import Floats


def tabulated_noise_scale(matrix: Floats, law: Floats, length: int, epsilon: float) -> float:
    """σ of Algorithm 3 for a stationary start, with plain numpy: every power, every quilt of the middle node.

    P is positive and ``length`` is long enough for a two-sided quilt to decide.

    Parameters
    ----------
    matrix : float array, shape (k, k)
    law : float array, shape (k,)
        Stationary distribution.
    """
    k = len(matrix)
    first = np.log(law[None, :] / law[:, None]).ravel()
    forward: list[Floats] = []
    backward: list[Floats] = []
    power = np.eye(k)
    best = length / epsilon
    with np.errstate(divide="ignore"):
        while 2 * len(forward) < length and len(forward) < epsilon * best:
            power = power @ matrix
            logs = np.log(power)
            forward.append(_largest_differences(logs).ravel())
            backward.append(_largest_differences(logs.T).ravel() + first)
            e = float((forward[-1] + backward[-1]).max())
            if e < epsilon:
                best = min(best, (2 * len(forward) - 1) / (epsilon - e))
    right = np.array(forward)
    distances = np.arange(1, len(forward) + 1)
    for a, left in enumerate(backward, start=1):
        e = (right + left).max(axis=1)
        useful = e < epsilon
        if useful.any():
            best = min(best, float(((a + distances[useful] - 1) / (epsilon - e[useful])).min()))
    return best


def _largest_differences(logs: Floats) -> Floats:
    """Max over z of logs[x, z] − logs[x', z], shape (k, k), −∞ − −∞ left out."""
    with np.errstate(invalid="ignore"):
        return np.array([np.nanmax(row[None, :] - logs, axis=1) for row in logs])
