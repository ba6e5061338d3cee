"""Where the cost of a release is kept: which ledger the data have, and what it will not notice."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypedDict

from pufferflow._checks import check_path
from pufferflow._files import PathLike, check_folder, workplace
from pufferflow._ledger_entries import Extent
from pufferflow._texts import as_unicode
from pufferflow.errors import BudgetError, LedgerError, ParameterError
from pufferflow.ledger import UNNOTICED, Ledger, Reservation
from pufferflow.records.tables import Source

LedgerLike: TypeAlias = Ledger | PathLike


class _LedgerOption(TypedDict):
    ledger: Annotated[
        LedgerLike | None,
        "Ledger, path or None",
        "Where what is made of these records adds up; a path that does not exist gets a new ledger. None keeps no "
        "account: then the caller has to.",
    ]


class AccountOptions(_LedgerOption, total=False):
    """What is paid for, and where it goes."""

    limit: Annotated[
        float | None,
        "float, optional",
        "Of a new ledger (default: ``epsilon``, so that another release needs a decision).",
    ]
    output: Annotated[
        PathLike | None,
        "path, optional",
        "New place to write to: of a fit a model file, of a release a folder, of which ``publish`` may leave and "
        "``internal`` must not.",
    ]


MOST_NEIGHBOURS = 100
"""Ledgers beside the data that are looked into."""


@dataclass(frozen=True)
class Account:
    """Where the cost of a release is kept.

    Attributes
    ----------
    ledger : str or None
        Name of the file, without its folder; None where no account is kept. What is no Unicode in it is escaped.
    warnings : tuple of str
        What may be wrong with it, without a full stop, likewise.
    """

    ledger: str | None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ledger is not None:
            object.__setattr__(self, "ledger", as_unicode(self.ledger))
        object.__setattr__(self, "warnings", tuple(map(as_unicode, self.warnings)))

    @property
    def statement(self) -> str:
        """Who adds this release to others."""
        kept = "" if self.ledger is None else f"; this one is entered in the ledger {self.ledger}, but {UNNOTICED}"
        return f"Releases of the same records add up{kept}."


def open_ledger(ledger: LedgerLike, limit: float, given: bool = True) -> Ledger:
    """Open a ledger, or make one with a limit where there is none.

    Raises LedgerError: it cannot be used; ParameterError: it exists and has another limit than the one ``given``.
    """
    if isinstance(ledger, Ledger):
        return ledger
    path = check_path(ledger, "ledger")
    if not os.path.lexists(path):
        try:
            return Ledger.create(path, limit)
        except LedgerError:
            if not path.exists():
                raise
    book = Ledger(path)  # made by another process meanwhile, or long before
    if given and limit != book.limit:
        raise ParameterError(
            f"the ledger {path} has the limit {book.limit:g}, not {limit:g}; change it with pufferflow ledger set-limit"
        )
    return book


def try_on_copy(ledger: LedgerLike, pay: Callable[[PathLike], Ledger]) -> dict[str, Any]:
    """What ``pay``, which pays in the ledger of a path, would leave of the limit; raises what it would raise."""
    path = ledger.path if isinstance(ledger, Ledger) else check_path(ledger, "ledger")
    with workplace(Path(tempfile.gettempdir())) as folder:
        copy = folder / "ledger"
        if os.path.lexists(path):
            Ledger(path).copy_to(copy)
        else:
            check_folder(path)
        try:
            book = pay(copy)
        except (BudgetError, LedgerError, ParameterError) as error:
            error.args = (str(error).replace(str(copy), str(path)), *error.args[1:])
            raise
        return {key: book.to_dict()[key] for key in ("limit", "left")}


def usual_ledger(data: str | os.PathLike[str]) -> Path:
    """Return the path of the ledger beside a data file, the same for every link to it."""
    return Path(f"{os.path.realpath(data) if os.path.islink(data) else os.fspath(data)}.ledger")


def account_of(source: Source | None, ledger: Ledger | PathLike | None, extent: Extent | None = None) -> Account:
    """Return the account of a release that is going to be entered in ``ledger``, which need not exist yet.

    Raises LedgerError: the data have another ledger: what is entered in two is never added up.
    """
    path = ledger.path if isinstance(ledger, Ledger) else None if ledger is None else check_path(ledger, "ledger")
    file = Path(source) if isinstance(source, str | os.PathLike) else None
    theirs = [] if file is None else [p for p in _ledgers(file) if os.path.lexists(p)]
    if path is None:
        although = f", although the data have the ledger {theirs[0].name}" if theirs else ""
        return Account(None, (f"no account is kept of this release{although}: whoever makes another has to add them",))
    if theirs and not any(_same(path, other) for other in theirs):
        raise LedgerError(
            f"{file} has the ledger {theirs[0]}, and releases in two ledgers are never added up; use that one, or say "
            "that no account is kept (ledger None; no-ledger in the shell)"
        )
    return Account(path.name, tuple(_warnings(path, file, extent)))


def _ledgers(file: Path) -> tuple[Path, ...]:
    """Where the ledger of a file may be: beside it, or beside the link by which it is named."""
    return usual_ledger(file), Path(f"{file}.ledger")


def _same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _warnings(ledger: Path, file: Path | None, extent: Extent | None) -> Iterator[str]:
    if file is None:
        return
    if (names := os.stat(file).st_nlink) > 1:
        yield (
            f"the file of the data has {names} names (hard links), and the ledger stands beside one of them: a release "
            "under another name does not find it"
        )
    for other in _neighbours(usual_ledger(file).parent, ledger):
        if extent is not None and any(extent == known for known in _extents(other)):
            yield (
                f"the ledger {other.name}, beside the data, is of as many records of the same period: if they are the "
                "same ones, what is entered in the two ledgers has to be added"
            )


def _neighbours(folder: Path, ledger: Path) -> list[Path]:
    """The first other ledgers in a folder, by their names."""
    ledgers = sorted(folder.glob("*.ledger"))
    return list(islice((path for path in ledgers if not _same(path, ledger)), MOST_NEIGHBOURS))


def _extents(ledger: Path) -> list[Extent]:
    """Which records a ledger is of; none where it cannot be read, which is not for this release to say."""
    try:
        return [r.extent for r in Ledger(ledger).reservations() if r.extent is not None]
    except LedgerError:
        return []


@contextmanager
def paid(reservation: Reservation | None) -> Iterator[None]:
    """What can no longer be undone: of a file that cannot be written say that the ledger counts it all the same."""
    try:
        yield
    except OSError as error:
        if reservation is None:
            raise
        said = f"{error.strerror}; the ledger counts it as spent all the same"
        raise OSError(error.errno, said, error.filename) from error
