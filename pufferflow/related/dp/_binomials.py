"""Binomial laws: exact ones, and where large ones have their mass."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, comb, floor, sqrt

import numpy as np
from numpy.typing import NDArray

_NEGLECTED = 30.0
"""−ln of the probability that may be left out at each end of a law."""


def binomial_law(trials: int, probability: Fraction) -> list[Fraction]:
    """Exact probabilities of 0, 1, …, ``trials`` successes."""
    up, down = probability.numerator, probability.denominator - probability.numerator
    whole = probability.denominator**trials
    return [Fraction(comb(trials, x) * up**x * down ** (trials - x), whole) for x in range(trials + 1)]


def window(trials: int, probability: float) -> tuple[int, int]:
    """First count and the one after the last outside of which a binomial law has almost no mass (Bernstein)."""
    mean, variance = trials * probability, trials * probability * (1 - probability)
    away = _NEGLECTED / 3 + sqrt(_NEGLECTED**2 / 9 + 2 * variance * _NEGLECTED) if variance else 0
    return max(0, floor(mean - away)), min(trials, ceil(mean + away)) + 1


def window_law(trials: int, probability: float) -> NDArray[np.float64]:
    """Probabilities of the counts in :func:`window`, from the ratios of neighbouring ones."""
    low, high = window(trials, probability)
    if probability in (0, 1):
        return np.asarray(np.arange(low, high) == trials * probability, np.float64)
    counts = np.arange(low, high - 1, dtype=np.float64)
    logs = np.cumsum(np.log((trials - counts) / (counts + 1)) + np.log(probability) - np.log1p(-probability))
    logs = np.concatenate([[0.0], logs])
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), np.float64)


def sum_window(first: int, p: float, second: int, q: float) -> tuple[int, int]:
    """The same of the sum of a binomial(first, p) and a binomial(second, q) count."""
    (low, high), (other_low, other_high) = window(first, p), window(second, q)
    return low + other_low, high + other_high - 1


def sum_law(first: int, p: float, second: int, q: float) -> NDArray[np.float64]:
    """Probabilities of the counts in :func:`sum_window`."""
    return np.asarray(np.convolve(window_law(first, p), window_law(second, q)), np.float64)
