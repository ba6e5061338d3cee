"""Files are written whole or not at all, read up to a size, and refused if they are malformed."""

import json
import multiprocessing
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.files import check_output, write_atomic
from pufferflow.models.files import write_model
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

MODEL = pf.ChainFamily([pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]])]).document()
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("value\n" + "0\n1\n" * 25)
    records = {"records": {"states": {"names": ["0", "1"]}}}
    (tmp_path / "m.json").write_text(json.dumps(MODEL | records))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.json").touch()
    os.mkfifo("pipe")
    os.symlink("round", "round")
    return tmp_path


def test_what_is_not_in_the_way_is_written(folder, run):
    scale = ("scale", "m.json", "--length", 5, "--epsilon", 1, "--certificate", "sub/c.json")
    release = ("release", "d.csv", "--chain", "m.json", "--accept-noise", "--output", "sub/x")
    for _ in range(2):  # the file of a fit may be renewed
        assert run("fit", "d.csv", "--states", "0,1")[0] == 0
    assert run(*scale)[0] == 0
    assert pf.verify_certificate(json.loads((folder / "sub" / "c.json").read_text()))
    assert run(*release)[0] == 0
    check_output("x", None, "-")  # no file, and standard input


def test_a_killed_write_leaves_the_old_file_and_an_error_names_the_target(tmp_path):
    target = write_atomic(tmp_path / "new" / "x", "old")
    process = FORK.Process(target=begin, args=(target, said := FORK.Event()))
    process.start()
    assert said.wait(60)
    process.kill()
    process.join()
    assert target.read_text() == "old"
    write_atomic(target, "whole")
    assert target.read_text() == "whole"
    (tmp_path / "plain").write_text("")
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert write_atomic(tmp_path / "mine", b"whole", private=True).stat().st_mode & 0o777 == 0o600
    for path in (tmp_path / "plain" / "x", tmp_path / "new"):  # below a file, and over a folder
        with pytest.raises(OSError, match=path.name) as refused:
            write_atomic(path, "whole")
        assert ".pufferflow" not in str(refused.value)
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "new", "plain"}


def begin(target, said):
    """Write, and stop before the new file takes the place of the old one."""
    os.replace = lambda *paths: (said.set(), threading.Event().wait())
    write_atomic(target, "half")


READERS = [
    "scale FILE --length 5 --epsilon 1",
    "audit FILE --length 5 --epsilon 1 --count 1",
    "verify FILE",
    "related check FILE --factor 2 --length 1",
    "related network FILE --epsilon 1",
    "plan --chain FILE --step 1h --period 1d --participants 9",
    "release d.csv --chain FILE",
]
LARGE = "it is larger than 33,554,432 bytes, the most that is read"
REASONS = {
    "sub": "cannot read sub: Is a directory",
    "nowhere": "cannot read nowhere: No such file or directory",
    "round": "cannot read round: Too many levels of symbolic links",
    "/dev/zero": f"cannot read /dev/zero: {LARGE}",
    "-": f"cannot read standard input: {LARGE}",
}


@pytest.mark.parametrize("words", READERS)
def test_what_cannot_be_read_or_is_too_large_is_refused(folder, run, monkeypatch, words):
    for name, reason in REASONS.items():
        with open("/dev/zero") as endless:
            monkeypatch.setattr(sys, "stdin", endless)
            code, out, message = run(*words.replace("FILE", name).split())
        assert (code, out, message.count("\n")) == (2, "", 1)
        assert reason in message


def test_a_pipe_is_read(folder, run):
    """As a shell's <(command)."""
    with ThreadPoolExecutor() as pool:
        writing = pool.submit((folder / "pipe").write_text, json.dumps(MODEL))
        asked = ("--length", 5, "--epsilon", 1, "--mechanism", "group-dp")
        code, out, _ = run("scale", "pipe", *asked)
        writing.result()
    assert code == 0
    assert "group-dp" in out


# -- malformed JSON, every document for certain: anything but a refusal fails the test ------------

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
