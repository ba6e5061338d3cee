"""Malformed JSON made at random: exit code 2, one sentence, no traceback, nothing written.

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
TABLE = ["time,value", *(f"{time},{('sit', 'walk')[i // 3 % 2]}" for i, time in enumerate(TIMES))]
MODEL = pf.ChainFamily([CHAIN]).document()
CERTIFICATE = pf.certify(CHAIN, 20, 1.0)


junk = st.none() | st.booleans() | st.text(max_size=5) | st.integers(-5, -1)
junk |= st.floats(1.5, 1e300) | st.lists(st.none(), max_size=2)
junk |= st.dictionaries(st.text(max_size=3), st.none(), max_size=2)


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
    # where null is a quilt without that node
    inner = [p for p in places(document) if p[-1] not in ("left", "right")]
    needed = [p for p in inner if p[-1] != "initial_distribution"]
    return st.one_of(
        st.integers(0, len(text) - 1).map(lambda n: text[:n].encode()),
        st.integers(1, 5).map(lambda n: b"[" * 10**n),
        st.binary(min_size=1, max_size=20).map(lambda more: text.encode() + b"\x00" + more),
        st.binary(max_size=20).map(lambda more: b"\xff\xfe" + more),
        st.builds(lambda path, new: changed(document, path, new), st.sampled_from(inner), junk),
        st.sampled_from(needed).map(lambda path: changed(document, path)),
        st.text(min_size=1, max_size=5).map(
            lambda key: json.dumps(document | {f"x{key}": 1}).encode()
        ),
    )


MODELS = bad_json(MODEL)
RELEASE = ("release", "data.csv", "--chain", "public.json", "--accept-noise")
SCALE = ("scale", "model.json", "--length", 10, "--epsilon", 1, "--mechanism", "mqm-exact")


@pytest.mark.parametrize(
    ("file", "contents", "words"),
    [
        ("public.json", MODELS, RELEASE),
        ("model.json", MODELS, SCALE),
        ("certificate.json", bad_json(CERTIFICATE), ("verify", "certificate.json")),
    ],
)
@examples(10, 120, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_one_sentence_and_nothing_written(
    tmp_path, monkeypatch, capsys, file, contents, words, data
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("\n".join(TABLE))
    write_model(tmp_path / "public.json", CHAIN, FORM)
    (tmp_path / file).write_bytes(data.draw(contents))
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    code = cli.main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("pufferflow: error: ")
    assert "Traceback" not in err
    assert "walk" not in err or words is not RELEASE
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before
