"""What figures of histograms share."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.patches import Patch

from pufferflow.errors import ParameterError
from pufferflow.reporting.figures.panels import check

BAR = "#c9ccd1"
EXACT = Patch(facecolor=BAR, label="exact histogram")


def at_epsilon(table: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """Rows of a table at one of its ε."""
    check(table)
    rows = table[np.isclose(table["epsilon"], epsilon, rtol=1e-12, atol=0)]
    if rows.empty:
        present = ", ".join(f"{e:g}" for e in sorted(table["epsilon"].unique()))
        raise ParameterError(f"epsilon = {epsilon:g} is not in the table; it has {present}")
    return rows
