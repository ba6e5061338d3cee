"""From a table to its steps: who, when, which value, each row checked once.

Times are unix seconds, ISO times with an offset, or times of a local clock. A local clock that
jumps for daylight saving is refused by name unless its zone is given: an hour that is there twice
or not at all would distort the counts. Rows may be in any order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import shown
from pufferflow._numbers import shortest
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.schema import ROLES, Schema
from pufferflow.records.states import MISSING, MISSING_TEXTS, NULL_TEXTS, UNKNOWN, StateSpace
from pufferflow.records.table import ROWS, Source, Table, open_table
from pufferflow.records.times import CALENDAR, HOUR, KINDS, NOWHEN, Integers, is_time, moments
from pufferflow.records.times import parse_range as parse_range

Clock = Literal["utc", "local", "none"]
Columns = dict[str, NDArray[Any]]

_TIMES = "time timestamp datetime date_time tstp ts utc unix_time unix_ts date"
_VALUES = "value state activity category watts power kw load demand usage consumption energy kwh wh"
GUESSES = {"time": _TIMES.split(), "value": [*_VALUES.split(), "reading", "measurement"]}
"""Names by which columns are found, in any case and with a unit: "Power (W)"."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Steps:
    """The readings of a table that have a value, sorted by participant and time.

    Attributes
    ----------
    person, step : int array, shape (n,)
        Index into ``people``; whole steps since 1970, or the participant's number of the row.
    value, state : float and int array, shape (n,), or None
        Numbers, and states of the schema, where there are any.
    people, groups : tuple of str
        Names; one participant "" and one group "all" where there are no columns of them.
    group_of, phase : int array, shape (people,)
        Group of each participant, and by how many seconds its times come after whole steps.
    step_seconds, zone : int and str, or None
        None without times; the zone in which hours of the day are counted.
    columns : mapping
        The column of each role, None where it has none.
    rows : int
        Rows that were read, those without a value included.
    extent : (int, int) or None
        First and last second of the rows; None without times and of a private fit.
    """

    person: NDArray[np.int32]
    step: NDArray[np.int32] | Integers
    value: NDArray[np.float64] | None = None
    state: NDArray[np.int32] | None = None
    states: StateSpace | None = None
    people: tuple[str, ...] = ("",)
    groups: tuple[str, ...] = ("all",)
    group_of: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    phase: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    step_seconds: int | None = None
    clock: Clock = "none"
    zone: str | None = None
    where: str = "the table"
    columns: Mapping[str, str | None] = field(default_factory=lambda: dict.fromkeys(ROLES))
    rows: int = 0
    extent: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return "Steps(…)"

    @classmethod
    def of(cls, seconds: Any, *, value: Any = None, state: Any = None, **facts: Any) -> Steps:
        """Return the steps of readings that are known to be right, in any order.

        ``seconds`` are the numbers of the steps where there is no ``step_seconds``; the other
        facts are the attributes of this class (``person`` counts from 0, all 0 by default).
        """
        seconds = np.asarray(seconds, dtype=np.int64)
        person = np.asarray(facts.pop("person", np.zeros(len(seconds))), dtype=np.int32)
        order = in_order(person, seconds)
        person, seconds = person[order], seconds[order]
        value = None if value is None else np.asarray(value, dtype=np.float64)[order]
        state = None if state is None else np.asarray(state, dtype=np.int32)[order]
        people, step = len(facts.get("people", ("",))), facts.get("step_seconds")
        phase = np.zeros(people, dtype=np.int64)
        if step is not None:
            starts = np.flatnonzero(np.diff(person, prepend=np.int32(-1)))
            phase[person[starts]] = seconds[starts] % step
        at: Any = seconds // (step or 1)
        if at.min(initial=0) >= -(2**31) and at.max(initial=0) < 2**31:
            at = at.astype(np.int32)
        facts.setdefault("group_of", np.zeros(people, dtype=np.int32))
        facts.setdefault("rows", len(seconds))
        return cls(person=person, step=at, phase=phase, value=value, state=state, **facts)

    @property
    def seconds(self) -> Integers:
        """Time of each reading in seconds since 1970; its step without times."""
        seconds = self.step.astype(np.int64)
        if self.step_seconds is not None:
            seconds *= self.step_seconds
            seconds += self.phase[self.person]
        return seconds

    @property
    def local_seconds(self) -> Integers:
        """Time of each reading on the clock on which hours and days are counted."""
        seconds = self.seconds
        if self.clock == "utc" and self.zone is not None:
            there = pd.DatetimeIndex(seconds.astype("datetime64[s]"), tz="UTC")
            return there.tz_convert(self.zone).tz_localize(None).as_unit("s").asi8
        return seconds

    @property
    def near(self) -> NDArray[np.bool_]:
        """Whether the reading before is of the same participant, one step earlier."""
        near = np.zeros(len(self.step), dtype=bool)
        near[1:] = (np.diff(self.step) == 1) & (self.person[1:] == self.person[:-1])
        return near


