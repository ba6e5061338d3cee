"""What Tables 1 and 3 share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import pandas as pd

from pufferflow.reporting.style import mechanism_style
from pufferflow.reporting.tables.formats import (
    NOT_APPLICABLE,
    UNDEFINED,
    decimals,
    missing,
    with_error,
)
from pufferflow.reporting.tables.published import Published


def error_rows(
    blocks: Iterable[tuple[str, str, Mapping[tuple[str, str], tuple[Hashable, ...]]]],
    computed: Mapping[tuple[Hashable, ...], Any],
    published: Published,
) -> tuple[pd.DataFrame, bool]:
    """Two or three printed rows for each ε and mechanism: expected, simulated, published.

    Also says whether any published value is among them.
    """
    rows = []
    compared = False
    for epsilon, name, places in blocks:
        ours = {shown: computed.get(key) for shown, key in places.items()}
        theirs = {shown: published.get(key) for shown, key in places.items()}
        lines: dict[str, dict[tuple[str, str], str]] = {
            "expected": {s: UNDEFINED if r is None else decimals(r.expected_error) for s, r in ours.items()},
            "simulated": {
                s: UNDEFINED if r is None else with_error(r.mean_error, r.standard_error) for s, r in ours.items()
            },
        }
        if all(r is None or r.status != "ok" for r in ours.values()):
            lines = {"": lines["expected"]}
        if any(not missing(value) for value in theirs.values()):
            compared = True
            lines["published"] = {s: UNDEFINED if missing(v) else str(v) for s, v in theirs.items()}
        for kind, cells in lines.items():
            names = {"ε": epsilon, "mechanism": mechanism_style(name).label, "value": kind or "expected"}
            rows.append({("", header): text for header, text in names.items()} | cells)
    display = pd.DataFrame(rows)
    display.columns = pd.MultiIndex.from_tuples(list(rows[0]))
    return display, compared


def explain(errors: pd.DataFrame, compared: bool) -> str:
    """How to read such a table."""
    text = (
        f"Expected: the mean of the noise; simulated: mean of {errors['repetitions'].iloc[0]} releases ± standard error"
    )
    published = "; published: the paper's number on its own data" if compared else ""
    return (
        f"{text}{published}. {NOT_APPLICABLE}: the mechanism does not apply; {UNDEFINED}: not defined or not printed."
    )
