"""Scales for binary chains of the class [α, 1 − α]: Figure 4, upper row, and longer chains."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

from pufferflow.mechanisms import compute_scale, gk16
from pufferflow.models.families import BinaryInterval
from reproduction import tidy

SYNTHETIC = {"dataset": "synthetic", "label": "synthetic"}


def alpha_grid(start: float, stop: float, step: float) -> list[float]:
    """Return the grid from ``start`` to ``stop`` inclusive, rounded so that 0.3 is 0.3."""
    return np.arange(start, stop + 1e-9, step).round(12).tolist()


def class_scales(
    mechanism: str,
    epsilons: Sequence[float],
    alphas: Sequence[float],
    length: int,
    options: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield rows of the schema "scales": noise for the mean of a chain, 1/T-Lipschitz."""
    for alpha in alphas:
        place = SYNTHETIC | {"alpha": alpha, "lipschitz": 1 / length}
        family = BinaryInterval(alpha, 1 - alpha)
        for epsilon in epsilons:
            yield place | tidy.scale_row(
                compute_scale(mechanism, family, length, epsilon, **options)
            )


def growth(
    epsilons: Sequence[float],
    alpha: float,
    lengths: Sequence[int],
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Return the tidy table "growth": scales and errors of one class for longer chains."""
    # Theorem 4.10 on long chains does not cover leakage
    names = [name for name in dict.fromkeys(["group-dp", *mechanisms]) if name != "leakage"]
    rows = (
        class_scales(name, epsilons, [alpha], length, options.get(name, {}))
        for length, name in product(lengths, names)
    )
    table = tidy.frame(chain.from_iterable(rows), "growth")
    return table.assign(expected_error=table["scale"] * table["lipschitz"])


def gk16_limits(length: int) -> pd.DataFrame:
    """Return the tidy table "gk16_limits": α below which GK16 does not apply at any ε.

    One row is for the class with every initial distribution, whose first node has a larger entry
    in the influence matrix, and one for the Toeplitz matrix of the interior entries:
    2γ cos(π/(T + 1)) = 1 with γ = ½ log[((1 − α)² + α²)/(2α²)].
    """
    from scipy.optimize import bisect  # loads slowly

    def applies(alpha: float) -> float:
        return -1.0 if gk16(BinaryInterval(alpha, 1 - alpha), length, 1.0).scale is None else 1.0

    def toeplitz(alpha: float) -> float:
        gamma = 0.5 * np.log(((1 - alpha) ** 2 + alpha**2) / (2 * alpha**2))
        return float(1 - 2 * gamma * np.cos(np.pi / (length + 1)))

    names = ("class with every initial distribution", "interior (Toeplitz) matrix")
    limits = [bisect(of, 0.05, 0.5, xtol=1e-9) for of in (applies, toeplitz)]
    rows = (SYNTHETIC | {"quantity": q, "alpha": a} for q, a in zip(names, limits, strict=True))
    return tidy.frame(rows, "gk16_limits")
