"""The Laplace mechanism, by OpenDP's exact sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import check_list, check_positive, check_whole
from pufferflow._display import displayed
from pufferflow._noise import discrete_laplace, vector_laplace
from pufferflow._rounding import divide_up
from pufferflow.errors import DataError


@displayed()
@dataclass(frozen=True)
class Laplace:
    """Add noise of scale Δ/ε to a query whose L1 sensitivity is Δ.

    Whole numbers get discrete Laplace noise, Pr ∝ exp(−|z| ε/Δ) on the integers; floats get Laplace noise on a
    fine binary grid. Both samplers are OpenDP's and work on integers from the operating system's bits.

    Parameters
    ----------
    sensitivity, epsilon : float
        Δ in units of the query, and ε in nats.
    """

    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitivity", check_positive(self.sensitivity, "sensitivity"))
        object.__setattr__(self, "epsilon", check_positive(self.epsilon, "epsilon"))
        check_positive(self.scale, "sensitivity / epsilon")

    @property
    def scale(self) -> float:
        """Laplace scale in units of the query, rounded to more noise."""
        return divide_up(self.sensitivity, self.epsilon)

    def release(
        self, values: Sequence[int] | Sequence[float] | NDArray[Any] | pd.Series[Any]
    ) -> list[int] | list[float]:
        """Release a vector-valued query.

        Raises
        ------
        DataError
            A value that is no finite number, or a mix of whole numbers and floats.
        """
        values = values.tolist() if isinstance(values, np.ndarray | pd.Series) else check_list(values, "values")
        whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
        if not whole and not all(isinstance(value, float) and math.isfinite(value) for value in values):
            raise DataError("the values to release must be all int or all finite float")
        if whole and not all(abs(value) < 2**62 for value in values):
            raise DataError("a whole number to release must lie within ±2^62; release it as float")
        released: list[Any] = self.measurement(whole=whole)(values)
        return released

    def measurement(self, *, whole: bool) -> Any:
        """Return OpenDP's measurement; its ``map`` states the privacy loss at an L1 distance."""
        return vector_laplace(self.scale, whole=whole)

    def probability(self, noise: int) -> float:
        """Probability of this noise on a whole number."""
        return float(discrete_laplace(check_whole(noise, "noise", None), self.scale))

    def standard_error(self, *, whole: bool = True) -> float:
        """Root-mean-square noise: of the discrete law, or √2 times the scale."""
        return 1 / (math.sqrt(2) * math.sinh(1 / (2 * self.scale))) if whole else math.sqrt(2) * self.scale
