"""No command writes over what it reads, over another output, or into a folder that is not there."""

import json
import multiprocessing
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow._util.files import check_outputs, write_atomic
from pufferflow.errors import DataError

MODEL = json.dumps({"chains": [{"transition_matrix": [[0.6, 0.4], [0.5, 0.5]]}]})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table, a model, an alias of each kind, and the current folder."""
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(1).integers(0, 2, 50)
    (tmp_path / "d.csv").write_text("value\n" + "".join(f"{v}\n" for v in values))
    records = {"records": {"states": {"names": ["0", "1"]}}}
    (tmp_path / "m.json").write_text(json.dumps(json.loads(MODEL) | records))
    (tmp_path / "soft.csv").symlink_to("d.csv")
    os.link("d.csv", "hard.csv")
    (tmp_path / "sub").mkdir()
    os.mkfifo("pipe")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


RELEASE = ["release", "d.csv", "--chain", "m.json", "--accept-noise"]
SCALE = ["scale", "m.json", "--length", "5", "--epsilon", "1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "d.csv", "--output", "d.csv"], "d.csv is read and would be overwritten"),
        (["fit", "d.csv", "--output", "sub/../d.csv"], "d.csv is read and would be overwritten"),
        (["fit", "d.csv", "--output", "soft.csv"], "soft.csv is read and would be overwritten"),
        (["fit", "d.csv", "--output", "hard.csv"], "hard.csv is read and would be overwritten"),
        (["fit", "d.csv", "--output", "new/x.json"], "there is no folder new; make it first"),
        (["fit", "d.csv", "--output", "sub"], "sub is a folder; give the name of a file"),
        ([*SCALE, "--certificate", "m.json"], "m.json is read and would be overwritten"),
        ([*SCALE, "--certificate", "new/x.json"], "there is no folder new"),
        (["example", "d.csv"], "d.csv exists already; give another name"),
        (["example", "a.csv", "a.csv"], "a.csv would be written twice"),
        (["example", "a.csv", "new/b.csv"], "there is no folder new"),
        ([*RELEASE, "--output", "d.csv"], "d.csv exists already"),
        ([*RELEASE, "--output", "x", "--ledger", "x"], "x would be written twice"),
        ([*RELEASE, "--ledger", "d.csv"], "d.csv is read and would be overwritten"),
        ([*RELEASE, "--output", "new/x"], "there is no folder new"),
        ([*RELEASE, "--ledger", "new/x"], "there is no folder new"),
        ([*RELEASE, "--simulate", "1", "--output", "new/x"], "there is no folder new"),
        (["fit", "new/d.csv", "--states", "0,1"], "new/d.csv: No such file or directory"),
        (["fit", "-", "--states", "0,1"], "- is not a file; save the table to one"),
        (["fit", "pipe", "--states", "0,1"], "pipe is not a file; save the table to one"),
    ],
)
def test_refused_before_anything_is_written(folder, capsys, words, message):
    before = content(folder)
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert content(folder) == before


def test_what_is_not_in_the_way_is_written(folder):
    assert cli.main(["fit", "d.csv", "--states", "0,1"]) == 0
    assert cli.main(["fit", "d.csv", "--states", "0,1"]) == 0  # the file of a fit may be renewed
    assert cli.main([*SCALE, "--certificate", "sub/c.json"]) == 0
    assert pf.verify_certificate(json.loads((folder / "sub" / "c.json").read_text()))
    assert cli.main([*RELEASE, "--output", "sub/x"]) == 0


def test_no_file_and_standard_input_are_not_in_the_way(folder):
    check_outputs([None, "x"], [None, "-"])
    with pytest.raises(DataError, match="exists already"):
        check_outputs(["m.json"], new=True)
    with pytest.raises(DataError, match="twice"):
        check_outputs(["x", folder / "x"])


@pytest.mark.parametrize(
    "asked", [["--from", "2030-01-01"], ["--minutes", "99999999"], ["--minutes", "9" * 30]]
)
def test_a_window_outside_the_bundled_data_names_what_was_asked_and_what_there_is(
    folder, capsys, asked
):
    assert cli.main(["example", "x.csv", *asked]) == 2
    said = capsys.readouterr().err
    assert f"{asked[0].removeprefix('--')}: {asked[1]}" in said
    assert (
        "reach from 2007-05-01T00:00 to 2009-04-29T23:59 (1051200 minutes); choose a window inside"
        in said
    )
    assert not (folder / "x.csv").exists()


def test_a_killed_write_leaves_the_old_file_and_an_error_names_the_target(tmp_path, monkeypatch):
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


FORK = multiprocessing.get_context("fork")
READERS = {
    "scale": ["scale", "FILE", "--length", "5", "--epsilon", "1"],
    "audit": ["audit", "FILE", "--length", "5", "--epsilon", "1", "--count", "1"],
    "verify": ["verify", "FILE"],
    "check": ["related", "check", "FILE", "--factor", "2", "--length", "1"],
    "network": ["related", "network", "FILE", "--epsilon", "1"],
    "plan": ["plan", "--chain", "FILE", "--step", "1h", "--period", "1d", "--participants", "9"],
    "release": ["release", "d.csv", "--chain", "FILE"],
}
REASONS = {
    "sub": "cannot read sub: Is a directory",
    "nowhere": "cannot read nowhere: No such file or directory",
    "round": "cannot read round: Too many levels of symbolic links",
    "/dev/zero": "cannot read /dev/zero: it is larger than 33,554,432 bytes, the most that is read",
    "-": "cannot read standard input: it is larger than 33,554,432 bytes, the most that is read",
}


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_what_cannot_be_read_or_is_too_large_is_refused(folder, run, monkeypatch, words):
    os.symlink("round", "round")
    for name, reason in REASONS.items():
        with open("/dev/zero") as endless:
            monkeypatch.setattr(sys, "stdin", endless)
            code, out, message = run(*(name if word == "FILE" else word for word in words))
        assert (code, out, message.count("\n")) == (2, "", 1)
        assert reason in message


def test_a_pipe_is_read(folder, run):
    """As a shell's <(command)."""
    with ThreadPoolExecutor() as pool:
        writing = pool.submit((folder / "pipe").write_text, MODEL)  # waits for the reader
        code, out, _ = run(
            "scale", "pipe", "--length", 5, "--epsilon", 1, "--mechanism", "group-dp"
        )
        writing.result()
    assert code == 0
    assert "group-dp" in out
