"""Strings that spreadsheets would take for formulas, made harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pandas as pd

_Cell = TypeVar("_Cell")

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


def spreadsheet_cell(cell: _Cell) -> _Cell | str:
    """Return a cell that no spreadsheet evaluates: a formula gets an apostrophe before it.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("walking"), spreadsheet_cell(-3)
    ("'=1+1", 'walking', -3)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def spreadsheet_csv(table: pd.DataFrame, *, header: bool = True) -> str:
    """Return a table as CSV text for people: every cell as :func:`spreadsheet_cell`."""
    plain = table.map(spreadsheet_cell)
    return str(plain.to_csv(index=False, header=header, lineterminator="\n"))
