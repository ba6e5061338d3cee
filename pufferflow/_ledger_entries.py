"""Entries of a ledger: how they are chained by digests, and what each kind of them may hold.

What is read is checked key by key before anything is computed from it: the file may have been written by anybody, and
a digest without a key is no signature.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

from pufferflow._checks import check_epsilon, check_scale, check_whole, shown
from pufferflow._files import sha256
from pufferflow._json import parse_json
from pufferflow._protection import PROTECTION, check_protection
from pufferflow.errors import LedgerError, ParameterError, PufferflowError
from pufferflow.markov import Family
from pufferflow.models import parse_model

Kind: TypeAlias = Literal["limit", "family", "reserved", "released"]

LONGEST_TEXT = 1000
"""Characters of a word in an entry."""

MEND = "put back a copy made after its last release, for an older one forgets what was spent since"
"""What to do about a damaged ledger."""


@dataclass(frozen=True)
class Entry:
    """A line of the ledger."""

    number: int
    time: str
    kind: Kind
    content: dict[str, Any]


@dataclass(frozen=True)
class Extent:
    """Public facts of the records of a release, from which other releases of the same ones may be told.

    Attributes
    ----------
    records : int
        Their number, n.
    first, last : str or None
        Times of the first and the last one, ISO 8601; None where there are no times.
    """

    records: int
    first: str | None = None
    last: str | None = None

    def overlaps(self, other: Extent) -> bool:
        """Say whether the two periods have a time in common; without times, whether the numbers are equal."""
        if self.first is None or self.last is None or other.first is None or other.last is None:
            return self == other
        return self.first <= other.last and other.first <= self.last


def canonical(document: Mapping[str, Any]) -> str:
    """Return the text of a document that digests are made of."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document."""
    return sha256(canonical(document).encode())


def append_entry(connection: sqlite3.Connection, kind: Kind, content: dict[str, Any]) -> Entry:
    """Write an entry after the last one."""
    last = connection.execute("SELECT number, digest FROM entries ORDER BY number DESC LIMIT 1").fetchone() or (0, "")
    number, time, text = last[0] + 1, datetime.now(UTC).isoformat(timespec="seconds"), canonical(content)
    row = (number, time, kind, text, _chained(last[1], number, time, kind, text))
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", row)
    return Entry(number, time, kind, content)


def parse_entries(rows: Iterable[tuple[Any, ...]]) -> tuple[list[Entry], list[str]]:
    """Return the entries of the rows of the table, oldest first, and their digests.

    Raises LedgerError: the digests do not fit together, or an entry holds what this program does not write.
    """
    entries: list[Entry] = []
    digests: list[str] = []
    for row in rows:
        number, time, kind, text, digest = row
        if not all(isinstance(word, str) for word in row[1:]):
            raise LedgerError(f"entry {number}: not all its columns are texts; {MEND}")
        previous = digests[-1] if digests else ""
        if number != len(entries) + 1 or digest != _chained(previous, number, time, kind, text):
            raise LedgerError(
                f"entry {number}: it was changed after it was written, or one before it is missing; {MEND}"
            )
        try:
            entries.append(Entry(number, _time(time, "time"), kind, _content(kind, text)))
        except (PufferflowError, ValueError, ArithmeticError, RecursionError) as error:
            raise LedgerError(f"entry {number} is not one that this program writes ({error}); {MEND}") from None
        digests.append(digest)
    _check_together(entries)
    return entries, digests


def check_word(value: object, name: str) -> str:
    """Return a text that can be printed on one line, or raise :class:`ParameterError`."""
    if not (isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_TEXT):
        raise ParameterError(f"{name} is {shown(value)}; give at most {LONGEST_TEXT} printable characters")
    return value


def check_extent(extent: Extent) -> Extent:
    """Return the facts, or raise :class:`ParameterError` where one is impossible."""
    times = [time if time is None else check_word(time, "time") for time in (extent.first, extent.last)]
    return Extent(check_whole(extent.records, "records"), *times)


def _chained(previous: str, number: int, time: str, kind: str, content: str) -> str:
    return digest_of({"after": previous, "entry": [number, time, kind, content]})


