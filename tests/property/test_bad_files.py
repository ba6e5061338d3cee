"""Malformed JSON: exit code 2, one sentence, no traceback, nothing written.

Every document below is malformed for certain, so anything but a refusal fails the test.
"""

import json

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.models.files import write_model
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

CHAIN = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
TIMES = np.datetime_as_string(np.datetime64("2021-06-01T00:00", "m") + np.arange(20)).tolist()
TABLE = ["time,value", *(f"{time},{('sit', 'walk')[i // 3 % 2]}" for i, time in enumerate(TIMES))]
JUNK = [None, True, False, "", "x", -1, -5, 1.5, 1e300, [], [None], {}, {"x": None}]


def bad(value):
    """Values with junk somewhere, the first entries of lists among it, or without a part."""
    for key in list(value) if isinstance(value, dict) else range(min(len(value), 1)):
        if key in ("left", "right", "records"):  # where null is a quilt without that node
            continue
        inner = bad(value[key]) if isinstance(value[key], dict | list) else ()
        for part in (*inner, *JUNK):
            yield {**value, key: part} if isinstance(value, dict) else [part, *value[1:]]
        if isinstance(value, list):
            yield value[1:]
        elif key != "initial_distribution":
            yield {other: value[other] for other in value if other != key}


def bad_texts(document):
    """Text that is no JSON, or JSON with something impossible somewhere."""
    text = json.dumps(document)
    yield from (text[:n].encode() for n in range(0, len(text), 1 + len(text) // 20))
    yield from (b"[" * 10**n for n in range(1, 6))
    yield from (text.encode() + b"\x00", text.encode() + b"\x00{}", b"\xff\xfe", b"\xff\xfe{}")
    for one in (*bad(document), document | {"xkey": 1}):
        if one != document:
            yield json.dumps(one).encode()


RELEASE = ("release", "data.csv", "--chain", "public.json", "--accept-noise")
SCALE = ("scale", "model.json", "--length", 10, "--epsilon", 1, "--mechanism", "mqm-exact")


@pytest.mark.parametrize("words", [RELEASE, SCALE, ("verify", "certificate.json")])
def test_one_sentence_and_nothing_written(tmp_path, monkeypatch, run, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("\n".join(TABLE))
    form = Schema(states=StateSpace.categories(["sit", "walk"]), step_seconds=60)
    write_model(tmp_path / "public.json", CHAIN, form)
    (tmp_path / "model.json").write_text(json.dumps(pf.ChainFamily([CHAIN]).document()))
    (tmp_path / "certificate.json").write_text(json.dumps(pf.certify(CHAIN, 20, 1.0)))
    [file] = [tmp_path / word for word in words if str(word).endswith(".json")]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for content in bad_texts(json.loads(before[file])):
        file.write_bytes(content)
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1), (content, err)
        assert err.startswith("pufferflow: error: ")
        assert "Traceback" not in err
        assert "walk" not in err or words is not RELEASE
        assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before | {file: content}
