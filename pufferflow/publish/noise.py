"""The noise of counts: how large it is, how it is drawn, and the errors that it causes.

The largest cost C per changed reading is the largest c for which the leakage of releases that cost
c is at most ε at any length (docs/account.md, section 4). A certificate proves it for T = 10⁷
readings, longer spans are refused, and so is a Θ whose bound still rises between 10⁶ and 10⁷.

P(Z = z) = (1 − p)/(1 + p) · p^|z|, p = exp(−1/s), s the scale; with a δ also discrete Gaussian. On
integers there are no low bits of a floating-point number that could reveal the count behind the
noise (Mironov, CCS 2012).
"""

import math
from bisect import bisect
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np

from pufferflow._util.noise import sampler
from pufferflow._util.types import Ints
from pufferflow.accounting.account import MAX_STEPS, Level, Promise
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import compute_scale
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import ChainFamily, Family, finite_chains
from pufferflow.models.mixing import MixingFamily
from pufferflow.publish.statistics import Statistic

STILL_RISING = 1 + 1e-3
CONFIDENCE = 0.95
SLACK = Fraction(1, 2**24)
"""Relative excess of noise over the proved scale, which is found to 1e-10."""
DIGITS = 11
"""Bits of a scale: it is published and a function of Θ, so it reveals no more of Θ
than 11 bits and a power of 2, for at most a thousandth more noise."""
LARGEST = 2.0**60
"""Larger scales exceed every count; the sampler's integers have 64 bits."""
IMPACTS, LIMITS = ("LOW", "MEDIUM", "HIGH", "VERY HIGH"), (0.02, 0.1, 0.5)
"""Descriptions of the error over the public range, and their upper ends."""


