"""Reading tables: against the reference implementation, in every dress and clock; refusals."""

import bz2
import gzip
import re
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import seeds
from plain_reading import ZONES, RefusedError, draw, plain_read

from pufferflow.errors import DataError
from pufferflow.models.files import parse_model
from pufferflow.records import read as reader
from pufferflow.records import table
from pufferflow.records.read import parse_range, read, stamp
from pufferflow.records.schema import Fitted, FittedPrivately, Schema, parse_schema
from pufferflow.records.states import StateSpace

BROKEN = ("soon", "2021-06-01T00:00:00.5", "", "1e30", "nan", "abc", "7", "1,5", "m0", '"x y"')
BROKEN += ("10000-01-01T00:00Z", "9" * 400, "now", "0000-01-01", "1970-01-01T00:00:00.123456789")


def broken(text, sign, rng):
    """The table with some of its fields replaced."""
    header, *lines = text.splitlines()
    for at in rng.integers(0, len(lines), int(rng.choice([1, 2, 3, len(lines)]))):
        fields = lines[at].split(sign)
        fields[int(rng.integers(len(fields)))] = str(rng.choice(BROKEN)).replace(sign, ".")
        if len(fields) > 1 and any(fields):
            lines[at] = sign.join(fields)
    return "\n".join([header, *lines]) + "\n"


@pytest.mark.parametrize("seed", seeds(120, 3000))
def test_reading_is_that_of_the_reference_implementation(seed, tmp_path, monkeypatch):
    """Whole tables and broken ones, of which the first bad line is named, in any blocks.

    What is total, as a private fit reads, has no line that changes how others are read; what is
    out of range is no matter.
    """
    rng = np.random.default_rng(seed)
    text, schema = draw(seed, shuffled=bool(rng.integers(2)))
    if rng.integers(2):
        text = broken(text, schema.separator, rng)
    monkeypatch.setattr(table, "BLOCK", int(rng.choice([2**11, 2**20])))
    for room in (table, reader):
        monkeypatch.setattr(room, "ROWS", 7)
    path = tmp_path / "table.csv"
    path.write_text(text)
    limits, times = {}, [at for _, at, _ in plain_read(text, schema, total=True)[1]]
    if schema.step_seconds and times and rng.integers(2):
        limits = dict(zip(("first", "last"), sorted(rng.choice(times, 2).tolist()), strict=True))
    for total in (False, True):
        try:
            people, expected = plain_read(text, schema, total=total, **limits)
        except RefusedError as refused:
            named = "|".join(f"line {line}: " for line in refused.args[0])
            with pytest.raises(DataError, match=named):
                read(path, schema, total=total, **limits)
            continue
        if not people:
            continue
        source, timed = path, schema.step_seconds is not None
        if rng.integers(2) and not (total or text.count('"')):  # the same from pandas
            options = {"na_filter": False, "skip_blank_lines": timed, "dtype": str}
            source = pd.read_csv(path, sep=schema.separator, **options)
        steps = read(source, schema, total=total, **limits)
        columns = (column.tolist() for column in (steps.person, steps.seconds, steps.state))
        assert list(zip(*columns, strict=True)) == expected
        apart = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(expected)]
        near = [False, *(one == (0, schema.step_seconds or 1) for one in apart)]
        assert steps.near.tolist() == near[: len(expected)]
        assert (steps.extent is None) == (total or not timed)
        assert list(steps.people) == [("" if name == "all" else name) for name in people]


MINUTES = np.datetime_as_string(np.datetime64("2021-03-01T00:00", "m") + np.arange(60)).tolist()
NAMES = ["walk" if i % 7 < 3 else "sit" for i in range(60)]
ROWS = "".join(f"{t},{v}\n" for t, v in zip(MINUTES, NAMES, strict=True))
CSV = "time,value\n" + ROWS
WORDS = StateSpace.categories(["sit", "walk"])