def read(
    source: Source | Table,
    schema: Schema,
    *,
    first: int | None = None,
    last: int | None = None,
    total: bool = False,
) -> Steps:
    """Read the readings of a table.

    Parameters
    ----------
    source : path, Series, DataFrame or Table
    schema : Schema
    first, last : int, optional
        First and last second of the rows to look at, on the clock of the table (or UTC).
    total : bool
        For a private fit: no row is ever refused, so that no refusal reveals a participant.
        Wrong values are missing; rows of a participant at one time, and rows off the grid of
        whole steps since 1970, are dropped; participants without any row left stay.

    Raises DataError: the table is malformed, and the sentence names the line; ParameterError: an
    option has no use for this table, or the step is not given where it must be public.
    """
    rows = _Rows(open_table(source, schema.separator), schema, first, last, total)
    step, timed, states = schema.step_seconds, bool(rows.times), schema.states
    if not timed and not first is last is step is None:
        what = "`step`, `first` and `last` are for readings with times"
        raise ParameterError(f"{what}; name their column (`time`) or leave them out")
    if timed and total and step is None:
        raise ParameterError("the time step must be public; give `step`, for example 30min")
    parts = list(rows)
    held = {name: np.concatenate([part.pop(name) for part in parts]) for name in [*parts[0]]}
    group_of = rows.group_of(held)
    rows.settle(held)
    kept = (held["time"] >= rows.low) & (held["time"] <= rows.high)
    count = int(kept.sum())
    begin = int(held["time"].min(where=kept, initial=rows.high))
    end = int(held["time"].max(where=kept, initial=rows.low))
    if not total:
        rows.check(count)
    numeric = held["value"].dtype.kind == "f"
    kept &= ~np.isnan(held["value"]) if numeric else held["value"] != MISSING
    if total and step is not None:
        kept &= held["time"] % step == 0
    _keep(held, kept)
    del kept
    rows.sort(held)
    if timed and not total:
        step = rows.find_step(held)
    value = held["value"]
    state = None if states is None else states.encode_numbers(value) if numeric else value
    return Steps.of(
        held["time"],
        person=held["person"],
        value=value if numeric else None,
        state=state,
        states=states,
        people=tuple(rows.people),
        groups=tuple(rows.groups) or ("all",),
        group_of=group_of,
        step_seconds=step,
        clock=rows.clock,
        zone=schema.timezone,
        where=rows.table.where,
        columns=rows.columns,
        rows=count,
        extent=(begin, end) if timed and not total else None,
    )


