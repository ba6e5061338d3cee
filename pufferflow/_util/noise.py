"""Noise: exact samplers of OpenDP, and the cost of several releases."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_positive
from pufferflow._util.optional import load
from pufferflow._util.types import Floats
from pufferflow.errors import ParameterError

PRECISION = 1e-10
"""Relative tolerance of the ε of several releases; the upper end is returned."""


def entrywise_loss(scales: Iterable[float]) -> float:
    """Return Σ 1/σ_k, rounded up: the change of all releases, in nats, by one record."""
    total = math.fsum(1 / scale for scale in scales)
    return total + 3 * math.ulp(total)  # fsum rounds once, as does each quotient


def joint_scale(scales: Iterable[float]) -> float:
    """Return the scale of the release equivalent to all of them, rounded down."""
    return math.nextafter(1 / entrywise_loss(scales), 0.0)


def open_dp() -> Any:
    """Return OpenDP with its contributed mechanisms; it is slow to import."""
    dp = load("opendp.prelude", "exact noise")
    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=8)
def vector_laplace(scale: float) -> Any:
    """Return OpenDP's measurement that adds Laplace noise to each integer of a list."""
    dp = open_dp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=scale)


@lru_cache(maxsize=8)
def vector_gaussian(scale: float) -> Any:
    """Return OpenDP's measurement that adds Gaussian noise to each integer of a list."""
    dp = open_dp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_gaussian(integers, dp.l2_distance(T="i64"), scale=scale)


@lru_cache(maxsize=8)
def noisy_max(scale: float) -> Any:
    """Return OpenDP's measurement of the index of the largest integer with exponential noise.

    It uses permute-and-flip, without rounding.
    """
    dp = open_dp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_noisy_max(integers, dp.linf_distance(T="i64"), dp.max_divergence(), scale)


def discrete_laplace(noise: ArrayLike, scale: float) -> Floats:
    """Return the probability (1 − p)/(1 + p)·p^|z| of each integer z, p = exp(−1/scale)."""
    decay = np.exp(-np.abs(np.asarray(noise, np.float64)) / scale)
    return np.asarray(math.tanh(0.5 / scale) * decay)


class LaplaceNoise:
    """A scale of Laplace noise, for the results of all mechanisms."""

    mechanism: str
    scale: float | None
    reason: str

    def noise_scale(self, lipschitz: float) -> float:
        """Return the scale for a query with the given Lipschitz constant in L1 norm.

        Raises ParameterError: the mechanism is not applicable, or ``lipschitz`` not positive.
        """
        if self.scale is None:
            why = f"{self.mechanism} is not applicable ({self.reason})"
            raise ParameterError(f"{why}; choose another mechanism")
        return self.scale * check_positive(lipschitz, "lipschitz")
