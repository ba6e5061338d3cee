"""Writing files so that a reader sees the old content or the new one, never a part; reading within bounds."""

from __future__ import annotations

import fcntl
import hashlib
import os
import select
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from pufferflow.errors import DataError, ParameterError

PathLike: TypeAlias = str | os.PathLike[str]

WORKPLACE = ".pufferflow-"
"""How the names of folders begin that hold what is not finished; all other names are the user's."""

MOST_BYTES = 2**25
"""Size of a JSON file at most: a chain of a thousand states takes two thirds of it."""

WAIT = 1.0
"""Seconds for which a pipe is given the chance to find a writer."""

DATABASE = b"SQLite format 3\0"
"""What a database of SQLite begins with."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def open_atomic(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file to write that takes the place of ``path`` in one step when the block ends, creating its folder.

    With ``private`` nobody but its owner may read it.

    The bytes go to a file in a :func:`workplace` beside the target, which is then renamed; a run that is killed midway,
    or an exception in the block, leaves the old file or none.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with workplace(target.parent) as folder:
            with (folder / "new").open("wb") as stream:
                yield stream
            if private:
                (folder / "new").chmod(0o600)
            os.replace(folder / "new", target)
    except OSError as error:
        if error.filename is None or WORKPLACE in os.fsdecode(error.filename):
            raise OSError(error.errno, error.strerror, os.fspath(target)) from error  # not the temporary name
        raise


@contextmanager
def workplace(parent: Path) -> Iterator[Path]:
    """Make a folder in ``parent`` for what is not finished, and remove it when the block ends.

    What killed runs of this machine left there is removed first. A folder is in use as long as its lock is held, which
    ends with the process however that ends; where a file system has no locks, nothing but one's own is removed.
    """
    _clear(parent)
    folder, lock = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:  # until no other process clears the folder in the moment before it is locked
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=_prefix()))
        with suppress(FileNotFoundError, BlockingIOError):
            return folder, _lock(folder)


def _clear(parent: Path) -> None:
    """Remove the workplaces of this user in ``parent`` whose process ended before it could."""
    with suppress(OSError), os.scandir(parent) as entries:
        left = [entry for entry in entries if entry.name.startswith(_prefix()) and entry.is_dir(follow_symlinks=False)]
        for entry in left:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    lock = _lock(Path(entry.path), needed=True)
                    shutil.rmtree(entry.path, ignore_errors=True)
                    os.close(lock)


def _lock(folder: Path, *, needed: bool = False) -> int:
    """Descriptor that holds the lock of a workplace; raises :class:`BlockingIOError` where another one does."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(folder / "lock")  # whoever held it before may have removed it
    except (BlockingIOError, FileNotFoundError):
        os.close(lock)
        raise
    except OSError:  # no locks here
        if needed:
            os.close(lock)
            raise
    return lock


def _prefix() -> str:
    """How the names of this machine's workplaces begin: another machine's locks may not be seen here."""
    return f"{WORKPLACE}{os.uname().nodename[:64]}-"


def write_atomic(path: str | os.PathLike[str], content: str | bytes, *, private: bool = False) -> Path:
    """Write ``content`` (text as UTF-8) to ``path`` in one step, as :func:`open_atomic` does."""
    with open_atomic(path, private=private) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


def kind_of_file(path: PathLike) -> str | None:
    """Return what ``path`` is if it is no ordinary file, in words; the file is not opened, so this cannot wait.

    Raises OSError: there is no such file.
    """
    mode = os.stat(path).st_mode
    return next((kind for holds, kind in _KINDS if holds(mode)), None)


def read_bounded(path: PathLike, most: int = MOST_BYTES) -> bytes:
    """Return the content of an ordinary file, of a pipe that somebody writes to, or for ``"-"`` of standard input.

    Raises DataError: it cannot be read, is anything else, or holds more than ``most`` bytes, of which no more are read.
    """
    name = "standard input" if path == "-" else os.fspath(path)
    try:
        content = sys.stdin.buffer.read(most + 1) if path == "-" else _content(path, most + 1)
    except (OSError, ValueError) as error:  # a path with a null character is a ValueError
        raise DataError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error
    if len(content) > most:
        raise DataError(f"cannot read {name}: it is larger than {most:,} bytes, the most that is read")
    return content


def _content(path: PathLike, most: int) -> bytes:
    kind = kind_of_file(path)
    if kind in ("a device", "a socket"):
        raise OSError(f"it is {kind}, not a file")
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
        head = _first_byte(stream.fileno()) if kind == "a pipe" else b""
        os.set_blocking(stream.fileno(), True)
        return head + stream.read(most - len(head))


def _first_byte(pipe: int) -> bytes:
    """Wait until a pipe has a writer; returns what had to be read of it to know."""
    if _readable(pipe):
        return b""
    try:
        head = os.read(pipe, 1)
    except BlockingIOError:  # there is a writer that has not written yet
        return b""
    if not head:
        raise OSError("it is a pipe that nobody writes to")
    return head


def _readable(pipe: int) -> bool:
    """Whether there is something to read or a writer has come and gone, within ``WAIT`` seconds."""
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    return bool(waiting.poll(WAIT * 1000))


def check_outputs(
    outputs: Iterable[PathLike | None],
    inputs: Iterable[PathLike | None] = (),
    *,
    ledger: PathLike | None = None,
    new: bool = False,
) -> None:
    """Raise unless every output can be written without the loss of an input, of another output or of a ledger.

    None, and ``"-"`` among the inputs, is no file; the ``ledger`` is appended to; with ``new`` an output must not
    exist. Raises ParameterError: two of them are the same file, or an output is a ledger; DataError: the folder of an
    output does not exist, the output is a folder itself, or it exists although it must be new.
    """
    files = [path for path in inputs if path is not None and path != "-"]
    if not all(map(os.path.exists, files)):
        return  # whoever reads them says so, and nothing is written
    read = set(map(_identity, files))
    written = set()
    for path in (Path(path) for path in (*outputs, ledger) if path is not None):
        appended = ledger is not None and path == Path(ledger)
        this = _identity(path)
        if this in read:
            raise ParameterError(f"{path} is read and would be overwritten; give the output another name")
        if this in written:
            raise ParameterError(f"{path} would be written twice; give each output a name of its own")
        written.add(this)
        check_folder(path)
        if new and (path.exists() or path.is_symlink()):
            raise DataError(f"{path} exists already; give another name, or remove it first")
        if path.is_dir():
            raise DataError(f"{path} is a folder; give the name of a file")
        if path.exists() and not path.is_file():  # a device would be replaced, not written to
            raise DataError(f"{path} is a device or a pipe and would be replaced; give the name of a file")
        if not appended and path.is_file() and _is_database(path):
            raise ParameterError(f"{path} is a ledger and would be lost; give the output another name")


def _is_database(path: Path) -> bool:
    """Whether a file is one of SQLite, as ledgers are; not where it cannot be read."""
    with suppress(OSError), open(path, "rb") as file:
        return file.read(len(DATABASE)) == DATABASE
    return False


def check_folder(path: Path) -> None:
    """Raise :class:`DataError` unless the folder in which ``path`` is to be written exists."""
    if not path.parent.is_dir():
        raise DataError(f"{path} cannot be written, for there is no folder {path.parent}; make it first")


def _identity(path: PathLike) -> object:
    """The same for every name of a file."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.realpath(path)  # which, unlike Path.resolve, takes links in a circle
    return status.st_dev, status.st_ino


def sha256(content: bytes) -> str:
    """Hexadecimal SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()
