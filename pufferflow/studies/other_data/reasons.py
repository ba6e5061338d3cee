"""What a number on other data differs by, as far as it can be measured."""

from __future__ import annotations

from typing import Any

import pandas as pd

RECORDED_SECONDS = 60
"""Step of the studies of Tables 1 and 3."""

OTHERS = "other data", "those measured"


def other_data_reason(
    ours: Any, theirs: float, elsewhere: pd.DataFrame | None, others: tuple[str, str] = OTHERS
) -> str:
    """Say in a sentence how far other people, windows and steps move one error of Table 1 or 3.

    Parameters
    ----------
    ours : row
        Of the table of errors (``studies.histograms.measure.errors``).
    theirs : float
        The paper's error.
    elsewhere : DataFrame or None
        Table of ``studies.other_data.measure``; None where that study is not run.
    others : tuple of str
        What the paper's data are to ours, and which other data were measured.
    """
    what, which = others
    if elsewhere is None:
        return f"{what}; the study other_data measures what each changes"
    same = elsewhere.dropna(subset=["expected_error"])
    for column in ("dataset", "mechanism", "task", "epsilon"):
        same = same[same[column] == getattr(ours, column)]
    minutes = same[same["step_seconds"] == RECORDED_SECONDS]["expected_error"]
    parts = [f"{what}: the paper's error is {theirs / ours.expected_error:.2g} times ours"]
    if len(minutes):
        low, high = minutes.min(), minutes.max()
        place = "among them" if low <= theirs <= high else "outside, so these do not explain it"
        parts.append(f"{which} give {low:.3g} to {high:.3g}, the paper's lies {place}")
    longer = same[(same["group"] == ours.group) & (same["step_seconds"] > RECORDED_SECONDS)]
    if len(longer):
        row = longer.loc[longer["step_seconds"].idxmax()]
        factor = row["expected_error"] / ours.expected_error
        parts.append(f"steps of {row['step_seconds']} s in place of {RECORDED_SECONDS} s multiply ours by {factor:.2g}")
    return "; ".join(parts)
