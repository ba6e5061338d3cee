"""Rows of a ledger: what each kind holds, how digests chain them, and what all of them say.

What is read is checked before anything is computed from it: the file may have been written by
anybody, and a digest without a key is no signature.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from pufferflow._checks import (
    check_choice,
    check_epsilon,
    check_list,
    check_type,
    check_whole,
    shown,
)
from pufferflow._files import sha256
from pufferflow._json import parse_json
from pufferflow._protection import Level
from pufferflow.accounting import account
from pufferflow.accounting.account import MOST_STEPS, UNBOUNDED, Charge, Promise, plain, spent
from pufferflow.errors import BudgetError, LedgerError, ParameterError
from pufferflow.models import number_of_states, parse_model

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
TimeBase: TypeAlias = Literal["utc", "local", "none"]

LONGEST_TEXT = 1000
WORTH = 0.01
"""Least share that is named as one that fits: less is what rounding leaves."""
MEND = "put back a copy made after its last release, for an older one lacks what was spent since"
_RECORDS: dict[str, type[Any]] = {"Charge": Charge, "Level": Level, "Level | None": Level}
"""By the types of fields."""
_WRONG = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class Population:
    """What the readings of a release are.

    The step of the time grid, None without times; the columns of participants, None where all
    readings are of one, and of values; the ``states`` of Θ (names or edges), where it has some and
    everything published is a function of them; the name of a public part of the participants.
    """

    step_seconds: int | None
    time_base: TimeBase
    participant: str | None
    values: tuple[str, ...]
    states: list[Any] | None = None
    cohort: str | None = None

    def __post_init__(self) -> None:
        check_whole(1 if self.step_seconds is None else self.step_seconds, "step_seconds")
        check_choice(self.time_base, "time_base", get_args(TimeBase))
        object.__setattr__(self, "values", tuple(check_list(self.values, "values")))
        for name in (self.participant or "", self.cohort or "", *self.values):
            _check_text(name, "the name of a column or cohort")
        if not (self.states is None or isinstance(self.states, list)):
            raise ParameterError(f"states is {shown(self.states)}; it must be a list")


@dataclass(frozen=True)
class Entry:
    """A release that is to be paid for, ``query`` in public words.

    ``promise`` is whether its statement speaks of all releases together, at ``level`` and
    ``epsilon``; that of a private fit does not, and one made elsewhere has neither of the two.
    """

    charge: Charge
    level: Level | None
    epsilon: float | None
    query: str
    promise: bool = True

    def __post_init__(self) -> None:
        check_type(self.charge, "charge", Charge)
        if self.level is not None:
            object.__setattr__(self, "level", plain(self.level))
        check_epsilon(1 if self.epsilon is None else self.epsilon)
        _check_text(self.query, "query")
        if type(self.promise) is not bool or (self.promise and None in (self.level, self.epsilon)):
            raise ParameterError("a release that promises something needs a level and epsilon")


class Terms(NamedTuple):
    """A release with Θ's model document, and what is promised if its level has no promise yet."""

    population: Population
    theta: Document | None
    promise: Promise | None
    certificate: Document | None
    entry: Entry


@dataclass(frozen=True)
class Paid:
    """A release that is paid for, by row ``number``; None where no account is kept.

    ``spent`` is the largest share of a promise in force that is used now, ``used`` that of the
    readings in the range of this release, ``limit`` the ε of the promise in force at its level;
    ``name`` is the file's, for the terminal only.
    """

    number: int | None
    spent: Fraction
    name: str
    used: Fraction = Fraction(0)
    limit: float | None = None


class Row(NamedTuple):
    """A row of the ledger; its kind is theta, promise, release or made."""

    number: int
    time: str
    kind: str
    content: Document
    digest: str


