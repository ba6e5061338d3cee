"""The budget ledger: what has been spent on one data set, in a file beside it.

A ledger is a SQLite file of entries that are only ever appended, each carrying a digest of itself and the one
before: a limit, a reservation, or a record that the reserved release was made. A release is reserved first, and
what is reserved is spent, so a crash at any moment can waste budget but never exceed it. The total is that of
:class:`pufferflow.Accountant` over all reservations, for each Θ that was ever used, the largest of them. Releases of
other steps of the same records (other states where Θ has any, time step or column) are refused: no such sum is known.
A release that hides whole participants (a private fit) needs no Θ and adds its ε to that total, whatever its steps.

*Why that sum holds.* Given the records of all other participants, let f and g be the laws of the output of a release
of level ε₁ that hides whole participants and of one of level ε₂ that hides steps of one, which Θ may have been chosen
for after the first was seen. For fixed outputs, f of a participant's records x differs by at most e^ε₁ over all x: it
lies between m and e^ε₁·m. Participants are independent, so for two secrets a and b, by what the second promises of
every chain of its Θ, Σ P(x | a) f(x) g(x) ≤ e^ε₁ m Σ P(x | a) g(x) ≤ e^(ε₁+ε₂) m Σ P(x | b) g(x) ≤ e^(ε₁+ε₂) Σ
P(x | b) f(x) g(x).

An entry that was changed or taken out in the middle no longer fits the digests after it. That shows damage and
carelessness, not intent: the digests have no key, so whoever rewrites entries can compute them anew, and a file put
back to an earlier state fits too. Only a digest that was noted elsewhere tells: :meth:`Ledger.verify` looks for it.

Of the data it holds what a release says in public: the number of records and the times of the first and the last.
Nothing else, not even a digest of the data file, from which a small file could be guessed.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, Unpack

from pufferflow._checks import (
    EPSILON_RANGE,
    Lengths,
    check_epsilon,
    check_path,
    check_scale,
    check_type,
    longest,
    shown,
)
from pufferflow._composition import PRECISION, entrywise_loss
from pufferflow._display import displayed
from pufferflow._files import DATABASE, check_folder, workplace
from pufferflow._ledger_entries import (
    MEND,
    Entry,
    Extent,
    append_entry,
    are_of_same_steps,
    canonical,
    check_extent,
    check_word,
    digest_of,
    parse_entries,
    states_of,
)
from pufferflow._options import takes_options
from pufferflow._protection import (
    NARROWEST,
    PROTECTION,
    Knowledge,
    Protection,
    ProtectionOptions,
    asked_for,
)
from pufferflow.accounting import Accountant, least_scale
from pufferflow.errors import BudgetError, DataError, LedgerError, ParameterError, PufferflowError
from pufferflow.markov.families import AnyFamily, Family, as_family
from pufferflow.mechanisms import compute_scale
from pufferflow.models import model_document, parse_model

APPLICATION_ID = 0x50554646  # "PUFF"
VERSION = 4
"""Since version 2 a reservation may say which records it is of, since version 3 it may be of whole participants, since
version 4 those of a Θ without states say which steps they are of, whatever the states; older ledgers are read too."""

PATIENCE_SECONDS = 600.0
"""How long a release waits for others that are being accounted for."""

MOST_BYTES = 2**28
"""Size of a ledger: some 300,000 releases."""

PAGE_BYTES = 2**12
"""SQLite's unit of allocation."""

MOST_ENTRY_BYTES = 2**24
"""Size of an entry: a chain of some 900 states."""

MOST_SCALE = 2.0**60
"""Scales beyond it drown every count, and none is looked for there."""

CLOSE = 1e-4
"""How far, relatively, a bound computed anew may differ from the ε a scale was calibrated to."""

UNNOTICED = (
    "a ledger knows the releases that were reserved in it and no others: it does not notice releases of a copy of the "
    "data, of the same data in another format or under another name, nor those in another ledger, and not that an "
    "older copy of the ledger was put in its place"
)
"""What no ledger can notice."""

