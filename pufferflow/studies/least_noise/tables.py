"""The table of least noise."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label, mechanism_style
from pufferflow.reporting.tables.formats import (
    NOT_APPLICABLE,
    UNDEFINED,
    decimals,
    missing,
    significant,
)
from pufferflow.reporting.tables.table import Table


def least_noise(table: pd.DataFrame) -> Table:
    """What each mechanism asks for, beside the least that could be private and what the noise gives away.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.least_noise.measure.least_noise``.
    """
    display = pd.DataFrame(
        {
            "chain": [group_label(g) if g else d for g, d in zip(table["group"], table["dataset"], strict=True)],
            "ε": [f"{epsilon:g}" for epsilon in table["epsilon"]],
            "mechanism": [mechanism_style(name).label for name in table["mechanism"]],
            "scale": [NOT_APPLICABLE if missing(value) else significant(value) for value in table["scale"]],
            "L1 error": [
                UNDEFINED if missing(error) and not missing(scale) else decimals(error)
                for error, scale in zip(table["expected_error"], table["scale"], strict=True)
            ],
            "÷ MQMExact": [significant(value, 3) for value in table["relative_noise"]],
            "÷ lower bound": [significant(value, 3) for value in table["gap"]],
            "actual loss": [significant(value, 3) for value in table["actual_loss"]],
        }
    )
    longest = int(table["length"].max())
    note = (
        f"Laplace scale for a 1-Lipschitz query on segments of up to {longest:,} records; expected L1 error of the "
        "relative-frequency histogram. Below the lower bound no Laplace scale is private. Actual loss: of the count of "
        "the states that leak most, at that scale; the scale of Wasserstein is for this count alone. "
        f"{NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: not defined or not computed."
    )
    caption = "Noise of each mechanism, the least there could be, and what it gives away."
    return Table("least_noise", caption, data_labels(table), table, display, headers=2, note=note)
