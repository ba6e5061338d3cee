"""The folder of a release: what may leave apart from what must not, under a name that is held before it is paid for.

``publish/`` may leave. ``internal/``, for its owner alone, has the chain and the certificate of the scale, from both of
which the counts that the chain was fitted to can be found again. Nothing of a simulation may leave.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pufferflow._checks import check_path
from pufferflow._files import PathLike, check_folder, workplace, write_atomic
from pufferflow._optional import absence
from pufferflow.errors import DataError, ParameterError

if TYPE_CHECKING:
    from pufferflow.publishing.released import PrivateRelease

PUBLISH, INTERNAL = "publish", "internal"

FIGURES = ("svg", "pdf", "png")
"""Endings of the files of figures; a release has no others."""

Release = TypeVar("Release", bound="PrivateRelease")


@dataclass(frozen=True)
class Draft:
    """A release in the making.

    Attributes
    ----------
    target : Path
        Where it is to appear, with all its files at once; its name is held.
    folder : Path
        Where it is made.
    """

    target: Path
    folder: Path

    def rehearse(self, made: PrivateRelease, *, figure: bool) -> None:
        """Write what a release of this kind would, and remove it, which leaves room for the release.

        Raises ParameterError: the figure cannot be drawn; OSError: a file cannot be written.
        """
        fault = self.write(made, figure=figure).figure_fault
        shutil.rmtree(self.folder)
        if fault and not absence("matplotlib"):
            raise ParameterError(
                f"the figure cannot be drawn ({fault}); mend the settings of matplotlib (such as MPLBACKEND), or ask "
                "for no figure"
            )

    def write(self, made: Release, *, figure: bool) -> Release:
        """Write all files; return the release, which says so where its figure is missing: that stops no numbers."""
        try:
            (self.folder / INTERNAL).mkdir(parents=True)
            self._write_texts(made)
            if figure and (fault := self._draw(made)):
                made = replace(made, figure_fault=fault)
                self._write_texts(made)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(self.target)) from error  # not the temporary name
        return made

    def _write_texts(self, made: PrivateRelease) -> None:
        for name, text in made.files().items():
            write_atomic(self.folder / name, text)

    def _draw(self, made: PrivateRelease) -> str:
        """Draw the figures; what went wrong, or nothing."""
        if missing := absence("matplotlib"):
            return missing
        folder = self.folder / (PUBLISH if made.private else INTERNAL)
        try:
            from pufferflow.drawing.style import save_figure

            with warnings.catch_warnings():  # a letter that the font lacks is drawn as a box
                warnings.simplefilter("ignore")
                for name, draw in made.figures():
                    save_figure(draw(), folder / name)
        except Exception as error:
            for half in folder.iterdir():
                if half.suffix[1:] in FIGURES:
                    half.unlink()
            return type(error).__name__
        return ""

    def finish(self) -> Path:
        """Let the folder appear under its name.

        Raises DataError: something took the place meanwhile; says where the folder is instead.
        """
        (self.folder / INTERNAL).chmod(0o700)
        for path in (self.folder / INTERNAL).iterdir():
            path.chmod(0o600)
        moment = int(time.time())  # of all alike: how long one took to be made is told by none
        for path in (*self.folder.rglob("*"), self.folder):
            os.utime(path, (moment, moment))
        try:
            self.folder.rename(self.target)
        except OSError:
            spare = Path(tempfile.mkdtemp(dir=self.target.parent, prefix=f"{self.target.name[:200]}-"))
            self.folder.rename(spare)
            raise DataError(
                f"{self.target} was made by somebody else meanwhile; the release is whole in {spare}"
            ) from None
        return self.target


@contextmanager
def draft(output: PathLike) -> Iterator[Draft]:
    """Hold the name of a new folder, and a place to make it; unless :meth:`Draft.finish` was called nothing is left.

    Raises DataError: something of that name exists, another process is making it, or the folder that it is to be in
    does not exist.
    """
    target = require_new(output)
    with _held(target), workplace(target.parent) as place:
        yield Draft(target, place / "release")


@contextmanager
def _held(target: Path) -> Iterator[None]:
    """Have an empty folder of that name stand there, locked, so that of two that want the name one is refused.

    The system ends the lock of a process that is killed, and an empty folder that nobody holds is free.
    """
    made = False
    with suppress(FileExistsError):
        target.mkdir()
        made = True
    try:
        folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        raise _taken(target) from None
    try:
        _lock(folder, target, made)
        require_new(target)
        if not os.path.samestat(os.fstat(folder), os.stat(target)):
            raise _taken(target)
        yield
    finally:
        if made:
            with suppress(OSError):
                target.rmdir()  # which leaves a folder that is not empty
        os.close(folder)


def _lock(folder: int, target: Path, made: bool) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(f"{target} is being written by another process; give another output") from None
    except OSError:  # a file system without locks: only who made the folder has it
        if not made:
            raise _taken(target) from None


def require_new(folder: PathLike) -> Path:
    """Return the path of a new folder, or of an empty one; a release is paid for, so none is overwritten or lost.

    Raises DataError: something of that name exists, or the folder that it is to be in does not.
    """
    target = check_path(folder, "output")
    if target.is_symlink() or (target.exists() and not (target.is_dir() and not any(target.iterdir()))):
        raise _taken(target)
    check_folder(target)
    return target


def _taken(target: Path) -> DataError:
    return DataError(f"{target} exists already; give another output, for a release is never overwritten")
