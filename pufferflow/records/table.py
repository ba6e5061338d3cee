"""Tables in batches of columns: CSV (plain, gz, bz2, zst), Parquet and pandas objects.

Memory does not grow with the number of rows, lines beyond a bound are refused, and every message is
our own: those of the readers quote the rows.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from tqdm import tqdm

from pufferflow._util.checks import check_path
from pufferflow._util.optional import load
from pufferflow.errors import DataError

Source: TypeAlias = "str | os.PathLike[str] | pd.Series[Any] | pd.DataFrame"

ROWS = 2**15
"""Largest number of rows of a batch, except for a block of a CSV file."""
BLOCK = 2**20
"""Largest number of bytes of a block, and so of a line, of a CSV file."""
MAX_COLUMNS = 4096
BOUNDS: Any = {"buffer_size": BLOCK, "thrift_container_size_limit": 100_000}
"""Limits on the memory for opening a Parquet file."""
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, repr=False)
class Table:
    """An opened table.

    ``where`` names it in messages, ``read`` yields frames of the columns at some positions, and
    ``first_line`` is the line of the first row, None where rows have no lines.
    """

    where: str
    columns: tuple[str, ...]
    read: Callable[[list[int]], Iterator[pd.DataFrame]]
    first_line: int | None = None

    def batches(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield the rows of columns ``names``, as strings or typed, by number; at first none."""
        empty, start = pd.DataFrame(columns=list(names), dtype="str"), 0
        for frame in chain([empty], self.read([self.columns.index(name) for name in names])):
            rows = pd.RangeIndex(start, start + len(frame))
            yield frame.set_axis(list(names), axis=1).set_axis(rows)
            start += len(frame)

    def place(self, row: int) -> str:
        """Return the position of row ``row`` (from 0): "line 7" or "row 6"."""
        return f"row {row + 1}" if self.first_line is None else f"line {row + self.first_line}"


def as_text(value: Any) -> str:
    """Return an entry as string, "" if it is missing, whatever the type of the other entries."""
    if isinstance(value, float | np.floating):
        value = int(value) if float(value).is_integer() else float(value)
    elif isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    return "" if pd.isna(value) else str(value)


def open_table(source: Source | Table, separator: str | None = None) -> Table:
    """Return the table of a path or a pandas object; the separator is found in the header."""
    if isinstance(source, Table):
        return source
    if isinstance(source, pd.Series):
        source = source.to_frame("value")
    if isinstance(source, pd.DataFrame):
        frame = source.copy(deep=False)
        if isinstance(frame.index, pd.DatetimeIndex):
            frame.insert(0, "time", frame.index, allow_duplicates=True)
        elif frame.index.name is not None or frame.index.inferred_type not in ("integer", "empty"):
            raise DataError("the table has an index, which is not read; make columns of it")

        def parts(positions: list[int]) -> Iterator[pd.DataFrame]:
            return (frame.iloc[row : row + ROWS, positions] for row in range(0, len(frame), ROWS))

        return Table("the table", tuple(map(str, frame.columns)), parts)
    path = check_path(source, "source")
    if str(source) == "-" or (path.exists() and not path.is_file()):
        raise DataError(f"{source} is not a file; save the table to one and give its name")
    try:
        with path.open("rb") as stream:
            head = stream.read(4)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; check the path") from error
    load("pyarrow", f"{path}: the table of a file")
    return _parquet_table(str(path)) if head == b"PAR1" else _csv_table(str(path), separator)


