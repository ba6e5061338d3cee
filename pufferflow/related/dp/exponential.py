"""The exponential mechanism, by OpenDP's exact sampler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._checks import check_numbers, check_positive, check_whole
from pufferflow._display import displayed
from pufferflow._noise import open_dp
from pufferflow._rounding import divide_up
from pufferflow.errors import DataError


@displayed()
@dataclass(frozen=True)
class Exponential:
    """Choose an outcome with Pr ∝ exp(ε u/(2Δ)), Δ the sensitivity of the utilities u.

    Sampling is OpenDP's noisy maximum with Gumbel noise, which is this law exactly; its noisy maximum for the
    max-divergence is permute-and-flip, another one.

    Parameters
    ----------
    sensitivity, epsilon : float
        Most that one utility changes between neighbours, and ε in nats.
    """

    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", check_positive(self.sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", check_positive(self.epsilon, "epsilon"))
        check_positive(self.scale, "2 · sensitivity / epsilon")

    @property
    def scale(self) -> float:
        """Temperature 2Δ/ε, rounded to more noise."""
        return divide_up(2 * self.sensitivity, self.epsilon)

    def probabilities(self, utilities: ArrayLike) -> NDArray[np.float64]:
        """Probability of each outcome."""
        values = _utilities(utilities)
        with np.errstate(over="ignore"):  # far below the largest one
            weights = np.exp((values / 2 - values.max() / 2) / (self.scale / 2))  # differences of halves are floats
        return np.asarray(weights / weights.sum(), np.float64)

    def release(self, utilities: ArrayLike, count: int = 1) -> list[int]:
        """Draw ``count`` outcomes independently, as positions in ``utilities``; each of them spends ε.

        Raises
        ------
        DataError
            No utility, or one that is not finite.
        ParameterError
            ``count`` is not an integer of at least 1.
        """
        values, count = _utilities(utilities).tolist(), check_whole(count, "count")
        dp = open_dp()
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
        choose = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=self.scale)
        return [choose(values) for _ in range(count)]

    def expected_shortfall(self, utilities: ArrayLike) -> float:
        """Expected distance from the largest utility; at most :meth:`worst_shortfall`."""
        values = _utilities(utilities)
        return 2 * float(self.probabilities(values) @ (values.max() / 2 - values / 2))

    def shortfall_bound(self, outcomes: int) -> float:
        """Textbook bound (2Δ/ε) ln k on the expected shortfall among k outcomes."""
        return float(self.scale * np.log(check_whole(outcomes, "outcomes")))

    def worst_shortfall(self, outcomes: int) -> float:
        """Largest expected shortfall among k outcomes: (2Δ/ε) W((k−1)/e), W Lambert's function.

        The shortfall λ solves Σ (g_i − λ) exp(−g_i/τ) = λ over the gaps g_i of the other outcomes, τ = 2Δ/ε; each term
        is largest at g_i = λ + τ, so equal gaps are worst.
        """
        from scipy.special import lambertw

        return float(self.scale * lambertw((check_whole(outcomes, "outcomes") - 1) / np.e).real)


def _utilities(utilities: ArrayLike) -> NDArray[np.float64]:
    values = check_numbers(utilities, "the utilities")
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise DataError("the utilities must be one row of finite numbers, at least one")
    return values