def calibrate(family: Family | None, level: Level, epsilon: float, delta: float = 0.0) -> Promise:
    """Return a promise of (ε, δ) with the largest cost that keeps ε, and its proof, without data.

    The certificate proves 1/C as the scale of a query of Lipschitz constant 1.

    Raises ParameterError: ε is out of range, Θ is missing though the level needs one, mixes too
    slowly for ε, or has no proof.
    """
    if level.whole:
        return Promise(level, epsilon, Fraction(0), delta=delta)
    if family is None:
        raise ParameterError(
            "missing model of the readings: give `mixing` TIME OVERLAP (1h 0.4), "
            "or as `chain` a model of public data"
        )
    if isinstance(family, MixingFamily) and level.side_information == "any":
        raise _refusal("does not mix with side information any")
    if family.has_given_start:  # a record may begin at any time, so the start is arbitrary
        chains = [(c, MarkovChain(c.transition_matrix, "any")) for c in finite_chains(family)]
        family = ChainFamily([c if c.start == "stationary" else free for c, free in chains])
    scale, before = (
        compute_scale("leakage", family, steps, epsilon, **asdict(level))
        for steps in (MAX_STEPS, MAX_STEPS // 10)
    )
    if scale.scale is None or before.scale is None:
        raise _refusal(f"has no certified noise ({scale.reason})")
    if scale.scale > before.scale * STILL_RISING:
        raise _refusal(
            f"mixes too slowly for epsilon {epsilon:g}, or never, as an absorbing or a cyclic chain"
        )
    try:
        proved = scale.certified(family)
    except ParameterError as error:
        raise _refusal(f"cannot be certified for {MAX_STEPS:,} steps ({error})") from None
    assert proved.scale is not None
    return Promise(level, epsilon, 1 / Fraction(proved.scale), proved.certificate, delta)


def _refusal(why: str) -> ParameterError:
    return ParameterError(
        f"this assumption {why}; give `protect` participant, which needs none, or another chain"
    )


def noise_scale(cost: Fraction, lipschitz: int | Fraction, share: int = 1) -> float:
    """Return the scale of noise that costs ``cost``/``share``, rounded up to 11 bits.

    Raises ParameterError: the noise would be larger than any count.
    """
    wanted = lipschitz * share / cost * (1 + SLACK)
    unit = Fraction(2) ** (math.frexp(float(wanted))[1] - DIGITS)
    rounded = float(-(-wanted // unit) * unit)
    if rounded > LARGEST:
        raise ParameterError(
            f"the noise would have scale {rounded:.3g}, larger than every count; raise epsilon"
        )
    return rounded


def deviation(square: float, rho: float | Fraction) -> float:
    """Return the σ, rounded up to 11 bits, of Gaussian noise that costs ``rho`` per record.

    ``square`` is that of the change in L2 norm by one record; the exact cost is square/2σ².
    """
    return noise_scale(Fraction(math.sqrt(2 * rho)), Fraction(math.sqrt(square)))


@dataclass(frozen=True)
class Noise:
    """Noise on each count: discrete Laplace of this scale, or discrete Gaussian of this σ."""

    scale: float
    gaussian: bool = False

    def add(self, counts: Ints, rng: np.random.Generator | None = None) -> Ints:
        """Return counts with independent noise, by OpenDP's exact samplers without a seed.

        With ``rng`` it is for planning, **not private**, and Gaussian noise is rounded instead of
        discrete. Sums beyond 64 bits are cut to the largest integer, which is post-processing.
        """
        flat: list[int] = counts.ravel().tolist()
        if rng is None:
            noisy = sampler("gaussian" if self.gaussian else "laplace", self.scale)(flat)
        else:
            if self.gaussian:
                drawn = np.rint(self.scale * rng.standard_normal(len(flat)))
            else:  # whole parts of exponential variables are geometric, their difference is Z
                one, other = np.floor(self.scale * rng.standard_exponential((2, len(flat))))
                drawn = one - other
            sums = (count + int(z) for count, z in zip(flat, drawn, strict=True))
            noisy = [min(max(number, -(2**63)), 2**63 - 1) for number in sums]
        return np.array(noisy, dtype=np.int64).reshape(counts.shape)

    def cost(self, statistic: Statistic) -> tuple[Fraction, Fraction]:
        """Return the exact cost of one changed reading: c = L/s, or ρ = Δ2²/2σ²."""
        scale = Fraction(self.scale)
        if self.gaussian:
            return Fraction(0), statistic.square / scale**2 / 2
        return statistic.lipschitz / scale, Fraction(0)

    def quantile(self, confidence: float = CONFIDENCE, bins: int = 1) -> int:
        """Smallest h with P(|Z_j| ≤ h for all of ``bins`` counts) ≥ confidence.

        At most 1 more of Gaussian noise: P(Z ≥ h + 1) is at most that of a normal variable ≥ h
        (Canonne, Kamath and Steinke, 2020).
        """
        excess = -math.expm1(math.log(confidence) / bins)  # 1 − confidence^(1/bins)
        if self.gaussian:
            from scipy.special import ndtri  # loads slowly

            return math.ceil(self.scale * -float(ndtri(excess / 2)) * (1 + 1e-12))
        most = excess * (1 + math.exp(-1 / self.scale)) / 2  # of e^(−(h + 1)/s), half of a tail
        h = max(math.ceil(-self.scale * math.log(most)) - 2, 0)
        while math.exp(-(h + 1) / self.scale) > most:
            h += 1
        return h


def most_frequent(
    counts: Ints, top: int, scale: float, rng: np.random.Generator | None = None
) -> Ints:
    """Return the ``top`` states of each cell with the largest noisy counts, shape (cells, top).

    One state alone by exponential noise, which errs less; more by Laplace noise. Drawn by OpenDP's
    exact samplers, or from a seed: for planning, **not private**.
    """
    if top > 1:
        noisy = Noise(scale).add(counts, rng).astype(float)
    elif rng is not None:
        noisy = counts + scale * rng.standard_exponential(counts.shape)
    else:
        draw = sampler("noisy_max", scale)
        return np.array([[draw(row)] for row in counts.tolist()], dtype=np.int64)
    return np.argsort(-noisy, axis=1, kind="stable")[:, :top]


def shortfall(scale: float, top: int, states: int, cells: int) -> int:
    """Return by how much a state that is listed later, or not, may have the larger count.

    At most this in all cells with probability .95. Of two noisy counts each errs by the quantile.
    A single state that is h below the largest is named with probability at most e^(−h/s)/2, since
    its noise must exceed that of the largest by h.
    """
    if top > 1:
        return 2 * Noise(scale).quantile(CONFIDENCE, cells * states)
    return math.floor(scale * math.log(cells * (states - 1) / (2 * (1 - CONFIDENCE))))


def sum_margin(scale: float, squares: float, miss: float) -> float:
    """Return a bound that |Σ w_j Z_j|, |w_j| ≤ 1, reaches with at most this probability.

    ``squares`` = Σ w_j². Chernoff: P(|Σ w_j Z_j| ≥ h) ≤ 2 exp(K(λ) Σ w_j² − λh), 0 < λ < 1/s,
    K(λ) = log E e^(λZ), whose series in λ² has no negative coefficient, so that K(wλ) ≤ w² K(λ).
    """
    parts = np.arange(1, 1000) / 1000  # λ in units of 1/s
    ends = np.expm1((parts - 1) / scale) * np.expm1(-(parts + 1) / scale)
    growth = 2 * math.log(-math.expm1(-1 / scale)) - np.log(ends)
    bounds = (squares * growth + math.log(2 / miss)) * scale / parts
    return float(bounds.min()) * (1 + 1e-9)


def impact_label(impact: float) -> str:
    """Return LOW, MEDIUM, HIGH or VERY HIGH for an error over the public range."""
    return IMPACTS[bisect(LIMITS, impact)]