class _Rows:
    """The rows of a table that name a participant and may lie in the range of time.

    Iterating yields columns of them: ``row`` (its number), ``person`` (of ``people``), ``time`` in
    seconds, by how much it is ``later`` if the hour that is there twice is the second one,
    ``group`` (of ``groups``), and ``value``. Raises DataError as :func:`read`.
    """

    def __init__(
        self, table: Table, schema: Schema, first: int | None, last: int | None, total: bool
    ) -> None:
        self.table, self.schema, self.total = table, schema, total
        self.columns = find_columns(table, schema)
        self.times = _parts(table, self.columns["time"])
        self.signs = bool(schema.thousands) or schema.decimal not in (None, ".")
        self.people: dict[str, int] = {} if self.columns["participant"] else {"": 0}
        self.groups: dict[str, int] = {}
        self.kind = -1  # of the first time, an index of KINDS
        self.whole = first is last is None
        self.low = CALENDAR[0] if first is None else first
        self.high = 2 * CALENDAR[1] if last is None else last

    @property
    def clock(self) -> Clock:
        """The clock of the times."""
        if not self.times:
            return "none"
        return "utc" if self.total or self.kind != 1 or self.schema.timezone else "local"

    def __iter__(self) -> Iterator[Columns]:
        named = {role: name for role in ROLES[1:] if (name := self.columns[role]) is not None}
        for frame in self.table.batches([*dict.fromkeys([*self.times, *named.values()])]):
            if self.times and self.table.first_line is not None:
                frame = frame[(frame != "").any(axis=1)]
            time, late = self._times(frame)
            if not self.total:
                near = (late >= self.low) & (time <= self.high)
                frame, time, late = frame[near], time[near], late[near]
            held: Columns = {"time": time, "later": (late - time).astype(np.int32)}
            held["row"] = frame.index.to_numpy(np.uint32)
            held["person"] = np.zeros(len(frame), dtype=np.int32)
            if "participant" in named:
                held["person"] = self._named(frame[named["participant"]], self.people)
                what = "is missing; fill it in or drop the row"
                self._refuse(held["person"] < 0, frame.index, "participant", what)
            if "group" in named:
                held["group"] = self._named(frame[named["group"]], self.groups)
            held["value"] = self._values(frame[named["value"]])
            _keep(held, held["person"] >= 0)
            yield held

    def _values(self, column: pd.Series[Any]) -> NDArray[Any]:
        """Codes of categories, or numbers, of values; −1 or NaN where missing."""
        codes, distinct = self._different(column)
        states, entries = self.schema.states, distinct.tolist()
        if states is not None and states.edges is None:
            if lost := next((n for n in states.listed if n.lower() in NULL_TEXTS), None):
                what = f"is missing, but may be the state {lost!r} that was read as missing; read "
                what += "the table with keep_default_na=False, or rename the state"
                self._refuse(column.isna(), column.index, "value", what)
            texts = [_text(value) for value in entries]  # numbers with a point, whatever their sign
            texts = [plain if shortest(plain := self._plain(text)) else text for text in texts]
            known: NDArray[Any] = states.encode_names(texts)
            bad, missing = known == UNKNOWN, float(MISSING)
            what = "is none of the public states; name it among them, or give the state other, so "
            what += "that such values have one (this message reveals that one occurs)"
        else:
            try:  # at once: how many different values there are is not to be seen by calls
                numbers = [*map(self._number if self.signs else float, entries)]
            except (TypeError, ValueError, OverflowError):
                numbers = [*map(self._number, entries)]
            bad, missing = np.array([number is None for number in numbers], dtype=bool), math.nan
            known = np.array(numbers, dtype=np.float64)
            what = "is not a number; correct it, or leave it empty if it is missing"
        self._refuse(bad[codes], column.index, "value", what)
        known[bad] = missing
        return known[codes]

    def _number(self, value: Any) -> float | None:
        """A value as a number, NaN where it is missing, None where it is none."""
        try:
            return float(self._plain(value) if isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError):
            return math.nan if _text(value).lower() in MISSING_TEXTS else None

    def group_of(self, held: Columns) -> NDArray[np.int32]:
        """Group of each participant, which all rows must name."""
        of = np.zeros(len(self.people), dtype=np.int32)
        if "group" in held:
            person, group = held["person"], held.pop("group")
            of[person[::-1]] = group[::-1]  # of several the first row
            what = "is missing or differs from the participant's first one, of whom it must be a "
            what += "fact; correct it, or name the column of the participants (`participant`)"
            self._refuse((group < 0) | (group != of[person]), held["row"], "group", what)
        return of

    def settle(self, held: Columns) -> None:
        """Give each row its time, or its number where none have.

        Of an hour that is there twice it is the second if the first is not after the row before.
        """
        later, time = held.pop("later"), held["time"]
        if not self.times:
            held["time"] = pd.Series(held["person"]).groupby(held["person"]).cumcount().to_numpy()
        elif later.any() and not self.total:
            row = pd.Series(np.arange(len(time)))
            before = row.groupby(held["person"]).shift(fill_value=-1).to_numpy()
            for i in np.flatnonzero(later):
                if before[i] >= 0 and time[i] <= time[before[i]]:
                    time[i] += later[i]

    def check(self, count: int) -> None:
        """Raise where no row was read, or the participants are something else."""
        column, people = self.columns["participant"], len(self.people)
        if not count:
            what = "no row of data below the header, or between `first` and `last`; check the file"
            raise DataError(f"{self.table.where}: {what}")
        alone = count < 2 * people and self.whole
        if column is not None and (alone or all(map(is_time, self.people))):
            what = f"{people:,} participants in {count:,} rows" if alone else "times, not names"
            what = f"the column {shown(column)} of the participants has {what}"
            raise DataError(f"{self.table.where}: {what}; name the right one (`participant`)")

    def sort(self, held: Columns) -> None:
        """Sort rows by participant and time; those at one time are refused, or dropped."""
        _keep(held, in_order(held["person"], held["time"]))
        again = np.zeros(len(held["time"]), dtype=bool)
        again[1:] = (np.diff(held["person"]) == 0) & (held["time"][1:] == held["time"][:-1])
        what = "is there twice; remove one of the two rows, name the column that tells "
        what += "participants apart (`participant`) or, on a local clock when daylight "
        what += "saving ends, its zone (`timezone`)"
        self._refuse(again, held["row"], "time", what)
        again[:-1] |= again[1:]
        _keep(held, ~again)

    def find_step(self, held: Columns) -> int:
        """Return the step as given, else the most common difference of times, of equals the least.

        Raises DataError: times are not whole steps apart, or an hour is left out.
        """
        time, rows, wait = held["time"], held["row"], np.zeros_like(held["time"])
        np.subtract(time[1:], time[:-1], out=wait[1:])
        wait[1:][np.diff(held["person"]) > 0] = 0
        number = Counter[int]()
        for at in range(0, len(wait), ROWS):  # at once they would take as much again
            waits, times = np.unique(wait[at : at + ROWS], return_counts=True)
            number.update(dict(zip(waits.tolist(), times.tolist(), strict=True)))
        del number[0]
        step = self.schema.step_seconds
        if step is None:
            if not number:
                what = "one reading only of each participant, so that no time step can be seen"
                raise DataError(f"{self.table.where}: {what}; give `step`")
            step = min(number, key=lambda one: (-number[one], one))
        if any(one % step for one in number):
            what = f"is not a whole number of steps of {step} s after the one before; resample or "
            self._refuse(wait % step > 0, rows, "time", what + "give `step`")
        if self.clock == "local" and step <= HOUR and HOUR + step in number:
            what = "comes an hour late, as on a local clock when daylight saving begins; give "
            what += "its zone (`timezone`), or UTC if the clock never jumps"
            late = (wait == HOUR + step) & (time % HOUR < step)
            then = pd.DatetimeIndex(time[late].astype("datetime64[s]"))
            sunday = (then.day_of_week == 6) & (then.hour <= 4)
            late[late] = sunday & then.month.isin([3, 4, 9, 10, 11])
            self._refuse(late, rows, "time", what)
        return step

    def _refuse(self, bad: Any, rows: Any, role: str, what: str) -> None:
        """Raise where a row is bad, unless no row may be refused; never say what stands there."""
        if bad.any() and not self.total:
            place = self.table.place(int(rows[int(np.asarray(bad).argmax())]))
            raise DataError(f"{self.table.where}, {place}: the {role} {what}")

    def _times(self, frame: pd.DataFrame) -> tuple[Integers, Integers]:
        """First and last moment that each time may mean; before all others where it is none."""
        if not self.times:
            return np.zeros(len(frame), dtype=np.int64), np.zeros(len(frame), dtype=np.int64)
        column, form, zone = frame[self.times[0]], self.schema.time_format, self.schema.timezone
        for other in self.times[1:]:
            parts = [c.astype("str").where(c.notna(), "") for c in (column, frame[other])]
            column = (parts[0] + " " + parts[1]).str.strip()
        codes, distinct = self._different(column)
        early, late, kind = (found[codes] for found in moments(pd.Series(distinct), form, zone))
        written = "such as 2017-05-14T09:00:00 or in unix seconds; correct it or give `time_format`"
        what = "is not a time in whole seconds "
        what += written if form is None else f"written as {form}; correct either"
        if zone not in (None, "UTC"):
            what += f"; the clocks of {zone} leave some out where daylight saving begins"
        self._refuse(early == NOWHEN, frame.index, "time", what)
        if self.kind < 0 and len(kind):
            self.kind = int(kind[0])
        what = f"is not written as the first time, which {KINDS[self.kind]}; write all alike"
        self._refuse(kind != self.kind, frame.index, "time", what)
        return early, late

    def _named(self, column: pd.Series[Any], names: dict[str, int]) -> NDArray[np.int32]:
        """Number of each name in the order in which they came, −1 where there is none."""
        codes, distinct = self._different(column)
        texts = map(_text, distinct.tolist())
        known = [-1 if t in ("", "nan") else names.setdefault(t, len(names)) for t in texts]
        return np.array(known, dtype=np.int32)[codes]

    def _different(self, column: pd.Series[Any]) -> tuple[Integers, Any]:
        """Codes of the entries into the different ones, of which nothing may be one."""
        try:
            return pd.factorize(column, use_na_sentinel=False)
        except TypeError:
            what = f"the column {column.name!r} has lists; give numbers, texts or times"
            raise DataError(f"{self.table.where}: {what}") from None

    def _plain(self, text: str) -> str:
        """A number as Python writes it; "none" where it is not written with the signs given."""
        if not self.signs:
            return text
        text, decimal, thousands = text.strip(), self.schema.decimal or ".", self.schema.thousands
        mark, group = re.escape(decimal), re.escape(thousands or "")
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d*)" if thousands else r"\d*"
        if not re.fullmatch(rf"[+-]?(?:{whole}(?:{mark}\d*)?(?:[eE][+-]?\d+)?|inf)", text):
            return "none"
        return text.replace(thousands or "", "").replace(decimal, ".")


