"""Files: written atomically, read within bounds, and never overwriting an input."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pufferflow.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

PathLike: TypeAlias = str | os.PathLike[str]

WORKPLACE = ".pufferflow-"
"""Prefix of the names of temporary folders; all other names are the user's."""

MOST_BYTES = 2**25
"""Largest size of a JSON file: a chain of a thousand states takes two thirds of it."""

DATABASE = b"SQLite format 3\0"
"""The first bytes of an SQLite database."""

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


@contextmanager
def workplace(parent: Path) -> Iterator[Path]:
    """Make a temporary folder in ``parent``, and remove it when the block ends."""
    with tempfile.TemporaryDirectory(
        dir=parent, prefix=WORKPLACE, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)


def write_atomic(path: PathLike, content: str | bytes, *, private: bool = False) -> Path:
    """Write ``content`` (strings as UTF-8) atomically to ``path``, making its folder; return it.

    With ``private`` only its owner may read it. The bytes go to a file in a :func:`workplace` next
    to the target, which is then renamed: a run that is killed leaves the old file, or none.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(target.parent) as folder:
            new = folder / "new"
            new.write_bytes(content.encode() if isinstance(content, str) else content)
            if private:
                new.chmod(0o600)
            os.replace(new, target)
    except OSError as error:  # its message may name the temporary file
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error
    return target


def spreadsheet_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV; cells that spreadsheets read as formulas get an apostrophe."""

    def plain(cell: Any) -> Any:
        is_formula = isinstance(cell, str) and cell.startswith(_FORMULA_STARTS)
        return f"'{cell}" if is_formula else cell

    return str(table.map(plain).to_csv(index=False, lineterminator="\n"))


def read_bounded(path: PathLike, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, or of standard input for ``"-"``.

    Raises DataError: it cannot be read, or has more than ``most`` bytes.
    """
    name = "standard input" if path == "-" else os.fspath(path)
    try:
        if path == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with open(path, "rb") as stream:
                content = stream.read(most + 1)
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {name}: {reason}") from error
    if len(content) > most:
        wrong = f"it is larger than {most:,} bytes, the most that is read"
        raise DataError(f"cannot read {name}: {wrong}")
    return content


def check_outputs(
    outputs: Iterable[PathLike | None],
    inputs: Iterable[PathLike | None] = (),
    *,
    ledger: PathLike | None = None,
    new: bool = False,
) -> None:
    """Raise :class:`DataError` unless every output can be written without the loss of another file.

    Other files are inputs, other outputs and ledgers. None, and ``"-"`` among the inputs, is not a
    file; the ``ledger`` is appended to; with ``new`` an output must not exist, and its folder is
    written to.
    """
    files = [path for path in inputs if path is not None and path != "-"]
    if not all(map(os.path.exists, files)):
        return  # reading them raises, and nothing is written
    read, written = set(map(_identity, files)), set()
    for path in (Path(path) for path in (*outputs, ledger) if path is not None):
        this = _identity(path)
        check_folder(path)
        if this in read:
            wrong = "is read and would be overwritten; give the output another name"
        elif this in written:
            wrong = "would be written twice; give each output a name of its own"
        elif new and os.path.lexists(path):
            wrong = "exists already; give another name, or remove it first"
        elif path.is_dir():
            wrong = "is a folder; give the name of a file"
        elif path.exists() and not path.is_file():  # a device would be replaced, not written to
            wrong = "is a device or a pipe and would be replaced; give the name of a file"
        elif (ledger is None or path != Path(ledger)) and _is_database(path):
            wrong = "is a ledger and would be lost; give the output another name"
        else:
            written.add(this)
            with workplace(path.parent) if new else nullcontext():
                continue
        raise DataError(f"{path} {wrong}")


def check_folder(path: Path) -> None:
    """Raise :class:`DataError` unless the folder in which ``path`` is to be written exists."""
    if not path.parent.is_dir():
        what = f"there is no folder {path.parent}; make it first"
        raise DataError(f"{path} cannot be written: {what}")


def _is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database, like ledgers; False if it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(DATABASE)) == DATABASE
    return False


def _identity(path: PathLike) -> object:
    """Return an identity of a file, the same for all its names."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)  # unlike Path.resolve it accepts cyclic links
    return status.st_dev, status.st_ino


def sha256(content: bytes) -> str:
    """Return the hexadecimal SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()
