"""Tables and schemas that are refused: one sentence, with the place, without what stands there."""

import gzip
import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pufferflow.errors import DataError, ModelError
from pufferflow.models import parse_public_model
from pufferflow.records import read as reader
from pufferflow.records import table
from pufferflow.records.read import read
from pufferflow.records.schema import Fitted, FittedPrivately, Schema, parse_schema
from pufferflow.records.states import StateSpace

HEADER = b"time,who,value\n"
GOOD = "".join(f"2021-03-01T00:{i:02}Z,{'ab'[i % 2]},{i}.25\n" for i in range(40)).encode()
SCHEMA = Schema(participant="who", group=None)
SECRET = "s3cret"
NUMERIC = StateSpace.numeric([1, 2.5])


def refusal(source, schema=SCHEMA, **options):
    with pytest.raises(DataError) as refused:
        read(stored(source), schema, **options)
    said = str(refused.value)
    assert "\n" not in said
    assert SECRET not in said
    return said


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def stored(source):
    """Bytes and tables of pyarrow as a file."""
    if isinstance(source, bytes):
        Path("data.csv").write_bytes(source)
    elif isinstance(source, pa.Table):
        pq.write_table(source, "data.parquet")
    return {bytes: "data.csv", pa.Table: "data.parquet"}.get(type(source), source)


END = b"2021-03-01T02:00Z,a"
ROW = HEADER + GOOD
BAD = {
    b"": "line 1: empty; give a line with the names",
    HEADER: "no row of data below the header",
    GOOD: "line 1: this seems to be data, not a header",
    ROW.decode().encode("utf-16"): "line 1: not UTF-8 text",
    ROW + END + b",1,s3cret\n": "line 42: 4 field(s), but the header has 3",
    ROW + END + b',"s3cret\n' + GOOD: "line 42: a quote is not closed, or a field has a",
    HEADER + b"\n\n" + GOOD + END + b",s3cret\n": "line 44: the value is not a number",
    ROW + b"s3cret,a,1\n": "line 42: the time is not a time in whole seconds",
    ROW + b"2021-03-01T02:00,a,1\n": "line 42: the time is not written as the first time",
    ROW + b"2021-03-01T00:04Z,a,9\n": "line 42: the time is there twice; remove one",
    ROW + b"2021-03-01T00:05:30Z,a,9\n": "line 42: the time is not a whole number of",
    ROW + b"2021-03-01T02:00Z,,9\n": "line 42: the participant is missing",
    HEADER + GOOD.replace(b"a,", b"2021-01-01,").replace(b"b,", b"2021-01-02,"): "has times, not",
    HEADER + b"0,a,1\n0,b,1\n0,c,1\n60,c,1\n": "'who' of the participants has 3 participants in 4",
    b"when,who,value\n" + GOOD: "line 1: 1 column(s) not used; name the time (`time`), or say",
    b"time,who,kwh,power\n": "line 1: it is not clear which column holds the values; name it",
    b"time,who,who,value\n": "line 1: two columns are called 'who'; rename one",
    b"time,whom,value\n": "line 1: there is no column 'who' for the participant; correct",
    gzip.compress(HEADER + GOOD * 99)[:-9]: "damaged or cut short; get the file again",
}


@pytest.mark.parametrize(("content", "message"), BAD.items())
def test_bad_files_are_refused_with_their_line(content, message):
    said = refusal(content)
    assert message in said
    assert said.startswith("data.csv")


NO_TABLES = {
    "is not a file; save the table to one": "-",
    "make columns of it (reset_index)": pd.DataFrame({"value": [1]}, index=["x"]),
    "the column 'value' has lists": pa.table({"time": [0, 60], "value": [[1], [2]]}),
    "row 1: ": pa.table({"time": pa.array([10**18, 0], pa.timestamp("ms")), "value": [1, 2]}),
    "two columns are called 'value'": pa.table([[0], [1], [2]], ["time", "value", "value"]),
}


