"""Tables and schemas that are refused: one sentence, with the place, without what stands there."""

import gzip
import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pufferflow.errors import DataError, ModelError, ParameterError
from pufferflow.models import model_json, parse_public_model
from pufferflow.records import read as records_read
from pufferflow.records import table
from pufferflow.records.read import read
from pufferflow.records.schema import Fitted, FittedPrivately, Schema, parse_schema
from pufferflow.records.states import StateSpace

HEADER = b"time,who,value\n"
GOOD = "".join(f"2021-03-01T00:{i:02}Z,{'ab'[i % 2]},{i}.25\n" for i in range(40)).encode()
SCHEMA = Schema(participant="who", group=None)
SECRET = "s3cret"


def refusal(source, schema=SCHEMA, **options):
    with pytest.raises(DataError) as refused:
        read(source, schema, **options)
    said = str(refused.value)
    assert "\n" not in said
    assert SECRET not in said
    return said


@pytest.fixture
def file(tmp_path):
    def file_(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return file_


END = b"2021-03-01T02:00Z,a"
BAD = {
    b"": "the file is empty",
    b"\n\n": "line 1: empty; give a line with the names",
    HEADER: "no row of data below the header",
    HEADER.rstrip(): "no row of data below the header",
    GOOD: "line 1: this seems to be data, not a header",
    (HEADER + GOOD).decode().encode("utf-16"): "line 1: not UTF-8 text",
    HEADER + GOOD + END + b",\xff\n": "line 42: not UTF-8 text",
    HEADER + GOOD + END + b",1,s3cret\n": "line 42: 4 field(s), but the header has 3",
    HEADER + GOOD + END + b"\n": "line 42: 2 field(s), but the header has 3",
    HEADER + GOOD + END + b',"s3cret\n' + GOOD: "line 42: a quote is not closed, or a field has a",
    HEADER + GOOD + END + b",s3cret\n": "line 42: the value is not a number",
    HEADER + b"\n\n" + GOOD + END + b",s3cret\n": "line 44: the value is not a number",
    HEADER + GOOD + b"s3cret,a,1\n": "line 42: the time is neither a time in whole seconds",
    HEADER + GOOD + b"2021-03-01T02:00,a,1\n": "line 42: the time is not written as the first",
    HEADER + GOOD + b"1614556800,a,1\n": "line 42: the time is not written as the first time",
    HEADER + b"1614556800000,a,1\n": "line 2: the time is neither a time",
    HEADER + b"0000-01-01,a,1\n": "line 2: the time is neither a time",
    HEADER + GOOD + b"2021-03-01T00:04Z,a,9\n": "line 42: the time is there twice; remove one",
    HEADER + GOOD + b"2021-03-01T00:05:30Z,a,9\n": "line 42: the time is not a whole number of",
    HEADER + GOOD + b"2021-03-01T02:00Z,,9\n": "line 42: the participant is missing",
    HEADER + GOOD.replace(b"a", b"2021-01-01").replace(b"b", b"2021-01-02"): (
        "the column 'who' of the participants has times, not names"
    ),
    HEADER + b"".join(GOOD.split(b"\n")[0].replace(b"a", b"%d" % i) + b"\n" for i in range(9)): (
        "the column 'who' of the participants has 9 participants in 9 rows"
    ),
    b"when,who,value\n" + GOOD: "line 1: 1 column(s) not used; name the time (time), or say rows_",
    b"time,who,kwh,power\n": "line 1: it is not clear which column holds the values; name it",
    b"time,who,x,y\n": "line 1: it is not clear which column holds the values; name it (value)",
    b"time,who,who,value\n": "line 1: two columns are called 'who'; rename one",
    b"time,whom,value\n": "line 1: there is no column 'who' for the participant; correct",
    b"PK\x03\x04" + GOOD: "an Excel file, or one packed as zip or xz; save it as CSV",
    b"\xfd7zXZ\x00" + GOOD: "an Excel file, or one packed as zip or xz; save it as CSV",
    b"\x1f\x8b\x08\x00s3cret": "damaged or cut short; get the file again",
    gzip.compress(HEADER + GOOD * 99)[:-9]: "damaged or cut short; get the file again",
    b"PAR1s3cret": "damaged or cut short; get the file again",
}


@pytest.mark.parametrize(("content", "message"), BAD.items())
def test_bad_files_are_refused_with_their_line(file, content, message):
    path = file(content)
    said = refusal(path)
    assert message in said
    assert said.startswith(str(path))


def test_files_that_are_none(tmp_path):
    assert "No such file or directory; check the path" in refusal(tmp_path / "none.csv")
    assert "Is a directory; check the path" in refusal(tmp_path)
    assert "is not a file; save the table to one" in refusal("-")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"0", "a line of more than 16,384 bytes"),
        (b'0,a,"s3cret', "a line of more than 16,384 bytes"),
        (b'0,a,"\n' + b"\n" * 2**15, "a quote "),
        (b"1,a,2,s3cret\n", "line 2: 4 field(s)"),
        (b",", "a line of more than"),
        (b"\n", "line 2: only empty lines from there on"),
        (b",,\n", "line 2: only empty lines from there on"),
        (b"0,a,\xff\n", "not UTF-8 text"),
    ],
)
def test_what_has_no_end_is_refused_after_few_blocks(file, monkeypatch, pack, body, message):
    """Endless lines, surplus fields and wrong encodings: the work is bounded, not only the time."""
    monkeypatch.setattr(table, "BLOCK", 2**14)
    monkeypatch.setattr(records_read, "ROWS", 2**12)
    unpacked, seen = table._unpacked, []

    @contextmanager
    def counted(*arguments):
        with unpacked(*arguments) as (raw, stream):
            yield raw, SimpleNamespace(closed=False, read=lambda size: take(stream.read(size)))

    def take(content):
        seen.append(len(content))
        return content

    monkeypatch.setattr(table, "_unpacked", counted)
    path = file(pack(HEADER + body * (2**22 // len(body))))
    assert message in refusal(path)
    assert sum(seen) <= 2**20  # of 4 MB; pyarrow reads 32 blocks ahead


def test_participants_are_never_guessed_and_groups_are_theirs(file):
    """A column called subject may number pieces of four minutes: noise of 28.4 became 4.0."""
    content = GOOD.replace(b"Z,b", b"Z,a")
    path = file(b"time,subject,value\n" + content)
    steps = read(path, Schema())
    assert (steps.people, steps.columns["participant"]) == (("",), None)
    said = refusal(file(b"time,subject,value\n" + content + content), Schema())
    assert "or name the column that tells participants apart (participant)" in said
    # the sizes of cells would publish a group that changes with the readings
    grouped = file(b"time,kind,value\n" + GOOD)
    said = refusal(grouped, Schema(group="kind"))
    assert "line 3: the group is missing or differs from the participant's first one" in said
    assert "name the column of the participants" in said
    frame = pd.DataFrame({"time": [0, 60] * 2, "who": [*"aabb"], "of": ["g", "g", "h", None]})
    frame["value"] = 1.0
    assert "row 4: the group is missing" in refusal(frame, Schema(participant="who", group="of"))
    frame["of"] = [*"gghh"]
    steps = read(frame, Schema(participant="who", group="of"))
    assert (steps.groups, steps.group_of.tolist()) == (("g", "h"), [0, 1])


def test_frames_and_parquet_files_that_are_refused(tmp_path):
    for index in (pd.MultiIndex.from_product([[*"ab"], [1]]), pd.Index([*"xy"])):
        assert "index that is not read" in refusal(pd.DataFrame({"value": [1, 2]}, index=index))
    assert "the column 'value' has lists" in refusal(pd.DataFrame({"value": [[1], [2]]}), Schema())
    path = tmp_path / "table.parquet"
    for value, message in (
        (pa.array([[1], [2]]), "the column 'value' has neither numbers nor texts nor times"),
        (pa.array([b"a", b"b"]), "the column 'value' has neither numbers nor texts nor times"),
    ):
        pq.write_table(pa.table({"time": [0, 60], "value": value}), path)
        assert message in refusal(path, Schema())
    moments = pa.array([10**18, 0]).cast(pa.timestamp("ms"))
    pq.write_table(pa.table({"time": moments, "value": [1, 2]}), path)
    assert "row 1: the time is neither a time" in refusal(path, Schema())


def test_schemas_survive_their_document():
    private = FittedPrivately(1.0, 0.95, 100, 50, 100.0, "a1")
    for schema in (
        Schema(states=StateSpace.numeric([1, 2.5]), step_seconds=60, time="a", decimal=","),
        Schema(states=StateSpace.categories(["x"], other=True), rows_are_steps=True),
        Schema(states=StateSpace.numeric([0]), fitted=Fitted("step 1", "step 9", 9)),
        Schema(states=StateSpace.numeric([0]), fitted_privately=private, participant="m"),
    ):
        assert parse_schema(schema.to_dict()) == schema
    document = {
        "chains": [{"transition_matrix": np.eye(2).tolist(), "initial_distribution": "any"}]
    }
    records = Schema(states=StateSpace.numeric([3]), step_seconds=60)
    model = parse_public_model(document | {"records": records.to_dict()})
    assert model.records == records
    assert '"edges": [3.0]' in model_json(model.family, records)
    fitted = Fitted("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", 5)
    assert (fitted.period, fitted.is_local) == ((1704067200, 1704153600), False)
    assert "safe to publish" in private.statement


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split_after_seconds": 600}, "unknown key 'split_after_seconds'"),
        ({"states": None}, "states must be an object"),
        ({"states": {"edges": [2, 1]}}, "each larger than the one before"),
        ({"states": {"names": ["a", 1]}}, "names of the states must be texts"),
        ({"states": {"names": ["1", "1.0"]}}, "must be different, as numbers too"),
        ({"reading": {"time": 5}}, "time is an int; give a str"),
        ({"reading": {"window": "5"}}, "unknown key 'window'"),
        ({"reading": {"timezone": "Mars/Olympus"}}, "timezone 'Mars/Olympus' is unknown"),
        ({"step_seconds": 0}, "step_seconds is 0"),
        (
            {"fitted": {"first": "x", "last": "y", "records": 5}},
            "fitted has no first and last time",
        ),
        ({"fitted_privately": {"epsilon": 1}}, "fitted_privately has no confidence"),
    ],
)
def test_model_files_with_impossible_records(change, message):
    document = Schema(states=StateSpace.numeric([1])).to_dict() | change
    with pytest.raises(ModelError, match=re.escape(message)):
        parse_schema(document)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "x", "value": "x"}, "time and value both name the column 'x'"),
        ({"time": "x", "rows_are_steps": True}, "rows_are_steps and time contradict each other"),
        ({"separator": ",,"}, "separator is ',,'; it must be one character"),
        ({"decimal": "e"}, "decimal is 'e'; it must be one character, and none of which"),
        ({"thousands": "."}, "thousands and decimal are both '.'"),
        ({"value": 5}, "value is an int; give a str"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(ParameterError, match=message):
        Schema(**options)
