"""The folder of a release: its name is reserved before the charge, and it is moved there complete.

Only its owner may read it (0700); after the move ``publish/`` has the modes of a web site (0755,
0644), except for a simulation. All times are equal.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pufferflow._util.checks import check_path
from pufferflow._util.files import PathLike, check_output, workplace, write_atomic
from pufferflow.errors import DataError

if TYPE_CHECKING:
    from pufferflow.publish.result import Release

PUBLISH, SIMULATION = "publish", "simulation"


@dataclass(frozen=True)
class Draft:
    """A release that is made in ``folder``, to be moved to the reserved name ``target``."""

    target: Path
    folder: Path

    def fill(self, made: Release) -> None:
        """Write the files, replacing those of the dry run with zeros."""
        try:
            for name, text in made.files().items():
                write_atomic(self.folder / name, text)
        except OSError as error:  # name the target, not the temporary folder
            raise OSError(error.errno, error.strerror, os.fspath(self.target)) from error

    def write(self, made: Release) -> Path:
        """Write all files and move the folder; if its name is taken, to another one."""
        self.fill(made)
        moment = int(time.time())
        for path in (*self.folder.rglob("*"), self.folder):
            mode = 0o755 if PUBLISH in path.relative_to(self.folder).parts else 0o700
            path.chmod(mode if path.is_dir() else mode & 0o666)
            os.utime(path, (moment, moment))
        try:
            self.folder.rename(self.target)
        except OSError:
            prefix = f"{self.target.name[:200]}-"
            spare = Path(tempfile.mkdtemp(dir=self.target.parent, prefix=prefix))
            self.folder.rename(spare)
            taken = f"{self.target} was made by another process meanwhile"
            raise DataError(f"{taken}; the release is whole in {spare}") from None
        return self.target


@contextmanager
def draft(output: PathLike) -> Iterator[Draft]:
    """Reserve the name of a new folder and a temporary folder; only written releases remain.

    The reservation is an empty, locked folder of that name, so that a second process is refused.
    The lock ends with its process, and an empty folder without a lock is free.

    Raises DataError: as :func:`require_new`, or another process is making it.
    """
    target, mine = require_new(output), False
    with suppress(FileExistsError):
        target.mkdir()
        mine = True
    busy = DataError(f"{target} is being written by another process; give another output")
    try:
        held = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        raise busy from None
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:  # without locks the maker of the folder has it
            mine = mine and not isinstance(error, BlockingIOError)
            if not mine:
                raise busy from None
        require_new(target)
        if not os.path.samestat(os.fstat(held), os.stat(target)):
            raise busy
        with workplace(target.parent) as place:
            yield Draft(target, place / "release")
    finally:
        if mine:
            with suppress(OSError):
                target.rmdir()  # fails if the folder is not empty
        os.close(held)


def require_new(folder: PathLike) -> Path:
    """Return the path of a new or empty folder in one that exists, or raise DataError."""
    target = check_path(folder, "output")
    empty = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    return target if empty else check_output(target)
