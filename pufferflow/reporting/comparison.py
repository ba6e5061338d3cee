"""The comparison table: every claim and number of the paper beside ours, with a verdict.

Verdicts
--------
reproduced
    Same setting as the paper's (worked examples, its own synthetic data) and within the tolerance.
same conclusion on other data or settings
    The paper's data could not be used, or the run was asked for another ε, α or length than the paper's; what was
    computed agrees with the claim, or with the number within the tolerance.
differs
    Neither.
not applicable
    There is nothing to compare (a mechanism that gives no number here or there).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

REPRODUCED = "reproduced"
SAME = "same conclusion on other data or settings"
DIFFERS = "differs"
NOT_APPLICABLE = "not applicable"
VERDICTS = (REPRODUCED, SAME, DIFFERS, NOT_APPLICABLE)

COLUMNS = ["kind", "claim", "place", "reported", "ours", "standard_error", "difference", "tolerance", "verdict", "data"]

WORKED = "worked example"
"""Data of a number that follows from definitions."""


class Row(NamedTuple):
    """One row of the comparison table."""

    kind: str
    claim: str
    place: str
    reported: str
    ours: str
    standard_error: float | None
    difference: float | None
    tolerance: str
    verdict: str
    data: str


def reported_values() -> pd.DataFrame:
    """Return the published numbers as printed, one row a number (reported.csv)."""
    with files("pufferflow.reporting").joinpath("reported.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype=str, keep_default_na=False)


def compare(rows: Iterable[Row]) -> pd.DataFrame:
    """Table of all rows: claims first, then numbers, those of worked examples before those of data."""
    ordered = sorted(rows, key=lambda row: (row.kind != "claim", row.kind == "number" and row.data != WORKED))
    return pd.DataFrame([row._asdict() for row in ordered], columns=COLUMNS)


def claim(
    text: str, place: str, reported: str, ours: str, holds: bool, data: str, *, same_setting: bool = False
) -> Row:
    """Row of a claim in words, which holds or does not."""
    verdict = DIFFERS if not holds else REPRODUCED if same_setting else SAME
    return Row("claim", text, place, reported, ours, None, None, "", verdict, data)


def increasing(values: list[float]) -> bool:
    """Say whether each value is larger than the one before."""
    return all(a < b for a, b in pairwise(values))


def _tolerance(printed: str) -> float:
    """Half a unit of the last printed digit; of a value printed in full (up to two decimals) only roundings."""
    decimals = len(printed.partition(".")[2])
    return 0.5 * 10.0**-decimals if decimals > 2 else 1e-9


def stated_numbers(stated: pd.DataFrame) -> Iterator[Row]:
    """Rows of the values that a source prints, beside those of a table of ``studies.values``."""
    reported = reported_values()
    printed = reported[reported["key"] != ""].set_index("key")
    for row in stated.itertuples():
        if row.key not in printed.index:
            continue
        theirs: Any = printed.loc[str(row.key)]
        ours = str(row.computed)
        try:
            difference = float(ours) - float(theirs["value"])
            tolerance = _tolerance(theirs["value"])
            agree, allowed, ours = abs(difference) <= tolerance * (1 + 1e-9), f"± {tolerance:g}", f"{float(ours):.6g}"
        except ValueError:
            difference, agree, allowed = None, ours == theirs["value"], "identical"
        # where the source is wrong, its note says why
        claim = theirs["claim"] if agree or not theirs["note"] else f"{theirs['claim']} ({theirs['note']})"
        verdict = REPRODUCED if agree else DIFFERS
        place, value = theirs["place"], theirs["value"]
        yield Row("number", claim, place, value, ours, None, difference, allowed, verdict, WORKED)