def _keep(held: Columns, which: Any) -> None:
    """Keep some rows, or sort them, a column after the other so that memory has one twice."""
    for name in held:
        held[name] = held[name][which]


def find_columns(table: Table, schema: Schema) -> dict[str, str | None]:
    """Return the column of each role, None for a role that none has.

    Raises DataError: a column that was named is missing, or it is not clear which holds the times
    or the values.
    """
    present, columns = list(table.columns), {role: getattr(schema, role) for role in ROLES}

    def refuse(what: str) -> NoReturn:
        line = "" if table.first_line is None else ", line 1"
        raise DataError(f"{table.where}{line}: {what}")

    sign = schema.decimal or "."
    if columns["value"] is None and any(
        is_time(name) or shortest(name.replace(sign, ".")) for name in present
    ):
        what = "this seems to be data, not a header; add a line of names such as time,value"
        refuse(f"{what}, or name the column of the values (`value`)")
    for role, named in columns.items():
        if not {*_parts(table, named)} <= {*present}:
            refuse(f"there is no column {shown(named)} for the {role}; correct `{role}`")
    for role, known in GUESSES.items():
        if columns[role] is not None or (role == "time" and schema.rows_are_steps):
            continue
        taken = {*columns.values(), *_parts(table, columns["time"])}
        free = [name for name in present if name not in taken]
        found = [name for name in free if re.split(r"[(\[/]", name)[0].strip().lower() in known]
        found = free if role == "value" and not found else found
        if len(found) > 1 or (role == "value" and not found):
            refuse(f"it is not clear which column holds the {role}s; name it (`{role}`)")
        columns[role] = found[0] if found else None
    used = {name for named in columns.values() for name in _parts(table, named)}
    for name in used:
        if present.count(name) > 1 or f"{name}.1" in present:  # as pandas names the second
            refuse(f"two columns are called {shown(name)}; rename one")
    left = len({*present} - used)
    if left and columns["time"] is None and not schema.rows_are_steps:
        what = f"{left} column(s) not used; name the time (`time`), or say `rows_are_steps`"
        refuse(f"{what} if every row is one step after the row before")
    return columns


def _parts(table: Table, named: str | None) -> list[str]:
    """The column, or those of dates and of times of day where they are named as "Date,Time"."""
    parts = [part.strip() for part in (named or "").split(",")]
    if len(parts) == 2 and named not in table.columns and {*parts} <= {*table.columns}:
        return parts
    return [] if named is None else [named]


def stamp(steps: Steps, seconds: int) -> str:
    """Write a time for people: ISO on the clock of the table, or the number of the step."""
    if steps.clock == "none":
        return f"step {seconds + 1}"
    return f"{np.datetime64(seconds, 's')}{'' if steps.clock == 'local' else 'Z'}"


def in_order(person: NDArray[np.int32], seconds: Integers) -> Integers | slice:
    """What sorts readings by participant and time, those at one time in the order of the table."""
    later = (person[1:] == person[:-1]) & (seconds[1:] >= seconds[:-1])
    if (later | (person[1:] > person[:-1])).all():
        return slice(None)
    return np.lexsort((seconds, person))


def _text(value: Any) -> str:
    """A name as text; a whole number the same from a CSV and from a Parquet file."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return "" if pd.isna(value) else str(value).strip()
