"""Malformed files made at random: exit code 2, one sentence, no traceback, nothing written.

Every example below is malformed for certain, so anything but a refusal fails the test.
"""

import json

import numpy as np
import pytest
from cases import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow import cli
from pufferflow.models.files import write_model
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

pytestmark = pytest.mark.usefixtures("scales_once")
CHAIN = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
FORM = Schema(states=StateSpace.categories(["sit", "walk"]), step_seconds=60)
TIMES = np.datetime_as_string(np.datetime64("2021-06-01T00:00", "m") + np.arange(20)).tolist()
LINES = [f"{time},{('sit', 'walk')[i // 3 % 2]}" for i, time in enumerate(TIMES)]
TABLE = ["time,value", *LINES]
MODEL = {"chains": [{"transition_matrix": [[0.8, 0.2], [0.3, 0.7]], "initial_distribution": "stationary"}]}
CERTIFICATE = pf.certify(CHAIN, 20, 1.0)
SECRET = "CANARY"


# -- files that are wrong for certain --------------------------------------------------------------------------


@st.composite
def bad_tables(draw):
    """A table with something wrong with one of its lines, or with all of it."""
    how = draw(st.sampled_from(sorted(TABLE_FAULTS) + sorted(FILE_FAULTS)))
    lines, i = list(TABLE), draw(st.integers(1, len(LINES)))
    if how in TABLE_FAULTS:
        lines[i : i + 1] = TABLE_FAULTS[how](draw, *lines[i].split(","))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    content = (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
    return FILE_FAULTS[how](draw, content) if how in FILE_FAULTS else content


def with_bytes(draw, content):
    at = draw(st.integers(len(TABLE[0]) + 2, len(content)))
    return content[:at] + draw(st.sampled_from([b"\xff", b"\xc3\x28", b"\x80abc", b"\xf5"])) + content[at:]


ARCHIVES = st.sampled_from([b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh9", b"PK\x03\x04", b"PAR1"])
FILE_FAULTS = {
    "no header": lambda draw, content: content[len(TABLE[0]) :].lstrip(),
    "empty": lambda draw, content: draw(st.sampled_from([b"", b"\n", b"\r\n\n", TABLE[0].encode()])),
    "bytes": with_bytes,
    "archive": lambda draw, content: draw(ARCHIVES) + draw(st.binary(max_size=40)),
    "utf-16": lambda draw, content: content.decode().encode("utf-16"),
}
texts = st.text(st.characters(codec="ascii", exclude_characters=',"\r\n;#', min_codepoint=33), min_size=1, max_size=8)
TABLE_FAULTS = {
    "bad time": lambda draw, time, value: [f"{draw(texts)}{SECRET},{value}"],
    "no time": lambda draw, time, value: [f",{value}"],
    "fraction": lambda draw, time, value: [f"{time}:00.{draw(st.integers(1, 9))},{value}"],
    "impossible time": lambda draw, time, value: [f"2021-{draw(st.integers(13, 99))}-01T00:00,{value}"],
    "off the step": lambda draw, time, value: [f"{time}:{draw(st.integers(10, 59))},{value}"],
    "offset": lambda draw, time, value: [f"{time}+0{draw(st.integers(0, 9))}:00,{value}"],
    "milliseconds": lambda draw, time, value: [f"16225056000{draw(st.integers(10, 99))}.5,{value}"],
    "again": lambda draw, time, value: [f"{time},{value}"] * draw(st.integers(2, 4)),
    "more fields": lambda draw, time, value: [f"{time},{value}" + f",{SECRET}" * draw(st.integers(1, 3))],
    "open quote": lambda draw, time, value: [f'{time},"{value}{SECRET}', f"{time},{value}"],
}

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=5),
    st.integers(-5, -1),
    st.floats(1.5, 1e300),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)


def places(document, path=()):
    """Every place of a JSON document but the whole of it."""
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield (*path, key)
            yield from places(value, (*path, key))


def changed(document, path, *new):
    """A text of the document with something else at ``path``, or without it."""
    copy = json.loads(json.dumps(document))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if new:
        [at[path[-1]]] = new
    else:
        del at[path[-1]]
    return json.dumps(copy).encode()


def bad_json(document):
    """Text that is no JSON, or JSON with a place that holds something impossible or is gone."""
    text = json.dumps(document)
    inner = [p for p in places(document) if p[-1] not in ("left", "right")]  # where null is a quilt without that node
    needed = [p for p in inner if p[-1] != "initial_distribution"]
    return st.one_of(
        st.integers(0, len(text) - 1).map(lambda n: text[:n].encode()),
        st.integers(1, 5).map(lambda n: b"[" * 10**n),
        st.binary(min_size=1, max_size=20).map(lambda more: text.encode() + b"\x00" + more),
        st.binary(max_size=20).map(lambda more: b"\xff\xfe" + more),
        st.builds(lambda path, new: changed(document, path, new), st.sampled_from(inner), junk),
        st.sampled_from(needed).map(lambda path: changed(document, path)),
        st.text(min_size=1, max_size=5).map(lambda key: json.dumps(document | {f"x{key}": 1}).encode()),
    )


MODELS, TABLES = bad_json(MODEL), bad_tables()
RELEASE = ("release", "data.csv", "--chain", "public.json", "--accept-noise")
SCALE = ("scale", "model.json", "--length", 10, "--epsilon", 1, "--mechanism", "mqm-exact")


@pytest.mark.parametrize(
    ("file", "contents", "words"),
    [
        ("data.csv", TABLES, ("fit", "data.csv", "--states", "sit,walk")),
        ("data.csv", TABLES, RELEASE),
        ("public.json", MODELS, RELEASE),
        ("model.json", MODELS, SCALE),
        ("certificate.json", bad_json(CERTIFICATE), ("verify", "certificate.json")),
    ],
)
@examples(10, 120, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_one_sentence_and_nothing_written(tmp_path, monkeypatch, capsys, file, contents, words, data):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("\n".join(TABLE))
    write_model(tmp_path / "public.json", CHAIN, FORM)
    (tmp_path / file).write_bytes(data.draw(contents))
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    code = cli.main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("pufferflow: error: ")
    assert not any(text in err for text in ("Traceback", *((SECRET, "walk") if words is RELEASE else ())))
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before
