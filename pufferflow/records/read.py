"""From a table to its steps: who, when, which value, each row checked once.

Times are unix seconds, ISO times with an offset, or times of a local clock. A local clock that
jumps for daylight saving is refused by name unless its zone is given: an hour that is there twice
or not at all would distort the counts. Rows may be in any order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._checks import shown
from pufferflow._numbers import shortest
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.schema import ROLES, Schema
from pufferflow.records.states import MISSING, MISSING_TEXTS, UNKNOWN, StateSpace
from pufferflow.records.table import ROWS, Source, Table, open_table
from pufferflow.records.times import (
    CALENDAR,
    KINDS,
    NOWHEN,
    Integers,
    clocks_change,
    is_time,
    moments,
)
from pufferflow.records.times import parse_range as parse_range

Clock = Literal["utc", "local", "none"]
Marks = NDArray[np.bool_]

_TIMES = "time timestamp datetime date_time tstp ts utc unix_time unix_ts date __index_level_0__"
_VALUES = "value state activity category watts power kw load demand usage consumption energy kwh wh"
GUESSES = {"time": _TIMES.split(), "value": [*_VALUES.split(), "reading", "measurement"]}
"""Names by which columns are found, in any case and with a unit: "Power (W)"."""

HOUR, CHUNK = 3600, 2**16
BITS, MOST_PEOPLE, MOST_WAITS = 40, 2**22, 100_000
"""A key is the participant, and in its last bits the seconds since the year 1."""


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
        The column of each role, None where it has none; ``unused`` is the number of others.
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
    unused: int = 0
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
        order = np.lexsort((seconds, person))
        people, step = len(facts.get("people", ("",))), facts.get("step_seconds")
        at, phase = _on_grid(person[order], seconds[order], people, step)
        facts.setdefault("group_of", np.zeros(people, dtype=np.int32))
        facts.setdefault("rows", len(seconds))
        value = None if value is None else np.asarray(value, dtype=np.float64)[order]
        state = None if state is None else np.asarray(state, dtype=np.int32)[order]
        return cls(person=person[order], step=at, phase=phase, value=value, state=state, **facts)

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
            for start in range(0, len(seconds), CHUNK):
                part = slice(start, start + CHUNK)
                there = pd.DatetimeIndex(seconds[part].astype("datetime64[s]"), tz="UTC")
                there = there.tz_convert(self.zone).tz_localize(None)
                seconds[part] = there.as_unit("s").asi8
        return seconds

    @property
    def near(self) -> Marks:
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
    show_values: bool = False,
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
    show_values : bool
        Whether complaints may show what stands in a row: for data that are public.

    Raises DataError: the table is malformed, and the sentence names the line; ParameterError: an
    option has no use for this table, or the step is not given where it must be public.
    """
    table = open_table(source, schema.separator)
    rows = Rows(table, schema, first, last, total, show_values)
    step, timed, states = schema.step_seconds, bool(rows.times), schema.states
    if not timed and not first is last is step is None:
        what = "step, from and to are for readings with times"
        raise ParameterError(f"{what}; name their column (time), or leave them out")
    if timed and total and step is None:
        raise ParameterError("the time step must be public; give it (step), for example 30min")
    keys, values = [np.empty(0, dtype=np.int64)], []
    for numbers, key, column in rows:
        found = rows.values(column, numbers)
        seen = _known(found)
        if total and step is not None:
            seen &= _seconds(key) % step == 0
        keys.append(key[seen])
        values.append(found[seen])
    rows.check()
    key, value = _sorted(keys, values)
    again = key[1:] == key[:-1]
    if again.any():
        if not total:
            raise rows.repeated(int(key[again.argmax()]))
        once = ~(np.append(again, False) | np.append(False, again))
        key, value = key[once], value[once]
    del again
    if timed and not total:
        step = rows.check_step(key)
    person = np.empty(len(key), dtype=np.int32)
    np.right_shift(key, BITS, out=person, casting="unsafe")
    key &= 2**BITS - 1
    key += CALENDAR[0]
    at, phase = _on_grid(person, key, len(rows.people), step)
    del key
    numeric = value.dtype.kind == "f"
    state = None if states is None else states.encode_numbers(value) if numeric else value
    return Steps(
        person=person,
        step=at,
        value=value if numeric else None,
        state=state,
        states=states,
        people=tuple(rows.people),
        groups=tuple(rows.groups) or ("all",),
        group_of=np.array(rows.group_of or [0] * len(rows.people), dtype=np.int32),
        phase=phase,
        step_seconds=step,
        clock=rows.clock,
        zone=schema.timezone,
        where=table.where,
        columns=rows.columns,
        unused=len({*table.columns} - {*rows.times, *rows.columns.values()}),
        rows=rows.count,
        extent=rows.extent if timed and not total else None,
    )


