"""Files are written whole or not at all, and read up to a size; refusals.txt has other commands."""

import json
import multiprocessing
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import pufferflow as pf
from pufferflow._util.files import check_output, write_atomic

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
