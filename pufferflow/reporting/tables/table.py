"""What a table is: names, texts, numbers and what is printed of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import groupby
from typing import Self

import pandas as pd

from pufferflow.errors import DataError
from pufferflow.reporting.tables.formats import NOT_APPLICABLE, UNDEFINED

_NUMBER = re.compile(rf"[−\d][\d.,×⁰¹²³⁴⁵⁶⁷⁸⁹⁻ ±−–]*|∞|{NOT_APPLICABLE}|{UNDEFINED}|")


@dataclass(frozen=True)
class Table:
    """A table to print and the numbers behind it.

    Attributes
    ----------
    name : str
        Short name, for the LaTeX label and anchors.
    caption : str
        What it shows, in one sentence.
    data_label : str
        How the data came here, in words.
    data : DataFrame
        All numbers with all digits, one row a setting; what the CSV file holds.
    display : DataFrame
        What is printed: strings only. Columns may have two levels.
    headers : int
        Leading columns of ``display`` that name the row; repeats of them are printed once.
    note : str
        How to read it.
    """

    name: str
    caption: str
    data_label: str
    data: pd.DataFrame
    display: pd.DataFrame
    headers: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        if self.data.empty:
            raise DataError(f"table {self.name} has no row; check the settings of the experiment that makes it")

    def to_json(self) -> str:
        """Return what is printed, without the numbers behind it; :meth:`from_json` reads it."""
        printed = {name: getattr(self, name) for name in ("name", "caption", "data_label", "headers", "note")}
        cells = self.display.astype(str).to_numpy().tolist()
        return json.dumps(printed | {"columns": list(self.display.columns), "rows": cells}, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the table that was printed; its ``data`` are the printed cells."""
        printed = json.loads(text)
        columns = [tuple(name) if isinstance(name, list) else name for name in printed.pop("columns")]
        index = pd.MultiIndex.from_tuples(columns) if isinstance(columns[0], tuple) else pd.Index(columns)
        display = pd.DataFrame(printed.pop("rows"), columns=index)
        return cls(data=display, display=display, **printed)

    @property
    def legend(self) -> str:
        """Note and data label, what follows the caption wherever the table is printed."""
        return f"{self.note} Data: {self.data_label}.".strip()

    def column_levels(self) -> list[list[tuple[str, int]]]:
        """Return the header rows as (text, number of columns spanned)."""
        names = [name if isinstance(name, tuple) else (name,) for name in self.display.columns]
        levels = []
        for level in range(len(names[0])):
            # a name is shared only below the same upper name
            runs = groupby(names, key=lambda name: name[: level + 1]) if level == 0 else ((n, [n]) for n in names)
            levels.append([(str(key[level]), len(list(run))) for key, run in runs])
        return levels

    def column_names(self) -> list[str]:
        """Return the column names in one line each."""
        return [", ".join(filter(None, n)) if isinstance(n, tuple) else str(n) for n in self.display.columns]

    def rows(self) -> list[list[str]]:
        """Return the printed cells, with ``""`` for a row name that repeats the one above."""
        rows: list[list[str]] = self.display.astype(str).to_numpy().tolist()
        shown = [list(row) for row in rows]
        for above, row, out in zip(rows, rows[1:], shown[1:], strict=False):
            for column in range(self.headers):
                if row[: column + 1] != above[: column + 1]:
                    break
                out[column] = ""
        return shown

    def numeric(self) -> list[bool]:
        """Say for each column whether it holds numbers, which are set flush right."""
        columns = zip(*self.display.astype(str).to_numpy().tolist(), strict=True)
        return [all(_NUMBER.fullmatch(cell) for cell in column) for column in columns]
