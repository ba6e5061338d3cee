"""The budget ledger: what has been spent on one data set, in a file beside it.

A ledger is a SQLite file of entries that are only ever appended, each carrying a digest of itself and the one
before: a limit, a reservation, or a record that the reserved release was made. A release is reserved first, and
what is reserved is spent, so a crash at any moment can waste budget but never exceed it. The total is that of
:class:`pufferflow.Accountant` over all reservations, for each Θ that was ever used, the largest of them. Releases of
other steps of the same records (other states, time step or column) are refused, as no such sum is known for them.

Entries changed or taken out in the middle are noticed; a file put back to an earlier state is not, unless its last
digest was noted elsewhere.

Nothing of the data is in it, not even a digest of the data file, from which a small file could be guessed.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from pufferflow._checks import Lengths, check_epsilon, check_path, check_scale, longest
from pufferflow._files import sha256
from pufferflow.accounting import Accountant
from pufferflow.errors import BudgetError, LedgerError, ParameterError
from pufferflow.markov import Family, IntervalFamily
from pufferflow.markov.families import AnyFamily, as_family
from pufferflow.models import model_document, parse_model

APPLICATION_ID = 0x50554646  # "PUFF"
VERSION = 1
PATIENCE_SECONDS = 600.0
"""How long a release waits for others that are being accounted for."""

CLOSE = 1e-4
"""How far, relatively, a bound computed anew may differ from the ε a scale was calibrated to."""

Kind: TypeAlias = Literal["limit", "family", "reserved", "released"]

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE entries (
    number INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('limit', 'family', 'reserved', 'released')),
    content TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE
);
CREATE TRIGGER never_changed BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER never_removed BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
"""


@dataclass(frozen=True)
class Reservation:
    """A release that is paid for.

    Attributes
    ----------
    number : int
        Its entry in the ledger.
    mechanism : str
    epsilon : float
        ε the scale was calibrated to.
    scale : float
        Laplace scale of a 1-Lipschitz query.
    query : str
        What is released, in words.
    family : str
        Digest of Θ's model document.
    length : int
        Longest segment of the data.
    certificate : str or None
        SHA-256 of the certificate of the scale, where there is one.
    form : str or None
        SHA-256 of what says how the records become steps of the chain; None where nobody said.
    """

    number: int
    mechanism: str
    epsilon: float
    scale: float
    query: str
    family: str
    length: int
    certificate: str | None = None
    form: str | None = None


@dataclass(frozen=True)
class Entry:
    """A line of the ledger."""

    number: int
    time: str
    kind: Kind
    content: dict[str, Any]


class Checked(NamedTuple):
    """What :meth:`Ledger.verify` found: with a note of it, entries taken out at the end are noticed later."""

    entries: int
    digest: str


