"""Tables of records, read in chunks: memory does not grow with the number of rows.

A CSV file (plain or packed as gzip, xz, bzip2 or zip), a Parquet file, or a pandas object. Every complaint names the
file and the line; what stands there is shown only where the caller allows it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

import pandas as pd

from pufferflow._checks import check_path
from pufferflow.errors import DataError

if TYPE_CHECKING:
    from tqdm import tqdm

ROWS = 200_000
"""Rows of a chunk."""

BUFFER = 2**18
"""Bytes of a file read at once."""

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

    Raises
    ------
    DataError
        There is no such file, or it is empty.
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
    return CsvTable(str(path), separator)


@dataclass(frozen=True)
class CsvTable:
    """A text table with a header line; all fields are text."""

    where: str
    separator: str

    def columns(self) -> list[str]:
        """Names in the first line."""
        with self._reading(), self._text("") as stream:
            head = pd.read_csv(stream, sep=self.separator, nrows=0, encoding="utf-8-sig")
        return [str(name).strip() for name in head.columns]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`Table`."""
        row = 0
        with (
            self._reading(),
            self._text(work) as stream,
            pd.read_csv(
                stream,
                sep=self.separator,
                dtype="str",
                na_filter=False,
                skip_blank_lines=False,
                encoding="utf-8-sig",
                chunksize=ROWS,
                engine="c",
            ) as parts,
        ):
            for part in parts:
                if not isinstance(part.index, pd.RangeIndex):  # pandas takes surplus fields for row labels
                    raise DataError(f"{self.where}, line 2: more fields than the header has; mend either")
                part.columns = part.columns.str.strip()
                yield row, part[list(columns)].reset_index(drop=True)
                row += len(part)

    def place(self, row: int) -> str:
        """See :class:`Table`."""
        return f"line {row + 2}"

    @contextmanager
    def _text(self, work: str) -> Iterator[IO[bytes]]:
        """The unpacked bytes; a bar follows the packed ones."""
        from tqdm import tqdm

        size = Path(self.where).stat().st_size
        hidden = None if work else True  # None: where nobody watches
        with (
            Path(self.where).open("rb") as raw,
            tqdm(total=size, desc=work, unit="B", unit_scale=True, disable=hidden, leave=False) as bar,
        ):
            head = raw.read(6)
            raw.seek(0)
            counted: Any = io.BufferedReader(_Counted(raw, bar), BUFFER)
            if head.startswith(b"PK\x03\x04"):
                with zipfile.ZipFile(raw) as archive:
                    names = [entry for entry in archive.namelist() if not entry.endswith("/")]
                    if len(names) != 1:
                        raise DataError(f"{self.where}: a zip of {len(names)} files; unpack it and give the right one")
                    yield archive.open(names[0])
                return
            opened: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open, b"BZh": bz2.open}
            yield next((unpack(counted) for magic, unpack in opened.items() if head.startswith(magic)), counted)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever a reader raises into one sentence without any of the content."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise DataError(f"{self.where}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
        except pd.errors.EmptyDataError:
            raise DataError(f"{self.where}: the file is empty; check that its download or export finished") from None
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
            raise DataError(f"{self.where}: truncated or corrupt archive ({error}); get the file again") from None
        except (ValueError, OverflowError, RuntimeError) as error:
            if isinstance(error, DataError):
                raise
            text = str(error).removeprefix("Error tokenizing data. C error: ").strip()
            raise DataError(f"{self.where}: {text}; mend that line") from None
        except OSError as error:
            raise DataError(f"{self.where}: {error.strerror or 'damaged'}; get the file again") from None


class _Counted(io.RawIOBase):
    """A binary file that moves a bar as it is read."""

    def __init__(self, raw: IO[bytes], bar: tqdm[Any]) -> None:
        self.raw, self.bar = raw, bar

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.raw.read(len(buffer))
        buffer[: len(content)] = content
        self.bar.update(len(content))
        return len(content)


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file; columns keep their types."""

    where: str

    def columns(self) -> list[str]:
        """Names in its schema, but for an index without a name that only numbers the rows, which pandas wrote."""
        import pyarrow.parquet

        with self._reading(), pyarrow.parquet.ParquetFile(self.where) as file:
            return [
                column.name
                for column in file.schema_arrow
                if not (re.fullmatch(r"__index_level_\d+__", column.name) and pyarrow.types.is_integer(column.type))
            ]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`Table`."""
        import pyarrow.parquet
        from tqdm import tqdm

        row = 0
        with self._reading(), pyarrow.parquet.ParquetFile(self.where) as file:
            total = file.metadata.num_rows
            with tqdm(total=total, desc=work, unit=" rows", unit_scale=True, disable=None, leave=False) as bar:
                for batch in file.iter_batches(batch_size=ROWS, columns=list(columns)):
                    chunk = batch.to_pandas(ignore_metadata=True)  # which would make an index of columns
                    yield row, chunk[list(columns)]
                    row += len(chunk)
                    bar.update(len(chunk))

    def place(self, row: int) -> str:
        """See :class:`Table`."""
        return f"row {row + 1}"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except (ArrowException, OSError) as error:
            raise DataError(f"{self.where}: a damaged Parquet file ({type(error).__name__}); write it again") from None


@dataclass(frozen=True)
class PandasTable:
    """A frame in memory."""

    frame: pd.DataFrame = field(repr=False)
    where: str = "the table"

    def columns(self) -> list[str]:
        """Names of its columns."""
        return [str(name) for name in self.frame.columns]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`Table`."""
        for row in range(0, len(self.frame), ROWS):
            yield row, self.frame.iloc[row : row + ROWS][list(columns)].reset_index(drop=True)

    def place(self, row: int) -> str:
        """See :class:`Table`."""
        return f"row {row + 1}"


def _frame(source: pd.Series[Any] | pd.DataFrame) -> pd.DataFrame:
    """A frame with its index as a column, unless it only numbers the rows.

    Raises
    ------
    DataError
        The index is of a kind that is neither times nor one column.
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