@dataclass
class Book:
    """The rows of a ledger, and what they say together; ``states`` are those of Θ."""

    rows: list[Row] = field(default_factory=list)
    population: Population | None = None
    theta: Document | None = None
    states: list[Any] | None = None
    promises: dict[Level, Promise] = field(default_factory=dict)
    releases: dict[int, tuple[Entry, Population]] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)

    @property
    def charges(self) -> list[Charge]:
        """What releases cost; of one that is finer than Θ's states only the whole cost is known."""
        charges = []
        for entry, of in self.releases.values():
            finer = self.states is not None and of.states != self.states
            charges.append(replace(entry.charge, cost=UNBOUNDED) if finer else entry.charge)
        return charges

    def add(self, kind: str, content: Document) -> None:
        """Add a row, or raise LedgerError where it does not fit the others."""
        self._add(datetime.now(UTC).isoformat(timespec="seconds"), kind, canonical(content))

    def promise(self, promise: Promise, certificate: Document | None) -> None:
        """Add the row of a promise, with its certificate: JSON, compressed, in base 64."""
        packed = None
        if certificate is not None:
            packed = base64.b64encode(zlib.compress(canonical(certificate).encode(), 9)).decode()
        self.add("promise", asdict(promise) | {"certificate": packed})

    @classmethod
    def read(cls, table: Iterable[tuple[Any, ...]]) -> Book:
        """Return what the rows of a file say, oldest first.

        Raises LedgerError: digests do not fit together, a row is not one that this program writes,
        or a promise is missing or does not hold over the rows as they are.
        """
        book = cls()
        for row in table:
            try:
                book._add(*row[1:4])
                if (row[0], row[4]) != (book.rows[-1].number, book.rows[-1].digest):
                    raise ValueError
            except _WRONG as error:
                raise LedgerError(
                    f"row {row[0]} was changed after it was written, or one before it is missing, "
                    f"or this program does not write such; {MEND}"
                ) from error
        promised = {entry.level for entry, _ in book.releases.values() if entry.promise}
        missing = promised - book.promises.keys()
        if missing or spent(book.promises.values(), book.charges) > 1:
            raise LedgerError(f"it is damaged: a promise is missing or does not hold; {MEND}")
        return book

    def accept(self, terms: Terms, new_values: bool, name: str) -> Paid:
        """Add the rows of a release that all promises allow.

        Raises LedgerError: the book is of something else; BudgetError: a promise would not hold.
        """
        population, theta, promise, certificate, entry = terms
        known = (self.population or population).values
        if entry.promise and (
            promise is None or promise.level != entry.level or not (promise.level.whole or theta)
        ):
            raise ParameterError("a release that promises needs a promise, of windows Θ too")
        if theta is not None and self.theta is None:
            has_states = number_of_states(parse_model(theta)) is not None
            if has_states and population.states is None:
                raise ParameterError("what is assumed has states; publish functions of them alone")
            self.add("theta", {"model": theta, "states": population.states if has_states else None})
        elif theta is not None and canonical(theta) != canonical(self.theta):
            raise LedgerError(
                "its releases assume something else (Θ), with which costs do not add up; give the "
                "same mixing or chain, or protect participants, which needs none"
            )
        limit = None
        if promise is not None:
            if promise.level not in self.promises:
                self.promise(promise, certificate)
            limit = self.promises[promise.level].epsilon
            if promise.epsilon not in (limit, entry.epsilon):
                raise LedgerError(
                    f"its limit for {words_of(promise.level)} is {limit:g}, not "
                    f"{promise.epsilon:g}; change it with pufferflow ledger set-limit"
                )
        self.add("release", asdict(entry) | {"population": asdict(population)})
        if not new_values and (new := [name for name in population.values if name not in known]):
            raise LedgerError(
                f"no release before read the column {new[0]!r}, and what is assumed must hold of "
                "all columns together; say yes (--yes) if it does"
            )
        charges, promises = self.charges, self.promises.values()
        longest = MOST_STEPS * (population.step_seconds or 1)
        if self.theta is not None and account.span(charges) > longest:
            raise LedgerError(
                f"its releases would span more than {MOST_STEPS:,} steps, for which the noise is "
                "proved; begin a new ledger, whose promises are its own"
            )
        if (share := spent(promises, charges)) > 1:
            raise self._refusal(population, entry)
        used = spent(promises, charges, charges[-1])
        return Paid(self.rows[-1].number, share, name, used, limit)

    def _refusal(self, of: Population, entry: Entry) -> BudgetError:
        """Say which promise the newest release would break, and what is free."""
        promises, ways, share = self.promises.values(), list[str](), 0.0
        *charges, new = self.charges
        broken = max(promises, key=lambda one: spent([one], self.charges))
        free = max(account.free_from(one, charges, new) for one in promises)
        if free > account.SECONDS[1] - 86_400:  # the next time of the grid may have no date
            free = math.inf
        if new.cost == UNBOUNDED:
            ways.append("it is finer than the states of Θ, or nobody knows what it costs")
        elif not broken.level.whole and account.top(charges) > broken.cost:
            ways.append("what is there already costs more; give a larger --limit, or --alone")
        elif math.isfinite(free):
            grid = math.gcd(of.step_seconds or 1, 86_400)
            free = math.ceil(free / grid) * grid
            time, utc = datetime(1970, 1, 1) + timedelta(seconds=free), of.time_base == "utc"
            ways.append(f"readings from {time}{' UTC' * utc} on are free")
        elif new.last is None and not broken.level.whole:
            ways.append("without times everything adds up; with times new readings are free")
        own = self.promises.get(entry.level) if entry.promise and entry.level else None
        if own is not None and own.epsilon == entry.epsilon:
            factor = min(account.room(one, charges, new) for one in promises)
            share = math.floor(1000 * factor * spent([own], [new])) / 1000
        if share >= WORTH:
            ways.append(f"a share (--share) of {share:g} fits")
        ways.append("pufferflow ledger set-limit raises it")
        return BudgetError(
            f"its limit of epsilon {broken.epsilon:g} for {words_of(broken.level)} leaves no room "
            f"for this release: {'; '.join(ways)}",
            share,
            int(free) if math.isfinite(free) else None,
        )

    def _add(self, time: str, kind: str, text: str) -> None:
        datetime.fromisoformat(time)
        number, content = len(self.rows) + 1, parse_json(text)
        if kind == "theta" and self.theta is None and content.keys() == {"model", "states"}:
            self.theta, self.states = {**content["model"]}, content["states"]
        elif kind == "promise":
            promise = _record(Promise, content, "certificate")
            if not (promise.level.whole or self.theta):
                raise LedgerError("a promise for windows needs an assumption; give Θ")
            self.promises[promise.level] = promise
        elif kind == "release":
            entry = _record(Entry, content, "population")
            of = _record(Population, content["population"])
            self._join(of, entry.charge)
            self.releases[number] = entry, of
        elif kind == "made" and content["release"] in self.releases:
            self.made.add(content["release"])
        else:
            raise LedgerError("there is no such row, or there is one already")
        last = self.rows[-1].digest if self.rows else ""
        digest = sha256(canonical({"after": last, "entry": [number, time, kind, text]}).encode())
        self.rows.append(Row(number, time, kind, content, digest))

    def _join(self, of: Population, charge: Charge) -> None:
        known = self.population or of
        for name in ("step_seconds", "time_base", "participant", "cohort"):
            if (new := getattr(of, name)) != (old := getattr(known, name)):
                raise LedgerError(
                    f"its releases have {name} {shown(old)}, this one has {shown(new)}, and "
                    "their costs do not add up; use the same, or another ledger for other data"
                )
        if of.time_base == "none" and (charge.first, charge.last) != (None, None):
            raise LedgerError("a release has a range of times where there are none")
        values = (*dict.fromkeys(known.values + of.values),)
        self.population = replace(known, values=values, states=None)


