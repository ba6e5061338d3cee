"""From a table to its steps: who, when, which value, each row checked once.

Times are unix seconds, ISO times with an offset, or times of a local clock. A local clock that
jumps for daylight saving is refused by name unless its zone is given: an hour that is there twice
or not at all would distort the counts. Rows may be in any order.
"""

from __future__ import annotations

import math
import re
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
from pufferflow.records.states import MISSING, MISSING_TEXTS, NULL_TEXTS, UNKNOWN, StateSpace
from pufferflow.records.table import ROWS, Source, Table, open_table
from pufferflow.records.times import (
    CALENDAR,
    HOUR,
    KINDS,
    NOWHEN,
    Integers,
    clocks_change,
    in_turn,
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
            starts = np.flatnonzero(np.diff(person, prepend=-1))
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
    rows = Rows(open_table(source, schema.separator), schema, first, last, total)
    step, timed, states = schema.step_seconds, bool(rows.times), schema.states
    if not timed and not first is last is step is None:
        what = "step, from and to are for readings with times"
        raise ParameterError(f"{what}; name their column (time), or leave them out")
    if timed and total and step is None:
        raise ParameterError("the time step must be public; give it (step), for example 30min")
    frame = pd.concat([batch.assign(value=rows.values(batch["value"])) for batch in rows])
    group_of = rows.group_of(frame)
    frame = rows.settled(frame)
    count, extent = len(frame), (frame["time"].min(), frame["time"].max())
    if not total:
        rows.check(count)
    numeric = frame["value"].dtype.kind == "f"
    known = frame["value"].notna() if numeric else frame["value"] != MISSING
    if total and step is not None:
        known &= frame["time"] % step == 0
    frame = frame[known]
    del known
    frame = rows.sorted(frame)
    if timed and not total:
        step = rows.find_step(frame)
    value = frame["value"].to_numpy()
    state = None if states is None else states.encode_numbers(value) if numeric else value
    return Steps.of(
        frame["time"],
        person=frame["person"],
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
        extent=(int(extent[0]), int(extent[1])) if timed and not total else None,
    )


@dataclass(repr=False)
class Rows:
    """The rows of a table that name a participant and may lie in the range of time.

    Iterating yields frames of them, by the number of the row: ``person`` (of ``people``), ``time``
    in seconds, by how much it is ``later`` if the hour that is there twice is the second one,
    ``group`` (of ``groups``), and ``value`` as it stands. Raises DataError as :func:`read`.
    """

    table: Table
    schema: Schema
    first: int | None = None
    last: int | None = None
    total: bool = False

    def __post_init__(self) -> None:
        self.columns = find_columns(self.table, self.schema)
        self.times = _parts(self.table, self.columns["time"])
        self.signs = bool(self.schema.thousands) or self.schema.decimal not in (None, ".")
        self.people: dict[str, int] = {} if self.columns["participant"] else {"": 0}
        self.groups: dict[str, int] = {}
        self.kind = -1  # of the first time, an index of KINDS
        self.low = CALENDAR[0] if self.first is None else self.first
        self.high = 2 * CALENDAR[1] if self.last is None else self.last

    @property
    def clock(self) -> Clock:
        """The clock of the times."""
        if not self.times:
            return "none"
        return "utc" if self.total or self.kind != 1 or self.schema.timezone else "local"

    def __iter__(self) -> Iterator[pd.DataFrame]:
        named = {role: name for role in ROLES[1:] if (name := self.columns[role]) is not None}
        for frame in self.table.batches([*dict.fromkeys([*self.times, *named.values()])]):
            if self.times and self.table.first_line is not None:
                full = (frame != "").any(axis=1)
                if len(full) >= ROWS and not full.any():
                    what = "is missing from there on, in empty lines; take them out"
                    raise self.fail(frame.index[0], "time", what)
                frame = frame[full]
            batch = pd.DataFrame({role: frame[name] for role, name in named.items()})
            batch["time"], late = self._times(frame)
            batch["later"] = (late - batch["time"]).astype(np.int32)
            if not self.total:
                batch = batch[(late >= self.low) & (batch["time"] <= self.high)]
            batch["person"] = np.zeros(len(batch), dtype=np.int32)
            if "participant" in batch:
                column = batch.pop("participant")
                batch["person"] = self._named(column, self.people)
                what = "is missing; fill it in or drop the row"
                self._refuse(batch["person"] < 0, batch.index, "participant", what)
            if "group" in batch:
                batch["group"] = self._named(batch["group"], self.groups)
            yield batch[batch["person"] >= 0]

    def different(self) -> Iterator[tuple[pd.Series[Any], list[str]]]:
        """Yield the different values of each batch, by their first rows, and as texts."""
        for batch in self:
            codes, _ = self._different(batch["value"])
            values = batch["value"].iloc[np.sort(np.unique(codes, return_index=True)[1])]
            yield values, self._texts(values)

    def values(self, column: pd.Series[Any]) -> NDArray[Any]:
        """Codes of categories, or numbers, of values; −1 or NaN where missing."""
        codes, distinct = self._different(column)
        states = self.schema.states
        if states is not None and states.edges is None:
            if lost := next((n for n in states.listed if n.lower() in NULL_TEXTS), None):
                what = f"is missing, but may be the state {lost!r} that was read as missing; read "
                what += "the table with keep_default_na=False, or rename the state"
                self._refuse(column.isna(), column.index, "value", what)
            known: NDArray[Any] = states.encode_names(self._texts(distinct.tolist()))
            bad, missing = known == UNKNOWN, float(MISSING)
            what = "is none of the public states; name it among them, or give the state other, so "
            what += "that such values have one (this message reveals that one occurs)"
        else:
            entries, numbers = distinct.tolist(), list[float | None]()
            try:  # at once: how many different values there are is not to be seen by calls
                numbers = [*map(self.number if self.signs else float, entries)]
            except (TypeError, ValueError, OverflowError):
                numbers = [*map(self.number, entries)]
            bad, missing = np.array([number is None for number in numbers], dtype=bool), math.nan
            known = np.array(numbers, dtype=np.float64)
            what = "is not a number; correct it, or leave it empty if it is missing"
        self._refuse(bad[codes], column.index, "value", what)
        known[bad] = missing
        return known[codes]

    def number(self, value: Any) -> float | None:
        """A value as a number, NaN where it is missing, None where it is none."""
        try:
            return float(self._plain(value) if isinstance(value, str) else value)
        except (TypeError, ValueError, OverflowError):
            return math.nan if _text(value).lower() in MISSING_TEXTS else None

    def group_of(self, frame: pd.DataFrame) -> NDArray[np.int32]:
        """Group of each participant, which all rows must name."""
        of = np.zeros(len(self.people), dtype=np.int32)
        if "group" in frame and not self.total:
            person, group = frame["person"].to_numpy(), frame.pop("group")
            named, begins = np.unique(person, return_index=True)
            of[named] = group.iloc[begins]
            what = "is missing or differs from the participant's first one; a group is a fact of a "
            what += "participant; correct it, or name the column of the participants (participant)"
            self._refuse((group < 0) | (group != of[person]), frame.index, "group", what)
        return of

    def settled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows in the range of time, each with its time, or with its number where none have."""
        later = frame.pop("later").to_numpy()
        if not self.times:
            return frame.assign(time=frame.groupby("person").cumcount())
        if later.any() and not self.total:
            frame["time"] = in_turn(frame["person"].to_numpy(), frame["time"].to_numpy(), later)
        return frame[(frame["time"] >= self.low) & (frame["time"] <= self.high)]

    def check(self, count: int) -> None:
        """Raise where no row was read, or the participants are something else."""
        column, people = self.columns["participant"], len(self.people)
        if not count:
            what = "no row of data below the header, or between from and to; check the file"
            raise DataError(f"{self.table.where}: {what}")
        alone = count < 2 * people and self.first is self.last is None
        if column is not None and (alone or all(map(is_time, self.people))):
            what = f"{people:,} participants in {count:,} rows" if alone else "times, not names"
            what = f"the column {shown(column)} of the participants has {what}"
            raise DataError(f"{self.table.where}: {what}; name the right one (participant)")

    def sorted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows by participant and time; those at one time are refused, or dropped."""
        order = in_order(frame["person"].to_numpy(), frame["time"].to_numpy())
        for name in frame:
            frame[name] = frame[name].to_numpy()[order]
        frame.index = frame.index[order]
        person, time = frame["person"].to_numpy(), frame["time"].to_numpy()
        again = np.zeros(len(frame), dtype=bool)
        again[1:] = (person[1:] == person[:-1]) & (time[1:] == time[:-1])
        if again.any() and self.total:
            frame = frame[~(again | np.append(again[1:], False))]
        what = "is there twice; remove one of the two rows, or name the column that tells "
        what += "participants apart (participant)"
        if self.clock == "local" and clocks_change(time[again][:1]).any():
            what = "is there twice, as on a local clock when daylight saving ends; give its zone "
            what += "(timezone), or remove repeats"
        self._refuse(again, frame.index, "time", what)
        return frame

    def find_step(self, frame: pd.DataFrame) -> int:
        """Return the step as given, else the most common difference of times, of equals the least.

        Raises DataError: times are not whole steps apart, or an hour is left out.
        """
        person, time = frame["person"].to_numpy(), frame["time"].to_numpy()
        wait = np.diff(time, prepend=time[:1])
        wait[1:][person[1:] != person[:-1]] = 0
        waits, number = np.unique(wait, return_counts=True)
        number[waits == 0] = 0
        step = self.schema.step_seconds
        if step is None:
            if not number.any():
                what = "one reading only of each participant, so that no time step can be seen"
                raise DataError(f"{self.table.where}: {what}; give it (step)")
            step = int(waits[number.argmax()])
        if (waits % step).any():
            what = f"is not a whole number of steps of {step} s after the one before; resample, or "
            self._refuse(wait % step > 0, frame.index, "time", what + "give the step")
        if self.clock == "local" and step <= HOUR and HOUR + step in waits:
            what = "comes an hour late, as on a local clock when daylight saving begins; give "
            what += "its zone (timezone), or UTC if the clock never jumps"
            late = (wait == HOUR + step) & (time % HOUR < step)
            late[late] = clocks_change(time[late])
            self._refuse(late, frame.index, "time", what)
        return step

    def fail(self, row: Any, role: str, what: str) -> DataError:
        """Return the error of a row, which does not say what stands there."""
        return DataError(f"{self.table.where}, {self.table.place(int(row))}: the {role} {what}")

    def _refuse(self, bad: Any, rows: pd.Index, role: str, what: str) -> None:
        """Raise where a row is bad, unless no row may be refused."""
        if bad.any() and not self.total:
            raise self.fail(rows[int(np.asarray(bad).argmax())], role, what)

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
        what = f"does not exist on the clocks of {zone} (daylight saving begins)"
        self._refuse(early < NOWHEN, frame.index, "time", what)
        what = "is neither a time in whole seconds such as 2017-05-14T09:00:00 nor whole unix "
        what += "seconds; correct it, or give its time_format"
        if form is not None:
            what = f"is not a time in whole seconds written as {form}; correct either"
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

    def _texts(self, values: Iterable[object]) -> list[str]:
        """Values as names, of numbers with a point whatever their decimal sign is."""
        texts = [_text(value) for value in values]
        return [plain if shortest(plain := self._plain(text)) else text for text in texts]

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


def find_columns(table: Table, schema: Schema) -> dict[str, str | None]:
    """Return the column of each role, None for a role that none has.

    Raises DataError: a column that was named is missing, or it is not clear which holds the times
    or the values.
    """
    present = list(table.columns)
    where = table.where if table.first_line is None else f"{table.where}, line 1"
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
        if not {*_parts(table, named)} <= {*present}:
            what = f"there is no column {shown(named)} for the {role}"
            raise DataError(f"{where}: {what}; correct the option")
    for role, known in GUESSES.items():
        if columns[role] is not None or (role == "time" and schema.rows_are_steps):
            continue
        taken = {*columns.values(), *_parts(table, columns["time"])}
        free = [name for name in present if name not in taken]
        found = [name for name in free if re.split(r"[(\[/]", name)[0].strip().lower() in known]
        if role == "value" and not found:
            found = free
        if len(found) > 1 or (role == "value" and not found):
            what = f"it is not clear which column holds the {role}s; name it ({role})"
            raise DataError(f"{where}: {what}")
        columns[role] = found[0] if found else None
    used = [name for named in columns.values() for name in _parts(table, named)]
    for name in used:
        if present.count(name) > 1 or f"{name}.1" in present:  # as pandas names the second
            raise DataError(f"{where}: two columns are called {shown(name)}; rename one")
    left = len({*present} - {*used})
    if left and columns["time"] is None and not schema.rows_are_steps:
        what = f"{left} column(s) not used; name the time (time), or say rows_are_steps"
        raise DataError(f"{where}: {what} if every row is one step after the row before")
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
