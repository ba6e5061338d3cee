"""Tables for people as CSV: strings that spreadsheets would take for formulas, made harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def spreadsheet_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV text: a formula gets an apostrophe before it."""

    def plain(cell: Any) -> Any:
        is_formula = isinstance(cell, str) and cell.startswith(_FORMULA_STARTS)
        return f"'{cell}" if is_formula else cell

    return str(table.map(plain).to_csv(index=False, lineterminator="\n"))