def canonical(document: Any) -> str:
    """Return the JSON text that digests are made of, costs as the text of a fraction or inf."""
    options: Document = {"sort_keys": True, "separators": (",", ":"), "allow_nan": False}
    return json.dumps(document, default=_text_of, **options)


def _text_of(cost: Fraction) -> str:
    return "inf" if cost >= UNBOUNDED else str(cost)


def _cost_of(text: str) -> Fraction:
    _check_text(text, "a cost")
    over, _, under = text.partition("/")
    return UNBOUNDED if text == "inf" else Fraction(int(over), int(under or 1))


def _record(kind: type[T], document: Document, *beside: str) -> T:
    """Build a record from a row, which has all its fields, and nothing else but what is beside."""
    types = kind.__annotations__
    if document.keys() != {*types, *beside}:
        raise LedgerError("a key in it is missing or unknown")
    values = {name: document[name] for name in types}
    for name, value in values.items():
        if types[name] == "Fraction":
            values[name] = _cost_of(value)
        elif value is not None and types[name] in _RECORDS:
            values[name] = _record(_RECORDS[types[name]], value)
    return kind(**values)


def _check_text(value: object, name: str) -> None:
    if not (isinstance(value, str) and value.isprintable() and len(value) <= LONGEST_TEXT):
        raise ParameterError(
            f"{name} is {shown(value)}; give up to {LONGEST_TEXT} printable letters"
        )


def words_of(level: Level) -> str:
    """Return what is protected, in words."""
    if level.window is None:
        return "whole participants"
    side = " with side information any" if level.side_information == "any" else ""
    return f"{'single' if level.window == 1 else level.window} readings{side}"
