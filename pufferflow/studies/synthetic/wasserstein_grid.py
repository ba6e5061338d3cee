"""W of the number of ones over chains of the class [α, 1 − α]: what is known of the Wasserstein Mechanism there.

W of the whole class is not known. The largest W over a grid of its chains is a lower bound of it, and no noise for the
class may be calibrated by it; for the finite family of the grid itself it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd

from pufferflow.markov import MarkovChain
from pufferflow.studies.tidy import frame
from pufferflow.transport import chain_sensitivity


def largest_on_grid(alphas: Sequence[float], length: int, points: int) -> pd.DataFrame:
    """Largest W over ``points``² chains with P(0|0), P(1|1) from α to 1 − α and any initial distribution.

    One row an α: the largest W, and W of the corner P(0|0) = P(1|1) = 1 − α.
    """
    rows = []
    for alpha in alphas:
        stays = np.linspace(alpha, 1 - alpha, points)
        sensitivities = {
            (p, q): chain_sensitivity(MarkovChain([[p, 1 - p], [1 - q, q]], "any"), length, [0, 1]).W
            for p, q in product(stays, stays)
            if p >= q  # exchanging the states changes nothing
        }
        rows.append(
            {
                "alpha": alpha,
                "length": length,
                "largest_w": max(sensitivities.values()),
                "corner_w": sensitivities[stays[-1], stays[-1]],
            }
        )
    return frame(rows)
