"""The folder of a release: made in a temporary one, and moved to its place complete.

Only its owner may read it (0700); after the move ``publish/`` has the modes of a web site (0755,
0644), except for a simulation. All times are equal.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from pufferflow._util.checks import check_path
from pufferflow._util.files import PathLike, check_output, workplace, write_atomic
from pufferflow.errors import DataError

PUBLISH, SIMULATION = "publish", "simulation"


@contextmanager
def draft(output: PathLike, zeros: dict[str, str]) -> Iterator[Callable[[dict[str, str]], None]]:
    """Make an empty folder of that name; return the function that puts a release in its place.

    A release is its files, strings by their paths; only a complete one remains. Writing one of
    ``zeros`` finds what could fail. Raises DataError: as :func:`require_new`.
    """
    target = require_new(output)
    target.mkdir(exist_ok=True)  # a name that is not possible fails here, before the charge
    try:
        with workplace(target.parent) as place:
            _fill(place / "release", target, zeros)
            yield partial(_write, place / "release", target)
    finally:
        with suppress(OSError):
            target.rmdir()  # fails if the folder is not empty


def _fill(folder: Path, target: Path, files: dict[str, str]) -> None:
    """Write the files into the temporary folder."""
    try:
        for name, text in files.items():
            write_atomic(folder / name, text)
    except OSError as error:  # name the target, not the temporary folder
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error


def _write(folder: Path, target: Path, files: dict[str, str]) -> None:
    """Write all files and move the folder; if its name is taken, to another one."""
    _fill(folder, target, files)
    moment = int(time.time())
    for path in (*folder.rglob("*"), folder):
        mode = 0o755 if PUBLISH in path.relative_to(folder).parts else 0o700
        path.chmod(mode if path.is_dir() else mode & 0o666)
        os.utime(path, (moment, moment))
    try:
        folder.rename(target)
    except OSError:
        spare = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{target.name[:200]}-"))
        folder.rename(spare)
        taken = f"{target} was made by another process meanwhile"
        raise DataError(f"{taken}; the release is whole in {spare}") from None


def require_new(folder: PathLike) -> Path:
    """Return the path of a new or empty folder in one that exists, or raise DataError."""
    target = check_path(folder, "output")
    empty = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    return target if empty else check_output(target)
