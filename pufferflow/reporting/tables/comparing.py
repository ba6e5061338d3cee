"""Published values beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from pufferflow.reporting.style import data_label, display_names
from pufferflow.reporting.tables.formats import (
    UNDEFINED,
    missing,
    shortest,
    significant,
)
from pufferflow.reporting.tables.published import published_values, with_published
from pufferflow.reporting.tables.table import Table

ROUNDING = 1e-12
"""Smaller differences come from binary arithmetic and are printed as 0."""


def stated_values(
    table: pd.DataFrame,
    reported: pd.DataFrame | None = None,
    *,
    name: str = "worked_examples",
    title: str = "Worked examples of the paper",
) -> Table:
    """Values a source works out, as computed here.

    Parameters
    ----------
    table : DataFrame
        Table of ``studies.worked_examples.measure``, or of the values of a related experiment.
    reported : DataFrame, optional
        The published numbers (``reporting.comparison.reported_values``), matched by ``key``.
    name, title : str
        Name of the table and what it is about.
    """
    published = published_values(reported, "", ["key"])
    display = pd.DataFrame(
        {
            "example": table["example"],
            "quantity": table["quantity"],
            "computed": [shortest(value) for value in table["computed"]],
        }
    )
    note = ""
    if published:
        printed = [published.get((key,)) for key in table["key"]]
        display["published"] = [UNDEFINED if missing(value) else str(value) for value in printed]
        note = f"{UNDEFINED}: the source prints no value."
    data = with_published(table, published, ["key"]).assign(label="worked example")
    return Table(
        name,
        title if title.endswith("?") else f"{title}.",
        "none, worked out from definitions",
        data,
        display,
        note=note,
    )


def comparison(table: pd.DataFrame) -> Table:
    """Every claim and number of the sources beside ours, with a verdict.

    Parameters
    ----------
    table : DataFrame
        With the columns of :data:`pufferflow.reporting.comparison.COLUMNS`.
    """

    def data_words(text: str) -> str:
        dataset, comma, label = text.rpartition(", ")
        return f"{dataset}{comma}{data_label(label)}"

    def printed(value: Any) -> str:
        return UNDEFINED if missing(value) else display_names(str(value))

    formats: dict[str, Callable[[Any], str]] = {
        "paper": str,
        "kind": str,
        "claim": printed,
        "place": printed,
        "source": str,
        "reported": printed,
        "ours": lambda value: significant(value, 4) if isinstance(value, float) else printed(value),
        "standard_error": lambda value: significant(value, 2),
        "difference": lambda value: significant(0 if abs(value) < ROUNDING else value, 2),
        "tolerance": printed,
        "verdict": str,
        "reason": printed,
        "data": data_words,
    }
    display = pd.DataFrame(
        {name.replace("_", " "): [form(value) for value in table[name]] for name, form in formats.items()}
    )
    labels = "; ".join(dict.fromkeys(display["data"]))
    caption = "Published claims and numbers beside ours."
    note = f"{UNDEFINED}: there is none."
    return Table("comparison", caption, labels, table, display, note=note)