def _csv_table(path: str, separator: str | None) -> Table:
    with _unpacked(path) as stream:
        header = re.split(rb"[\r\n]", stream.read(BLOCK).removeprefix(b"\xef\xbb\xbf"), maxsplit=1)
    if len(header[0]) == BLOCK:
        raise _endless(path)
    try:
        text = header[0].decode()
    except UnicodeDecodeError:
        raise DataError(f"{path}, line 1: not UTF-8 text; save the file as CSV in UTF-8") from None
    if not text.strip():
        raise DataError(f"{path}, line 1: empty; give a line with the names of the columns first")
    separator = separator or max(",;\t|", key=text.count)
    names = tuple(name.strip() for name in next(csv.reader([text], delimiter=separator)))
    if len(names) > MAX_COLUMNS:
        raise DataError(f"{path}, line 1: more than {MAX_COLUMNS:,} columns; keep those you use")
    if not any(header[1:]):
        return Table(path, names, lambda _: iter(()), 2)

    from pyarrow import compute, string
    from pyarrow import csv as arrow

    def blocks(positions: list[int]) -> Iterator[pd.DataFrame]:
        """Yield the blocks of the file as strings; a row is a line."""
        numbers, line = [str(i) for i in range(len(names))], 2
        rows = arrow.ReadOptions(
            use_threads=False, block_size=BLOCK, skip_rows=1, column_names=numbers
        )
        lines = arrow.ParseOptions(delimiter=separator, ignore_empty_lines=False)
        texts = arrow.ConvertOptions(
            column_types=dict.fromkeys(numbers, string()),
            include_columns=[numbers[i] for i in positions],
            strings_can_be_null=False,
        )
        with _unpacked(path) as stream:
            for batch in arrow.open_csv(stream, rows, lines, texts):
                for column in batch.columns:
                    broken = compute.index(compute.match_substring(column, "\n"), True).as_py()
                    if broken >= 0:
                        problem = "a quote is not closed, or a field has a line break"
                        where = f"{path}, line {line + broken}"
                        raise DataError(f"{where}: {problem}; write one reading per line")
                yield batch.to_pandas()
                line += len(batch)

    return Table(path, names, blocks, 2)


def _parquet_table(path: str) -> Table:
    from pyarrow import schema, string
    from pyarrow.parquet import ParquetFile
    from pyarrow.types import is_date

    with _unpacked(path) as stream:
        fields = list(ParquetFile(stream, **BOUNDS).schema_arrow)

    def batches(positions: list[int]) -> Iterator[pd.DataFrame]:
        """Yield the rows, typed, strings as categories."""
        names = [fields[i].name for i in positions]
        texts = [fields[i].name for i in positions if "string" in str(fields[i].type)]
        with _unpacked(path) as stream:
            file = ParquetFile(stream, read_dictionary=texts, **BOUNDS)
            for batch in file.iter_batches(ROWS, columns=names):
                some = batch.select(names)  # some dates are none of Python
                dates = (f.with_type(string()) if is_date(f.type) else f for f in some.schema)
                some = some.cast(schema(dates))
                yield some.to_pandas(ignore_metadata=True, integer_object_nulls=True)

    return Table(path, tuple(field.name for field in fields), batches)


@contextmanager
def _unpacked(path: str) -> Iterator[Any]:
    """Open a file, decompressed, with a progress bar; errors of a reader become our messages."""
    import pyarrow as pa

    bar: Any = {"desc": "reading", "disable": None, "leave": False}
    try:
        with (
            open(path, "rb") as file,
            tqdm.wrapattr(file, "read", os.path.getsize(path), **bar) as read,
        ):
            head = file.read(4)
            file.seek(0)
            packing: Any = next((PACKED[sign] for sign in PACKED if head.startswith(sign)), None)
            stream = pa.PythonFile(read, mode="r")  # type: ignore[arg-type]
            yield stream if packing is None else pa.CompressedInputStream(stream, packing)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        text = str(error)
        row = re.search(r"Row #(\d+)(?:: Expected (\d+) columns, got (\d+))?", text)
        where = f"{path}, line {row[1]}" if row else path
        if row and row[2]:
            fields = f"{row[3]} field(s), but the header has {row[2]}"
            raise DataError(f"{where}: {fields}; correct either") from None
        if "UTF8" in text:
            raise DataError(f"{where}: not UTF-8 text; save the file as UTF-8") from None
        if "straddling" in text or "out of sync" in text:
            raise _endless(path) from None
        raise DataError(f"{path}: damaged or cut short; get the file again") from None


def _endless(path: str) -> DataError:
    problem = f"a line of more than {BLOCK:,} bytes, or a quote that is not closed"
    return DataError(f"{path}: {problem}; write one reading per line")
