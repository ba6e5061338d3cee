"""Rows of a ledger: the content of each kind, their chain of digests, and their totals.

Rows are checked before anything is computed from them: the file is untrusted.
"""

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from pufferflow._util.checks import check_epsilon, check_whole, shown
from pufferflow._util.json import parse_json, record
from pufferflow.accounting import account
from pufferflow.accounting.account import MAX_STEPS, UNBOUNDED, Charge, Level, Promise
from pufferflow.errors import BudgetError, LedgerError, ParameterError
from pufferflow.models.files import parse_model

if TYPE_CHECKING:
    from pufferflow.records.read import TimeBase

Document: TypeAlias = dict[str, Any]

FIX = "put back a copy made after its last release, for an older one lacks the budget spent since"


@dataclass(frozen=True)
class Population:
    """The population of a release; ``step_seconds`` is None without times.

    ``participant`` is None if all readings are of one; ``states`` (names or edges) are those of Θ
    if all statistics are functions of them, ``cohort`` names a public part of the people.
    """

    step_seconds: int | None
    time_base: "TimeBase"
    participant: str | None
    values: tuple[str, ...]
    states: list[Any] | None = None
    cohort: str | None = None

    def __post_init__(self) -> None:
        check_whole(1 if self.step_seconds is None else self.step_seconds, "step_seconds")
        object.__setattr__(self, "values", tuple(self.values))


@dataclass(frozen=True)
class Entry:
    """The row of a release; ``promise`` states whether it covers all releases together.

    :meth:`Book.accept` sets it. An external release has no ``level`` and no ``epsilon``.
    """

    population: Population
    charge: Charge
    level: Level | None
    epsilon: float | None
    query: str
    promise: bool = False

    def __post_init__(self) -> None:
        check_epsilon(1 if self.epsilon is None else self.epsilon)
        if not str(self.query).isprintable() or self.query != str(self.query)[:1000]:
            raise ParameterError(f"query is {shown(self.query)}; give up to 1000 printable letters")
        times = {self.charge.first, self.charge.last} - {None}
        if self.population.time_base == "none" and times:
            raise ParameterError("a release has a range of times, but the ledger has none")


@dataclass(frozen=True)
class Terms:
    """A release to be charged; ``new_values`` allows columns that no earlier release read."""

    entry: Entry
    theta: Document | None = None
    promise: Promise | None = None
    new_values: bool = False


@dataclass(frozen=True)
class Paid:
    """A charged release, by row ``number``; ``limit`` and ``delta`` are promised at its level.

    ``spent`` is the largest used share of a promise for the readings in its range.
    """

    number: int
    spent: Fraction
    limit: float | None
    delta: float = 0.0


class Row(NamedTuple):
    """A row of the file: its kind is theta, promise, release or made, its content JSON."""

    number: int
    time: str
    kind: str
    content: str
    digest: str


