"""The tables of what goes beyond the paper."""

from __future__ import annotations

import pandas as pd

from pufferflow.reporting.style import data_labels, group_label, mechanism_style
from pufferflow.reporting.tables.formats import (
    NOT_APPLICABLE,
    UNDEFINED,
    count,
    decimals,
    missing,
    significant,
    with_error,
    yes_no,
)
from pufferflow.reporting.tables.table import Table


def least_noise(table: pd.DataFrame) -> Table:
    """What each mechanism asks for, beside the least that could be private and what the noise gives away.

    Parameters
    ----------
    table : DataFrame
        Table of ``experiments.least_noise.least_noise``.
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


def cohort(table: pd.DataFrame) -> Table:
    """How the errors of a cohort's participants are distributed, by ε and mechanism.

    Parameters
    ----------
    table : DataFrame
        Summary of ``experiments.cohort.gather``.
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


def engine(table: pd.DataFrame) -> Table:
    """The engine's benchmark: milliseconds, ratios, and the bars they are held against.

    Parameters
    ----------
    table : DataFrame
        Table of ``experiments.engine_benchmark``.
    """
    display = pd.DataFrame(
        {
            "workload": table["workload"],
            "engine (ms)": [significant(value, 3) for value in table["engine_milliseconds"]],
            "plain numpy (ms)": [significant(value, 3) for value in table["twin_milliseconds"]],
            "floor (ms)": [significant(value, 3) for value in table["floor_milliseconds"]],
            "numpy ÷ engine": [significant(value, 2) for value in table["twin_over_engine"]],
            "engine ÷ floor": [significant(value, 2) for value in table["engine_over_floor"]],
            "MB": [significant(value, 2) for value in table["megabytes"]],
            "bar": [UNDEFINED if missing(value) else str(value) for value in table["bar"]],
            "met": [yes_no(value) for value in table["met"]],
        }
    )
    caption = "Milliseconds to compute a noise scale (MQMExact unless said otherwise), medians of one run."
    note = (
        f"On {table['machine'].iloc[0]}. Plain numpy: every power up to the needed length, all quilts. "
        "Floor: the powers of P up to the active quilt's length in both directions, and nothing else."
    )
    return Table("engine", caption, "bundled real data (electricity); synthetic data", table, display, note=note)
