"""Tables of records, read in chunks: memory does not grow with the number of rows.

A CSV file (plain or packed as gzip, xz, bzip2 or zip), a Parquet or Excel file, or a pandas object. Every complaint
names the file and the line; what stands there is shown only where the caller allows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import pandas as pd

from pufferflow._checks import check_path
from pufferflow.errors import DataError
from pufferflow.records.blocks import ROWS
from pufferflow.records.excel_tables import ExcelTable, is_excel
from pufferflow.records.parquet_tables import ParquetTable
from pufferflow.records.text_tables import CsvTable

Source: TypeAlias = "str | os.PathLike[str] | pd.Series[Any] | pd.DataFrame"


class Table(Protocol):
    """Rows in chunks."""

    @property
    def where(self) -> str:
        """Its name, for messages."""

    def columns(self) -> list[str]:
        """Names of the columns."""

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """Yield the rows of ``columns`` with the number of the first; ``work`` names the progress bar."""

    def place(self, row: int) -> str:
        """Say where row ``row`` (from 0) stands."""


def open_table(source: Source, *, separator: str = ",") -> Table:
    """Return the table of a path or a pandas object.

    Raises DataError: there is no such file, or it is empty.
    """
    if isinstance(source, pd.Series | pd.DataFrame):
        return PandasTable(_frame(source))
    path = check_path(source, "source")
    if str(source) == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        raise DataError(f"{source} is no file; save the table to one and give its name, for it is read more than once")
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; check the path") from error
    if not head:
        raise DataError(f"{path}: the file is empty; check that its download or export finished")
    if head == b"PAR1":
        return ParquetTable(str(path))
    if is_excel(str(path), head):
        return ExcelTable(str(path))
    return CsvTable(str(path), separator)


@dataclass(frozen=True)
class PandasTable:
    """A frame in memory."""

    frame: pd.DataFrame = field(repr=False)
    where: str = "the table"

    def columns(self) -> list[str]:
        """Names of its columns."""
        return [str(name) for name in self.frame.columns]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`pufferflow.records.tables.Table`."""
        for row in range(0, len(self.frame), ROWS):
            yield row, self.frame.iloc[row : row + ROWS][list(columns)].reset_index(drop=True)

    def place(self, row: int) -> str:
        """See :class:`pufferflow.records.tables.Table`."""
        return f"row {row + 1}"


@dataclass(frozen=True)
class JoinedTimes:
    """A table whose dates and times of day stand in two columns, with one of both instead."""

    table: Table
    parts: tuple[str, str]

    @property
    def where(self) -> str:
        """Name of the table."""
        return self.table.where

    @property
    def name(self) -> str:
        """Of the column of both."""
        return ",".join(self.parts)

    def columns(self) -> list[str]:
        """Names of the columns, that of both first."""
        return [self.name, *(name for name in self.table.columns() if name not in self.parts)]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`Table`."""
        wanted = [part for name in columns for part in (self.parts if name == self.name else (name,))]
        for row, frame in self.table.chunks(wanted, work):
            if self.name in columns:
                date, clock = (_written(frame[part]) for part in self.parts)
                frame = frame.assign(**{self.name: (date + " " + clock).str.strip()})
            yield row, frame[list(columns)]

    def place(self, row: int) -> str:
        """See :class:`Table`."""
        return self.table.place(row)


def joined_times(table: Table, named: str | None) -> Table:
    """Return the table with one column of times where ``named`` are two, "Date,Time"; else as it is."""
    parts = tuple(part.strip() for part in (named or "").split(","))
    if len(parts) != 2 or parts[0] == parts[1]:
        return table
    present = table.columns()
    if named in present or any(present.count(part) != 1 for part in parts):
        return table
    return JoinedTimes(table, (parts[0], parts[1]))


def _written(column: pd.Series[Any]) -> pd.Series[Any]:
    """Dates or times of day as texts, nothing where one is missing."""
    return column.astype("str").where(column.notna(), "")


def _frame(source: pd.Series[Any] | pd.DataFrame) -> pd.DataFrame:
    """A frame with its index as a column, unless it only numbers the rows.

    Raises DataError: the index is of a kind that is neither times nor one column.
    """
    index = source.index
    frame = source.to_frame("value") if isinstance(source, pd.Series) else source.copy(deep=False)
    if isinstance(frame.columns, pd.MultiIndex):
        raise DataError("the table has columns of several levels; give it one level of names")
    frame.columns = frame.columns.map(str)
    if isinstance(index, pd.DatetimeIndex):
        if "time" not in frame.columns:
            frame.insert(0, "time", index)
    elif isinstance(index, pd.MultiIndex | pd.PeriodIndex | pd.TimedeltaIndex):
        raise DataError(f"the table has a {type(index).__name__}, which is not read; make columns of it (reset_index)")
    elif index.name is not None:
        frame.insert(0, str(index.name), index, allow_duplicates=True)
    elif not pd.api.types.is_integer_dtype(index.dtype) and len(index):
        raise DataError("the table has an index that is not read; make a column of it, or drop it (reset_index)")
    return frame