def _sorted(keys: list[Integers], values: list[NDArray[Any]]) -> tuple[Integers, NDArray[Any]]:
    """The keys in order, with their values, in 24 bytes a row; both lists are emptied."""
    key = np.concatenate(keys)
    keys.clear()
    value = np.concatenate(values or [np.empty(0)])
    values.clear()
    if (key[1:] >= key[:-1]).all():
        return key, value
    order = np.argsort(key)
    key.sort()
    moved = order.view(value.dtype)[: len(key)]  # the values move into what ordered them
    for start in range(0, len(key), CHUNK):
        moved[start : start + CHUNK] = value[order[start : start + CHUNK]]
    return key, moved


@dataclass(repr=False)
class Rows:
    """The rows of a table in the range of time, with what is learned of participants on the way.

    Iterating yields, batch by batch, the numbers of the rows, their keys and their values as they
    stand. Raises DataError as :func:`read`.
    """

    table: Table
    schema: Schema
    first: int | None = None
    last: int | None = None
    total: bool = False
    show: bool = False

    def __post_init__(self) -> None:
        self.columns = find_columns(self.table, self.schema, self.show)
        self.times = _time_columns(self.table, self.columns["time"])
        self.signs = bool(self.schema.thousands) or self.schema.decimal not in (None, ".")
        self.people: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.group_of: list[int] = []
        self.kind = -1  # of the first time, an index of KINDS
        self.came = np.empty(0, dtype=np.int64)  # the participants' rows before: when, or how many
        self.count, self.extent = 0, (2 * CALENDAR[1], CALENDAR[0])

    @property
    def clock(self) -> Clock:
        """The clock of the times."""
        if not self.times:
            return "none"
        return "utc" if self.total or self.kind != 1 or self.schema.timezone else "local"

    def __iter__(self) -> Iterator[tuple[Integers, Integers, pd.Series[Any]]]:
        named = {role: self.columns[role] for role in ROLES[1:] if self.columns[role] is not None}
        wanted = list(dict.fromkeys([*self.times, *map(str, named.values())]))
        low = CALENDAR[0] if self.first is None else self.first
        high = 2 * CALENDAR[1] if self.last is None else self.last
        start = 0
        for frame in self.table.batches(wanted):
            batch = pd.DataFrame({role: frame[name] for role, name in named.items()})
            batch["row"] = np.arange(start, start + len(frame))
            start += len(frame)
            if self.times and self.table.first_line is not None:
                full = (frame != "").any(axis=1)
                if len(full) >= ROWS and not full.any():
                    where = f"{self.table.where}, {self.table.place(start - len(full))}"
                    raise DataError(f"{where}: only empty lines from there on; take them out")
                frame, batch = frame[full], batch[full]
            batch["early"], batch["late"] = self._times(frame, batch["row"])
            if not self.total:
                batch = batch[(batch["late"] >= low) & (batch["early"] <= high)]
            batch["person"] = self._people(batch)
            batch = batch[batch["person"] >= 0]
            if not self.total or not self.times:
                batch["early"] = self._settled(batch)
            batch = batch[(batch["early"] >= low) & (batch["early"] <= high)]
            seconds = batch["early"].to_numpy()
            least, most = self.extent
            self.extent = int(seconds.min(initial=least)), int(seconds.max(initial=most))
            self.count += len(batch)
            key = (batch["person"].to_numpy() << BITS) + seconds - CALENDAR[0]
            yield batch["row"].to_numpy(), key, batch["value"]

    def values(self, column: pd.Series[Any], rows: Integers) -> NDArray[Any]:
        """Codes of categories, or numbers, of values; −1 or NaN where missing."""
        states, kind = self.schema.states, pd.api.types
        categories = states is not None and states.edges is None
        if kind.is_numeric_dtype(column) and not kind.is_bool_dtype(column) and not categories:
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        codes, distinct = self._different(column)
        if states is not None and categories:
            if lost := states.may_be_null():
                what = f"is missing, but may be the state {lost!r} that was read as missing; read "
                what += "the table with keep_default_na=False, or rename the state"
                self._refuse(codes < 0, rows, "value", column, what)
            names = states.encode_names(self.texts(distinct.tolist()))
            known: NDArray[Any] = np.append(names, np.int32(MISSING))[codes]
            bad = known == UNKNOWN
            what = "is none of the public states; name it among them, or give the state other, so "
            what += "that such values have one (this message reveals that one occurs)"
        else:
            entries = distinct.tolist()
            try:  # at once: how many different values there are is not to be seen by calls
                numbers = [*map(self.number if self.signs else float, entries), math.nan]
            except (TypeError, ValueError):
                numbers = [*map(self.number, entries), math.nan]
            bad = np.array([number is None for number in numbers])[codes]
            known = np.array(numbers, dtype=np.float64)[codes]
            what = "is not a number; correct it, or leave it empty if it is missing"
        self._refuse(bad, rows, "value", column, what)
        known[bad] = MISSING if categories else math.nan
        return known

    def texts(self, values: Iterable[object]) -> list[str]:
        """Values as names, of numbers with a point whatever their decimal sign is."""
        texts = [_text(value) for value in values]
        return [plain if shortest(plain := self._plain(text)) else text for text in texts]

    def number(self, value: Any) -> float | None:
        """A value as a number, NaN where it is missing, None where it is none."""
        try:
            return float(self._plain(value) if isinstance(value, str) else value)
        except (TypeError, ValueError):
            return math.nan if _text(value).lower() in MISSING_TEXTS else None

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

    def _times(self, frame: pd.DataFrame, rows: pd.Series[Any]) -> tuple[Integers, Integers]:
        """First and last moment that each time may mean; before all others where it is none."""
        if not self.times:
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        column, form, zone = frame[self.times[0]], self.schema.time_format, self.schema.timezone
        for other in self.times[1:]:
            parts = [c.astype("str").where(c.notna(), "") for c in (column, frame[other])]
            column = (parts[0] + " " + parts[1]).str.strip()
        codes, distinct = self._different(column)
        early, late, kind = moments(pd.Series(distinct), form, zone)
        early, late = (np.append(times, NOWHEN)[codes] for times in (early, late))
        kind = np.append(kind, 0)[codes]
        what = f"does not exist on the clocks of {zone} (daylight saving begins)"
        self._refuse(early < NOWHEN, rows, "time", column, what)
        what = "is neither a time in whole seconds such as 2017-05-14T09:00:00 nor whole unix "
        what += "seconds; correct it, or give its time_format"
        if form is not None:
            what = f"is not a time in whole seconds written as {form}; correct either"
        self._refuse(early == NOWHEN, rows, "time", column, what)
        if self.kind < 0 and len(kind):
            self.kind = int(kind[0])
        what = f"is not written as the first time, which {KINDS[self.kind]}; write all alike"
        self._refuse(kind != self.kind, rows, "time", column, what)
        return early, late

    def _people(self, batch: pd.DataFrame) -> Integers:
        """Participant of each row, −1 where it names none."""
        person, rows = np.zeros(len(batch), dtype=np.int64), batch["row"]
        if "participant" not in batch:
            self.people[""] = 0
        else:
            person = self._named(batch["participant"], self.people)
            what = "is missing; fill it in or drop the row"
            self._refuse(person < 0, rows, "participant", batch["participant"], what)
            if len(self.people) > MOST_PEOPLE:
                raise DataError(f"{self.table.where}: more than {MOST_PEOPLE:,} participants")
        more = len(self.people) - len(self.came)
        self.came = np.append(self.came, np.full(more, NOWHEN if self.times else 0))
        if "group" in batch and not self.total:
            group = self._named(batch["group"], self.groups)
            _, begins = np.unique(person, return_index=True)
            self.group_of += group[begins[person[begins] >= len(self.group_of)]].tolist()
            what = "is missing or differs from the participant's first one; a group is a fact of a "
            what += "participant; correct it, or name the column of the participants (participant)"
            first = np.array(self.group_of, dtype=np.int64)[person]
            self._refuse((group < 0) | (group != first), rows, "group", batch["group"], what)
        return person

    def _named(self, column: pd.Series[Any], names: dict[str, int]) -> Integers:
        """Number of each name in the order in which they came, −1 where there is none."""
        codes, distinct = self._different(column)
        texts = map(_text, distinct.tolist())
        known = [-1 if t in ("", "nan") else names.setdefault(t, len(names)) for t in texts]
        return np.array([*known, -1], dtype=np.int64)[codes]

    def _settled(self, batch: pd.DataFrame) -> Integers:
        """Times, of an hour that is there twice in summer time first; or the numbers of rows."""
        early, late, person = (batch[name].to_numpy() for name in ("early", "late", "person"))
        seconds = early.copy()
        if not self.times:
            seconds += pd.Series(person).groupby(person).cumcount().to_numpy() + self.came[person]
            self.came += np.bincount(person, minlength=len(self.came))
        elif self.schema.timezone is not None:
            rows = pd.Series(np.arange(len(person)))
            before = rows.groupby(person).shift(fill_value=-1).to_numpy()
            for i in np.flatnonzero(early != late):
                came = seconds[before[i]] if before[i] >= 0 else self.came[person[i]]
                seconds[i] = late[i] if early[i] <= came else early[i]
            self.came[person] = seconds  # the last of each
        return seconds

    def _different(self, column: pd.Series[Any]) -> tuple[Integers, Any]:
        """Codes of the entries into the different ones, −1 where there is nothing."""
        try:
            return pd.factorize(column)
        except TypeError:
            what = f"the column {column.name!r} has lists; give numbers, texts or times"
            raise DataError(f"{self.table.where}: {what}") from None

    def _refuse(self, bad: Marks, rows: Any, role: str, column: pd.Series[Any], what: str) -> None:
        """Raise where a row is bad, unless no row may be refused."""
        if bad.any() and not self.total:
            at = int(bad.argmax())
            raise self.fail(np.asarray(rows)[at], role, column.iloc[at], what)

    def fail(self, row: Any, role: str, value: object, what: str) -> DataError:
        """Return the error of a row; what stands there is shown only where that is allowed."""
        where = f"{self.table.where}, {self.table.place(int(row))}"
        return DataError(f"{where}: the {role}{f' {shown(_text(value))}' * self.show} {what}")

    def check(self) -> None:
        """Raise where no row was read, or the participants are something else."""
        column, people = self.columns["participant"], len(self.people)
        whole = self.first is self.last is None
        if not self.count and not self.total:
            what = "no row of data below the header, or between from and to; check the file"
            raise DataError(f"{self.table.where}: {what}")
        alone = self.count < 2 * people and whole and not (self.total or self.show)
        if column is not None and (alone or (people > 0 and all(map(is_time, self.people)))):
            what = (
                f"{people:,} participants in {self.count:,} rows" if alone else "times, not names"
            )
            what = f"the column {shown(column)} of the participants has {what}"
            raise DataError(f"{self.table.where}: {what}; name the right one (participant)")

    def repeated(self, key: int) -> DataError:
        """Return the error of a participant with two rows at the same time."""
        what = "is there twice; remove one of the two rows, or name the column that tells "
        what += "participants apart (participant)"
        if self.clock == "local" and clocks_change(int(_seconds(key))):
            what = "is there twice, as on a local clock when daylight saving ends; give its zone "
            what += "(timezone), or remove repeats"
        return self._fail_at(key, what, 2)

    def check_step(self, key: Integers) -> int:
        """Return the step as given, else the most common difference of times, of equals the least.

        Raises DataError: times are not whole steps apart, or an hour is left out.
        """
        waits = Counter[int]()
        for start in range(0, len(key), CHUNK):
            wait, number = np.unique(np.diff(key[start : start + CHUNK + 1]), return_counts=True)
            within = wait < 2 ** (BITS - 1)  # of the same participant
            waits.update(dict(zip(wait[within].tolist(), number[within].tolist(), strict=True)))
            if len(waits) > MOST_WAITS:
                what = "the times follow no common step; resample the readings to one"
                raise DataError(f"{self.table.where}: {what}")
        step = self.schema.step_seconds
        if step is None:
            if not waits:
                what = "one reading only of each participant, so that no time step can be seen"
                raise DataError(f"{self.table.where}: {what}; give it (step)")
            step = min(waits, key=lambda wait: (-waits[wait], wait))
        jump = HOUR + step if self.clock == "local" and step <= HOUR else 0
        wrong = [wait for wait in waits if wait % step or wait == jump]
        for i in np.flatnonzero(np.isin(np.diff(key), wrong)) if wrong else ():
            now, late = int(key[i + 1]), int(key[i + 1] - key[i])
            if late % step:
                but = f", but {late} s" if self.show else ""
                what = f"is not a whole number of steps of {step} s after the one before{but}"
                raise self._fail_at(now, f"{what}; resample, or give the step")
            if clocks_change(_seconds(now)) and _seconds(now) % HOUR < step:
                what = "comes an hour late, as on a local clock when daylight saving begins; give "
                what += "its zone (timezone), or UTC if the clock never jumps"
                raise self._fail_at(now, what)
        return step

    def _fail_at(self, key: int, what: str, which: int = 1) -> DataError:
        """The error of the reading with this key, or the second one: the table is read again."""
        again = Rows(self.table, self.schema, self.first, self.last, self.total, self.show)
        for rows, keys, column in again:
            same = np.flatnonzero((keys == key) & _known(self.values(column, rows)))
            if len(same) >= which:
                time = np.datetime64(int(_seconds(key)), "s")
                return self.fail(rows[same[which - 1]], "time", time, what)
            which -= len(same)
        return DataError(f"{self.table.where}: it was changed while it was read; read it again")


