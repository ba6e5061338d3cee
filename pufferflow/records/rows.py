"""From the rows of a table to verified records in time: who, when, which value.

Rows may be of several participants, interleaved; each participant's times must increase. Times are unix seconds,
ISO times with an offset, or ISO times on a local clock. A local clock that jumps for daylight saving is refused by
name unless its zone is given: an hour that is there twice or not at all would bend the chain.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pufferflow._numbers import shortest
from pufferflow.errors import DataError
from pufferflow.records.blocks import ROWS
from pufferflow.records.format import UNKNOWN, StateSpace
from pufferflow.records.reading import GUESSES, Reading
from pufferflow.records.tables import JoinedTimes, Source, Table, joined_times, open_table
from pufferflow.records.times import Clock, Integers, clocks_change, is_number, is_time, parse_times

MISSING_TEXTS = ("", "na", "n/a", "nan", "null", "none", "?", "-")
"""Texts (in any case) that stand for a value that is missing, unless they are declared to be a state."""

NULL_TEXTS = ("na", "n/a", "nan", "null", "none", "<na>", "#n/a", "#na", "-nan")
"""Those (in any case) that pandas reads as nothing by itself, so that a typed table may have lost a state."""

INDEX = "__index_level_0__"
"""How pandas calls an index without a name in a Parquet file; one that only numbers the rows is no column."""

NEVER = np.iinfo(np.int64).min
HOUR = 3600


@dataclass(frozen=True)
class Chunk:
    """Rows that follow each other in the table; arrays of shape (n,)."""

    rows: Integers
    """Number of each row in the table."""
    person: Integers
    """Index of its participant."""
    seconds: Integers
    """Its time; steps are counted where the table has no times."""
    before: Integers
    """Time of the participant's row before, :data:`NEVER` for the first."""
    value: pd.Series[Any]
    """As it stands in the table."""

    def __repr__(self) -> str:
        return "Chunk(…)"


