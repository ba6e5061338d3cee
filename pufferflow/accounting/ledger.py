"""The ledger: all releases of one population, in a file next to its data.

A ledger is an SQLite file of rows that are only ever appended, each with a digest of itself and
the one before. It is of one population, one time grid, at most one Θ, and of promises that must
each hold over *all* its releases (:mod:`pufferflow.accounting.account`). A release is charged
first, and its charge is final: a crash at any moment can waste budget, never exceed it.

Digests detect damage, not intent: they have no key. docs/account.md lists the limits.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from pufferflow._util.checks import check_path
from pufferflow._util.files import PathLike, check_folder, workplace
from pufferflow.accounting.account import Promise, percent, spent
from pufferflow.accounting.entries import FIX, Book, Document, Paid, Terms, canonical, digest_of
from pufferflow.errors import BudgetError, LedgerError

PATIENCE_SECONDS = 600.0
"""Seconds that a release waits for others that are being charged."""
MAX_BYTES, MAX_ROW_BYTES = 2**28, 2**24
"""Bytes of a ledger of about 300,000 releases; of a chain of about 900 states."""
_MARKS = {"application_id": int.from_bytes(b"PUFF"), "user_version": 7}
_SCHEMA = f"""
{"".join(f"PRAGMA {name} = {number};" for name, number in _MARKS.items())}
CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL,
    content TEXT NOT NULL, digest TEXT NOT NULL UNIQUE);