class Ledger:
    """Opens a ledger; :meth:`create` makes a new one.

    Parameters
    ----------
    path : path

    Raises
    ------
    LedgerError
        The file is missing, not a ledger, of another version, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = check_path(path, "path")
        try:
            with self.path.open("rb") as stream:
                head = stream.read(16)
        except OSError as error:
            raise LedgerError(f"ledger {self.path}: {error.strerror}; create one with a limit first") from error
        if head != b"SQLite format 3\0":
            raise LedgerError(f"{self.path} is not a ledger of this program; it is left as it is, give another path")
        with self._connection() as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise LedgerError(f"{self.path} is the database of another program; it is left as it is")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version != VERSION:
                raise LedgerError(f"ledger {self.path} has version {version}, this program reads version {VERSION}")

    @classmethod
    def create(cls, path: str | os.PathLike[str], limit: float) -> Ledger:
        """Make a ledger with a limit; an existing file is never overwritten.

        Raises
        ------
        LedgerError
            There is a file at ``path`` already.
        ParameterError
            ``limit`` is not a positive number.
        """
        limit, target = check_epsilon(limit), check_path(path, "path")
        try:
            # a whole ledger appears under its name at once, or none: linking fails where a file exists
            with tempfile.TemporaryDirectory(dir=target.parent if target.parent.is_dir() else None) as folder:
                new = Path(folder) / "ledger"
                with closing(sqlite3.connect(new, isolation_level=None)) as connection:
                    connection.executescript(_SCHEMA)
                    _append(connection, "limit", {"epsilon": limit})
                os.link(new, target)
        except FileExistsError:
            raise LedgerError(f"{target} exists already; open it, or give another path") from None
        except OSError as error:
            raise LedgerError(f"cannot create the ledger {target}: {error.strerror}; give another path") from error
        except sqlite3.Error as error:
            raise LedgerError(f"cannot create the ledger {target}: {error}; make room or give another path") from error
        return cls(target)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = None
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=PATIENCE_SECONDS, isolation_level=None
            )
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except sqlite3.Error as error:
            raise LedgerError(
                f"ledger {self.path} cannot be used ({error}); restore it from a copy, nothing was written"
            ) from error
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the ledger alone; what the block appends is kept only if it ends well."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # a full disk ends it
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        with self._connection() as connection:
            return _entries(connection, self.path)

    @property
    def limit(self) -> float:
        """ε that all releases together may cost."""
        return _limit(self.entries())

    @property
    def spent(self) -> float:
        """ε that all reservations together cost, by the best valid bound."""
        return _spent(self.entries())

    def set_limit(self, limit: float) -> None:
        """Change the limit; the old one stays on record.

        Raises
        ------
        ParameterError
            ``limit`` is not a positive number.
        LedgerError
            It lies below what is spent.
        """
        limit = check_epsilon(limit)
        with self._writing() as connection:
            spent = _spent(_entries(connection, self.path))
            if limit < spent:
                raise LedgerError(f"the limit {limit:g} lies below ε = {spent:.6g}, which is spent; set at least that")
            _append(connection, "limit", {"epsilon": limit})

    def reserve(
        self,
        family: AnyFamily,
        length: Lengths,
        *,
        mechanism: str,
        epsilon: float,
        scale: float,
        query: str,
        certificate: Mapping[str, Any] | None = None,
        form: Mapping[str, Any] | None = None,
    ) -> Reservation:
        """Pay for a release before it is made.

        All reservations must be of the same steps of the same chain; of others the sum would say nothing.

        Parameters
        ----------
        family, length, mechanism, epsilon, scale, query
            As in :class:`Reservation`.
        certificate : mapping, optional
            Of the scale.
        form : mapping, optional
            How the records become steps: states, time step, pauses, column. Plain JSON types.

        Raises
        ------
        BudgetError
            The release would pass the limit; nothing is reserved.
        ParameterError
            ε, the scale or a length is out of range, or a word is not a string.
        LedgerError
            The ledger cannot be used.
        """
        family = as_family(family)
        document = model_document(family)
        digest = sha256(_canonical(document).encode())
        if not (isinstance(query, str) and isinstance(mechanism, str)):
            raise ParameterError(f"query is {query!r} and mechanism {mechanism!r}; both are words")
        content: dict[str, Any] = {
            "mechanism": mechanism,
            "epsilon": check_epsilon(epsilon),
            "scale": check_scale(scale),
            "query": query,
            "family": digest,
            "length": longest(length),
            "certificate": None if certificate is None else sha256(_canonical(certificate).encode()),
            "form": None if form is None else sha256(_canonical(form).encode()),
        }
        with self._writing() as connection:
            entries = _entries(connection, self.path)
            known = [e.content for e in entries if e.kind == "family"]
            forms = {e.content["form"] for e in entries if e.kind == "reserved"}
            states = {_states(parse_model(other["model"])) for other in known}
            if forms - {content["form"]} or states - {_states(family)}:
                raise LedgerError(
                    f"ledger {self.path}: earlier releases made other steps of the records (other states, time step, "
                    "pauses or column), and with those this one cannot be added up; keep to one way, or publish both "
                    "from one release"
                )
            if digest not in {other["digest"] for other in known}:
                entries.append(_append(connection, "family", {"digest": digest, "model": document}))
            entry = _append(connection, "reserved", content)
            limit = _limit(entries)
            if not _within(limit, [*entries, entry]):
                left = max(0.0, limit - _spent(entries))
                raise BudgetError(
                    f"the release at ε = {epsilon:g} would make the total ε = {_spent([*entries, entry]):.6g}; "
                    f"the limit of {self.path} is {limit:g} and {left:.6g} is left: ask for less or raise the limit",
                    left,
                )
        return Reservation(entry.number, **content)

    def record(self, reservation: Reservation) -> None:
        """Note that a reserved release was made."""
        with self._writing() as connection:
            _append(connection, "released", {"reservation": reservation.number})

    def verify(self) -> Checked:
        """Check the file, the chain of digests, and that what is spent is within the limit.

        Returns
        -------
        Checked
            Number of entries and digest of the last one, which stands for all of them.

        Raises
        ------
        LedgerError
            Something does not hold; the message says what.
        """
        with self._connection() as connection:
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            if problems != ["ok"]:
                raise LedgerError(f"ledger {self.path} is damaged: {problems[0]}; restore it from a copy")
            entries = _entries(connection, self.path)
            (digest,) = connection.execute("SELECT digest FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        known = {e.content["digest"]: e.content["model"] for e in entries if e.kind == "family"}
        for name, model in known.items():
            if sha256(_canonical(model).encode()) != name:
                raise LedgerError(f"ledger {self.path}: the model of {name[:12]} is not the one it was reserved for")
        if not _within(_limit(entries), entries):
            raise LedgerError(
                f"ledger {self.path}: ε = {_spent(entries):.6g} is spent, above the limit {_limit(entries):g}"
            )
        return Checked(len(entries), digest)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole ledger as plain JSON types."""
        entries = self.entries()
        limit, spent = _limit(entries), _spent(entries)
        made = {e.content["reservation"] for e in entries if e.kind == "released"}
        releases = [
            asdict(Reservation(e.number, **e.content)) | {"time": e.time, "released": e.number in made}
            for e in entries
            if e.kind == "reserved"
        ]
        return {"limit": limit, "spent": spent, "left": max(0.0, limit - spent), "releases": releases}


