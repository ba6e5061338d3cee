"""Reading text tables so that every complaint can name the file, the line and the value."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from pufferflow.errors import DataError


def decompress(content: bytes, where: str, member: str | None = None) -> bytes:
    """Unpack gzip, xz or zip, told apart by their first bytes; other content is returned as it is.

    ``member`` is the file wanted from a zip of several. Raises DataError: the archive is truncated or corrupt, or it is
    not clear which file of a zip is meant.
    """
    try:
        if content.startswith(b"\x1f\x8b"):
            return gzip.decompress(content)
        if content.startswith(b"\xfd7zXZ\x00"):
            return lzma.decompress(content)
        if content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
                if member in names:
                    names = [member]
                if len(names) != 1:
                    raise DataError(f"{where}: a zip of {len(names)} files; unpack it and give the right one")
                return archive.read(names[0])
    except (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataError(f"{where}: truncated or corrupt archive ({error}); get the file again") from error
    return content


def read_content(path: str | Path, member: str | None = None) -> bytes:
    """Return the bytes of a text file, unpacked (see :func:`decompress`).

    Raises DataError: the file cannot be read, is a damaged archive, or is empty.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; check the path") from error
    content = decompress(content, str(path), member)
    if not content.strip():
        raise DataError(f"{path}: the file is empty; check that its download or export finished")
    return content


def read_header(content: bytes, separator: str) -> list[str]:
    """Return the column names in the first line."""
    line = content.split(b"\n", 1)[0].decode("utf-8-sig", "replace")
    return [name.strip().strip('"') for name in line.split(separator)]


def read_columns(content: bytes, columns: Sequence[str], where: str, separator: str = ",") -> pd.DataFrame:
    """Return ``columns`` of a table in UTF-8 as text, row i being line i + 2 of the file.

    Each different text is kept once, see :func:`parse_column`. Raises DataError: a column is
    missing or named twice, there are no rows, a line has too many fields, or the text is not UTF-8.
    """
    try:
        table = pd.read_csv(
            io.BytesIO(content.rstrip()),
            sep=separator,
            dtype="category",
            na_filter=False,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 text ({error.reason}); save it as UTF-8") from error
    except ValueError as error:
        raise DataError(f"{where}: {str(error).strip()}; mend that line") from error
    table.columns = table.columns.str.strip()
    for column in columns:
        if column not in table or f"{column}.1" in table:  # pandas numbers repeated names
            count = "two columns" if column in table else "no column"
            present = ", ".join(table.columns)
            raise DataError(f"{where}, line 1: {count} {column!r} among {present}; mend the header")
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes surplus fields for row labels
        raise DataError(f"{where}, line 2: more fields than the {table.shape[1]} of the header; mend either")
    if table.empty:
        raise DataError(f"{where}: a header line and no data; check that its download or export finished")
    return table[list(columns)]


def to_numbers(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Read decimal numbers, NaN for other texts."""
    return pd.to_numeric(texts, errors="coerce")


def parse_column(
    column: pd.Series[Any],
    where: str,
    what: str,
    *,
    parse: Callable[[pd.Series[Any]], ArrayLike] = to_numbers,
    missing: Collection[str] = (),
) -> NDArray[np.float64]:
    """Parse each different text of a column once, which makes millions of rows with few values cheap.

    The column is of "category" kind, ``parse`` makes as many numbers of texts, NaN for what it cannot read, and
    ``missing`` are texts that stand for a missing value, NaN in the result. ``where`` and ``what`` are those of
    :func:`refuse`. Raises DataError: a text is not a finite number >= 0.
    """
    texts = column.cat.categories.astype(str).to_series()
    values = np.asarray(parse(texts), dtype=np.float64)
    bad = ~(np.isfinite(values) & (values >= 0)) & ~texts.isin(missing).to_numpy()
    codes = column.cat.codes.to_numpy()
    refuse(bad[codes], column, where, what)
    return values[codes]


def refuse(bad: ArrayLike, values: pd.Series[Any], where: str, what: str) -> None:
    """Raise a DataError on the first row marked ``bad``, with its line (row 0 is line 2) and what ``values`` has there.

    ``where`` is the file's name; ``what`` says what is wrong and what to do.
    """
    marks = np.asarray(bad, dtype=bool)
    if marks.any():
        row = int(marks.argmax())
        raise DataError(f"{where}, line {row + 2}: {values.name} {str(values.iloc[row])!r} {what}")


def refuse_unordered(times: NDArray[Any], shown: pd.Series[Any], where: str) -> None:
    """Raise on the first time that is not later than the one before (see :func:`refuse`)."""
    stands = np.concatenate(([False], np.diff(times) <= 0))
    refuse(stands, shown, where, "does not come after the row before; sort the rows by time and remove repeats")