def test_the_same_readings_in_every_dress(tmp_path):
    times = pd.DatetimeIndex(MINUTES)
    frame, unix = pd.DataFrame({"time": times, "value": NAMES}), times.as_unit("s").asi8
    texts = [
        "\ufeff" + CSV.rstrip("\n"),
        CSV.replace("\n", "\r\n"),
        CSV.replace("sit", '"sit"').replace("time", '"time"'),
        CSV.replace(",walk", "+01:00,walk").replace(",sit", "+01:00,sit"),
        "a, Time ,Value (x)\n" + ROWS.replace("2021", "0,2021"),
    ]
    plain, zstd = CSV.encode(), pa.Codec("zstd").compress(CSV.encode(), asbytes=True)
    packed = [gzip.compress(plain[:99]) + gzip.compress(plain[99:]), bz2.compress(plain), zstd]
    sources = [frame.set_index("time")["value"], frame.assign(time=unix.astype(float))]
    sources += [frame.assign(time=times.tz_localize("Asia/Tokyo").as_unit("ns"))]
    for content in [*packed, *(text.encode() for text in texts)]:
        sources.append(tmp_path / str(len(sources)))
        sources[-1].write_bytes(content)
    for kinds in ({"time": "datetime64[ms]"}, {"value": "category"}):
        sources.append(tmp_path / str(len(sources)))
        frame.astype(kinds).to_parquet(sources[-1])
    for source in sources:
        steps = read(source, Schema(states=WORDS))
        assert steps.state.tolist() == [WORDS.names.index(name) for name in NAMES], source
        assert (steps.step_seconds, steps.near.sum(), steps.value) == (60, 59, None)
        assert steps.seconds.tolist() in [(unix - 3600 * hours).tolist() for hours in (0, 1, 9)]
    rows = read(pd.Series(NAMES), Schema(states=WORDS))
    assert (rows.step_seconds, rows.time_base, rows.extent) == (None, "none", None)
    assert rows.near.sum() == 59
    assert (stamp(rows, 0), "walk" in repr(rows)) == ("step 1", False)


GERMAN = {"decimal": ",", "thousands": "."}
NUMBERS = [
    ({}, ["abc", "1,5", "0x1", "", "NA", "nan", None, "?", "-", 10**400], []),
    (GERMAN, ["1,5", "1.500", "12.500,25", "-1.234.567"], [1.5, 1500, 12500.25, -1234567]),
    (GERMAN, ["1.5", "0.500", "1.500.5", "12345.678", "1.5000", "", "?"], []),
    ({"thousands": ","}, ["12345,678", "12,345"], [12345]),
    (GERMAN, [0.125, Decimal("1.5"), 7, np.float32(0.5)], [0.125, 1.5, 7, 0.5]),
]


@pytest.mark.parametrize(("signs", "texts", "numbers"), NUMBERS)
def test_numbers_as_they_are_written(signs, texts, numbers):
    assert (
        read(pd.Series(texts, dtype=object), Schema(**signs), total=True).value.tolist() == numbers
    )


def test_a_declared_state_is_never_missing():
    space = StateSpace.categories(["0.0", "1,5", "off", "None"], other=True)
    frame = pd.Series(["0", "1.5", "off", "NONE", "na", "00.0", "Off", "none", "None"])
    assert read(frame, Schema(states=space)).state.tolist() == [0, 4, 2, 4, 0, 4, 4, 3]
    space = StateSpace.categories(["none", "some"])
    lost = pd.Series([None, "some", "some", "none"])
    with pytest.raises(DataError, match="row 1: the value is missing, but may be the state 'none'"):
        read(lost, Schema(states=space))
    assert read(lost, Schema(states=space), total=True).state.tolist() == [1, 1, 0]


def test_an_odd_row_changes_no_other(tmp_path):
    """True is equal to 1, and integers next to a null are floats to pandas."""
    mixed = pd.Series([True, 1.0, 0, 1], dtype=object)
    space = StateSpace.categories(["0", "1"])
    assert read(mixed, Schema(states=space), total=True).state.tolist() == [1, 0, 1]
    who = pd.array([2**60, 2**60 + 1, None], dtype="Int64")
    pd.DataFrame({"who": who, "time": 0, "value": 1}).to_parquet(path := tmp_path / "t.parquet")
    steps = read(path, Schema(participant="who", step_seconds=60), total=True)
    assert steps.people == (str(2**60), str(2**60 + 1))


DAYS = pd.to_datetime(["2024-01-01", "2024-01-02"])
ODD = [None, pd.NA, pd.NaT, True, 1.5, "x", "\ud800", b"\xff", [1], {}, (1, [2]), 10**5000]
ODD += [Decimal("sNaN"), "3024-01-01 00:00:00.000000001", np.datetime64(2**62, "s")]
COLUMNS = [
    ("time", [20240101, 20240102], {"time_format": "%Y%m%d"}),
    ("time", DAYS, {"time_format": "%d/%m/%Y"}),
    ("time", [np.datetime64(day, "ns") for day in DAYS], {}),
    ("time", DAYS.tz_localize("Europe/Berlin"), {}),
    ("time", [0.0, 86_400.0], {}),
    ("time", [True, False], {}),
    ("time", [(1, 2), (3, 4)], {}),
    ("time", ["3024-01-01 00:00.0", "3024-01-02 00:00.0"], {"time_format": "%Y-%m-%d %H:%M.%f"}),
    ("time", ["3024-01-01", "3024-01-02"], {"time_format": "ISO8601"}),
    ("time", DAYS, {"time": "time,clock"}),
    ("value", [np.float32(0.1), np.float32(1)], {"states": StateSpace.categories(["0.1", "1"])}),
    ("value", [True, False], {"states": StateSpace.categories(["True", "False", "1"])}),
    ("value", [1, 2.5], {}),
]


