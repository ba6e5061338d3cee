"""Files: written atomically, read within bounds, and never overwriting an input."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from pufferflow._util.checks import check_path
from pufferflow.errors import DataError

PathLike: TypeAlias = str | os.PathLike[str]

WORKPLACE = ".pufferflow-"
"""Prefix of the names of temporary folders; all other names are the user's."""

MAX_BYTES = 2**25
"""Largest size of a JSON file: a chain of a thousand states takes two thirds of it."""


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


def read_bounded(path: PathLike, most: int = MAX_BYTES) -> bytes:
    """Return the content of a file, or of standard input for ``"-"``.

    Raises DataError: it cannot be read, or has more than ``most`` bytes.
    """
    check_path(path, "path")
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


def check_output(path: PathLike, *others: PathLike | None) -> Path:
    """Return the path of a file that can be written without the loss of another one.

    ``others`` are read or written, too. Raises DataError: it is one of these, its folder does not
    exist, or it exists itself.
    """
    target = check_path(path, "output")
    check_folder(target)
    if any(_is_same(target, other) for other in others if other is not None):
        raise DataError(f"{target} is read or written, too; give the output another name")
    if os.path.lexists(target):
        raise DataError(f"{target} exists already; give another name")
    return target


def check_folder(path: Path) -> None:
    """Raise :class:`DataError` unless the folder in which ``path`` is to be written exists."""
    if not path.parent.is_dir():
        problem = f"there is no folder {path.parent}; make it first"
        raise DataError(f"{path} cannot be written: {problem}")


def _is_same(one: PathLike, other: PathLike) -> bool:
    """Return whether two names are of one file, also of one that does not exist yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)
