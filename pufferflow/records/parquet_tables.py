"""Parquet tables, read in batches whose memory is bounded whatever the file claims."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from pufferflow._optional import load
from pufferflow._progress import progress
from pufferflow.errors import DataError
from pufferflow.records.blocks import BLOCK, BUFFER, ROWS
from pufferflow.records.text_tables import MOST_COLUMNS

if TYPE_CHECKING:
    from pyarrow import Array, DataType, Field, RecordBatch
    from pyarrow.parquet import ParquetFile

MOST_DESCRIPTION = 2**24
"""Bytes of a file's own description at most; read, it takes some ten times as much."""

MOST_UNPACKED = 2**28
"""Bytes that the columns that are read take in a row group at most, before they are decoded."""

MOST_TEXT = 10_000
"""Bytes of a text at most: one that is stored once can be the value of every row."""

MOST_LISTED = 100_000
"""Entries of a list in the description at most, such as that of the row groups."""

MOST_ROWS = 10**7
MOST_ROWS_A_BYTE = 1000
"""Rows at most: ``MOST_ROWS`` and this many a byte of the file, for a run of equal values packs without bound."""


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file; columns keep their types."""

    where: str

    def columns(self) -> list[str]:
        """Names in its schema, but for an index without a name that only numbers the rows, which pandas wrote."""
        from pyarrow.types import is_integer

        with self._open() as file:
            return [
                column.name
                for column in file.schema_arrow
                if not (re.fullmatch(r"__index_level_\d+__", column.name) and is_integer(column.type))
            ]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`pufferflow.records.tables.Table`."""
        row = 0
        with self._open() as file:
            self._check(file, columns)
            texts = [name for name in columns if _is_text(file.schema_arrow.field(name).type)]
        with self._open(texts) as file:  # a text that is stored once stays so, however many rows have it
            total = file.metadata.num_rows
            with progress(total=total, desc=work, unit=" rows", unit_scale=True) as bar:
                for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
                    for chunk in self._frames(batch):
                        yield row, chunk[list(columns)]
                        row += len(chunk)
                        bar.update(len(chunk))

    def place(self, row: int) -> str:
        """See :class:`pufferflow.records.tables.Table`."""
        return f"row {row + 1}"

    @contextmanager
    def _open(self, packed: Sequence[str] = ()) -> Iterator[ParquetFile]:
        """Open the file, to read these texts packed; whatever a reader raises becomes one sentence."""
        pyarrow = load("pyarrow", f"{self.where}: a Parquet file")
        parquet = load("pyarrow.parquet", "a Parquet file")
        try:
            if _description(self.where) > MOST_DESCRIPTION:
                raise DataError(
                    f"{self.where}: it describes itself in more than {MOST_DESCRIPTION:,} bytes; write it with fewer "
                    "columns or larger row groups"
                )
            with parquet.ParquetFile(
                self.where,
                read_dictionary=list(packed),
                buffer_size=BUFFER,
                thrift_container_size_limit=MOST_LISTED,
            ) as file:
                if len(file.schema_arrow) > MOST_COLUMNS:
                    raise DataError(f"{self.where}: more than {MOST_COLUMNS:,} columns; keep those that are used")
                yield file
        except DataError:
            raise
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
            raise DataError(f"{self.where}: a damaged Parquet file ({type(error).__name__}); write it again") from None

    def _check(self, file: ParquetFile, columns: Sequence[str]) -> None:
        """Raise where columns are of a type that is not read, or the file holds more than it can."""
        for field in file.schema_arrow:
            if field.name in columns and not _is_plain(field.type):
                raise DataError(
                    f"{self.where}: the column {field.name!r} is of the type {_type_name(field)}; write it as numbers, "
                    "texts or times"
                )
        rows, size = file.metadata.num_rows, os.path.getsize(self.where)
        if rows > MOST_ROWS + MOST_ROWS_A_BYTE * size:
            raise DataError(
                f"{self.where}: {rows:,} rows in {size:,} bytes, which no records take; write it again if it is one"
            )
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            parts = (group.column(i) for i in range(group.num_columns))
            unpacked = sum(p.total_uncompressed_size for p in parts if p.path_in_schema.split(".")[0] in columns)
            if unpacked > MOST_UNPACKED:
                raise DataError(
                    f"{self.where}: {unpacked:,} bytes in one row group, at most {MOST_UNPACKED:,} are read; write it "
                    "with smaller row groups"
                )

    def _frames(self, batch: RecordBatch) -> Iterator[pd.DataFrame]:
        """A batch as tables, in parts where its texts are long, for they may be packed without bound."""
        from pyarrow import RecordBatch

        longest = 1 + sum(map(_longest, batch.columns))
        if longest > MOST_TEXT:
            raise DataError(f"{self.where}: a text of more than {MOST_TEXT:,} bytes; give names, numbers or times")
        rows = max(1, BLOCK // longest)
        for start in range(0, len(batch), rows):
            part = batch.slice(start, rows)
            plain = [_decoded(column) for column in part.columns]
            yield RecordBatch.from_arrays(plain, part.schema.names).to_pandas()


def _description(path: str) -> int:
    """Bytes in which a file describes itself, as its end says; 0 where they are not all there."""
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        stream.seek(max(size - 8, 0))
        said = int.from_bytes(stream.read(4), "little")
    return said if said < size else 0


def _is_plain(kind: DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_plain(kind.value_type)
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return _is_text(kind) or any(holds(kind) for holds in (*numbers, types.is_temporal))


def _is_text(kind: DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return any(holds(kind) for holds in (types.is_string, types.is_large_string, types.is_string_view))


def _type_name(field: Field[Any]) -> str:
    """The type of a column, short also where it is nested."""
    return str(field.type).split("<", maxsplit=1)[0].split("[", maxsplit=1)[0]


def _longest(column: Array[Any]) -> int:
    """Bytes of the longest text that a column may hold."""
    from pyarrow import DictionaryArray, compute

    if not _is_text(column.type):
        return 0
    texts: Any = column.dictionary if isinstance(column, DictionaryArray) else column
    return int(compute.max(compute.binary_length(texts)).as_py() or 0)


def _decoded(column: Array[Any]) -> Array[Any]:
    """A column without a dictionary, and without a name of a zone: its moments are those of UTC."""
    import pyarrow
    from pyarrow import types

    if isinstance(column, pyarrow.DictionaryArray):
        column = column.dictionary_decode()
    if types.is_timestamp(column.type) and column.type.tz is not None:
        return column.cast(pyarrow.timestamp(column.type.unit, "UTC"))
    return column
