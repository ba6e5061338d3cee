"""Published numbers, found by their keys."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

Published = Mapping[tuple[Hashable, ...], Any]
"""Printed values by the values of their key columns."""


def published_values(reported: pd.DataFrame | None, place: str, keys: list[str]) -> dict[tuple[Hashable, ...], Any]:
    """Printed values of one table of the paper by their keys; ε as a float."""
    if reported is None:
        return {}
    rows = reported[reported["place"] == place] if place else reported
    values = rows.assign(epsilon=pd.to_numeric(rows["epsilon"], errors="coerce"))
    return dict(zip(values[keys].itertuples(index=False, name=None), values["value"], strict=True))


def with_published(table: pd.DataFrame, published: Published, keys: list[str]) -> pd.DataFrame:
    """Add a column ``published`` with each row's printed value; no column where nothing was published."""
    if not published:
        return table
    values = [published.get(key) for key in table[keys].itertuples(index=False, name=None)]
    return table.assign(published=pd.Series(values, index=table.index, dtype=object))


def keyed(table: pd.DataFrame, keys: list[str]) -> dict[tuple[Hashable, ...], Any]:
    """Rows by the values of their key columns."""
    return dict(zip(table[keys].itertuples(index=False, name=None), table.itertuples(), strict=True))


def number(value: Any) -> float | None:
    """Return a printed value as a float, None where it is no finite number ("N/A")."""
    try:
        printed = float(value)
    except (TypeError, ValueError):
        return None
    return printed if math.isfinite(printed) else None