def _canonical(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _digest(previous: str, number: int, time: str, kind: str, content: str) -> str:
    return sha256(_canonical({"after": previous, "entry": [number, time, kind, content]}).encode())


def _append(connection: sqlite3.Connection, kind: Kind, content: dict[str, Any]) -> Entry:
    last = connection.execute("SELECT number, digest FROM entries ORDER BY number DESC LIMIT 1").fetchone() or (0, "")
    number, time, text = last[0] + 1, datetime.now(UTC).isoformat(timespec="seconds"), _canonical(content)
    row = (number, time, kind, text, _digest(last[1], number, time, kind, text))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
    return Entry(number, time, kind, content)


def _entries(connection: sqlite3.Connection, path: Path) -> list[Entry]:
    """All entries, once their chain of digests holds: nothing is accounted for on the ground of an altered ledger."""
    rows = connection.execute("SELECT number, time, kind, content, digest FROM entries ORDER BY number")
    entries, previous = [], ""
    for expected, (number, time, kind, content, digest) in enumerate(rows, 1):
        if number != expected or digest != _digest(previous, number, time, kind, content):
            raise LedgerError(
                f"ledger {path}, entry {number}: it was changed after it was written, or one before it is missing; "
                "restore the ledger from a copy"
            )
        entries.append(Entry(number, time, kind, json.loads(content)))
        previous = digest
    if not entries or entries[0].kind != "limit":
        raise LedgerError(f"ledger {path} is damaged: it does not begin with a limit; restore it from a copy")
    return entries


def _states(family: Family) -> int:
    return family.states if isinstance(family, IntervalFamily) else family.chains[0].states


def _limit(entries: list[Entry]) -> float:
    return float([e for e in entries if e.kind == "limit"][-1].content["epsilon"])


def _accounts(entries: list[Entry]) -> Iterator[Accountant]:
    """All reservations, seen with every Θ that one of them was made for."""
    reserved = [e.content for e in entries if e.kind == "reserved"]
    length = max((r["length"] for r in reserved), default=1)
    used = {r["family"] for r in reserved}
    for family in (e.content for e in entries if e.kind == "family"):
        if family["digest"] in used:
            account = Accountant(parse_model(family["model"]), length)
            for r in reserved:
                account.add(r["scale"])
            yield account


def _spent(entries: list[Entry]) -> float:
    cost = max((account.cost().epsilon for account in _accounts(entries)), default=0.0)
    return min(cost, _proved(entries, cost))


def _within(limit: float, entries: list[Entry]) -> bool:
    if all(account.within(limit) for account in _accounts(entries)):
        return True
    return _proved(entries, _spent(entries)) <= limit


def _proved(entries: list[Entry], cost: float) -> float:
    """ε of a single release, which its scale was calibrated to: the bound recomputed may differ in the last digits."""
    reserved = [e.content for e in entries if e.kind == "reserved"]
    if len(reserved) == 1 and cost <= reserved[0]["epsilon"] * (1 + CLOSE):
        return float(reserved[0]["epsilon"])
    return math.inf