@dataclass
class Records:
    """The records of a table, in chunks; iterate as often as needed."""

    table: Table
    reading: Reading
    lone_rows: bool = False
    """Whether most participants may have a single row, as in a table whose columns are known."""
    people: dict[str, int] = field(default_factory=dict)
    """Index of each participant, in order of first appearance; one called "" where there is no column."""
    groups: list[str] = field(default_factory=list)
    """Group of each participant."""
    clock: Clock | None = None

    def __repr__(self) -> str:
        return f"Records({self.table!r})"

    @cached_property
    def columns(self) -> dict[str, str | None]:
        """Name of the column of each role; None for a role that no column has.

        Raises DataError: a column that was named is missing, or it is not clear which holds the values.
        """
        present = self.table.columns()
        where = f"{self.table.where}, line 1" if self.table.place(0).startswith("line") else self.table.where
        if not present:
            raise DataError(f"{where}: there are no columns; give a table with one of values")
        listed = f"; the columns are {', '.join(map(repr, present))}" if self.reading.show_values else ""
        if len(present) == 1 and self.reading.separator not in present[0]:
            for other, said in ((";", "';'"), ("\t", "$'\\t'"), ("|", "'|'")):
                if other in present[0]:
                    raise DataError(
                        f"{where}: the fields seem to be separated by {said}; give it (separator), and where numbers "
                        "are written as 1,5 their sign (decimal)"
                    )
        numbers = (name.replace(self.reading.decimal, ".").split(".")[0] for name in present)
        data = [*filter(is_number, numbers), *filter(is_time, present)]
        if data and self.reading.value is None:
            raise DataError(f"{where}: this seems to be data, not a header; add a line of names such as time,value")
        columns: dict[str, str | None] = {role: getattr(self.reading, role) for role in GUESSES}
        for role, named in columns.items():
            if named is not None and named not in present:
                raise DataError(f"{where}: there is no column {named!r} for the {role}{listed}; mend the option")
        for role in columns:
            if columns[role] is None and not (role == "time" and self.reading.rows_are_steps):
                columns[role] = self._guess(role, [name for name in present if name not in columns.values()], where)
        free = [name for name in present if name not in columns.values()]
        if columns["value"] is None:
            if len(free) != 1:
                raise DataError(f"{where}: it is not clear which column holds the values{listed}; name it (value)")
            columns["value"] = free.pop()
        if free and columns["time"] is None and not self.reading.rows_are_steps:
            missing = ["time"] if columns["participant"] is not None else ["time", "participant"]
            raise DataError(
                f"{where}: {_columns(free, self.reading.show_values)} not used; name the {' and the '.join(missing)} "
                f"({', '.join(missing)}), or say rows_are_steps if every row is one step of one chain"
            )
        for named in columns.values():
            if named is not None and (present.count(named) > 1 or f"{named}.1" in present):  # as pandas numbers them
                raise DataError(f"{where}: two columns are called {named!r}; rename one")
        return columns

    @cached_property
    def unused(self) -> list[str]:
        """Columns that have no role."""
        return [name for name in self.table.columns() if name not in self.columns.values()]

    def _guess(self, role: str, free: list[str], where: str) -> str | None:
        """Column of a role by its name; the role's own name goes first, and others are refused if there are many."""
        plain = {name: _plain(name, unit=role in ("time", "value")) for name in free}
        known = [name for name in free if plain[name] in GUESSES[role]]
        own = [name for name in known if plain[name] == role]
        if len(known) > 1 and len(own) != 1:
            shown = " and ".join(map(repr, known)) if self.reading.show_values else f"{len(known)} columns"
            both = ", or both where they are date and time of day, as in 'Date,Time'" if role == "time" else ""
            raise DataError(f"{where}: {shown} may each hold the {role}; name the right one ({role}){both}")
        if role == "time" and not known and INDEX in free:
            return INDEX
        return next(iter(own or known), None)

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the rows with their times, checked."""
        return self.chunks("reading")

    def chunks(self, work: str) -> Iterator[Chunk]:
        """Yield the rows with their times, checked; ``work`` names the progress bar.

        Raises DataError: names the first line that is wrong.
        """
        wanted = [name for name in self.columns.values() if name is not None]
        self.people, self.groups, self.clock = {}, [], None
        last = np.empty(0, dtype=np.int64)
        read = 0
        for start, frame in self.table.chunks(wanted, work):
            size = len(frame)
            rows = np.arange(start, start + size, dtype=np.int64)
            frame, rows = self._without_blank(frame, rows)
            if not rows.size:
                if size == ROWS:
                    where = f"{self.table.where}, {self.table.place(start)}"
                    raise DataError(f"{where}: {ROWS:,} empty lines from there on; take them out of the table")
                continue
            person = self._people(frame, rows)
            if len(self.people) > last.size:
                last = np.concatenate((last, np.full(len(self.people) + last.size, NEVER)))
            order = np.argsort(person, kind="stable")
            seconds, before = self._times(frame, rows, person, order, last)
            values = frame[self.columns["value"]]
            read += len(rows)
            yield Chunk(rows, person, seconds, before, values)
        self._check_participants(read)

    def _check_participants(self, rows: int) -> None:
        """Raise where a column of something else is read as the participants.

        Each of them counts as independent of the others, so it would take away most of the noise.
        """
        column = self.columns["participant"]
        if column is None or not rows:
            return
        named = f"{self.table.where}: the column {column!r} of the participants"
        if rows < 2 * len(self.people) and not self.lone_rows:
            raise DataError(
                f"{named} has {len(self.people):,} participants in {rows:,} rows, and a single record has no chain; "
                "name the right one (participant), or leave participants with one record out"
            )
        if all(map(is_time, self.people)):
            raise DataError(f"{named} holds times, not names; name the right one (participant)")

    def fail(self, row: int, column: str, value: object, what: str) -> DataError:
        """Return the error of a row; the value is shown only where that is allowed."""
        shown = f" {_short(value)!r}" if self.reading.show_values else ""
        return DataError(f"{self.table.where}, {self.table.place(row)}: the {column}{shown} {what}")

    def numbers(
        self, chunk: Chunk, *, strict: bool = True, finite: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Read values as numbers, NaN where missing, and mark those that are none; with ``finite`` infinite ones too.

        Raises DataError: with ``strict``, on the first that is neither a number nor missing.
        """
        values = chunk.value
        if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
            numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            bad = np.zeros(len(numbers), dtype=bool)
        else:
            numbers = pd.to_numeric(self._point(values), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            bad = np.isnan(numbers)
            if bad.any():
                bad[bad] = ~_is_missing(values[bad])
        if finite:
            bad |= np.isinf(numbers)
        if strict and bad.any():
            first = int(bad.argmax())
            raise self.fail(
                int(chunk.rows[first]),
                "value",
                values.iloc[first],
                "is no number; mend it, or leave it empty if missing",
            )
        return numbers, bad

    def _point(self, values: pd.Series[Any]) -> pd.Series[Any]:
        """Values as texts of numbers with a decimal point; what was a text and is no number as written is empty."""
        texts = values.astype("str")
        if self.reading.decimal == "." and self.reading.thousands is None:
            return texts
        decimal, thousands = re.escape(self.reading.decimal), re.escape(self.reading.thousands or "")
        grouped = rf"[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+|" if thousands else ""
        number = rf"\s*[+-]?(?:(?:{grouped}\d*)(?:{decimal}\d*)?(?:[eE][+-]?\d+)?|inf(?:inity)?)\s*"
        plain = texts.where(texts.str.fullmatch(number, case=False), "")
        if thousands:
            plain = plain.str.replace(thousands, "", regex=True)
        plain = plain.str.replace(decimal, ".", regex=True)
        written = values.map(lambda value: isinstance(value, str)).astype("bool")  # numbers of a typed table stay
        return plain.where(written, texts)

    def names(self, chunk: Chunk, states: StateSpace | None = None) -> tuple[Integers, list[str]]:
        """Values as categories: codes into the list of different names, −1 where missing; shape (n,).

        What ``states`` declares is never missing, however it is written: a state that were left out would be
        published exactly, by the number of records.

        Raises DataError: a typed table has nothing where a declared state may have been.
        """
        codes, distinct = self._different(chunk.value, chunk.rows)
        texts = [_text(value) for value in distinct]
        plain = self._point(pd.Series(list(distinct), dtype=object))
        texts = [point if shortest(point) is not None else text for point, text in zip(plain, texts, strict=True)]
        claimed = [states is not None and states.claims(text) for text in texts]
        self._refuse_lost(chunk, codes < 0, states)
        missing = [text.lower() in MISSING_TEXTS and not known for text, known in zip(texts, claimed, strict=True)]
        codes[np.array([*missing, True])[codes]] = -1
        return codes, texts

    def _refuse_lost(self, chunk: Chunk, nothing: NDArray[np.bool_], states: StateSpace | None) -> None:
        """Raise where a table that was typed before it came here may have lost a declared state."""
        if states is None or not nothing.any():
            return
        lost = [name for name in states.listed if states.edges is None and name.lower() in NULL_TEXTS]
        if lost:
            raise self.fail(
                int(chunk.rows[nothing.argmax()]),
                "value",
                "",
                f"is missing, but may be the state {lost[0]!r} that was read as missing; read the table with "
                "keep_default_na=False, or rename the state",
            )

    def encode(self, chunk: Chunk, states: StateSpace) -> Integers:
        """State of every value, −1 where missing; shape (n,).

        Raises DataError: a value is neither missing nor a state; the line is named.
        """
        if states.edges is not None:
            return states.encode_numbers(self.numbers(chunk)[0])
        codes, names = self.names(chunk, states)
        encoded = np.concatenate((states.encode_names(names), [-1]))[codes]
        unknown = encoded == UNKNOWN
        if unknown.any():
            first = int(unknown.argmax())
            raise self.fail(
                int(chunk.rows[first]),
                "value",
                chunk.value.iloc[first],
                "is none of the public states; name it among them, or fit the chain with the state other, so that such "
                "values have one (that one occurs here is revealed by this message)",
            )
        return encoded

    def _different(self, column: pd.Series[Any], rows: Integers) -> tuple[Integers, Any]:
        """Codes of the entries into the different ones, −1 where missing."""
        try:
            codes, distinct = pd.factorize(column)
        except TypeError:
            what = "is a list or an object; give a column of numbers or texts"
            raise self.fail(int(rows[0]), str(column.name), "", what) from None
        return codes.astype(np.int64), distinct

    # -- the columns of a chunk ----------------------------------------------------------------------

    def _without_blank(self, frame: pd.DataFrame, rows: Integers) -> tuple[pd.DataFrame, Integers]:
        """Drop empty lines of a text table; in one without times a line is a step, so it stays."""
        if self.columns["time"] is None or not self.table.place(0).startswith("line"):
            return frame, rows
        blank = np.ones(len(frame), dtype=bool)
        for name in frame.columns:
            blank &= (frame[name].isna() | (frame[name] == "")).to_numpy()
        if not blank.any():
            return frame, rows
        return frame[~blank].reset_index(drop=True), rows[~blank]

    def _people(self, frame: pd.DataFrame, rows: Integers) -> Integers:
        column, group = self.columns["participant"], self.columns["group"]
        person = np.zeros(len(rows), dtype=np.int64)
        if column is None:
            self.people.setdefault("", 0)
        else:
            codes, distinct = self._different(frame[column], rows)
            texts = [_text(value) for value in distinct]
            empty = np.array([text in ("", "nan") for text in texts] + [True])[codes]
            if empty.any():
                raise self.fail(int(rows[empty.argmax()]), "participant", "", "is missing; fill it in or drop the row")
            person = np.array([self.people.setdefault(text, len(self.people)) for text in texts], dtype=np.int64)[codes]
        if group is None:
            self.groups += ["all"] * (len(self.people) - len(self.groups))
            return person
        codes, distinct = self._different(frame[group], rows)
        texts = [_text(value) for value in distinct] + [""]
        first = pd.Series(codes).groupby(person).first()
        for index in range(len(self.groups), len(self.people)):
            self.groups.append(texts[first[index]])
        names = {text: code for code, text in enumerate(dict.fromkeys([*texts, *self.groups]))}
        here = np.array([names[text] for text in texts])[codes]
        wrong = (here != np.array([names[text] for text in self.groups])[person]) | (here == names[""])
        if wrong.any():
            at = int(wrong.argmax())
            what = "is missing or differs from the participant's first one; give one to each"
            raise self.fail(int(rows[at]), "group", texts[codes[at]], what)
        return person

    def _times(
        self, frame: pd.DataFrame, rows: Integers, person: Integers, order: Integers, last: Integers
    ) -> tuple[Integers, Integers]:
        """Times and those of the participants' rows before; ``last`` is carried from chunk to chunk."""
        sorted_person = person[order]
        fresh = np.concatenate(([True], sorted_person[1:] != sorted_person[:-1]))
        ends = np.concatenate((sorted_person[1:] != sorted_person[:-1], [True]))
        column = self.columns["time"]
        if column is None:
            starts = np.flatnonzero(fresh)
            within = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
            counted = np.where(last[sorted_person] == NEVER, 0, last[sorted_person] + 1) + within
            seconds = np.empty(len(rows), dtype=np.int64)
            seconds[order] = counted
        else:
            previous = np.full(len(rows), -1, dtype=np.int64)
            previous[order[1:][~fresh[1:]]] = order[:-1][~fresh[1:]]
            seconds = self._seconds(frame[column], rows, person, previous, last)
        in_order = seconds[order]
        before_in_order = np.empty_like(in_order)
        before_in_order[1:] = in_order[:-1]
        before_in_order[fresh] = last[sorted_person[fresh]]
        last[sorted_person[ends]] = in_order[ends]
        before = np.empty_like(seconds)
        before[order] = before_in_order
        back = (before != NEVER) & (seconds <= before)
        if back.any():
            at = int(back.argmax())
            lag = int(before[at] - seconds[at])
            what = "comes before the row before it; sort the rows by time"
            if lag == 0:
                what = "is that of the row before again; remove one of the two"
            if self.columns["participant"] is None and self.unused:
                what += ", or name the column that tells participants apart (participant)"
            if (
                self.clock == "local"
                and self.reading.timezone is None
                and lag < HOUR
                and clocks_change(int(seconds[at]))
            ):
                what = (
                    f"{'repeats' if lag == 0 else 'goes back within'} an hour, as a local clock does when daylight "
                    "saving ends; give its zone (timezone), or sort the rows and remove repeats"
                )
            assert column is not None
            raise self.fail(int(rows[at]), "time", frame[column].iloc[at], what)
        return seconds, before

    def _seconds(
        self, column: pd.Series[Any], rows: Integers, person: Integers, previous: Integers, last: Integers
    ) -> Integers:
        parsed, clocks, bad = parse_times(column, self.reading.time_format)
        if bad.any():
            at = int(bad.argmax())
            what = "is neither a time in whole seconds such as 2017-05-14T09:00:00 nor whole unix seconds; mend it"
            if self.reading.time_format is not None:
                what = f"is not a time in whole seconds written as {self.reading.time_format}; mend either"
            elif isinstance(column.iloc[at], str):
                what += ", or give its time_format"
            if isinstance(column.iloc[at], str) and any(_plain(n, unit=True) in GUESSES["time"] for n in self.unused):
                what += "; where date and time of day stand in two columns, name both (time), as in 'Date,Time'"
            raise self.fail(int(rows[at]), "time", column.iloc[at], what)
        names: tuple[Clock, ...] = ("offset", "local", "unix")
        if self.clock is None:
            self.clock = names[int(clocks[0])]
        other = clocks != names.index(self.clock)
        if other.any():
            at = int(other.argmax())
            said = {"offset": "has a UTC offset", "local": "has no UTC offset", "unix": "is in unix seconds"}
            what = f"{said[names[int(clocks[at])]]}, but the first time {said[self.clock]}; write all alike"
            raise self.fail(int(rows[at]), "time", column.iloc[at], what)
        if self.clock != "local" or self.reading.timezone is None:
            return parsed
        local = pd.DatetimeIndex(parsed.astype("datetime64[s]"))
        early, late = (
            local.tz_localize(self.reading.timezone, ambiguous=np.full(len(local), dst), nonexistent="NaT")
            for dst in (True, False)
        )
        lost = np.asarray(early.isna())
        if lost.any():
            at = int(lost.argmax())
            what = f"does not exist on the clocks of {self.reading.timezone} (daylight saving begins); mend it"
            raise self.fail(int(rows[at]), "time", column.iloc[at], what)
        seconds = early.as_unit("s").asi8.copy()
        second = late.as_unit("s").asi8
        # an hour that is there twice: the first time in summer time, and again once that has passed
        for i in np.flatnonzero(seconds != second):
            came = seconds[previous[i]] if previous[i] >= 0 else last[person[i]]
            if came != NEVER and seconds[i] <= came:
                seconds[i] = second[i]
        return np.asarray(seconds, dtype=np.int64)

    def spring_jump(self, before: Integers, seconds: Integers, step: int) -> NDArray[np.bool_]:
        """Mark rows that come one hour late on a night in which local clocks go forward."""
        if self.clock != "local" or self.reading.timezone is not None or step > HOUR:
            return np.zeros(len(seconds), dtype=bool)
        late: NDArray[np.bool_] = (before != NEVER) & (seconds - np.maximum(before, -(2**60)) == HOUR + step)
        for i in np.flatnonzero(late):
            late[i] = clocks_change(int(seconds[i])) and int(seconds[i]) % HOUR < step
        return late

    def refuse_spring_jump(self, row: int) -> DataError:
        """Return the error of a row that :meth:`spring_jump` marks."""
        return DataError(
            f"{self.table.where}, {self.table.place(row)}: an hour is missing before it, as on a local clock when "
            "daylight saving begins; give its zone (timezone), or UTC if the clock never jumps"
        )


def open_records(source: Source, reading: Reading, *, lone_rows: bool = False) -> Records:
    """Return the records of a path or a pandas object; its columns are found on first use."""
    table = joined_times(open_table(source, separator=reading.separator), reading.time)
    if isinstance(table, JoinedTimes):
        reading = replace(reading, time=table.name)
    return Records(table, reading, lone_rows)


def stamp(records: Records, seconds: int) -> str:
    """Write a time for people: ISO on the clock of the table, or the number of the step."""
    if records.clock is None:
        return f"step {seconds + 1}"
    return str(np.datetime64(seconds, "s")) + ("" if records.clock == "local" and not records.reading.timezone else "Z")


def _plain(name: str, *, unit: bool) -> str:
    """A column's name in small letters, without its ``unit`` where it may have one: "Meter (kWh)" is no participant."""
    bare = re.split(r"[(\[/]", name)[0] if unit else name
    return re.sub(r"[\s-]+", "_", bare.lower().strip())


def _columns(names: list[str], show: bool) -> str:
    if not show:
        return "one column is" if len(names) == 1 else f"{len(names)} columns are"
    shown = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
    return f"column {shown} is" if len(names) == 1 else f"columns {shown} are"


def missing_texts(values: pd.Series[Any]) -> Counter[str]:
    """How often each text stands for a missing value among ``values``, all of which are missing."""
    return Counter(text for text in map(_text, values) if text)


def _is_missing(values: pd.Series[Any]) -> NDArray[np.bool_]:
    return np.array([_text(value).lower() in MISSING_TEXTS for value in values], dtype=bool)


def _text(value: object) -> str:
    """A category or a name as text; a whole number the same from a CSV and from a Parquet file."""
    if isinstance(value, float | np.floating):
        value = None if math.isnan(value) else int(value) if float(value).is_integer() else value
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value).strip()


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
