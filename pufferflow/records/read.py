"""From a table to its steps: participant, time and value, each row checked once.

Local times that jump for daylight saving are refused unless their zone is given: a repeated or
missing hour would distort the counts. Rows may be in any order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._util.checks import shown
from pufferflow.errors import DataError, ParameterError
from pufferflow.records.schema import ROLES, Schema
from pufferflow.records.states import MISSING_TEXTS, NULL_TEXTS, UNKNOWN, StateSpace, shortest
from pufferflow.records.table import ROWS, Source, Table, as_text, open_table
from pufferflow.records.times import CALENDAR, HOUR, KINDS, NOWHEN, Integers, is_time, moments
from pufferflow.records.times import parse_range as parse_range

TimeBase: TypeAlias = Literal["utc", "local", "none"]
Floats = NDArray[np.float64]

TIME_BITS = 40
"""Keys per participant; a key sorts a reading by participant and time.

Times up to the year 9999 use half of them, so keys of one participant differ by less than half.
"""
MAX_PEOPLE = 2 ** (63 - TIME_BITS)

_TIMES = "time timestamp datetime date_time tstp ts utc unix_time unix_ts date"
_VALUES = "value state activity category watts power kw load demand usage consumption energy kwh wh"
GUESSES = {"time": _TIMES.split(), "value": [*_VALUES.split(), "reading", "measurement"]}
"""Names of columns, in any case and with a unit: "Power (W)"."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Steps:
    """The readings of a table that have a value, sorted by participant and time.

    Attributes
    ----------
    person, seconds : int array, shape (n,)
        Index into ``people``, of the smallest sufficient type; seconds since 1970, or, without
        times, the participant's number of the row.
    value, state : float and int array, shape (n,), or None
        Numbers, and states of the schema, if there are any.
    people, groups, group_of : tuples of str, and int array, shape (people,)
        Names, by default one participant "" and one group "all"; group of each participant.
    step_seconds, zone : int and str, or None
        None without times; the zone in which hours of the day are counted.
    columns, rows : mapping and int
        The column of each role or None; rows that were read, also those without a value.
    extent : (int, int) or None
        First and last second of the rows; None without times and for a private fit.
    """

    person: NDArray[np.signedinteger]
    seconds: Integers
    value: Floats | None = None
    state: NDArray[np.int16] | None = None
    states: StateSpace | None = None
    people: tuple[str, ...] = ("",)
    groups: tuple[str, ...] = ("all",)
    group_of: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, dtype=np.int32))
    step_seconds: int | None = None
    time_base: TimeBase = "none"
    zone: str | None = None
    where: str = "the table"
    columns: Mapping[str, str | None] = field(default_factory=lambda: dict.fromkeys(ROLES))
    rows: int = 0
    extent: tuple[int, int] | None = None

    @classmethod
    def of(cls, seconds: Any, *, person: Any = 0, **facts: Any) -> Steps:
        """Return the steps of valid readings in any order; ``facts`` are further attributes."""
        seconds = np.asarray(seconds, dtype=np.int64)
        person = np.broadcast_to(person, seconds.shape)
        none = np.zeros(len(facts.get("people", "1")), dtype=np.int32)
        facts = {"rows": len(seconds), "group_of": none, **facts}
        return cls(person=person, seconds=seconds, **facts)[np.lexsort((seconds, person))]

    def __getitem__(self, which: Any) -> Steps:
        """Return some of the readings, by their indices or a mask."""
        own = {name: getattr(self, name) for name in ("person", "seconds", "value", "state")}
        some = {name: np.asarray(a)[which] for name, a in own.items() if a is not None}
        return replace(self, **some)

    def parts(self, marked: NDArray[np.bool_] | None = None) -> Iterator[Integers]:
        """Yield, in parts, the indices of all readings, or of those in the mask."""
        for at in range(0, len(self.person), ROWS):
            part = np.arange(at, min(at + ROWS, len(self.person)))
            yield part if marked is None else part[marked[at : at + ROWS]]

    @property
    def coded(self) -> tuple[NDArray[np.int16], int]:
        """State of each reading, and the number of states, if there are any."""
        assert self.state is not None
        assert self.states is not None
        return self.state, self.states.count

    def first(self, marked: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
        """Return the mask of the first ``most`` marked readings of each participant."""
        starts = np.flatnonzero(~self.follow(math.inf)).tolist()
        for own in map(slice, starts, [*starts[1:], None]):
            marked[own] &= np.cumsum(marked[own], dtype=np.int32) <= most
        return marked

    @property
    def local_seconds(self) -> Integers:
        """Local time of each reading, for hours and days."""
        if self.time_base == "utc" and self.zone is not None:
            there = pd.DatetimeIndex(self.seconds.astype("datetime64[s]"), tz="UTC")
            return there.tz_convert(self.zone).tz_localize(None).as_unit("s").asi8
        return self.seconds

    @property
    def near(self) -> NDArray[np.bool_]:
        """Whether the reading before is of the same participant, one step earlier."""
        return self.follow(1)

    def follow(self, most: float) -> NDArray[np.bool_]:
        """Whether the reading before is of the same participant, at most ``most`` steps ago."""
        follow, seconds = np.zeros(len(self.person), dtype=bool), most * (self.step_seconds or 1)
        for part in self.parts():
            same = self.person[part] == self.person[part - 1]
            follow[part] = same & (self.seconds[part] - self.seconds[part - 1] <= seconds)
        follow[:1] = False
        return follow


def read(
    source: Source | Table,
    schema: Schema,
    *,
    first: int | None = None,
    last: int | None = None,
    total: bool = False,
) -> Steps:
    """Return the readings of a table.

    Parameters
    ----------
    source, schema
    first, last : int, optional
        First and last second of the rows, in the time base of the table (or UTC).
    total : bool
        For a private fit: no row is ever refused, so that no refusal reveals a participant.
        Wrong values are missing; repeated rows of a participant at one time, and rows off the grid
        of whole steps since 1970, are dropped; participants without any row are kept.

    Raises DataError: the table is malformed, and the message names the line; ParameterError: an
    option is not applicable to this table, or the step must be public and is not given.
    """
    rows = _Rows(open_table(source, schema.separator), schema, first, last, total)
    step, timed, states = schema.step_seconds, bool(rows.times), schema.states
    if not timed and not first is last is step is None:
        problem = "`step`, `first` and `last` are for readings with times"
        raise ParameterError(f"{problem}; name their column (`time`) or leave them out")
    if timed and total and step is None:
        raise ParameterError("the time step must be public; give `step`, for example 30min")
    key, value = rows.held()
    if total:
        differ = key[1:] != key[:-1]
        alone = np.append(True, differ) & np.append(differ, True)
        key, value = key[alone[: len(key)]], value[alone[: len(key)]]
    else:
        rows.check()
        step = rows.find_step(key) if timed else None
    person = np.empty(len(key), dtype=np.min_scalar_type(-len(rows.people)))
    np.right_shift(key, TIME_BITS, out=person, casting="unsafe")
    steps = Steps(
        person=person,
        seconds=_time(key, out=key),
        people=tuple(rows.people),
        step_seconds=step,
        groups=tuple(rows.groups) or ("all",),
        group_of=rows.group_of,
        time_base=rows.time_base,
        zone=schema.timezone,
        where=rows.table.where,
        columns=rows.columns,
        rows=rows.count,
        extent=(rows.begin, rows.end) if timed and not total else None,
        states=states,
    )
    if states is None:
        return replace(steps, value=value)
    if states.edges is None:
        return replace(steps, state=value.astype(np.int16))
    return replace(steps, value=value, state=states.encode_numbers(value))


@dataclass(eq=False, repr=False)
class _Rows:
    """The rows of a table with a participant and a time that may lie in the range.

    Iterating yields the numbers of rows with a value in the range, their keys of participant (of
    ``people``) and time, and their values: numbers, or codes of categories. Raises DataError as
    :func:`read`, whose arguments the fields are.
    """

    table: Table
    schema: Schema
    first: int | None
    last: int | None
    total: bool

    def __post_init__(self) -> None:
        self.columns = find_columns(self.table, self.schema)
        self.times = _parts(self.table, self.columns["time"])
        self.signs = bool(self.schema.thousands) or self.schema.decimal not in (None, ".")
        self.people: dict[str, int] = {} if self.columns["participant"] else {"": 0}
        self.groups: dict[str, int] = {}
        self.group_of = np.zeros(0, dtype=np.int32)
        self.named: dict[str, int] = {}  # also those without a row in the range
        self.before: dict[int, int] = {}  # time of the last row of each of them
        self.kind = -1  # kind of the first time, an index of KINDS
        self.time_base: TimeBase = "utc" if self.times else "none"
        self.low = max(CALENDAR[0] if self.first is None else self.first, CALENDAR[0])
        self.high = 2 * CALENDAR[1] if self.last is None else self.last
        self.count, self.begin, self.end = 0, self.high, self.low  # of rows in the range

    def __iter__(self) -> Iterator[tuple[NDArray[Any], Integers, Floats]]:
        named = [name for role in ROLES[1:] if (name := self.columns[role]) is not None]
        for frame in self.table.batches([*dict.fromkeys([*self.times, *named])]):
            for column in (column for column in frame if frame[column].dtype == object):
                odd = ~frame[column].map(_is_plain).astype(bool)
                problem = "has no number, string or time there; correct it"
                self._refuse(odd, frame.index, f"column {column!r}", problem)
                frame[column] = frame[column].mask(odd, None)
            if self.times and self.table.first_line is not None:
                frame = frame[(frame != "").any(axis=1)]
            time = self._settled(frame)
            within = (time >= self.low) & (time <= self.high) | self.total
            frame, time = frame[within], time[within]
            person = self._named(frame, "participant", self.people)
            problem = "is missing; fill it in or drop the row"
            self._refuse(person < 0, frame.index, "participant", problem)
            if len(self.people) > MAX_PEOPLE:
                problem = f"more than {MAX_PEOPLE:,} participants; make several tables of it"
                raise DataError(f"{self.table.where}: {problem}")
            some = person >= 0
            frame, time, person = frame[some], time[some], person[some]
            self._set_groups(person, frame)
            value = self._values(frame[self.columns["value"]])
            self.count += len(frame)
            self.begin = int(time.min(initial=self.begin))
            self.end = int(time.max(initial=self.end))
            kept = (time >= self.low) & (time <= self.high) & ~np.isnan(value)
            if self.total and self.schema.step_seconds is not None:
                kept &= time % self.schema.step_seconds == 0
            key = (person.astype(np.int64) << TIME_BITS) + (time - CALENDAR[0])
            yield frame.index.to_numpy()[kept], key[kept], value[kept]

    def held(self) -> tuple[Integers, Floats]:
        """Return all keys in order, and their values, with at most 24 bytes of memory per row."""
        keys, values = map(list, zip(*(rows[1:] for rows in self), strict=True))
        key = np.concatenate(keys)
        del keys
        value = np.concatenate(values)
        del values
        order = key.argsort()
        key.sort()
        ordered = order.view(np.float64)  # values reuse the memory of the indices
        for at in range(0, len(order), ROWS):
            ordered[at : at + ROWS] = value[order[at : at + ROWS]]
        return key, ordered

    def _values(self, column: pd.Series[Any]) -> Floats:
        """Return codes of categories, or numbers, of values; NaN if missing."""
        codes, distinct = self._different(column)
        states, entries = self.schema.states, distinct.tolist()
        if states is not None and states.edges is None:
            if lost := next((n for n in states.listed if n.lower() in NULL_TEXTS), None):
                problem = f"is missing, but may be the state {lost!r}; use keep_default_na=False"
                self._refuse(column.isna(), column.index, "value", problem)
            texts = [_text(value) for value in entries]  # numbers with a decimal point
            texts = [plain if shortest(plain := self._plain(text)) else text for text in texts]
            known = states.encode_names(texts).astype(np.float64)
            bad = known == UNKNOWN
            known[known < 0] = math.nan
            problem = "is none of the public states; name it among them, or give the state other "
            problem += "(this message reveals that one occurs)"
        else:
            try:  # at once: the number of calls must not depend on the values
                numbers = [*map(self._number if self.signs else float, entries)]
            except (TypeError, ValueError, OverflowError):
                numbers = [*map(self._number, entries)]
            bad = np.array([number is None for number in numbers], dtype=bool)
            known = np.array(numbers, dtype=np.float64)  # NaN for None
            problem = "is not a number; correct it, or leave it empty if it is missing"
        self._refuse(bad[codes], column.index, "value", problem)
        return known[codes]

    def _number(self, value: Any) -> float | None:
        """Return a value as a number, NaN if it is missing, None if it is not a number."""
        try:
            return float(self._plain(value) if isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError):
            return math.nan if _text(value).lower() in MISSING_TEXTS else None

    def _set_groups(self, person: NDArray[np.int32], frame: pd.DataFrame) -> None:
        """Set the group of each participant, which all rows must name."""
        new = np.full(len(self.people) - len(self.group_of), -1, dtype=np.int32)
        self.group_of = np.append(self.group_of, new)
        group, fresh = self._named(frame, "group", self.groups), self.group_of[person] < 0
        self.group_of[person[fresh][::-1]] = group[fresh][::-1]  # the first of several rows
        problem = (
            "is missing, or not the participant's first one; correct it, or name `participant`"
        )
        self._refuse((group < 0) | (group != self.group_of[person]), frame.index, "group", problem)

    def _settled(self, frame: pd.DataFrame) -> Integers:
        """Return the time of each row, or its number without times.

        In a repeated hour it is the second occurrence if the first is not after the row before.
        """
        time = late = np.zeros(len(frame), dtype=np.int64)
        if self.times:
            time, late = self._times(frame)
            if self.total or self.schema.timezone is None:
                return time
        settled = []
        people = self._named(frame, "participant", self.named).tolist()
        for person, first, second in zip(people, time.tolist(), late.tolist(), strict=True):
            before = self.before.get(person, NOWHEN if self.times else -1)
            at = (first if first > before else second) if self.times else before + 1
            self.before[person] = at
            settled.append(at)
        return np.array(settled, dtype=np.int64)

    def check(self) -> None:
        """Raise if no row was read, or the column of participants has other content."""
        column, people, count = self.columns["participant"], len(self.people), self.count
        if not count:
            problem = (
                "no row of data below the header, or between `first` and `last`; check the file"
            )
            raise DataError(f"{self.table.where}: {problem}")
        alone = count < 2 * people and self.first is self.last is None
        if column is not None and (alone or all(map(is_time, self.people))):
            problem = f"{people:,} participants in {count:,} rows" if alone else "times, not names"
            problem = f"the column {shown(column)} of the participants has {problem}"
            raise DataError(f"{self.table.where}: {problem}; name the right one (`participant`)")

    def find_step(self, key: Integers) -> int:
        """Return the given step, else the most common difference of times, the smallest of equals.

        Raises DataError if times are not different and whole steps apart, or an hour is left out.
        """
        wait = np.diff(key)
        counted = Counter[int]()
        for at in range(0, len(wait), ROWS):
            counted.update(wait[at : at + ROWS].tolist())
        number = {one: n for one, n in counted.items() if one < 2 ** (TIME_BITS - 1)}
        if 0 in number:
            problem = "is there twice; remove one row, or name `participant` or, if daylight "
            self._refuse_late(key[1:][wait == 0], problem + "saving ends, `timezone`")
        if self.schema.step_seconds is None and not number:
            problem = "one reading only of each participant, so no time step; give `step`"
            raise DataError(f"{self.table.where}: {problem}")
        common = min(number, key=lambda one: (-number[one], one), default=1)
        step = self.schema.step_seconds or common
        if odd := [one for one in number if one % step]:
            problem = (
                f"is not a whole number of steps of {step} s after the one before; resample or "
            )
            late = key[1:][pd.Series(wait, copy=False).isin(odd)]
            self._refuse_late(late, problem + "give `step`")
        if self.time_base == "local" and step <= HOUR and HOUR + step in number:
            late = key[1:][wait == HOUR + step]
            then = pd.DatetimeIndex(_time(late).astype("datetime64[s]"))
            spring = then.month.isin([3, 4, 9, 10, 11]) & (then.day_of_week == 6) & (then.hour <= 4)
            problem = (
                "comes an hour late, as when daylight saving begins; give its `timezone`, or UTC"
            )
            self._refuse_late(late[spring & (_time(late) % HOUR < step)], problem)
        return step

    def _refuse_late(self, keys: Integers, problem: str) -> None:
        """Raise if there are keys with a wrong time, naming their first row."""
        if len(keys):
            found = [rows[own == keys[0]] for rows, own, _ in replace(self)]
            place = self.table.place(int(np.concatenate(found)[-1]))
            raise DataError(f"{self.table.where}, {place}: the time {problem}")

    def _refuse(self, bad: Any, rows: Any, role: str, problem: str) -> None:
        """Raise if a row is bad, unless no row may be refused; the value is never shown."""
        if bad.any() and not self.total:
            place = self.table.place(int(rows[int(np.asarray(bad).argmax())]))
            raise DataError(f"{self.table.where}, {place}: the {role} {problem}")

    def _times(self, frame: pd.DataFrame) -> tuple[Integers, Integers]:
        """Return the first and last moment of each time; the minimum for invalid ones."""
        column, form, zone = frame[self.times[0]], self.schema.time_format, self.schema.timezone
        for other in self.times[1:]:
            both = (c.map(as_text).astype("str") for c in (column, frame[other]))
            day, hour = (text.str.removesuffix(" 00:00:00") for text in both)
            column = (day + " " + hour).str.strip()
        codes, distinct = self._different(column)
        early, late, kind = (found[codes] for found in moments(pd.Series(distinct), form, zone))
        written = f"written as {form}" if form else "such as 2017-05-14T09:00:00 or unix seconds"
        problem = f"is not a time in whole seconds {written}; correct it or set `time_format`"
        if zone not in (None, "UTC"):
            problem += f"; the clocks of {zone} leave some out where daylight saving begins"
        self._refuse(early == NOWHEN, frame.index, "time", problem)
        if self.kind < 0 and len(kind):
            self.kind = int(kind[0])
            if self.kind == 1 and not zone and not self.total:
                self.time_base = "local"
        problem = (
            f"is not written as the first time, which {KINDS[self.kind]}; write all in one way"
        )
        self._refuse(kind != self.kind, frame.index, "time", problem)
        return early, late

    def _named(self, frame: pd.DataFrame, role: str, names: dict[str, int]) -> NDArray[np.int32]:
        """Return the number of each name in order of appearance, −1 if it is missing.

        It is 0 without a column of names.
        """
        if self.columns[role] is None:
            return np.zeros(len(frame), dtype=np.int32)
        codes, distinct = self._different(frame[self.columns[role]])
        texts = map(_text, distinct.tolist())
        known = [-1 if t in ("", "nan") else names.setdefault(t, len(names)) for t in texts]
        return np.array(known, dtype=np.int32)[codes]

    def _different(self, column: pd.Series[Any]) -> tuple[Integers, Any]:
        """Return the codes of the entries, and the distinct entries, including missing ones."""
        if column.dtype != object or pd.api.types.infer_dtype(column) == "string":
            return pd.factorize(column, use_na_sentinel=False)
        typed = pd.Series([(type(entry), entry) for entry in column])  # True is equal to 1
        codes, distinct = pd.factorize(typed, use_na_sentinel=False)
        return codes, pd.Index([entry for _, entry in distinct], dtype=object)

    def _plain(self, text: str) -> str:
        """Return a number in Python's notation, "none" if it has other signs than given."""
        if not self.signs:
            return text
        decimal, thousands = self.schema.decimal or ".", self.schema.thousands
        text, mark, group = text.strip(), re.escape(decimal), re.escape(thousands or "")
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d*)" if thousands else r"\d*"
        if not re.fullmatch(rf"[+-]?(?:{whole}(?:{mark}\d*)?(?:[eE][+-]?\d+)?|inf)", text):
            return "none"
        return text.replace(thousands or "", "").replace(decimal, ".")


