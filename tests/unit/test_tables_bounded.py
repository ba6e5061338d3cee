"""Tables are read within bounds, whatever a file holds or claims: one sentence, and no more memory than a block."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow.publishing.fitting import fit_records
from pufferflow.records import blocks, parquet_tables, text_tables
from pufferflow.records.tables import open_table

pytestmark = pytest.mark.usefixtures("scales_once")
TIMES = [60 * i for i in range(40)]
VALUES = ["sit" if i // 3 % 2 else "walk" for i in range(40)]
HEADER = b"time,value\n"
PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def refusal(path):
    with pytest.raises(pf.DataError) as refused:
        fit_records(path)
    said = str(refused.value)
    assert said.startswith(str(path))
    assert "\n" not in said
    return said


@pytest.fixture
def file(tmp_path):
    def file_(content, name="data"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return file_


@pytest.fixture
def parquet(tmp_path):
    def parquet_(**columns):
        path = tmp_path / "data.parquet"
        pq.write_table(pa.table({"time": TIMES, "value": VALUES} | columns), path)
        return path

    return parquet_


# -- text ------------------------------------------------------------------------------------------------


def in_one_go(text, columns):
    """The rows of a text as pandas reads them at once."""
    options = {"dtype": "str", "na_filter": False, "skip_blank_lines": False, "engine": "c", "header": None}
    frame = pd.read_csv(io.BytesIO(text), names=range(columns), **options)
    return frame.to_numpy().tolist() if isinstance(frame.index, pd.RangeIndex) else None


@examples(12, 120)
@given(st.text(alphabet='ab,"\n\r', max_size=60), st.integers(12, 80))
def test_blocks_make_no_difference(tmp_path_factory, body, size):
    text = body.encode()
    try:
        expected = in_one_go(text, 2) if text else []
    except pd.errors.ParserError:
        expected = None
    path = tmp_path_factory.mktemp("text") / "data.csv"
    path.write_bytes(b"x,y\n" + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", size)
        try:
            found = [row for _, part in open_table(path).chunks(["x", "y"], "") for row in part.to_numpy().tolist()]
        except pf.DataError as error:
            found = str(error)
    if isinstance(found, str):  # pandas refuses it too, or a line is longer than the block
        assert "a line of more than" in found or expected is None
    else:
        assert expected in (found, None)


@examples(12, 120)
@given(st.text(alphabet='ab,"\n\r', max_size=40), st.booleans())
def test_the_end_of_a_line(text, first):
    """The compiled scan against one that asks pandas: a cut at an end leaves the same rows."""
    content = text.encode()
    end = blocks._line_end(content, ",", first=first)
    assert end == 0 or content[end - 1 : end] in (b"\n", b"\r")
    try:
        whole = in_one_go(content + b"\n", 9)
    except pd.errors.ParserError:
        return
    head, tail = (in_one_go(part, 9) if part else [] for part in (content[:end], content[end:] + b"\n"))
    assert head + tail == whole
    if first and end:
        assert len(head) == 1


def test_the_line_is_that_of_the_file(file, monkeypatch):
    rows = "".join(f"{t},{v}\n" for t, v in zip(TIMES, VALUES, strict=True)).encode()
    monkeypatch.setattr(blocks, "BLOCK", 64)
    assert "Expected 2 fields in line 42, saw 4; mend that line" in refusal(file(HEADER + rows + b"9999,a,b,c\n"))
    assert "EOF inside string starting at line 42" in refusal(file(HEADER + rows + b'9999,"a\n'))


@pytest.mark.parametrize("body", [b"0" * (blocks.BLOCK + 1), b'0,"' + b"\n" * blocks.BLOCK, b"," * (blocks.BLOCK + 1)])
def test_a_line_is_bounded(file, body):
    said = refusal(file(HEADER + body))
    assert "a line of more than 4,194,304 bytes, or a quote that is not closed" in said
    assert "a line of more than" in refusal(file(body))


def test_columns_are_counted_before_they_are_read(file):
    names = ",".join(f"c{i}" for i in range(text_tables.MOST_COLUMNS - 1))
    rows = "".join(f"{t},{v}\n" for t, v in zip(TIMES, VALUES, strict=True))
    assert "line 1: more than 4,096 columns" in refusal(file(f"time,value,{names}\n{rows}".encode()))
    most = names[: names.rindex(",")]
    assert "it is not clear" not in refusal(file(f"time,value,{most}\n".encode()))


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("body", [b"0", b"\n", b",\n"])
def test_bombs(file, pack, body, monkeypatch):
    if (pack, body) != ("gz", b"0"):  # as large as they may be, the others take seconds to make
        monkeypatch.setattr(blocks, "BLOCK", 2**19)
    packer = PACKERS[pack]
    said = refusal(file(packer(HEADER + body * (2 * blocks.BLOCK))))
    assert any(text in said for text in ("a line of more than", "200,000 empty lines from there on"))


@pytest.mark.parametrize("pack", PACKERS)
def test_what_an_archive_may_hold(file, monkeypatch, pack):
    rows = "".join(f"{t},{v}\n" for t, v in zip(TIMES, VALUES, strict=True)).encode()
    path = file(PACKERS[pack](HEADER + rows) + PACKERS[pack](rows[:0]))  # a second, empty stream
    assert fit_records(path).facts["records"] == 40
    monkeypatch.setattr(blocks, "MOST_UNPACKED", 100)
    monkeypatch.setattr(blocks, "MOST_TIMES", 1)
    assert "it unpacks to more than 1 times its size" in refusal(path)


def test_several_streams_of_xz(file):
    rows = "".join(f"{t},{v}\n" for t, v in zip(TIMES, VALUES, strict=True)).encode()
    content = lzma.compress(HEADER + rows[:50]) + bytes(8) + lzma.compress(rows[50:]) + bytes(4)
    assert fit_records(file(content)).facts["records"] == 40
    assert "truncated or corrupt archive" in refusal(file(content[:-20]))


def test_xz_that_asks_for_memory(file):
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 2**29}]
    assert "unpacking takes more than 128 MB" in refusal(file(lzma.compress(HEADER, filters=filters)))


def test_zips(file):
    def packed(names, kind=zipfile.ZIP_DEFLATED, body=b""):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", kind) as archive:
            for name in names:
                archive.writestr(name, HEADER + body)
        return content.getvalue()

    assert "a zip of 2 files" in refusal(file(packed(["a", "b"])))
    assert "a zip packed with LZMA" in refusal(file(packed(["a"], zipfile.ZIP_LZMA)))
    assert "a line of more than" in refusal(file(packed(["a"], body=b"0" * (blocks.BLOCK + 1))))
    many = file(packed([f"{i:0200}" for i in range(blocks.BLOCK // 200)], zipfile.ZIP_STORED))
    assert "too long a list of files" in refusal(many)


def test_many_empty_lines(file):
    assert "line 2: 200,000 empty lines from there on" in refusal(file(HEADER + b"\n" * 200_001))


# -- times -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("year", ["-0001", "0000", "-9999", "10000"])
@pytest.mark.parametrize("rest", ["-01-01", "-01-01T00:00Z", "-06-01T00:00:00"])
def test_times_no_calendar_has(file, year, rest):
    said = refusal(file(f"time,value\n{year}{rest},a\n2021-01-01,b\n".encode()))
    assert f"line 2: the time '{year}{rest}' is neither a time" in said


def test_the_first_and_the_last_second(file):
    content = "time,value\n" + "".join(f"0001-01-01T00:{i:02}:00,{v}\n" for i, v in enumerate(VALUES))
    assert fit_records(file(content.encode())).facts["first"] == "0001-01-01T00:00:00"
    assert "is neither" in refusal(file(b"time,value\n-62135596801,a\n"))
    assert "is neither" in refusal(file(b"time,value\n0,a\ninf,b\n"))


# -- Parquet ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_moment_out_of_range(parquet, unit):
    moments = pa.array([10**18 + i for i in range(40)], pa.int64()).cast(pa.timestamp(unit))
    assert "row 1: the time" in refusal(parquet(time=moments))


@pytest.mark.parametrize(
    ("kind", "name"),
    [(pa.binary(), "binary"), (pa.binary(3), "fixed_size_binary"), (pa.list_(pa.int8()), "list")],
)
@pytest.mark.parametrize("role", ["time", "value"])
def test_types_that_are_not_read(parquet, kind, name, role):
    entry = [1, 2] if pa.types.is_list(kind) else b"a\xff\xff"
    said = refusal(parquet(**{role: pa.array([entry] * 40, kind)}))
    assert f"the column '{role}' is of the type {name}; write it as numbers, texts or times" in said


def test_types_that_are_read_alike(parquet):
    plain = fit_records(parquet()).sample.participants
    times = pa.array(TIMES, pa.int64())
    for dress in (
        {"value": pa.array(VALUES).dictionary_encode()},
        {"value": pa.array(VALUES, pa.large_string())},
        {"time": times.cast(pa.timestamp("s")).cast(pa.timestamp("ns", "Europe/Paris"))},
        {"time": times.cast(pa.timestamp("s", "Nowhere/Land"))},
        {"time": times.cast(pa.float64())},
    ):
        assert fit_records(parquet(**dress)).sample.participants == plain


def test_names_that_are_no_text(parquet):
    path = parquet(caught=[1] * 40)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"caught", b"ca\xff\xfeht"))
    assert "a damaged Parquet file" in refusal(path)


def test_bounds_of_parquet(parquet, monkeypatch):
    long = "x" * (parquet_tables.MOST_TEXT + 1)
    assert "a text of more than 10,000 bytes" in refusal(parquet(value=[long] * 40))
    wide = {f"c{i}": [1] * 40 for i in range(text_tables.MOST_COLUMNS)}
    assert "more than 4,096 columns" in refusal(parquet(**wide))
    path = parquet()
    for name, least, message in (
        ("MOST_DESCRIPTION", 10, "it describes itself in more than 10 bytes"),
        ("MOST_UNPACKED", 10, "bytes in one row group, at most 10 are read"),
        ("MOST_ROWS", -(10**9), "40 rows in"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(parquet_tables, name, least)
            assert message in refusal(path)


def test_texts_packed_without_bound_are_read_in_parts(parquet, monkeypatch):
    path = parquet()
    monkeypatch.setattr(parquet_tables, "BLOCK", 20)
    parts = [part for _, part in open_table(path).chunks(["time", "value"], "")]
    assert len(parts) == 10
    assert np.concatenate([part["value"] for part in parts]).tolist() == VALUES


# -- names and models ------------------------------------------------------------------------------------


def test_a_file_whose_name_is_no_text(tmp_path):
    words = [sys.executable, "-m", "pufferflow.cli", "export", "electricity", b"part\xff.csv", "--minutes", "3"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"wrote part\\udcff.csv: 3 minutes\n"
    assert [path.name for path in tmp_path.iterdir()] == ["part\udcff.csv"]


def test_states_of_a_simulation_fit_the_chain(tmp_path):
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])
    form = pf.RecordFormat(pf.StateSpace.categories(["a"]))
    with pytest.raises(pf.ParameterError, match="1 states are given, the chain has 3"):
        pf.simulate_release(None, chain, 1.0, seed=1, length=50, form=form)


@pytest.mark.parametrize(
    ("text", "whole"),
    [(r"\ud800", False), (r"\udfff x", False), (r"\ud83d\ude00", True), (r"\\ud800", True), (r"\\\ud800", False)],
)
def test_half_characters_in_a_model(file, text, whole):
    reading = f'{{"value": "{text}"}}'
    records = f'{{"states": {{"names": ["a", "b"]}}, "step_seconds": 60, "reading": {reading}}}'
    path = file(f'{{"chains": [{{"transition_matrix": [[0.5, 0.5], [0.5, 0.5]]}}], "records": {records}}}'.encode())
    if whole:
        assert pf.read_public_model(path).records is not None
        return
    with pytest.raises(pf.ModelError, match="half of a character"):
        pf.read_public_model(path)