def find_columns(table: Table, schema: Schema, show: bool = False) -> dict[str, str | None]:
    """Return the column of each role, None for a role that none has.

    Raises DataError: a column that was named is missing, or it is not clear which holds the times
    or the values.
    """
    present = list(table.columns)
    where = table.where if table.first_line is None else f"{table.where}, line 1"
    listed = f"; the columns are {', '.join(map(repr, present))}" if show else ""
    columns = {role: getattr(schema, role) for role in ROLES}
    states = () if schema.states is None else schema.states.names
    data = (
        name in states or is_time(name) or shortest(name.replace(schema.decimal or ".", "."))
        for name in present
    )
    if schema.value is None and any(data):
        what = "this seems to be data, not a header; add a line of names such as time,value"
        raise DataError(f"{where}: {what}, or name the column of the values (value)")
    for role, named in columns.items():
        if named is not None and not {*_time_columns(table, named)} <= {*present}:
            what = f"there is no column {shown(named)} for the {role}{listed}"
            raise DataError(f"{where}: {what}; correct the option")
    for role, known in GUESSES.items():
        if columns[role] is not None or (role == "time" and schema.rows_are_steps):
            continue
        taken = {*columns.values(), *_time_columns(table, columns["time"])}
        free = [name for name in present if name not in taken]
        plain = [re.split(r"[(\[/]", name)[0].strip().lower() for name in free]
        found = [name for name, text in zip(free, plain, strict=True) if text in known]
        if role == "value" and not found:
            found = free
        if len(found) > 1 or (role == "value" and not found):
            what = f"it is not clear which column holds the {role}s{listed}"
            raise DataError(f"{where}: {what}; name it ({role})")
        columns[role] = found[0] if found else None
    used = [*_time_columns(table, columns["time"]), *(columns[role] for role in ROLES[1:])]
    for name in used:
        if present.count(name) > 1 or f"{name}.1" in present:  # as pandas names the second
            raise DataError(f"{where}: two columns are called {shown(name)}; rename one")
    left = len({*present} - {*used})
    if left and columns["time"] is None and not schema.rows_are_steps:
        what = f"{left} column(s) not used{listed}; name the time (time), or say rows_are_steps"
        raise DataError(f"{where}: {what} if every row is one step after the row before")
    return columns