def _time(key: Integers, out: Integers | None = None) -> Integers:
    """Return the seconds since 1970 of keys."""
    time: Integers = np.bitwise_and(key, 2**TIME_BITS - 1, out=out)
    time += CALENDAR[0]
    return time


def find_columns(table: Table, schema: Schema) -> dict[str, str | None]:
    """Return the column of each role or None; raises DataError if it is missing or not clear."""
    present, columns = list(table.columns), {role: getattr(schema, role) for role in ROLES}

    def refuse(problem: str) -> NoReturn:
        line = "" if table.first_line is None else ", line 1"
        raise DataError(f"{table.where}{line}: {problem}")

    sign = schema.decimal or "."
    if columns["value"] is None and any(
        is_time(name) or shortest(name.replace(sign, ".")) for name in present
    ):
        refuse("this seems to be data, not a header; add a line of names, or name the `value`")
    for role, named in columns.items():
        if not {*_parts(table, named)} <= {*present}:
            refuse(f"there is no column {shown(named)} for the {role}; correct `{role}`")
    for role, known in GUESSES.items():
        if columns[role] is None and not (role == "time" and schema.rows_are_steps):
            taken = {part for named in columns.values() for part in _parts(table, named)}
            free = [name for name in present if name not in taken]
            found = [name for name in free if re.split(r"[(\[/]", name)[0].strip().lower() in known]
            guessed: list[Any] = found or (free if role == "value" else [None])
            if len(guessed) != 1:
                refuse(f"it is not clear which column holds the {role}s; name it (`{role}`)")
            columns[role] = guessed[0]
    used = {name for named in columns.values() for name in _parts(table, named)}
    for role in ("time", *ROLES[2:]):  # they are public
        if columns["value"] in _parts(table, columns[role]):
            refuse(f"{shown(columns['value'])} is the column of values and the {role}; correct one")
    for name in used:
        if present.count(name) > 1 or f"{name}.1" in present:  # pandas' name of the second one
            refuse(f"two columns are called {shown(name)}; rename one")
    left = len({*present} - used)
    if left and columns["time"] is None and not schema.rows_are_steps:
        refuse(f"{left} column(s) not used; name the `time`, or give `rows_are_steps`")
    return columns


def _parts(table: Table, named: str | None) -> list[str]:
    """Return the column, or those of dates and times of day if it is named as "Date,Time"."""
    parts = [part.strip() for part in (named or "").split(",")]
    if len(parts) == 2 and named not in table.columns and {*parts} <= {*table.columns}:
        return parts
    return [] if named is None else [named]


def stamp(steps: Steps, seconds: int) -> str:
    """Return a time as string: ISO in the time base of the table, or the number of the step."""
    if steps.time_base == "none":
        return f"step {seconds + 1}"
    return f"{np.datetime64(seconds, 's')}{'' if steps.time_base == 'local' else 'Z'}"


def _text(value: Any) -> str:
    """Return a name as string; whole numbers are the same with and without a decimal point."""
    return as_text(value).strip()


def _is_plain(entry: Any) -> bool:
    """Return whether an entry can be compared, and written in UTF-8; a list cannot."""
    try:
        hash(entry)
        as_text(entry).encode()
    except (TypeError, ValueError, ArithmeticError):
        return False
    return not isinstance(entry, tuple)  # pandas makes levels of an index of them
