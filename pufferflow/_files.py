"""Writing files so that a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def open_atomic(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that takes the place of ``path`` in one step when the block ends, creating its folder.

    The bytes go to a temporary file beside the target, which is then renamed; a run that is
    killed midway, or an exception in the block, leaves the old file or none.
    """
    target = Path(path)
    try:
        with _beside(target) as stream:
            yield stream
    except OSError as error:
        if error.filename is None or Path(os.fsdecode(error.filename)).name.startswith(f".{target.name}."):
            raise OSError(error.errno, error.strerror, os.fspath(target)) from error  # not the temporary name
        raise


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write ``content`` (text as UTF-8) to ``path`` in one step, as :func:`open_atomic` does."""
    with open_atomic(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def sha256(content: bytes) -> str:
    """Hexadecimal SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()
