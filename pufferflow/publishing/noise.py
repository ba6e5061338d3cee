"""Noise for counts: the two-sided geometric ("discrete Laplace") law, exactly drawn.

P(Z = z) = (1 − p)/(1 + p) · p^|z| with p = exp(−1/s), s the scale. On integers there are no low bits of a
floating-point number that could tell the count behind the noise (Mironov, CCS 2012).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pufferflow._noise import discrete_laplace, vector_laplace
from pufferflow.errors import ParameterError

SLACK = Fraction(1, 2**24)
"""By how much (relatively) the noise exceeds what is proved, so that a budget found to 1e-10 suffices."""

DIGITS = 11
"""Bits of a scale: it leaves with every release and is a function of Θ, so it tells no more of it than 11 bits and a
power of 2, for at most a thousandth more noise."""

LARGEST = 2.0**60
"""Scales beyond it drown every count; the sampler's integers have 64 bits."""


def count_scale(scale: float, lipschitz: Fraction | int = 2) -> float:
    """Scale of the noise on each integer of a query whose mechanism asks for ``scale``, rounded up.

    One record counts in one state: another state of it changes two counts by 1, so a histogram is 2-Lipschitz in
    L1 norm and gets twice the scale of a 1-Lipschitz query; others have another constant L. The result has 11 bits,
    which the sampler uses exactly, and is larger than L·scale by a factor between 1 + 2^−24 and (1 + 2^−24)(1 + 2^−10):
    always more noise, never less.

    Raises ParameterError: the noise would be larger than any count.
    """
    wanted = lipschitz * Fraction(scale) * (1 + SLACK)
    unit = _unit(wanted)
    rounded = float(-(-wanted // unit) * unit)
    if rounded > LARGEST:
        raise ParameterError(f"the noise would have scale {rounded:.3g}, which hides every count; raise epsilon")
    return rounded


def joint_scale(parts: Sequence[tuple[int, float]]) -> float:
    """Scale of a 1-Lipschitz query that noise on several is as good as, rounded down: 1/Σ L/s of their (L, s)."""
    exact = 1 / sum((lipschitz / Fraction(scale) for lipschitz, scale in parts), Fraction(0))
    rounded = float(exact)
    return rounded if Fraction(rounded) <= exact else math.nextafter(rounded, 0.0)


def largest_scale(noise: float) -> float:
    """Largest ``scale`` whose :func:`count_scale` is at most ``noise``, rounded down."""
    wanted = Fraction(noise)
    rounded = wanted // _unit(wanted) * _unit(wanted)
    return math.nextafter(float(rounded / (2 * (1 + SLACK))), 0.0)


def _unit(scale: Fraction) -> Fraction:
    """Distance between two scales of :data:`DIGITS` bits near this one."""
    return Fraction(2) ** (math.frexp(float(scale))[1] - DIGITS)


def add_noise(counts: Sequence[int], scale: float) -> list[int]:
    """Add independent noise to integer counts: OpenDP's exact sampler, from the operating system's randomness.

    Sums beyond 64 bits are cut to the largest integer, which is post-processing.
    """
    noisy: list[int] = vector_laplace(scale, whole=True)([int(count) for count in counts])
    return noisy


def add_seeded_noise(counts: Sequence[int], scale: float, rng: np.random.Generator) -> list[int]:
    """Add noise of the same law from a seed that anybody may know: for planning, **not private**."""
    inverse = -math.expm1(-1 / scale)
    size = len(counts)
    if inverse < 1e-15:  # the geometric sampler is out of range there; the continuous law is as good
        noise = np.rint(rng.laplace(0.0, scale, size)).astype(np.int64)
    else:
        noise = rng.geometric(inverse, size) - rng.geometric(inverse, size)
    return [int(count) + int(z) for count, z in zip(counts, noise, strict=True)]


def smallest(suffices: Callable[[int], bool], low: int, step: int = 1) -> int:
    """Smallest integer from ``low`` on that suffices, as all larger ones do; tried first in steps that double."""
    if suffices(low):
        return low
    while not suffices(low + step):
        low, step = low + step, 2 * step
    while step > 1:
        half = step // 2
        if suffices(low + half):
            step = half
        else:
            low, step = low + half, step - half
    return low + 1


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law of the noise on one count, and of its sums.

    Attributes
    ----------
    scale : float
        s > 0.
    """

    scale: float

    @property
    def p(self) -> float:
        """Ratio of the probabilities of two neighbouring integers."""
        return math.exp(-1 / self.scale)

    @property
    def mean_absolute(self) -> float:
        """E|Z| = 2p/(1 − p²)."""
        return 1 / math.sinh(1 / self.scale) if self.scale > 2e-3 else 0.0

    def probability(self, values: NDArray[np.int64]) -> NDArray[np.float64]:
        """P(Z = z) of each value."""
        return discrete_laplace(values, self.scale)

    def tail(self, h: float) -> float:
        """P(|Z| > h), h ≥ 0."""
        return 2 * math.exp(-(math.floor(h) + 1) / self.scale) / (1 + self.p)

    def quantile(self, confidence: float, bins: int = 1) -> int:
        """Smallest h with P(|Z_j| ≤ h for all of ``bins`` counts) ≥ confidence."""
        excess = -math.expm1(math.log(confidence) / bins)  # 1 − confidence^(1/bins)
        guess = math.ceil(-self.scale * math.log(excess * (1 + self.p) / 2)) - 1
        return smallest(lambda h: self.tail(h) <= excess, max(guess - 1, 0))

    def total_tail(self, h: float, bins: int) -> float:
        """P(Σ_j |Z_j| > h) of ``bins`` counts.

        Z is 0 with probability (1 − p)/(1 + p), and otherwise |Z| is geometric: given that m of them are not 0, their
        sum is m plus a negative binomial variable. For large scales that is the Gamma(k) law of continuous noise.
        """
        from scipy.stats import binom, nbinom

        t = float(math.floor(h))  # sums of many large counts are beyond 64 bits
        several = np.arange(1, bins + 1)
        chance = binom.pmf(several, bins, 2 * self.p / (1 + self.p))
        beyond = np.where(several > t, 1.0, nbinom.sf(t - several, several, -math.expm1(-1 / self.scale)))
        return float(chance @ beyond)

    def total_quantile(self, confidence: float, bins: int) -> int:
        """Smallest h with P(Σ_j |Z_j| ≤ h) ≥ confidence."""
        return smallest(lambda h: self.total_tail(h, bins) <= 1 - confidence, 0, math.ceil(self.scale * bins))