_SCHEMA = f"""
PRAGMA page_size = {PAGE_BYTES};
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
    family : str or None
        Digest of Θ's model document; None of a release that hides whole participants, which needs no Θ.
    length : int or None
        Longest segment of the data; None of such a release.
    certificate : str or None
        SHA-256 of the certificate of the scale, where there is one.
    form : str or None
        SHA-256 of what says how the records become steps of the chain; None where nobody said.
    steps : str or None
        SHA-256 of the same without the states; None where nobody said, or where Θ has states.
    extent : Extent or None
        Which records; None where nobody said.
    window : int
        How many consecutive records it hides together.
    knows : {"nothing", "any records"}
        What an adversary may know beside Θ.
    """

    number: int
    mechanism: str
    epsilon: float
    scale: float
    query: str
    family: str | None
    length: int | None
    certificate: str | None = None
    form: str | None = None
    steps: str | None = None
    extent: Extent | None = None
    window: int = 1
    knows: Knowledge = "nothing"


class ReservationOptions(ProtectionOptions, total=False):
    """What else can be said of a release that is to be paid for."""

    certificate: Annotated[Mapping[str, Any] | None, "mapping, optional", "Of the scale."]
    form: Annotated[
        Mapping[str, Any] | None,
        "mapping, optional",
        "How the records become steps: states, time step, pauses, column. Plain JSON types.",
    ]
    extent: Annotated[Extent | None, "Extent, optional", "Which records, as far as that is public."]


class Checked(NamedTuple):
    """What :meth:`Ledger.verify` found: with a note of it, entries taken out at the end are noticed later."""

    entries: int
    digest: str


