"""Where random bits come from, and uniform integers made of them without a float between.

Bits come from the operating system. The seeded twin is for experiments and tests; whoever knows the seed
knows the noise.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np


class Randomness(Protocol):
    """A source of independent fair bits."""

    def take(self, size: int) -> bytes:
        """Return ``size`` random bytes."""
        ...


class SystemRandomness:
    """The operating system's generator."""

    def take(self, size: int) -> bytes:
        """Return ``size`` random bytes."""
        return os.urandom(size)


class GeneratorRandomness:
    """A generator of NumPy: reproducible and therefore not private."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def take(self, size: int) -> bytes:
        """Return ``size`` pseudo-random bytes."""
        return self._generator.bytes(size)


def integer_below(source: Randomness, bound: int) -> int:
    """Uniform integer in [0, bound) of any size, by rejection."""
    bits = (bound - 1).bit_length()
    size = -(-bits // 8)
    while True:
        value = int.from_bytes(source.take(size), "little") & ((1 << bits) - 1)
        if value < bound:
            return value