@pytest.mark.parametrize(("role", "entries", "options"), COLUMNS)
def test_an_odd_entry_of_any_type_is_missing_and_changes_no_other(role, entries, options):
    found = []
    for odd in ([], *([one] for one in (*ODD, pd.Timestamp("2024-01-03 00:00:01")))):
        column = pd.Series([*entries, *odd], dtype=None if not odd else object)
        frame = pd.DataFrame({"who": range(len(column)), "time": 0, "value": 1, "clock": "00:00"})
        asked = {"participant": "who", "timezone": "UTC", "time": "time", "value": "value"}
        schema = Schema(**asked | options, step_seconds=60)
        steps = read(frame.assign(**{role: column}), schema, total=True)
        steps = steps[steps.person < 2]
        found.append([steps.person, steps.seconds, steps.value if role == "value" else 0])
    np.testing.assert_equal(found[1:], found[:1] * (len(ODD) + 1))


def test_dates_beyond_those_of_python_are_missing(tmp_path):
    kinds = [*map(pa.timestamp, ("ms", "us", "ns")), pa.timestamp("us", "Asia/Tokyo")]
    ends = 2**63 - 1, 1 - 2**63
    columns = [pa.array([0, end], pa.int64()).view(kind) for kind in kinds for end in ends]
    for column in [*columns, pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32())]:
        path, rows = tmp_path / "t.parquet", pa.table({"time": column, "value": [1.0, 2.0]})
        pq.write_table(rows, path)
        steps = read(path, Schema(step_seconds=60, timezone="UTC"), total=True)
        assert steps.value.tolist() == [1.0]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("step", [1, 60])
