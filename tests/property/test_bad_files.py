"""Malformed files made at random: exit code 2, one sentence, no traceback, nothing written.

Every example below is malformed for certain, so anything but a refusal fails the test.
"""

import json

import numpy as np
import pytest
from cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import write_model
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

pytestmark = pytest.mark.usefixtures("scales_once")
FILES = 12, 120  # of each of the four commands, in every run and in the long one
CHAIN = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
FORM = Schema(states=StateSpace.categories(["sit", "walk"]), step_seconds=60)
TIMES = np.datetime_as_string(np.datetime64("2021-06-01T00:00", "m") + np.arange(20)).tolist()
LINES = [f"{time},{('sit', 'walk')[i // 3 % 2]}" for i, time in enumerate(TIMES)]
TABLE = ["time,value", *LINES]
MODEL = {"chains": [{"transition_matrix": [[0.8, 0.2], [0.3, 0.7]], "initial_distribution": "stationary"}]}
CERTIFICATE = pf.certify(CHAIN, 20, 1.0)
SECRET = "CANARY"

refused = {"fit": 0, "release": 0, "scale": 0, "verify": 0}
row = st.integers(1, len(LINES))
fuzz = examples(*FILES, suppress_health_check=list(HealthCheck))


# -- files that are wrong for certain --------------------------------------------------------------------------


@st.composite
def bad_tables(draw):
    """A table with one or more things wrong with it."""
    lines = list(TABLE)
    i = draw(row)
    time, value = lines[i].split(",")
    how = draw(st.sampled_from(sorted(TABLE_FAULTS)))
    lines[i : i + 1] = TABLE_FAULTS[how](draw, time, value)
    if how == "no header":
        del lines[0]
    if how == "empty":
        lines = draw(st.sampled_from([[], [""], ["", ""], lines[:1]]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    content = (end.join(lines) + draw(st.sampled_from(["", end]))).encode()
    if how == "bytes":
        at = draw(st.integers(len(lines[0]) + 2, len(content)))
        content = content[:at] + draw(st.sampled_from([b"\xff", b"\xc3\x28", b"\x80abc", b"\xf5"])) + content[at:]
    if how == "archive":
        content = draw(st.sampled_from([b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh9", b"PK\x03\x04", b"PAR1"])) + draw(
            st.binary(max_size=40)
        )
    if how == "utf-16":
        content = content.decode().encode("utf-16")
    return content


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
    "no header": lambda draw, time, value: [f"{time},{value}"],
    "empty": lambda draw, time, value: [],
    "bytes": lambda draw, time, value: [f"{time},{value}"],
    "archive": lambda draw, time, value: [f"{time},{value}"],
    "utf-16": lambda draw, time, value: [f"{time},{value}"],
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
    children = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in children:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(document, path, change):
    """A copy of the document with ``change`` made to the value at ``path`` (None: removed)."""
    copy = json.loads(json.dumps(document))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if change is None:
        del at[path[-1]]
    else:
        at[path[-1]] = change(at[path[-1]])
    return copy


def bad_json(document):
    """Text that is no JSON, or JSON with a place that holds something impossible or is gone."""
    text = json.dumps(document)
    inner = [p for p in places(document) if p[-1] not in ("left", "right")]  # where null is a quilt without that node
    return st.one_of(
        st.integers(0, len(text) - 1).map(lambda n: text[:n].encode()),
        st.integers(1, 60).map(lambda n: b"[" * 10 ** min(n, 5)),
        st.binary(min_size=1, max_size=20).map(lambda junk: text.encode() + b"\x00" + junk),
        st.binary(max_size=20).map(lambda junk: b"\xff\xfe" + junk),
        st.tuples(st.sampled_from(inner), junk).map(
            lambda pair: json.dumps(changed(document, pair[0], lambda old: pair[1])).encode()
        ),
        st.sampled_from([p for p in inner if p[-1] != "initial_distribution"]).map(
            lambda path: json.dumps(changed(document, path, None)).encode()
        ),
        st.text(min_size=1, max_size=5).map(lambda key: json.dumps(document | {f"x{key}": 1}).encode()),
    )


def refuses(command, folder, capsys, *arguments):
    """Run a command; it must refuse in one line and leave the folder as it is."""
    before = {p: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    code = cli.main([command, *map(str, arguments)])
    out, err = capsys.readouterr()
    shown = f"{arguments}: {err}"
    assert (code, out) == (2, ""), shown
    assert err.startswith("pufferflow: error: "), shown
    assert err.count("\n") == 1, shown
    assert "Traceback" not in err, shown
    assert {p: p.read_bytes() for p in folder.iterdir()} == before
    refused[command] += 1
    return err


@fuzz
@given(content=bad_tables())
def test_fit(tmp_path, capsys, content):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    refuses("fit", tmp_path, capsys, path, "--states", "sit,walk")


@fuzz
@given(content=st.one_of(bad_tables().map(lambda t: (t, None)), bad_json(MODEL).map(lambda m: (None, m))))
def test_release(tmp_path, capsys, content):
    table, model = content
    data, public = tmp_path / "data.csv", tmp_path / "public.json"
    data.write_bytes("\n".join(TABLE).encode() if table is None else table)
    if model is None:
        write_model(public, CHAIN, FORM)
    else:
        public.write_bytes(model)
    err = refuses("release", tmp_path, capsys, data, "--chain", public, "--accept-noise")
    assert SECRET not in err
    assert "walk" not in err


@fuzz
@given(content=bad_json(MODEL))
def test_scale(tmp_path, capsys, content):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    refuses("scale", tmp_path, capsys, path, "--length", 10, "--epsilon", 1, "--mechanism", "mqm-exact")


@fuzz
@given(content=bad_json(CERTIFICATE))
def test_verify(tmp_path, capsys, content):
    path = tmp_path / "certificate.json"
    path.write_bytes(content)
    refuses("verify", tmp_path, capsys, path)


@pytest.fixture(scope="module", autouse=True)
def _counted():
    yield
    if all(refused.values()):  # all four ran here
        assert sum(refused.values()) >= 3.3 * FILES[settings.get_current_profile_name() == "long"], refused
