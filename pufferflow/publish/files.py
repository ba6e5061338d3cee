"""The folder of a release: made in a temporary one, and moved to its place complete.

Only its owner may read it (0700); after the move ``publish/`` has the modes of a web site (0755,
0644), except for a simulation. All times are equal.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pufferflow._util.checks import check_path
from pufferflow._util.files import PathLike, check_output, workplace, write_atomic
from pufferflow.errors import DataError

PUBLISH, SIMULATION = "publish", "simulation"


@dataclass(frozen=True)
class Draft:
    """A release that is made in ``folder``, to be moved to ``target``.

    Its files are given as strings by their paths.
    """

    target: Path
    folder: Path

    def fill(self, files: dict[str, str]) -> None:
        """Write the files into the temporary folder."""
        try:
            for name, text in files.items():
                write_atomic(self.folder / name, text)
        except OSError as error:  # name the target, not the temporary folder
            raise OSError(error.errno, error.strerror, os.fspath(self.target)) from error

    def write(self, files: dict[str, str]) -> None:
        """Write all files and move the folder; if its name is taken, to another one."""
        self.fill(files)
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


@contextmanager
def draft(output: PathLike, zeros: dict[str, str]) -> Iterator[Draft]:
    """Make an empty folder of that name, and a temporary one; only written releases remain.

    Writing the files of zeros finds what could fail. Raises DataError: as :func:`require_new`.
    """
    target = require_new(output)
    target.mkdir(exist_ok=True)  # a name that is not possible fails here, before the charge
    try:
        with workplace(target.parent) as place:
            made = Draft(target, place / "release")
            made.fill(zeros)
            yield made
    finally:
        with suppress(OSError):
            target.rmdir()  # fails if the folder is not empty


def require_new(folder: PathLike) -> Path:
    """Return the path of a new or empty folder in one that exists, or raise DataError."""
    target = check_path(folder, "output")
    empty = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    return target if empty else check_output(target)
