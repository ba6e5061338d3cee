"""The loss of one entry of a mixing family's chain: ``docs/leakage.md``, Theorems F1 and F2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from pufferflow._util.numbers import ball
from pufferflow.bounds.roots import Loss
from pufferflow.models.mixing import MixingFamily

if TYPE_CHECKING:
    from flint import arb

_LARGE = 10**6
"""Costs of a block of steps (m·c) above which mixing saves less than 1e-6 T·c and is left out."""


class MixingLoss:
    """Largest loss over a segment's windows in terms of c: a closed form in interval arithmetic.

    With ρ = (1 − α) e^(mc) the odds ratio of two values by n = km + r records after them is at most
    E(n) = ρ^k e^(rc) + α e^((m−1)c) (1 + ρ + … + ρ^(k−1)), and the loss of a window of w
    records with j before it and n after it is at most w·c + log E(j) + log E(n).
    """

    def __init__(self, family: MixingFamily, length: int, window: int = 1) -> None:
        self._steps, self._kept = family.steps, family.kept
        self._length, self._window = length, min(window, length)

    def loss(self, cost: float) -> Loss:
        """Return a bound, rounded up, at c."""
        value, node = self._loss(Fraction(cost))
        return Loss(math.nextafter(float(value.upper()), math.inf), node)

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Return the smallest float with loss ≤ ε, and a deciding node; None if ≥ ``upper``."""
        if not self._suffices(below := math.nextafter(upper, 0.0), epsilon):
            return None
        # a window alone costs w·c
        low, high = max(self._window / epsilon / 2, math.ulp(0.0)), below
        while (middle := low + (high - low) / 2) not in (low, high):
            low, high = (low, middle) if self._suffices(middle, epsilon) else (middle, high)
        return high, self._loss(1 / Fraction(high))[1]

    def _suffices(self, scale: float, epsilon: float) -> bool:
        return bool(self._loss(1 / Fraction(scale))[0] <= epsilon)

    def _loss(self, cost: Fraction) -> tuple[arb, int]:
        """Return a ball with the bound, to some 30 digits, and the first node of a worst window."""
        from flint import ctx

        around = self._length - self._window
        if self._steps * cost > _LARGE or around == 0:
            return ball(self._length * cost), 1
        digits = abs(cost.numerator.bit_length() - cost.denominator.bit_length())
        for bits in (128, 512, 2048, 8192):
            with ctx.workprec(bits + 2 * digits + self._length.bit_length()):
                factors = [
                    (self._factor(j, cost) * self._factor(around - j, cost), j)
                    for j in self._worst(around)
                ]
                total, before = max(factors, key=lambda factor: float(factor[0].mid().log()))
                for factor, _ in factors:
                    total = total.max(factor)
                value = total.log() + ball(self._window * cost)
                if value.is_finite() and value.rad() * 2**80 < value:
                    return value, before + 1
        return ball(self._length * cost), 1  # ρ is within 10^-2000 of 1

    def _worst(self, around: int) -> Iterator[int]:
        """Yield numbers of records before a window; one of them is the worst (Theorem F2)."""
        blocks, rest = divmod(around, self._steps)
        for first, pairs in ((0, blocks), (rest + 1, blocks - 1)):
            if pairs >= 0 and first < self._steps:
                for k in range(max(pairs // 2 - 1, 0), min(pairs // 2 + 1, pairs) + 1):
                    yield k * self._steps + first

    def _factor(self, records: int, cost: Fraction) -> arb:
        """Return E(n)."""
        blocks, rest = divmod(records, self._steps)
        c = ball(cost)
        ratio = ball(self._kept) * (self._steps * c).exp()
        power = ratio**blocks
        factor = power * (rest * c).exp()
        if blocks:
            fresh = ball(1 - self._kept) * ((self._steps - 1) * c).exp()
            factor += fresh * (1 - power) / (1 - ratio)
        return factor
