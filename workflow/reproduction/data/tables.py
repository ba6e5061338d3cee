"""A user's table, read with pandas alone: the run environment has no pyarrow."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from pufferflow.errors import DataError, PufferflowError
from pufferflow.records.table import ROWS, Table, open_table


def own_table(path: str | Path, separator: str = ",") -> Table:
    """Open a CSV file with fields as strings, compressed as its suffix states, or a Parquet file.

    Raises DataError: it is missing, empty or damaged, a row has too many fields.
    """
    with _sentences(path):
        with Path(path).open("rb") as stream:
            if stream.read(4) == b"PAR1":
                return open_table(path)
        names = _read(path, separator, nrows=0).columns

    def batches(positions: list[int]) -> Iterator[pd.DataFrame]:
        with _sentences(path), _read(path, separator, chunksize=ROWS) as parts:
            for part in parts:
                if not isinstance(part.index, pd.RangeIndex):
                    raise DataError(f"{path}: more fields than the header has; correct either")
                yield part.iloc[:, positions]

    return Table(str(path), tuple(str(name).strip() for name in names), batches, 2)


def own_columns(table: Table) -> dict[str, Any]:
    """Return the columns that are called participant and group."""
    return {role: role for role in ("participant", "group") if role in table.columns}


def _read(path: str | Path, separator: str, **options: Any) -> Any:
    return pd.read_csv(
        path, sep=separator, dtype=object, na_filter=False, skip_blank_lines=False, **options
    )


@contextmanager
def _sentences(path: str | Path) -> Iterator[None]:
    """Turn exceptions of a reader into one sentence."""
    try:
        yield
    except PufferflowError:
        raise
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except pd.errors.EmptyDataError:
        raise DataError(f"{path}: the file is empty; check that its download finished") from None
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: truncated or corrupt archive ({error}); get it again") from None
    except ValueError as error:
        text = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataError(f"{path}: {text}; correct the file") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}; check the path") from None