@pytest.mark.parametrize("message", NO_TABLES)
def test_sources_that_are_no_table(message):
    assert message in refusal(NO_TABLES[message], Schema(value="value"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"0", "a line of more than 16,384 bytes"),
        (b'0,a,"s3cret', "a line of more than 16,384 bytes"),
        (b'0,a,"\n' + b"\n" * 2**15, "a quote "),
        (b"1,a,2,s3cret\n", "line 2: 4 field(s)"),
        (b"0,a,\xff\n", "not UTF-8 text"),
    ],
)
def test_what_has_no_end_is_refused_after_few_blocks(monkeypatch, pack, body, message):
    """Endless lines, surplus fields and wrong encodings: the work is bounded, not only the time."""
    monkeypatch.setattr(table, "BLOCK", 2**14)
    unpacked, seen = table._unpacked, []

    @contextmanager
    def counted(*arguments):
        with unpacked(*arguments) as stream:

            def taken(size):
                return seen.append(stream.read(size)) or seen[-1]

            yield SimpleNamespace(closed=False, read=taken)

    monkeypatch.setattr(table, "_unpacked", counted)
    assert message in refusal(pack(HEADER + body * (2**22 // len(body))))
    assert sum(map(len, seen)) <= 2**20  # of 4 MB; pyarrow reads 32 blocks ahead


def test_participants_are_never_guessed_and_groups_are_theirs():
    """A column called subject may number pieces of four minutes: noise of 28.4 became 4.0."""
    content = GOOD.replace(b"Z,b", b"Z,a")
    steps = read(stored(b"time,subject,value\n" + content), Schema())
    assert (steps.people, steps.columns["participant"]) == (("",), None)
    # the sizes of cells would publish a group that changes with the readings
    said = refusal(b"time,kind,value\n" + GOOD, Schema(group="kind"))
    assert "line 3: the group is missing or differs from the participant's first one" in said
    frame = pd.DataFrame({"time": [0, 60] * 2, "who": [*"aabb"], "of": [*"gghh"], "value": 1.0})
    steps = read(frame, Schema(participant="who", group="of"))
    assert (steps.groups, steps.group_of.tolist()) == (("g", "h"), [0, 1])


def test_more_participants_than_keys_hold_are_refused(monkeypatch):
    monkeypatch.setattr(reader, "MOST_PEOPLE", 1)
    assert "more than 1 participants; make several tables of it" in refusal(ROW)


def test_schemas_survive_their_document():
    fitted = Fitted("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", 5)
    private = FittedPrivately(1.0, 0.95, 100, 50, 100.0, "a1")
    other = StateSpace.categories(["x"], other=True)
    for schema in (
        Schema(states=NUMERIC, step_seconds=60, time="a", decimal=",", fitted=fitted),
        Schema(states=other, rows_are_steps=True, fitted_privately=private, participant="m"),
    ):
        model = {"forgetting": {"steps": 2, "overlap": 0.5}, "records": schema.to_dict()}
        assert parse_public_model(model).records == parse_schema(schema.to_dict()) == schema
    assert (fitted.period, fitted.is_local) == ((1704067200, 1704153600), False)


WRONG = {
    "unknown key 'split_after_seconds'": {"split_after_seconds": 600},
    "each larger than the one before": {"states": {"edges": [2, 1]}},
    "without blanks at their ends": {"states": {"names": ["a", "b "]}},
    "must be different, as numbers too": {"states": {"names": ["1", "1.0"]}},
    "time is an int; give a str": {"reading": {"time": 5}},
    "timezone 'Mars/Olympus' is unknown": {"reading": {"timezone": "Mars/Olympus"}},
    "`rows_are_steps` and `time`": {"reading": {"time": "x", "rows_are_steps": True}},
    "decimal is 'e'; it must be one character, and none of": {"reading": {"decimal": "e"}},
    "`thousands` and `decimal` are both '.'": {"reading": {"thousands": "."}},
    "has no first and last time": {"fitted": {"first": "x", "last": "y", "records": 5}},
    "fitted_privately has no confidence": {"fitted_privately": {"epsilon": 1}},
}


@pytest.mark.parametrize("message", WRONG)
def test_schemas_that_cannot_be(message):
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_schema(Schema(states=NUMERIC).to_dict() | WRONG[message])
