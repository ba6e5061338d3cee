"""Noise: sources of randomness, OpenDP's exact samplers, and the cost of several releases."""

import math
import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal

from pufferflow._util.checks import check_whole
from pufferflow._util.optional import load

PRECISION = 1e-10
"""Relative tolerance of the ε of several releases; the upper end is returned."""


def entrywise_loss(scales: Iterable[float]) -> float:
    """Return Σ 1/σ_k, rounded up: the change of all releases, in nats, by one record."""
    total = math.fsum(1 / scale for scale in scales)
    return total + 3 * math.ulp(total)  # fsum rounds once, as does each quotient


def joint_scale(scales: Iterable[float]) -> float:
    """Return the scale of the release equivalent to all of them, rounded down."""
    return math.nextafter(1 / entrywise_loss(scales), 0.0)


def randomness(insecure_seed: int | None = None) -> random.Random:
    """Return the operating system's generator, or a seeded one, which is not private."""
    if insecure_seed is None:
        return random.SystemRandom()
    return random.Random(check_whole(insecure_seed, "insecure_seed", 0, None))


def open_dp() -> Any:
    """Return OpenDP with its contributed mechanisms; it is slow to import."""
    dp = load("opendp.prelude", "exact noise")
    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=8)
def sampler(kind: Literal["laplace", "gaussian", "noisy_max"], scale: float) -> Any:
    """Return OpenDP's measurement of a list of integers, which draws without rounding.

    It adds noise to each, or returns the index of the largest one with exponential noise, by
    permute-and-flip.
    """
    dp = open_dp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "laplace":
        return dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale)
    if kind == "gaussian":
        return dp.m.make_gaussian(integers, dp.l2_distance(T="i64"), scale)
    return dp.m.make_noisy_max(integers, dp.linf_distance(T="i64"), dp.max_divergence(), scale)
