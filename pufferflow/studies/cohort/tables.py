"""The table of a cohort."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, mechanism_style
from pufferflow.reporting.tables.formats import (
    UNDEFINED,
    count,
    decimals,
    missing,
    significant,
    with_error,
)
from pufferflow.reporting.tables.table import Table


def cohort(table: pd.DataFrame) -> Table:
    """How the errors of a cohort's participants are distributed, by ε and mechanism.

    Parameters
    ----------
    table : DataFrame
        Summary of ``studies.cohort.measure.gather``.
    """
    quantiles = {"5 %": "error_q05", "median": "error_q50", "95 %": "error_q95", "largest": "largest_error"}
    columns = {
        ("", "ε"): [f"{epsilon:g}" for epsilon in table["epsilon"]],
        ("", "mechanism"): [mechanism_style(name).label for name in table["mechanism"]],
        ("participants", "all"): table["participants"].map(count),
        ("participants", "with a scale"): table["applicable"].map(count),
        ("expected L1 error", "mean"): table["mean_error"].map(decimals),
        **{("expected L1 error", shown): table[name].map(decimals) for shown, name in quantiles.items()},
        ("error of one release each", "mean"): [
            UNDEFINED if missing(mean) else with_error(mean, error)
            for mean, error in zip(table["mean_released_error"], table["standard_error"], strict=True)
        ],
        ("noise ÷ lower bound", "median"): [significant(value, 3) for value in table["gap_q50"]],
        ("noise ÷ lower bound", "95 %"): [significant(value, 3) for value in table["gap_q95"]],
    }
    display = pd.DataFrame(columns)
    note = (
        "Relative-frequency histogram of each participant's own record, with a chain of their own. Quantiles over the "
        "participants with a scale, rounded up by at most 1.2 %. ± one standard error over participants. "
        f"{UNDEFINED}: there is none."
    )
    return Table(
        "cohort", "Errors over the participants of a cohort.", data_labels(table), table, display, headers=2, note=note
    )