@dataclass
class Book:
    """The rows of a ledger, and their content; ``states`` are those of Θ."""

    rows: list[Row] = field(default_factory=list)
    population: Population | None = None
    theta: Document | None = None
    states: list[Any] | None = None
    promises: dict[Level, Promise] = field(default_factory=dict)
    releases: dict[int, Entry] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)

    @property
    def charges(self) -> list[Charge]:
        """The costs of releases; of those finer than Θ's states only that of a participant."""
        return [
            replace(entry.charge, cost=UNBOUNDED)
            if self.states is not None and entry.population.states != self.states
            else entry.charge
            for entry in self.releases.values()
        ]

    @property
    def spent(self) -> Fraction:
        """The largest used share of a promise in force."""
        return account.spent(self.promises.values(), self.charges)

    @classmethod
    def read(cls, table: Iterable[tuple[Any, ...]]) -> Self:
        """Return the content of rows, oldest first; raises LedgerError if they do not fit."""
        book = cls()
        for row in table:
            try:
                book._add(*row[1:4])
                if row != book.rows[-1]:
                    raise ValueError
            except _WRONG as error:
                problem = "was changed after it was written, or is not one that this program writes"
                raise LedgerError(f"row {row[0]} {problem}; {FIX}") from error
        promised = {entry.level for entry in book.releases.values() if entry.promise}
        if promised - book.promises.keys() or book.spent > 1:
            raise LedgerError(f"it is damaged: a promise is missing or does not hold; {FIX}")
        return book

    def add(self, kind: str, content: object) -> None:
        """Add a row, or raise LedgerError if it does not fit the others."""
        self._add(datetime.now(UTC).isoformat(timespec="seconds"), kind, canonical(content))

    def accept(self, terms: Terms) -> Paid:
        """Add the rows of a release that all promises allow.

        Raises LedgerError: it is of another population; BudgetError: a promise would not hold.
        """
        theta, promise, limit, delta = terms.theta, terms.promise, None, 0.0
        entry = replace(terms.entry, promise=promise is not None)
        step = entry.population.step_seconds
        new = {*entry.population.values} - {*(self.population or entry.population).values}
        if new and not terms.new_values:
            problem = f"no earlier release read the column {min(new)!r}"
            raise LedgerError(
                f"{problem}; give `new_values` if the assumption holds for all jointly"
            )
        if theta is not None and self.theta is None:
            finite, states = parse_model(theta).family.states, entry.population.states
            if finite and states is None:
                raise ParameterError("Θ is about states; publish functions of them alone")
            self.add("theta", {"model": theta, "states": states if finite else None})
        elif theta is not None and canonical(theta) != canonical(self.theta):
            problem = "its releases have another assumption (Θ); give the same `mixing` or `chain`"
            raise LedgerError(f"{problem}, or `protect` participant, which needs none")
        if promise is not None:
            if promise.level not in self.promises:
                self.add("promise", promise)
            limit, delta = (known := self.promises[promise.level]).epsilon, known.delta
            problem = f"its `limit` to `protect` {promise.level.description(step)} is {limit:g}"
            if promise.epsilon not in (limit, entry.epsilon):
                raise LedgerError(
                    f"{problem}, not {promise.epsilon:g}; ledger set-limit changes it"
                )
            if promise.delta not in (0.0, delta):
                problem += f" with a delta of {delta:g}, not {promise.delta:g}"
                raise LedgerError(f"{problem}; ledger set-limit changes it")
        self.add("release", entry)
        times = [t for one in self.charges for t in (one.first, one.last) if t is not None] or [0]
        if self.theta is not None and max(times) - min(times) > MAX_STEPS * (step or 1):
            problem = f"its noise is proved for a span of {MAX_STEPS:,} steps"
            raise LedgerError(f"{problem}; begin a new ledger, whose promises are its own")
        if self.spent > 1:
            raise self._refusal(entry.population)
        spent = account.spent(self.promises.values(), self.charges, self.charges[-1])
        return Paid(len(self.rows), spent, limit, delta)

    def _refusal(self, of: Population) -> BudgetError:
        """Return the error with the broken promise, and the time from which readings are free."""
        promises, (*charges, new) = self.promises.values(), self.charges
        broken = max(promises, key=lambda one: account.spent([one], self.charges))
        protected = broken.level.description(of.step_seconds)
        free = max(account.free_from(one, charges, new) for one in promises)
        if free < account.SECONDS[1] - 86_400:  # the next time of the grid has a date
            grid = math.gcd(of.step_seconds or 1, 86_400)
            time = datetime(1970, 1, 1) + timedelta(seconds=math.ceil(free / grid) * grid)
            way = f"readings from {time}{' UTC' * (of.time_base == 'utc')} on are free"
        elif new.cost == UNBOUNDED:
            way = "it is finer than the states of Θ, or its cost is unknown"
        elif new.last is None and broken.cost:
            way = "without times everything adds up; with times new readings are free"
        else:
            way = "spent budget stays spent"
        problem = f"its limit of epsilon {broken.epsilon:g} to `protect` {protected} leaves no room"
        return BudgetError(f"{problem} for this release: {way}; ledger set-limit raises it")

    def _add(self, time: str, kind: str, text: str) -> None:
        datetime.fromisoformat(time)
        number, content = len(self.rows) + 1, parse_json(text)
        if kind == "theta" and self.theta is None and content.keys() == {"model", "states"}:
            self.theta, self.states = {**content["model"]}, content["states"]
        elif kind == "promise":
            level, cost = record(Level, content["level"], "a level"), _cost_of(content["cost"])
            known = {"delta": 0.0} | content | {"level": level, "cost": cost}
            promise = record(Promise, known, "a promise")
            if not (promise.level.whole or self.theta):
                raise LedgerError("a promise for windows needs an assumption; give Θ")
            self.promises[promise.level] = promise
        elif kind == "release":
            entry = _entry_of(content)
            self._join(entry.population)
            self.releases[number] = entry
        elif kind == "made" and content["release"] in self.releases:
            self.made.add(content["release"])
        else:
            raise LedgerError("there is no such row, or there is one already")
        after = self.rows[-1].digest if self.rows else ""
        digest = digest_of({"after": after, "entry": [number, time, kind, text]})
        self.rows.append(Row(number, time, kind, text, digest))

    def _join(self, of: Population) -> None:
        known = self.population or of
        for name in ("step_seconds", "time_base", "participant", "cohort"):
            if (new := getattr(of, name)) != (old := getattr(known, name)):
                problem = f"its releases have `{name}` {shown(old)}, this one has {shown(new)}"
                raise LedgerError(f"{problem}; use the same, or another ledger for other data")
        values = (*dict.fromkeys(known.values + of.values),)
        self.population = replace(known, values=values, states=None)


def canonical(document: object) -> str:
    """Return the JSON string that is hashed."""
    signs = (",", ":")
    return json.dumps(document, default=_plain, sort_keys=True, separators=signs, allow_nan=False)


def digest_of(document: object) -> str:
    """Return the SHA-256 of a document, in hexadecimal."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a cost as string, a record by its fields, a certificate compressed, in base 64.

    Fields for releases and promises with a δ are left out if they are 0.
    """
    if isinstance(value, Fraction):
        return "inf" if value >= UNBOUNDED else str(value)
    fields = {name: part for name, part in vars(value).items() if part or name not in _WITH_DELTA}
    if isinstance(proof := fields.get("certificate"), dict):
        packed = zlib.compress(canonical(proof).encode(), 9)
        fields["certificate"] = base64.b64encode(packed).decode()
    return fields


def _cost_of(text: str) -> Fraction:
    over, _, under = text.partition("/")
    return UNBOUNDED if text == "inf" else Fraction(int(over), int(under or 1))


def _entry_of(content: Document) -> Entry:
    given = dict.fromkeys(_WITH_DELTA, "0") | content["charge"]
    costs = {name: _cost_of(given[name]) for name in ("cost", "whole", *_WITH_DELTA)}
    parts = {
        "population": record(Population, content["population"], "a population"),
        "charge": record(Charge, content["charge"] | costs, "a charge"),
        "level": content["level"] and record(Level, content["level"], "a level"),
    }
    return record(Entry, content | parts, "a release")


_WITH_DELTA = ("rho", "whole_rho", "delta")
_WRONG = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
