"""Tables of text: CSV files, also packed, read block by block."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import pandas as pd

from pufferflow.errors import DataError
from pufferflow.records.blocks import ROWS, open_blocks, split_header

MOST_COLUMNS = 4096
"""Columns of a table at most: each costs time in every block, and one to four of them are used."""


@dataclass(frozen=True)
class CsvTable:
    """A text table with a header line; all fields are text."""

    where: str
    separator: str

    def columns(self) -> list[str]:
        """Names in the first line."""
        with self._reading(), open_blocks(self.where, self.separator, "") as blocks:
            header, _ = split_header(next(blocks), self.separator)
            return [name.strip() for name in self._names(header)]

    def chunks(self, columns: Sequence[str], work: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """See :class:`pufferflow.records.tables.Table`."""
        with self._reading(), open_blocks(self.where, self.separator, work) as blocks:
            header, block = split_header(next(blocks), self.separator)
            names, row = self._names(header), 0
            for text in filter(None, chain([block], blocks)):
                part = self._frame(text, names, row)[list(columns)].astype("str")
                for start in range(0, len(part), ROWS):
                    yield row + start, part[start : start + ROWS].reset_index(drop=True)
                row += len(part)

    def place(self, row: int) -> str:
        """See :class:`pufferflow.records.tables.Table`."""
        return f"line {row + 2}"

    def _names(self, header: bytes) -> list[str]:
        if not header.strip():
            raise DataError(
                f"{self.where}: the file is empty or begins with an empty line; check that its download or export "
                "finished"
            )
        if header.count(self.separator.encode()) >= MOST_COLUMNS:
            raise DataError(f"{self.where}, line 1: more than {MOST_COLUMNS:,} columns; keep those that are used")
        head = pd.read_csv(io.BytesIO(header), sep=self.separator, nrows=0)
        return [str(name).strip() for name in head.columns]

    def _frame(self, text: bytes, names: list[str], row: int) -> pd.DataFrame:
        """Whole lines as a table; ``row`` is the number of the first."""
        try:
            part = pd.read_csv(
                io.BytesIO(text),
                sep=self.separator,
                header=None,
                names=range(len(names)),
                dtype=object,  # turning a column into texts costs more than reading it
                na_filter=False,
                skip_blank_lines=False,
                engine="c",
            )
        except pd.errors.ParserError as error:
            raise self._refused(str(error), row) from None
        if not isinstance(part.index, pd.RangeIndex):  # pandas takes surplus fields for row labels
            raise DataError(f"{self.where}, {self.place(row)}: more fields than the header has; mend either")
        part.columns = pd.Index(names)
        return part

    def _refused(self, said: str, row: int) -> DataError:
        """What pandas says of a block that begins with ``row``, with the number of the line in the file."""
        text = said.removeprefix("Error tokenizing data. C error: ").strip()
        text = re.sub(r"(?<=in line )\d+", lambda number: str(row + 1 + int(number[0])), text)
        text = re.sub(r"row (\d+)", lambda number: self.place(row + int(number[1])), text)
        return DataError(f"{self.where}: {text}; mend that line")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn whatever a reader raises into one sentence without any of the content."""
        try:
            yield
        except DataError:
            raise
        except UnicodeDecodeError as error:
            raise DataError(f"{self.where}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
            raise DataError(f"{self.where}: truncated or corrupt archive ({error}); get the file again") from None
        except (ValueError, OverflowError, RuntimeError) as error:
            raise DataError(f"{self.where}: {error}; mend the file") from None
        except KeyError:  # a column that was there
            raise DataError(f"{self.where}: it was changed while it was read; give a file at rest") from None
        except OSError as error:
            raise DataError(f"{self.where}: {error.strerror or 'damaged'}; get the file again") from None