@displayed("path")
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
            status = os.stat(self.path)
            if not stat.S_ISREG(status.st_mode):
                raise LedgerError(f"{self.path} is no file; give the path of a ledger")
            with self.path.open("rb") as stream:
                head = stream.read(len(DATABASE))
        except OSError as error:
            raise LedgerError(f"ledger {self.path}: {error.strerror}; create one with a limit first") from error
        if head != DATABASE:
            raise LedgerError(f"{self.path} is not a ledger of this program; it is left as it is, give another path")
        if status.st_size > MOST_BYTES:
            raise LedgerError(f"{self.path} has {status.st_size} bytes; a ledger has at most {MOST_BYTES}")
        with self._connection() as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                raise LedgerError(f"{self.path} is the database of another program; it is left as it is")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if not 1 <= version <= VERSION:
                raise LedgerError(f"ledger {self.path} has version {version}, this program reads up to {VERSION}")

    @classmethod
    def create(cls, path: str | os.PathLike[str], limit: float) -> Ledger:
        """Make a ledger with a limit, for its owner alone; an existing file is never overwritten.

        Raises
        ------
        LedgerError
            There is a file at ``path`` already.
        ParameterError
            ``limit`` is not a positive number.
        """
        limit, target = check_epsilon(limit), check_path(path, "path")
        try:
            check_folder(target)
            # a whole ledger appears under its name at once, or none: linking fails where a file exists
            with workplace(target.parent) as folder:
                with closing(sqlite3.connect(folder / "ledger", isolation_level=None)) as connection:
                    connection.executescript(_SCHEMA)
                    append_entry(connection, "limit", {"epsilon": limit})
                (folder / "ledger").chmod(0o600)  # it holds Θ, which a fit makes as private as its data
                os.link(folder / "ledger", target)
        except DataError as error:
            raise LedgerError(f"cannot create the ledger: {error}") from None
        except FileExistsError:
            raise LedgerError(f"{target} exists already; open it, or give another path") from None
        except OSError as error:
            raise LedgerError(f"cannot create the ledger {target}: {error.strerror}; give another path") from error
        except sqlite3.Error as error:
            raise LedgerError(f"cannot create the ledger {target}: {error}; make room or give another path") from error
        return cls(target)

    @contextmanager
    def _connection(self, then: str = f"it cannot be read; if it is damaged, {MEND}") -> Iterator[sqlite3.Connection]:
        """Connect; where the database fails, the error says what is true ``then``."""
        connection = None
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=PATIENCE_SECONDS, isolation_level=None
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_ENTRY_BYTES)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where SQLite's own message quotes the file
            raise LedgerError(f"ledger {self.path}: {error}; {then}") from error
        finally:
            if connection is not None:
                connection.close()

    @contextmanager
    def _writing(self, then: str) -> Iterator[sqlite3.Connection]:
        """Hold the ledger alone; what the block appends is kept only if it ends well."""
        with self._connection(then) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute(f"PRAGMA max_page_count = {MOST_BYTES // PAGE_BYTES}")
                yield connection
            except BaseException:
                if connection.in_transaction:  # a full disk ends it
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _read(self, connection: sqlite3.Connection) -> tuple[list[Entry], list[str]]:
        """All entries and their digests, checked: nothing is accounted for on the ground of an altered ledger."""
        try:
            if not _own(connection) <= _OWN:
                raise LedgerError(f"its tables are not those that this program makes; {MEND}")
            return parse_entries(
                connection.execute("SELECT number, time, kind, content, digest FROM entries ORDER BY number")
            )
        except LedgerError as error:
            raise LedgerError(f"ledger {self.path}, {error}") from None

    def copy_to(self, path: str | os.PathLike[str]) -> Ledger:
        """Copy the ledger as it is between two releases, to try something on."""
        with self._connection() as connection, closing(sqlite3.connect(path)) as copy:
            connection.backup(copy)
        return Ledger(path)

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        with self._connection() as connection:
            return self._read(connection)[0]

    def reservations(self) -> list[Reservation]:
        """Return all releases that are paid for, oldest first."""
        return [_reservation(entry) for entry in self.entries() if entry.kind == "reserved"]

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
        with self._writing("whether the limit was changed, pufferflow ledger show says") as connection:
            spent = _spent(self._read(connection)[0])
            if limit < spent:
                raise LedgerError(f"the limit {limit:g} lies below ε = {spent:.6g}, which is spent; set at least that")
            append_entry(connection, "limit", {"epsilon": limit})

    @takes_options(ReservationOptions, Reservation)
    def reserve(
        self,
        family: AnyFamily,
        length: Lengths,
        *,
        mechanism: str,
        epsilon: float,
        scale: float,
        query: str,
        **options: Unpack[ReservationOptions],
    ) -> Reservation:
        """Pay for a release before it is made.

        All reservations must be of the same steps of the same chain; of others the sum would say nothing. Where they
        hide windows of different lengths, or from different adversaries, the sum is stated for the shortest window and
        for the adversary who knows least: that is what all of them promise.

        Parameters
        ----------
        family, length, mechanism, epsilon, scale, query
            As in :class:`Reservation`.
        {options}

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
        extent = options.get("extent")
        if not (isinstance(query, str) and isinstance(mechanism, str)):
            raise ParameterError(f"query is {shown(query)} and mechanism {shown(mechanism)}; both are words")
        content: dict[str, Any] = {
            "mechanism": check_word(mechanism, "mechanism"),
            "epsilon": check_epsilon(epsilon),
            "scale": check_scale(scale),
            "query": check_word(query, "query"),
            "family": digest_of(document),
            "length": longest(length),
            "certificate": _digest(options.get("certificate")),
            "form": _digest(options.get("form")),
            "extent": None if extent is None else asdict(check_extent(extent)),
        }
        if states_of(family) is None and (form := options.get("form")) is not None:
            content["steps"] = digest_of({key: value for key, value in form.items() if key != "states"})
        if (protection := asked_for(options)) != NARROWEST:
            content |= asdict(protection)
        return self._pay(family, document, content)

    def reserve_participants(self, epsilon: float, *, mechanism: str, scale: float, query: str) -> Reservation:
        """Pay for a release that hides whole participants: ε is added to whatever else is spent.

        Raises
        ------
        BudgetError, ParameterError, LedgerError
            As :meth:`reserve`.
        """
        content: dict[str, Any] = {
            "mechanism": check_word(mechanism, "mechanism"),
            "epsilon": check_epsilon(epsilon),
            "scale": check_scale(scale),
            "query": check_word(query, "query"),
            **dict.fromkeys(("family", "length", "certificate", "form", "extent")),
        }
        with self._paying() as connection:
            return self._enter(connection, self._read(connection)[0], content)

    def _paying(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._writing("no release is made; whether it counts as spent, pufferflow ledger show says")

    def _pay(self, family: Family, document: dict[str, Any], content: dict[str, Any]) -> Reservation:
        """Enter a reservation and, where it is new, the model document of its Θ."""
        digest = content["family"]
        with self._paying() as connection:
            entries, _ = self._read(connection)
            known = [e.content for e in entries if e.kind == "family"]
            states = {states_of(parse_model(other["model"])) for other in known} | {states_of(family)}
            if not are_of_same_steps([*_of_steps(entries), content]) or len(states - {None}) > 1:
                raise LedgerError(
                    f"ledger {self.path}: earlier releases made other steps of the records (other states, time step, "
                    "pauses or column; a running count makes steps of its own), and with those this one cannot be "
                    "added up; keep to one way, or publish both from one release"
                )
            if digest not in {other["digest"] for other in known}:
                entries.append(append_entry(connection, "family", {"digest": digest, "model": document}))
            return self._enter(connection, entries, content)

    def _enter(self, connection: sqlite3.Connection, entries: list[Entry], content: dict[str, Any]) -> Reservation:
        """Append a reservation that the limit allows."""
        entry = append_entry(connection, "reserved", content)
        limit, after = _limit(entries), [*entries, entry]
        if not _within(limit, after):
            left = max(0.0, limit - _spent(entries))
            largest = _largest(limit, entries, content)
            raise BudgetError(
                f"the release at ε = {content['epsilon']:g} would make the total ε = {_spent(after):.6g}; "
                f"the limit of {self.path} is {limit:g} and {left:.6g} is left: {_advice(largest, content)}",
                left,
                largest,
            )
        return _reservation(entry)

    def record(self, reservation: Reservation) -> None:
        """Note that a reserved release was made.

        Raises
        ------
        LedgerError
            The note could not be written, or the reservation is not in this ledger. It is paid for all the same.
        """
        check_type(reservation, "reservation", Reservation)
        then = (
            "the release is made and counts as spent, only the note that it was made is missing: nothing has to be "
            "mended, and an older copy must not be put in the ledger's place"
        )
        with self._writing(then) as connection:
            reserved = "SELECT 1 FROM entries WHERE number = ? AND kind = 'reserved'"
            if connection.execute(reserved, (reservation.number,)).fetchone() is None:
                raise LedgerError(
                    f"ledger {self.path}: entry {reservation.number} is no reservation; record it where it was reserved"
                )
            append_entry(connection, "released", {"reservation": reservation.number})

    def verify(self, noted: str | None = None) -> Checked:
        """Check the file, the chain of digests, and that what is spent is within the limit.

        This notices damage. Entries that were rewritten with new digests, or taken off the end, it notices only by a
        digest ``noted`` before.

        Parameters
        ----------
        noted : str, optional
            Digest that an earlier check returned: everything up to its entry must still be as it was.

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
                raise LedgerError(f"ledger {self.path} is damaged: {problems[0]}; {MEND}")
            entries, digests = self._read(connection)
        if noted is not None and noted not in digests:
            raise LedgerError(
                f"ledger {self.path}: no entry has the digest that was noted; entries were rewritten, or an older copy "
                "was put in its place"
            )
        if not _within(_limit(entries), entries):
            raise LedgerError(
                f"ledger {self.path}: ε = {_spent(entries):.6g} is spent, above the limit {_limit(entries):g}"
            )
        return Checked(len(entries), digests[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return the whole ledger as plain JSON types.

        Raises
        ------
        LedgerError
            It cannot be read, or what its releases cost has no finite bound.
        """
        entries = self.entries()
        limit, spent, total = _limit(entries), _spent(entries), _protection(entries)
        if math.isinf(spent):
            raise LedgerError(f"ledger {self.path}: no finite ε bounds what its releases cost together; {MEND}")
        made = {e.content["reservation"] for e in entries if e.kind == "released"}
        reserved = [_reservation(e) for e in entries if e.kind == "reserved"]
        times = {e.number: e.time for e in entries}
        releases = [
            asdict(r) | {"time": times[r.number], "released": r.number in made, "overlaps": _overlapping(r, reserved)}
            for r in reserved
        ]
        sums = {"limit": limit, "spent": spent, "left": max(0.0, limit - spent)}
        return sums | asdict(total) | {"releases": releases}


def _own(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Tables, views and triggers of a database: a foreign one could run on for ever, or change what is written."""
    return set(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def _made_here() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _own(connection)


_OWN = _made_here()


def _digest(document: Mapping[str, Any] | None) -> str | None:
    return None if document is None else digest_of(document)


def _reservation(entry: Entry) -> Reservation:
    extent = entry.content.get("extent")
    return Reservation(entry.number, **entry.content | {"extent": None if extent is None else Extent(**extent)})


def _overlapping(this: Reservation, reserved: list[Reservation]) -> list[int]:
    """Earlier releases of records of the same time."""
    if (extent := this.extent) is None:
        return []
    return [r.number for r in reserved if r.number < this.number and r.extent is not None and extent.overlaps(r.extent)]


def _limit(entries: list[Entry]) -> float:
    return float([e for e in entries if e.kind == "limit"][-1].content["epsilon"])


def _protection(entries: list[Entry]) -> Protection:
    """What all reservations promise: the shortest window, and the adversary who knows least."""
    reserved = [asked_for(r) for r in _of_steps(entries)] or [NARROWEST]
    informed = all(p.knows != "nothing" for p in reserved)
    return Protection(min(p.window for p in reserved), "any records" if informed else "nothing")


def _of_steps(entries: list[Entry]) -> list[dict[str, Any]]:
    """The reservations of releases that hide steps of participants."""
    return [e.content for e in entries if e.kind == "reserved" and e.content["family"] is not None]


def _of_participants(entries: list[Entry]) -> float:
    """Sum of ε of releases that hide whole participants; their noise has more slack than the sum loses in rounding."""
    return math.fsum(e.content["epsilon"] for e in entries if e.kind == "reserved" and e.content["family"] is None)


def _accounts(entries: list[Entry]) -> Iterator[Accountant]:
    """All reservations of steps, seen with every Θ that one of them was made for."""
    reserved = _of_steps(entries)
    length = max((r["length"] for r in reserved), default=1)
    scales = tuple(r["scale"] for r in reserved)
    used = {r["family"] for r in reserved}
    for family in (e.content for e in entries if e.kind == "family"):
        if family["digest"] in used:
            yield _account(canonical(family["model"]), length, _protection(entries), scales)


@lru_cache(maxsize=32)
def _account(model: str, length: int, protection: Protection, scales: tuple[float, ...]) -> Accountant:
    """The account of these scales, which remembers what it computed: a release asks for it several times."""
    account = Accountant(parse_model(json.loads(model)), length, **asdict(protection))
    for scale in scales:
        account.add(scale)
    return account


def _spent(entries: list[Entry]) -> float:
    cost = max((account.cost().epsilon for account in _accounts(entries)), default=0.0)
    return min(cost, _proved(entries, cost)) + _of_participants(entries)


def _within(limit: float, entries: list[Entry]) -> bool:
    rest = limit - _of_participants(entries)
    if not _of_steps(entries):
        return rest >= 0
    if rest < EPSILON_RANGE[0]:
        return False
    if all(account.within(rest) for account in _accounts(entries)):
        return True
    return _spent(entries) <= limit


def _proved(entries: list[Entry], cost: float) -> float:
    """ε of a single release, which its scale was calibrated to: the bound recomputed may differ in the last digits."""
    reserved = _of_steps(entries)
    if len(reserved) == 1 and cost <= reserved[0]["epsilon"] * (1 + CLOSE):
        return float(reserved[0]["epsilon"])
    return math.inf


def _largest(limit: float, entries: list[Entry], content: dict[str, Any]) -> float:
    """Largest ε with three digits that fits, of the mechanism that was asked for; 0 where none is found.

    What fits is known of the least scale that does: any ε at which the mechanism asks for at least that much noise.
    """
    if content["family"] is None:
        return _three(max(0.0, limit - _spent(entries)))
    scale = _least_scale(limit, entries, content)
    theta = next(e.content["model"] for e in entries if e.kind == "family" and e.content["digest"] == content["family"])
    family, asked = parse_model(theta), {key: content[key] for key in PROTECTION if key in content}

    def excess(epsilon: float) -> float:
        """Above 0 where the mechanism asks for less noise than that."""
        needed = compute_scale(content["mechanism"], family, content["length"], epsilon, **asked).scale
        return 1.0 if needed is None else math.log(scale / needed)

    smallest, largest = EPSILON_RANGE
    low, high = 1 / scale, content["epsilon"]
    try:
        if low <= smallest or (above := excess(low)) > 0:
            return 0.0
        while (below := excess(high)) <= 0:  # where less noise was asked for than the mechanism says
            low, above = high, below
            if high == largest:
                break
            high = min(2 * high, largest)
        # false position: the scale falls about as a power of ε
        while high > low * (1 + CLOSE / 10) and above < -CLOSE / 10:
            middle = low * (high / low) ** min(max(above / (above - below), 0.05), 0.95)
            if (there := excess(middle)) > 0:
                high, below = middle, there
            else:
                low, above = middle, there
        for margin in (0.0, CLOSE, 2e-3, 1e-2):  # scales that are found may rise by a thousandth with ε
            if (round_number := _three(low * (1 - margin))) and excess(round_number) <= 0:
                return round_number
    except PufferflowError:  # a word that is no mechanism of ours
        pass
    return 0.0


def _least_scale(limit: float, entries: list[Entry], content: dict[str, Any]) -> float:
    """About the least scale that a release needs to fit; infinite where none does.

    Of each Θ a mechanism says how little noise one release needs to cost no more than the limit. All together may
    amount to that one: 1/σ of what is left is the difference.
    """
    rest = limit - _of_participants(entries)
    if rest < EPSILON_RANGE[0]:
        return math.inf

    def and_one_of(scale: float) -> list[Entry]:
        return [*entries, Entry(len(entries) + 1, "", "reserved", content | {"scale": scale})]

    least = max(least_scale(account, rest) for account in _accounts(and_one_of(content["scale"])))
    left = 1 / least - entrywise_loss(r["scale"] for r in _of_steps(entries))
    scale, step = max(content["scale"], 1 / left) if left > 0 else math.inf, PRECISION
    while (scale := scale * (1 + step)) <= MOST_SCALE:
        if _within(limit, and_one_of(scale)):
            return scale
        step *= 32
    return math.inf


def _three(epsilon: float) -> float:
    """Three digits, rounded down."""
    if epsilon <= EPSILON_RANGE[0]:
        return 0.0
    unit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 2)
    return float(Fraction(epsilon) // unit * unit)


def _advice(largest: float, content: dict[str, Any]) -> str:
    if not largest:
        return "none fits; raise the limit"
    return f"ask for at most ε = {largest:g}, which fits (by {content['mechanism']}), or raise the limit"
