"""Figure 4, upper row: binary chains of the class [α, 1 − α]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pufferflow._rounding import divide_up
from pufferflow.markov import BinaryInterval, simulate_binary_chains
from pufferflow.mechanisms import compute_scale, gk16
from pufferflow.studies.scaling import RESULT_COLUMNS, scale_row
from pufferflow.studies.synthetic.wasserstein_grid import largest_on_grid
from pufferflow.studies.tidy import frame, mean_and_error, named_generator

KEYS = ["dataset", "label", "alpha", "mechanism", "epsilon"]
SCALE_COLUMNS = [
    *KEYS,
    "length",
    "lipschitz",
    *RESULT_COLUMNS,
]
GRID_POINTS = 3
"""P(0|0) and P(1|1) of the Wasserstein Mechanism's chains: both ends of the class and its middle."""


def alpha_grid(start: float, stop: float, step: float) -> list[float]:
    """Grid from ``start`` to ``stop`` inclusive, rounded to 12 digits so that 0.3 is 0.3."""
    count = int(np.floor((stop - start) / step + 1e-9)) + 1
    return [round(start + i * step, 12) for i in range(count)]


def scales(
    epsilons: Sequence[float],
    alphas: Sequence[float],
    length: int,
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Noise scales of the class for every ε, α and mechanism.

    The query is the mean of the chain, 1/T-Lipschitz.
    """
    rows = []
    for alpha in alphas:
        family = BinaryInterval(alpha, 1 - alpha)
        for mechanism in mechanisms:
            for epsilon in epsilons:
                result = compute_scale(mechanism, family, length, epsilon, **options.get(mechanism, {}))
                place = {"dataset": "synthetic", "label": "synthetic", "alpha": alpha, "lipschitz": 1 / length}
                rows.append(place | scale_row(result))
    return frame(rows, SCALE_COLUMNS)


def measure_scales(alphas: Mapping[str, float], length: int, **settings: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """:func:`scales` over the grid ``alphas`` (start, stop, step), and :func:`gk16_limits`."""
    return scales(alphas=alpha_grid(**alphas), length=length, **settings), gk16_limits(length)


def growth(
    epsilons: Sequence[float],
    alpha: float,
    lengths: Sequence[int],
    mechanisms: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Noise scales of one class for longer and longer chains, and the expected error of their mean (Theorem 4.10)."""
    tables = [scales(epsilons, [alpha], length, mechanisms, options) for length in lengths]
    table = pd.concat([one.astype(object) for one in tables], ignore_index=True)
    return table.assign(expected_error=table["scale"] * table["lipschitz"])


def extended(
    scale_table: pd.DataFrame, mechanisms: Sequence[str], options: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """``scale_table`` with more mechanisms.

    The Wasserstein Mechanism is not known for the whole class: ``wasserstein-grid`` is that of a grid of its chains, a
    finite Θ of its own, whose scale bounds that of the class from below.
    """
    epsilons, length = list(scale_table["epsilon"].unique()), int(scale_table["length"].iloc[0])
    alphas = [float(alpha) for alpha in scale_table["alpha"].unique()]
    tables = [scale_table, scales(epsilons, alphas, length, [m for m in mechanisms if m != "wasserstein"], options)]
    if "wasserstein" in mechanisms:
        grid = largest_on_grid(alphas, length, GRID_POINTS)
        rows = [
            {
                "dataset": "synthetic",
                "label": "synthetic",
                "alpha": alpha,
                "mechanism": "wasserstein-grid",
                "epsilon": epsilon,
                "length": length,
                "lipschitz": 1 / length,
                "scale": divide_up(w, epsilon),
                "status": "ok",
                "reason": f"Θ is a grid of {GRID_POINTS} by {GRID_POINTS} chains of the class",
            }
            for alpha, w in zip(grid["alpha"].tolist(), grid["largest_w"].tolist(), strict=True)
            for epsilon in epsilons
        ]
        tables.append(frame(rows, SCALE_COLUMNS))
    return pd.concat([table.astype(object) for table in tables if len(table)], ignore_index=True)[SCALE_COLUMNS]


def errors(scale_table: pd.DataFrame, repetitions: int, seed: int) -> pd.DataFrame:
    """L1 error of the released mean: expected, and over simulated chains.

    Each repetition draws q, P(0|0) and P(1|1) uniformly from [α, 1 − α], simulates a chain and
    releases its mean; one standard error is given beside the mean.
    """
    rows = []
    key: Any
    for key, settings in scale_table.groupby(["alpha", "mechanism"], sort=False):
        alpha, mechanism = key
        rng = named_generator(seed, f"synthetic/chains/{alpha:.12g}")
        q, stay_zero, stay_one = rng.uniform(alpha, 1 - alpha, (3, repetitions))
        length = int(settings["length"].iloc[0])
        exact = simulate_binary_chains(q, stay_zero, stay_one, length, rng).mean(axis=1)
        noise = named_generator(seed, f"synthetic/{mechanism}/{alpha:.12g}").laplace(size=repetitions)
        for row in settings.to_dict("records"):
            unit = row["scale"] * row["lipschitz"]
            mean, standard_error = mean_and_error(np.abs((exact + unit * noise) - exact))
            rows.append(
                {
                    **{name: row[name] for name in [*KEYS, "length", "status"]},
                    "expected_error": unit,
                    "mean_error": mean,
                    "standard_error": standard_error,
                    "repetitions": repetitions,
                }
            )
    return frame(rows)


def gk16_limits(length: int) -> pd.DataFrame:
    """α below which GK16 does not apply to chains of ``length``, whatever ε.

    Two rows: for the class with all initial distributions, as computed here (the first node has its
    own, larger entry in the influence matrix), and for the Toeplitz matrix of the interior entries,
    2γ cos(π/(T + 1)) = 1 with γ = ½ log[((1 − α)² + α²)/(2α²)].
    """
    from scipy.optimize import bisect  # loads slowly

    def applies(alpha: float) -> float:
        return -1.0 if gk16(BinaryInterval(alpha, 1 - alpha), length, 1.0).scale is None else 1.0

    def toeplitz(alpha: float) -> float:
        gamma = 0.5 * np.log(((1 - alpha) ** 2 + alpha**2) / (2 * alpha**2))
        return float(1 - 2 * gamma * np.cos(np.pi / (length + 1)))

    limits = {
        "class with every initial distribution": bisect(applies, 0.05, 0.5, xtol=1e-9),
        "interior (Toeplitz) matrix": bisect(toeplitz, 0.05, 0.5, xtol=1e-9),
    }
    place = {"dataset": "synthetic", "label": "synthetic"}
    return frame((place | {"quantity": name, "alpha": alpha} for name, alpha in limits.items()))
