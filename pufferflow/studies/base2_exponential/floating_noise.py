"""Laplace noise in doubles tells the value it hides: some outputs are possible for one value alone.

Mironov, "On Significance of the Least Significant Bits for Differential Privacy" (CCS 2012). A uniform double has 53
bits, so the logarithm of one leaves gaps between the values that noise can take, and the gaps lie elsewhere for
another value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

BITS = 53
"""Bits of a uniform double."""


def naive_laplace(value: float, scale: float, sign: int, uniform: int, bits: int = BITS) -> float:
    """Return ``value`` with Laplace noise by inversion of a uniform integer in [1, 2^bits]; never to be used."""
    return value + sign * (scale * -math.log(uniform / 2**bits))


def naive_outputs(value: float, scale: float, count: int, rng: np.random.Generator) -> Iterator[float]:
    """``count`` independent releases of ``value``."""
    signs = rng.choice([-1, 1], count).tolist()
    for sign, uniform in zip(signs, rng.integers(1, 2**BITS, count, endpoint=True).tolist(), strict=True):
        yield naive_laplace(value, scale, sign, uniform)


def possible(output: float, value: float, scale: float, bits: int = BITS) -> bool:
    """Say whether :func:`naive_laplace` can return ``output`` for ``value``, by trying every number that could.

    An integer k gives about value ± scale·ln(2^bits/k). The sum, the product, the logarithm and the estimate of k here
    are each rounded by no more than 2^−52 of their size; four times that is searched.
    """
    noise = output - value
    distance = abs(noise)
    near = 2**bits * math.exp(-distance / scale)
    roundings = 2**-50 * (abs(output) + abs(value) + distance + scale)
    slack = near * math.expm1(roundings / scale) + 2
    signs = (-1, 1) if distance <= roundings else (1 if noise > 0 else -1,)
    return any(
        naive_laplace(value, scale, sign, uniform, bits) == output
        for uniform in range(max(1, math.floor(near - slack)), min(2**bits, math.ceil(near + slack)) + 1)
        for sign in signs
    )
