"""Texts that come from outside, made harmless where programs read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pufferflow.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

_Cell = TypeVar("_Cell")

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""With these a spreadsheet begins to compute."""


def spreadsheet_cell(cell: _Cell) -> _Cell | str:
    """Return a cell that no spreadsheet takes for a formula: such a text gets an apostrophe before it.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("walking"), spreadsheet_cell(-3)
    ("'=1+1", 'walking', -3)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def spreadsheet_csv(table: pd.DataFrame, *, header: bool = True) -> str:
    """Return a table as CSV text for people and their spreadsheets: every text as :func:`spreadsheet_cell`."""
    return str(table.map(spreadsheet_cell).to_csv(index=False, header=header, lineterminator="\n"))


def check_unicode(text: str, name: str) -> str:
    """Return a text that can be written to a file: one without halves of characters (lone surrogates).

    Raises ParameterError: it has one.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"{name} {text!a} is no Unicode text (character {error.start + 1} is half of one); mend it"
        ) from None
    return text


def as_unicode(name: str) -> str:
    r"""Return a name as a text that can be written to a file; bytes that are none appear as they are escaped.

    >>> as_unicode("récit"), as_unicode("a\udcff")
    ('récit', 'a\\udcff')
    """
    return name.encode(errors="backslashreplace").decode()