def _time_columns(table: Table, named: str | None) -> tuple[str, ...]:
    """The column of times, or both of dates and times of day where they are named "Date,Time"."""
    parts = tuple(part.strip() for part in (named or "").split(","))
    if len(parts) == 2 and named not in table.columns and {*parts} <= {*table.columns}:
        return parts
    return () if named is None else (named,)


def stamp(steps: Steps, seconds: int) -> str:
    """Write a time for people: ISO on the clock of the table, or the number of the step."""
    if steps.clock == "none":
        return f"step {seconds + 1}"
    return f"{np.datetime64(seconds, 's')}{'' if steps.clock == 'local' else 'Z'}"


def _on_grid(
    person: NDArray[np.int32], seconds: Integers, people: int, step: int | None
) -> tuple[Any, Integers]:
    """Whole steps of sorted times, and by how much the participants' first ones come after them."""
    phase = np.zeros(people, dtype=np.int64)
    if step is not None:
        starts = np.append(0, np.flatnonzero(person[1:] != person[:-1]) + 1)[: len(person)]
        phase[person[starts]] = seconds[starts] % step
    reach = max(abs(int(seconds.min())), abs(int(seconds.max()))) if len(seconds) else 0
    at = np.empty(len(seconds), dtype=np.int32 if reach // (step or 1) < 2**31 else np.int64)
    return np.floor_divide(seconds, step or 1, out=at, casting="unsafe"), phase


def _known(values: NDArray[Any]) -> Marks:
    return np.asarray(values != MISSING if values.dtype.kind == "i" else ~np.isnan(values))


def _seconds(key: Any) -> Any:
    return (key & (2**BITS - 1)) + CALENDAR[0]


def _text(value: object) -> str:
    """A name as text; a whole number the same from a CSV and from a Parquet file."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return "" if value is None or value is pd.NaT or value is pd.NA else str(value).strip()
