"""Distances between laws on finitely many points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def max_divergence(p: ArrayLike, q: ArrayLike) -> float:
    """D∞(p‖q) = max over x with p(x) > 0 of log p(x)/q(x), in nats (Song et al., section 2).

    Parameters
    ----------
    p, q : array_like, shape (n,)
        Two laws on the same points.

    Returns
    -------
    float
        Infinite where p puts mass outside the support of q.
    """
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    inside = first > 0
    with np.errstate(divide="ignore"):
        return float(np.log(first[inside] / second[inside]).max())


def wasserstein_infinity(points: ArrayLike, p: ArrayLike, q: ArrayLike) -> float:
    """W∞ of two laws on the line: the largest gap between their quantile functions (Algorithm 1).

    Parameters
    ----------
    points : array_like, shape (n,)
        Increasing support points.
    p, q : array_like, shape (n,)
        Probabilities of the points.

    Returns
    -------
    float
        In units of ``points``. Levels of the distribution functions that agree up to rounding
        (1e-12) count as equal.
    """
    support = np.asarray(points, dtype=np.float64)
    first, second = np.cumsum(p), np.cumsum(q)
    # between two neighbouring levels both quantile functions are constant
    levels = np.union1d(first, second)
    levels = levels[np.concatenate([[True], np.diff(levels) > 1e-12])]
    middles = (np.concatenate([[0.0], levels[:-1]]) + levels) / 2
    last = len(support) - 1
    gaps = (
        support[np.minimum(np.searchsorted(first, middles), last)]
        - support[np.minimum(np.searchsorted(second, middles), last)]
    )
    return float(np.abs(gaps).max())