def test_daylight_saving_is_named_and_a_zone_settles_it(zone, step):
    for day, month in zip(ZONES[zone], (3, 10), strict=True):
        times = pd.date_range(day, periods=600 // step, freq=f"{step}min", tz=zone)
        true, shown = times.as_unit("s").asi8.tolist(), times.strftime("%Y-%m-%dT%H:%M")
        frame = pd.DataFrame({"who": [*"ab"] * len(true), "time": np.repeat(shown, 2), "value": 1})
        begins = (zone == "Australia/Sydney") == (month == 10)
        with pytest.raises(DataError, match="saving begins" if begins else "saving ends"):
            read(frame, Schema(participant="who"))
        steps = read(frame, Schema(participant="who", timezone=zone))
        assert steps.seconds.tolist() == true * 2
        assert (steps.time_base, steps.zone, steps.extent) == ("utc", zone, (true[0], true[-1]))
        assert (steps.local_seconds // 3600 % 24).tolist() == times.hour.tolist() * 2
        if not begins:  # never silently the wrong hour
            with pytest.raises(DataError, match="is there twice"):
                read(frame.iloc[::-1], Schema(participant="who", timezone=zone))


@pytest.mark.parametrize("inside", [slice(0, 6), slice(6, 12)])
def test_rows_beside_a_range_change_nothing_in_the_hour_that_is_there_twice(inside):
    """It ends after the first 2:30, or begins with the second 2:00, when others were there too."""
    times = pd.date_range("2021-10-31", periods=12, freq="30min", tz="Europe/Paris")
    true, shown = times.as_unit("s").asi8, times.strftime("%Y-%m-%dT%H:%M")
    frame = pd.DataFrame({"time": shown, "who": "a", "of": "g", "value": "1"})
    kept, wild, others = frame[inside], frame.copy(), frame[4:6].assign(value="x", of="h")
    wild.loc[~wild.index.isin(kept.index), ["of", "value"]] = "x"
    tables = [wild, *(pd.concat([frame, others.assign(who=name)]) for name in ("b", ""))]
    schema = Schema(participant="who", group="of", timezone="Europe/Paris")
    span = dict(zip(("first", "last"), true[inside][[0, -1]].tolist(), strict=True))
    for source in tables if inside.start else tables[:1]:
        steps = read(source, schema, **span)
        assert steps.seconds.tolist() == true[inside].tolist()
        assert (steps.people, steps.groups, steps.rows) == (("a",), ("g",), 6)


def test_each_participant_has_its_own_phase():
    frame = pd.DataFrame({"time": [420, 4020, 1800, 5400], "who": [*"aabb"], "value": 1})
    assert read(frame, Schema(participant="who")).near.tolist() == [False, True, False, True]
    # the grid of a private fit is public: whole hours since 1970, off which nothing is
    assert len(read(frame, Schema(participant="who", step_seconds=3600), total=True).seconds) == 0
    early = read(pd.DataFrame({"time": [-(10**10), 10**10, 10**10 + 1], "value": 1}), Schema())
    assert early.seconds.tolist() == [-(10**10), 10**10, 10**10 + 1]


RANGES = [
    (("2024-01-01", "2024-01-31", "Europe/Paris"), (1704063600, 1706741999)),
    (("2024-01-01T12:00+02:00", "2024-01-01 12:00"), (1704103200, 1704110399)),
    ((None, "2024-04-25", "Africa/Cairo"), (None, 1714082399)),  # there is no midnight
    (("2021-10-31", "2021-10-31", "Europe/Paris"), (1635631200, 1635631199 + 25 * 3600)),
]


@pytest.mark.parametrize(("ends", "seconds"), RANGES)
def test_ranges_of_time(ends, seconds):
    assert parse_range(*ends) == seconds


HEADER = b"time,who,value\n"
ENDLESS = [
    (b"0", "a line of more than 16,384 bytes"),
    (b'0,a,"s3cret', "a line of more than 16,384 bytes"),
    (b'0,a,"\n' + b"\n" * 2**15, "a quote "),
    (b"1,a,2,s3cret\n", "line 2: 4 field(s)"),
    (b"0,a,\xff\n", "not UTF-8 text"),
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(("body", "message"), ENDLESS)
def test_what_has_no_end_is_refused_after_few_blocks(tmp_path, monkeypatch, pack, body, message):
    """Endless lines, surplus fields and wrong encodings: the work is bounded, not only the time."""
    monkeypatch.setattr(table, "BLOCK", 2**14)
    unpacked, seen = table._unpacked, []

    @contextmanager
    def counted(*arguments):
        with unpacked(*arguments) as stream:
            taken = partial(lambda stream, n: seen.append(stream.read(n)) or seen[-1], stream)
            yield SimpleNamespace(closed=False, read=taken)

    monkeypatch.setattr(table, "_unpacked", counted)
    path = tmp_path / "data.csv"
    path.write_bytes(pack(HEADER + body * (2**22 // len(body))))
    with pytest.raises(DataError, match=re.escape(message)) as refused:
        read(path, Schema(participant="who"))
    assert "\n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert sum(map(len, seen)) <= 2**20  # of 4 MB; pyarrow reads 32 blocks ahead


def test_participants_are_never_guessed_and_groups_are_theirs(monkeypatch):
    """A column called subject may number pieces of four minutes: noise of 28.4 became 4.0."""
    frame = pd.DataFrame({"time": [0, 60] * 2, "who": [*"aabb"], "of": [*"gghh"], "value": 1.0})
    steps = read(frame[:2].rename(columns={"who": "subject"}), Schema(value="value"))
    assert (steps.people, steps.columns["participant"]) == (("",), None)
    steps = read(frame, Schema(participant="who", group="of"))
    assert (steps.groups, steps.group_of.tolist()) == (("g", "h"), [0, 1])
    monkeypatch.setattr(reader, "MAX_PEOPLE", 1)
    with pytest.raises(DataError, match="more than 1 participants; make several tables of it"):
        read(frame, Schema(participant="who"))


def test_schemas_survive_their_document():
    fitted = Fitted("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", 5)
    private = FittedPrivately(1.0, 0.95, 100, 50, 100.0, "a1")
    numeric, other = StateSpace.numeric([1, 2.5]), StateSpace.categories(["x"], other=True)
    for schema in (
        Schema(states=numeric, step_seconds=60, time="a", decimal=",", fitted=fitted),
        Schema(states=other, rows_are_steps=True, fitted_privately=private, participant="m"),
    ):
        model = {"mixing": {"steps": 2, "overlap": 0.5}, "records": schema.to_dict()}
        assert parse_model(model).records == parse_schema(schema.to_dict()) == schema
    assert (fitted.period, fitted.is_local) == ((1704067200, 1704153600), False)
