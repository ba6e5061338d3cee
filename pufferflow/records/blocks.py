"""The text of a file in blocks of whole lines, unpacked on the way: whatever the file holds, a block is bounded.

A small archive may unpack to terabytes, and a line may never end; both are refused, with the bound, when it is passed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from pufferflow._progress import progress
from pufferflow.errors import DataError
from pufferflow.records._kernels import line_end

if TYPE_CHECKING:
    from tqdm import tqdm

ROWS = 200_000
"""Rows of a chunk at most."""

BLOCK = 2**22
"""Bytes of a block, and so of a line, at most."""

BUFFER = 2**18
"""Bytes of a file read at once."""

MOST_TIMES = 100
MOST_UNPACKED = 2**26
"""An archive unpacks to at most ``MOST_UNPACKED`` bytes and ``MOST_TIMES`` its size: tables pack 5 to 50 times."""

MOST_MEMORY = 2**27
"""Bytes that unpacking xz may take; ``xz -9`` needs half of it."""

_BOM = b"\xef\xbb\xbf"


@contextmanager
def open_blocks(path: str, separator: str, work: str) -> Iterator[Iterator[bytes]]:
    """Open a file, packed or not, as blocks of whole lines; ``work`` names the progress bar, "" shows none.

    Raises DataError: while reading: a line or what is unpacked passes its bound.
    """
    size = Path(path).stat().st_size
    with (
        Path(path).open("rb") as raw,
        progress(total=size, desc=work, unit="B", unit_scale=True, hidden=not work) as bar,
    ):
        most = MOST_UNPACKED + MOST_TIMES * size
        yield _whole_lines(path, _unpacked(path, _Counted(raw, bar)), separator, most)


def split_header(block: bytes, separator: str) -> tuple[bytes, bytes]:
    """The first line of the first block, without the mark of its encoding, and what follows."""
    block = block.removeprefix(_BOM)
    end = _line_end(block, separator, first=True) or len(block)
    return block[:end], block[end:]


def _whole_lines(path: str, stream: IO[bytes], separator: str, most: int) -> Iterator[bytes]:
    begun, total = b"", 0
    while True:
        more = stream.read(BLOCK - len(begun))
        block, total = begun + more, total + len(more)
        if total > most:
            raise DataError(
                f"{path}: it unpacks to more than {MOST_TIMES} times its size, as no table does; unpack it yourself if "
                "it is one"
            )
        end = _line_end(block, separator, first=False) if more else len(block)
        if more and not end and len(block) == BLOCK:
            raise DataError(
                f"{path}: a line of more than {BLOCK:,} bytes, or a quote that is not closed; give a table with a line "
                "for each record"
            )
        if end:
            yield block[:end]
        if not more:
            return
        begun = block[end:]


def _line_end(block: bytes, separator: str, *, first: bool) -> int:
    return int(line_end(np.frombuffer(block, dtype=np.uint8), ord(separator), first))


def _unpacked(path: str, raw: _Counted) -> Any:
    head = raw.read(6)
    raw.seek(0)
    if head.startswith(b"PK\x03\x04"):
        return _unzipped(path, raw)
    counted: Any = io.BufferedReader(raw, BUFFER)
    if head.startswith(b"\xfd7zXZ\x00"):
        return io.BufferedReader(_Unxz(path, counted), BUFFER)
    if head.startswith(b"\x1f\x8b"):
        return gzip.open(counted)
    return bz2.open(counted) if head.startswith(b"BZh") else counted


def _unzipped(path: str, raw: _Counted) -> IO[bytes]:
    """The one file of a zip; its list of files is read at once, which :class:`_Counted` bounds."""
    archive = zipfile.ZipFile(raw)
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) != 1:
        raise DataError(f"{path}: a zip of {len(entries)} files; unpack it and give the right one")
    if entries[0].compress_type == zipfile.ZIP_LZMA:  # takes whatever memory the file asks for
        raise DataError(f"{path}: a zip packed with LZMA; unpack it and give the file itself")
    return archive.open(entries[0])


class _Counted(io.RawIOBase):
    """A binary file that moves a bar as it is read, a block at most at once."""

    def __init__(self, raw: IO[bytes], bar: tqdm[Any]) -> None:
        self.raw, self.bar = raw, bar

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self.raw.seek(offset, whence)

    def tell(self) -> int:
        return self.raw.tell()

    def read(self, size: int = -1) -> bytes:
        if size > BLOCK:
            raise zipfile.BadZipFile("too long a list of files")
        return super().read(size) or b""

    def readinto(self, buffer: Any) -> int:
        content = self.raw.read(len(buffer))
        buffer[: len(content)] = content
        self.bar.update(len(content))
        return len(content)


class _Unxz(io.RawIOBase):
    """What an xz file holds, unpacked in bounded memory, which :mod:`lzma` grants to a decompressor only."""

    def __init__(self, path: str, packed: IO[bytes]) -> None:
        self.path, self.packed = path, packed
        self.unpack = self._fresh()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = b""
        while not content:
            more = self._more()
            if self.unpack.eof:
                if not more:
                    return 0
                self.unpack = self._fresh()  # another stream follows
            elif self.unpack.needs_input and not more:
                raise EOFError("it ends too early")
            content = self._unpack(more, len(buffer))
        buffer[: len(content)] = content
        return len(content)

    @staticmethod
    def _fresh() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_MEMORY)

    def _more(self) -> bytes:
        """Packed bytes, where the decompressor needs some."""
        if not self.unpack.eof:
            return self.packed.read(BUFFER) if self.unpack.needs_input else b""
        more = self.unpack.unused_data.lstrip(b"\0")  # streams may be padded
        while not more and (packed := self.packed.read(BUFFER)):
            more = packed.lstrip(b"\0")
        return more

    def _unpack(self, more: bytes, most: int) -> bytes:
        try:
            return self.unpack.decompress(more, most)
        except lzma.LZMAError as error:
            if "limit" not in str(error):
                raise
            raise DataError(
                f"{self.path}: unpacking takes more than {MOST_MEMORY >> 20} MB of memory; unpack it yourself"
            ) from None
