"""The one sheet of an Excel file, read as the texts that a CSV file of it would have."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice
from typing import Any

import pandas as pd

from pufferflow._optional import load
from pufferflow._progress import progress
from pufferflow.errors import DataError
from pufferflow.records.blocks import ROWS
from pufferflow.records.text_tables import MOST_COLUMNS

OLD = b"\xd0\xcf\x11\xe0"
"""How an .xls file begins; an .xlsx file is a zip."""

MOST_UNPACKED = 2**29
"""Bytes that an .xlsx file may unpack to: the largest sheet there can be, of some ten columns."""


def is_excel(path: str, head: bytes) -> bool:
    """Whether the file that begins so is one of Excel, and no other zip."""
    if head == OLD:
        return True
    if head != b"PK\x03\x04":
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError):
        return False  # who reads zips says what is wrong with it


@dataclass(frozen=True)
class ExcelTable:
    """An Excel file with one sheet that is not empty; the first line has the names."""

    where: str

    def columns(self) -> list[str]:
        """Names in the first line."""
        with self._sheet() as (_, rows):
            return self._names(next(rows, []))

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`pufferflow.records.tables.Table`."""
        row = 0
        with self._sheet() as (height, rows), progress(total=height, desc=work, unit=" rows", unit_scale=True) as bar:
            names = self._names(next(rows, []))
            places = [names.index(name) for name in columns]
            while part := [[_text(cells[place]) for place in places] for cells in islice(rows, ROWS)]:
                yield row, pd.DataFrame(part, columns=list(columns), dtype="str")
                row += len(part)
                bar.update(len(part))

    def place(self, row: int) -> str:
        """See :class:`pufferflow.records.tables.Table`; rows are counted from the one with the names."""
        return f"row {row + 2}"

    def _names(self, header: Sequence[Any]) -> list[str]:
        if len(header) > MOST_COLUMNS:
            raise DataError(f"{self.where}: more than {MOST_COLUMNS:,} columns; keep those that are used")
        return [_text(cell).strip() or f"Unnamed: {place}" for place, cell in enumerate(header)]

    @contextmanager
    def _sheet(self) -> Iterator[tuple[int, Iterator[list[Any]]]]:
        """The height of the sheet and its rows; whatever a reader raises becomes one sentence."""
        calamine = load("python_calamine", f"{self.where}: an Excel file")
        self._check_size()
        try:
            with calamine.load_workbook(self.where) as book:
                sheets = [book.get_sheet_by_index(place) for place in range(len(book.sheet_names))]
                used = [sheet for sheet in sheets if sheet.height]
                if len(used) != 1:
                    raise DataError(
                        f"{self.where}: an Excel file of {len(used)} sheets that are not empty, and the table must be "
                        "the only one; keep that one, or save it as CSV"
                    )
                yield used[0].height, iter(used[0].to_python())
        except DataError:
            raise
        except (calamine.CalamineError, OSError, ValueError, OverflowError) as error:
            raise DataError(f"{self.where}: a damaged Excel file ({type(error).__name__}); save it again") from None

    def _check_size(self) -> None:
        """Raise where the file unpacks to more than is read; what it says of its sizes is checked as well."""
        if not zipfile.is_zipfile(self.where):
            return
        try:
            with zipfile.ZipFile(self.where) as archive:
                size = sum(entry.file_size for entry in archive.infolist())
                damaged = size <= MOST_UNPACKED and archive.testzip() is not None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, OSError, zlib.error):
            size, damaged = 0, True
        if damaged:
            raise DataError(f"{self.where}: a damaged Excel file; save it again")
        if size > MOST_UNPACKED:
            raise DataError(
                f"{self.where}: an Excel file of {size:,} bytes unpacked, at most {MOST_UNPACKED:,} are read; save the "
                "table as CSV"
            )


def _text(cell: Any) -> str:
    """A cell as a CSV file would have it: whole numbers without a point, times in ISO 8601."""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell)