"""


class Ledger(os.PathLike[str]):
    """A ledger; raises LedgerError if the file is missing, not a ledger, or of another version."""

    def __init__(self, path: PathLike) -> None:
        self.path = check_path(path, "path")
        found = []
        if self.path.is_file() and self.path.stat().st_size <= MAX_BYTES:
            # only SQLite may open it: a file that is closed drops the locks of all threads
            with suppress(sqlite3.Error), self._connected() as connection:
                found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _MARKS]
        if found != [*_MARKS.values()]:
            problem = "no ledger of this program is there, or one from before 1.0"
            advice = "give another path, or a new one to a release"
            raise LedgerError(f"ledger {self.path}: {problem}; {advice}")

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @classmethod
    def create(cls, path: PathLike) -> Self:
        """Open a ledger; if there is no file make an empty one first, for its owner alone."""
        target = check_path(path, "path")
        if os.path.lexists(target):
            return cls(target)
        try:
            # the complete ledger appears at once: linking fails if the name is taken
            with workplace(target.parent) as folder, suppress(FileExistsError):
                with closing(sqlite3.connect(made := folder / "ledger")) as connection:
                    connection.executescript(_SCHEMA)
                made.chmod(0o600)  # a fitted Θ is as confidential as its data
                os.link(made, target)
        except (OSError, sqlite3.Error) as error:
            problem = getattr(error, "strerror", error)
            raise LedgerError(
                f"cannot create the ledger {target}: {problem}; give another"
            ) from error
        return cls(target)

    def _connected(self) -> closing[sqlite3.Connection]:
        uri = f"{self.path.absolute().as_uri()}?mode=rw"
        return closing(sqlite3.connect(uri, PATIENCE_SECONDS, isolation_level=None, uri=True))

    @contextmanager
    def _open(self, *, writing: bool = False) -> Iterator[Book]:
        """Read and check all rows; with ``writing`` lock the file and write added rows.

        Nothing is written if the block raises.
        """
        try:
            with self._connected() as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
                connection.execute("PRAGMA synchronous = EXTRA")  # also of the journal's end
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                check = "PRAGMA integrity_check(1)"
                strange = {*connection.execute(_TABLES)} - _OWN
                if strange or [*connection.execute(check)] != [("ok",)]:
                    raise LedgerError(f"it is damaged, or not as this program makes it; {FIX}")
                book = Book.read(connection.execute("SELECT * FROM entries ORDER BY number"))
                there = len(book.rows)
                yield book
                if writing:
                    add = "INSERT INTO entries VALUES (?, ?, ?, ?, ?)"
                    connection.executemany(add, book.rows[there:])
                    connection.execute("COMMIT")
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's message may quote the file
            then = "pufferflow ledger show lists the entries, which are spent" if writing else FIX
            raise LedgerError(f"ledger {self.path}: {error}; {then}") from error
        except (BudgetError, LedgerError) as error:
            error.args = (f"ledger {self.path}: {error}",)
            raise

    @property
    def book(self) -> Book:
        """The rows and their content: population, theta, promises, releases, spent."""
        with self._open() as book:
            return book

    def set_limit(self, promise: Promise) -> None:
        """Add a promise that supersedes the one of its level.

        Raises BudgetError: its releases cost more, and the file is left as it is; LedgerError: it
        is for windows, and no release has stated Θ yet.
        """
        with self._open(writing=True) as book:
            book.add("promise", promise)
            if book.spent > 1:
                raise BudgetError(f"its releases need more than {promise.epsilon:g}; raise it")

    def verify(self, noted: str | None = None) -> tuple[int, str]:
        """Return the number of rows and the last digest of a file whose promises all hold.

        A digest that was ``noted`` before proves that the rows up to it are unchanged.
        Raises LedgerError: a digest or a promise does not hold.
        """
        with self._open() as book:
            digests = ["", *(row.digest for row in book.rows)]
            if noted not in (None, *digests):
                raise LedgerError("no row has the digest that was noted; it was made again")
        return len(digests) - 1, digests[-1]

    def to_dict(self) -> Document:
        """Return the ledger as plain JSON types; of Θ only the digest."""
        book = self.book
        document = {
            "population": book.population,
            "theta": None if book.theta is None else digest_of(book.theta),
            "spent_percent": percent(book.spent),
            "promises": [
                json.loads(canonical(replace(one, certificate=None)))
                | {"spent_percent": percent(spent([one], book.charges))}
                for one in book.promises.values()
            ],
            "releases": [
                vars(entry) | {"number": n, "time": book.rows[i - 1].time, "made": i in book.made}
                for n, (i, entry) in enumerate(book.releases.items(), 1)
            ],
        }
        return dict(json.loads(canonical(document)))  # costs as strings


def try_out(ledger: PathLike | None, terms: Terms) -> Paid | None:
    """Return the result of :func:`reserved`, or raise its error, without writing."""
    if ledger is None:
        return None
    if os.path.lexists(path := check_path(ledger, "ledger")):
        with Ledger(path)._open() as book:
            return book.accept(terms)
    check_folder(path)
    return Book().accept(terms)


@contextmanager
def reserved(ledger: PathLike | None, terms: Terms) -> Iterator[Paid | None]:
    """Charge a release, make it in the block, and record that it was made.

    A ledger that does not exist is made if the release is accepted; None keeps no account.
    Raises BudgetError: a promise would be broken; LedgerError: it is of another population, or
    cannot be used. In both cases nothing is charged.
    """
    try_out(ledger, terms)  # a refused release makes no file
    if ledger is None:
        yield None
        return
    there = Ledger.create(ledger)
    with there._open(writing=True) as book:
        paid = book.accept(terms)
    try:
        yield paid
    except OSError as error:
        message = f"{error.strerror}; the ledger counts it as spent all the same"
        raise OSError(error.errno, message, error.filename) from error
    with there._open(writing=True) as book:
        book.add("made", {"release": paid.number})


def default_ledger(table: PathLike) -> Path:
    """Return the path of a table's ledger, in the folder of the file; links are followed."""
    return Path(os.path.realpath(table)).parent / "pufferflow.ledger"


_TABLES = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"  # a trigger could change rows
with closing(sqlite3.connect(":memory:")) as _connection:
    _OWN = {*_connection.executescript(_SCHEMA).execute(_TABLES)}
