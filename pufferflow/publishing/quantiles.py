"""Quantiles of values, read off a noisy histogram: they cost nothing more.

Of a cell of n records, n public, let C_j be how many are in the first j of k bins, and Ĉ_j that with noise: the sum of
the first j noisy counts, or n less the sum of the others, whichever has fewer. The bin of the p-quantile is the first
whose C_j is at least pn. That bin is left out of the interval only where Ĉ_j + h_j < pn or Ĉ_{j−1} − h_{j−1} ≥ pn, each
with probability at most 2.5 % if h_j is a bound of the sum of the noise that is passed so rarely. Chernoff's bound is
one: P(Z_1 + … + Z_m ≥ h) ≤ e^(−th) E[e^(tZ)]^m for every t.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pufferflow._checks import check_finite, check_list
from pufferflow.errors import ParameterError

if TYPE_CHECKING:
    from pufferflow.publishing.released import NoisyTable

TAIL = 0.025


@cache
def sum_bound(scale: float, terms: int, tail: float = TAIL) -> float:
    """What the sum of so many discrete Laplace variables exceeds with probability at most ``tail``; never too small."""
    if not terms:
        return 0.0
    t = np.linspace(0.001, 0.999, 999) / scale
    p = math.exp(-1 / scale)
    # E[e^(tZ)] = (1 − p)²/((1 − pe^t)(1 − pe^−t)), for t < 1/s
    log_moment = 2 * math.log(-math.expm1(-1 / scale)) - np.log(-np.expm1(t - 1 / scale)) - np.log1p(-p * np.exp(-t))
    return float(np.min((terms * log_moment - math.log(tail)) / t))


def quantile_rows(table: NoisyTable, edges: Sequence[float], wanted: Sequence[float]) -> Iterator[dict[str, Any]]:
    """One row a cell and a quantile: where it lies, and the 95 % interval; an end that no bin bounds is empty."""
    k = len(table.columns)
    terms = np.minimum(np.arange(k + 1), np.arange(k, -1, -1))
    h = np.array([sum_bound(table.noise_scale, int(m)) for m in terms])
    ends = [math.nan, *edges, math.nan]
    for cell, size, noisy in zip(table.cells, table.sizes, table.by_cell, strict=True):
        if not size:
            continue
        below = np.concatenate(([0], np.cumsum(noisy)))
        above = size - np.concatenate((np.cumsum(noisy[::-1])[::-1], [0]))
        cumulated = np.where(np.arange(k + 1) <= k // 2, below, above).astype(np.float64)
        growing = np.clip(np.maximum.accumulate(cumulated), 0, size)
        growing[-1] = size
        for p in wanted:
            possible = [j for j in range(k) if cumulated[j + 1] + h[j + 1] >= p * size > cumulated[j] - h[j]]
            value = _interpolated(growing, ends, p * size)
            low, high = (ends[possible[0]], ends[possible[-1] + 1]) if possible else (math.nan, math.nan)
            yield {
                "statistic": "quantile",
                "by": table.statistic.by,
                "cell": cell,
                "bin": f"{p:g}",
                "size": size,
                "value": value,
                "low_95": low,
                "high_95": high,
            }


def check_quantiles(wanted: Sequence[float]) -> tuple[float, ...]:
    """Return which quantiles are wanted; raise :class:`ParameterError` unless all lie between 0 and 1."""
    probabilities = tuple(check_finite(p, "a quantile") for p in check_list(wanted, "quantiles"))
    if not all(0 < p < 1 for p in probabilities):
        raise ParameterError("quantiles must lie between 0 and 1, for example 0.5")
    return probabilities


def _interpolated(growing: Any, ends: Sequence[float], at: float) -> float:
    """Where a growing line through the cumulated counts reaches ``at``; of an open bin the end that it has."""
    j = int(np.argmax(growing[1:] >= at))
    (low, high), (first, last) = list(pairwise(ends))[j], (growing[j], growing[j + 1])
    if math.isnan(low) or math.isnan(high):
        return high if math.isnan(low) else low
    return low + (high - low) * ((at - first) / (last - first) if last > first else 1.0)