def _content(kind: str, text: str) -> dict[str, Any]:
    """What an entry holds, each key checked."""
    if kind not in get_args(Kind):
        raise ParameterError(f"its kind is {shown(kind)}")
    document, checks = parse_json(text), _CONTENTS[kind]
    if not isinstance(document, dict):
        raise ParameterError("its content is no object")
    optional = {"extent", "steps", *PROTECTION}  # ledgers of version 1 have none
    if not checks.keys() - optional <= document.keys() <= checks.keys():
        raise ParameterError(f"its keys are not {', '.join(checks)}")
    content = {key: checks[key](value, key) for key, value in document.items()}
    if kind == "family" and digest_of(document["model"]) != document["digest"]:
        raise ParameterError("its model is not the one that it was reserved for")
    return content


def _check_together(entries: list[Entry]) -> None:
    """Raise unless the entries are of the same steps, and those that they name are there."""
    reserved = [e.content for e in entries if e.kind == "reserved"]
    families = [e.content for e in entries if e.kind == "family"]
    numbers = {e.number for e in entries if e.kind == "reserved"}
    for wrong, what in (
        (not entries or entries[0].kind != "limit", "it does not begin with a limit"),
        (
            {r["family"] for r in reserved} - {f["digest"] for f in families} - {None},
            "the chains of a release are not in it",
        ),
        (
            any((r["family"] is None) != (r["length"] is None) for r in reserved),
            "a release has chains without a length, or a length without chains",
        ),
        (
            len({states_of(parse_model(f["model"])) for f in families} - {None}) > 1,
            "its chains differ in their number of states",
        ),
        (not are_of_same_steps(reserved), "its releases are of different steps of the records"),
        ({e.content["reservation"] for e in entries if e.kind == "released"} - numbers, "a release was not reserved"),
    ):
        if wrong:
            raise LedgerError(f"it is damaged: {what}; {MEND}")


def are_of_same_steps(reserved: Iterable[Mapping[str, Any]]) -> bool:
    """Whether releases can be added up: the records became the same steps in the same states, or Θ says no states.

    What a Θ without states says of records holds for all that is read from them, such as bins of any edges.
    """
    of_steps = [r for r in reserved if r["family"] is not None]
    forms, steps = {r["form"] for r in of_steps}, {r.get("steps") for r in of_steps}
    return len(forms) <= 1 or (len(steps) == 1 and None not in steps)


def states_of(family: Family) -> int | None:
    """Return the number of states of its chains (of the first, where they differ); None where it may be any."""
    return next(iter(family.sizes), None)


def _time(value: object, name: str) -> str:
    time = check_word(value, name)
    datetime.fromisoformat(time)
    return time


def _hexadecimal(value: object, name: str) -> str:
    if not (isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")):
        raise ParameterError(f"{name} is {shown(value)}; it must be a SHA-256 in hexadecimal digits")
    return value


def _or_none(check: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    return lambda value, name: None if value is None else check(value, name)


def _model(value: Any, name: str) -> Any:
    parse_model(value)
    return value


def _extent(value: Any, name: str) -> dict[str, Any]:
    if not (isinstance(value, dict) and value.keys() == {"records", "first", "last"}):
        raise ParameterError(f"{name} must have the keys records, first and last")
    return asdict(check_extent(Extent(**value)))


_CONTENTS: dict[str, dict[str, Callable[[Any, str], Any]]] = {
    "limit": {"epsilon": lambda value, name: check_epsilon(value)},
    "family": {"digest": _hexadecimal, "model": _model},
    "reserved": {
        "mechanism": check_word,
        "epsilon": lambda value, name: check_epsilon(value),
        "scale": lambda value, name: check_scale(value),
        "query": check_word,
        "family": _or_none(_hexadecimal),
        "length": _or_none(check_whole),
        "certificate": _or_none(_hexadecimal),
        "form": _or_none(_hexadecimal),
        "steps": _or_none(_hexadecimal),
        "extent": _or_none(_extent),
        "window": check_whole,
        "knows": lambda value, name: check_protection(1, value).knows,
    },
    "released": {"reservation": check_whole},
}
"""What an entry of each kind holds, and how each value is checked."""
