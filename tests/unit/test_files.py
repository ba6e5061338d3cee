"""No command writes over what it reads, over another output, or into a folder that is not there."""

import json
import multiprocessing
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pufferflow as pf
from pufferflow import _files, cli
from pufferflow._files import check_outputs, open_atomic, workplace, write_atomic
from pufferflow.errors import DataError, ParameterError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table, a model, an alias of each kind, and the current folder."""
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(1).integers(0, 2, 50)
    (tmp_path / "d.csv").write_text("value\n" + "".join(f"{v}\n" for v in values))
    model = {"chains": [{"transition_matrix": [[0.6, 0.4], [0.5, 0.5]]}]}
    (tmp_path / "m.json").write_text(json.dumps(model | {"records": {"states": {"names": ["0", "1"]}}}))
    (tmp_path / "soft.csv").symlink_to("d.csv")
    os.link("d.csv", "hard.csv")
    (tmp_path / "sub").mkdir()
    os.mkfifo("pipe")
    (tmp_path / "m.svg").symlink_to("m.json")
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
    with pytest.raises(ParameterError, match="twice"):
        check_outputs(["x", folder / "x"])


@pytest.mark.parametrize("asked", [["--from", "2030-01-01"], ["--minutes", "99999999"], ["--minutes", "9" * 30]])
def test_a_window_outside_the_bundled_data_names_what_was_asked_and_what_there_is(folder, capsys, asked):
    assert cli.main(["example", "x.csv", *asked]) == 2
    said = capsys.readouterr().err
    assert f"{asked[0].removeprefix('--')}: {asked[1]}" in said
    assert "reach from 2007-05-01T00:00 to 2009-04-29T23:59 (1051200 minutes); choose a window inside" in said
    assert not (folder / "x.csv").exists()


FORK = multiprocessing.get_context("fork")


def begun(folder, how, said):
    """A process that began something in ``folder`` and waits to be killed."""

    def begin():
        with how(folder):
            said.set()
            threading.Event().wait()

    process = FORK.Process(target=begin)
    process.start()
    assert said.wait(60)
    return process


def unfinished(folder):
    return [path for path in folder.iterdir() if path.name.startswith(".pufferflow-")]


@pytest.mark.parametrize("how", [workplace, lambda folder: open_atomic(folder / "x")])
def test_what_a_killed_run_left_is_removed_at_the_next_start_and_what_is_in_use_stays(tmp_path, how):
    killed = [begun(tmp_path, how, FORK.Event()) for _ in range(3)]
    (other := tmp_path / ".pufferflow-another-machine-x").mkdir()
    for process in killed:
        process.kill()
        process.join()
    (tmp_path / f"{unfinished(tmp_path)[0].name}-killed-before-its-lock").mkdir()
    living = begun(tmp_path, how, FORK.Event())
    assert len(unfinished(tmp_path)) == 2  # that of the living, and that of another machine
    with workplace(tmp_path) as mine, workplace(tmp_path) as second:
        assert len({mine, second, other, *unfinished(tmp_path)}) == 4
    assert len(unfinished(tmp_path)) == 2
    living.kill()
    living.join()
    write_atomic(tmp_path / "y", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {other.name, "y"}


def test_workplaces_of_many_threads_do_not_remove_each_other(tmp_path):
    def work(i):
        for turn in range(20):
            write_atomic(tmp_path / str(i), f"{turn}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {str(i): "19" for i in range(8)}


def test_an_atomic_file_has_the_usual_mode_and_errors_name_it(tmp_path):
    (tmp_path / "plain").write_text("")
    made = write_atomic(tmp_path / "new" / "x", "whole")
    assert made.stat().st_mode == (tmp_path / "plain").stat().st_mode
    with pytest.raises(OSError, match="x") as refused:
        write_atomic(tmp_path / "plain" / "x", "whole")
    assert ".pufferflow" not in str(refused.value)
    with pytest.raises(OSError, match="new") as refused:
        write_atomic(tmp_path / "new", "whole")
    assert refused.value.filename == str(tmp_path / "new")
    with pytest.raises(TypeError), open_atomic(made) as stream:
        stream.write("half")
    assert made.read_text() == "whole"
    assert [path.name for path in made.parent.iterdir()] == ["x"]


# -- what is read is bounded and never waited for in vain ------------------------------------------------------

MODEL = json.dumps({"chains": [{"transition_matrix": [[0.6, 0.4], [0.5, 0.5]]}]})
READERS = {
    "scale": ["scale", "FILE", "--length", "5", "--epsilon", "1"],
    "audit": ["audit", "FILE", "--length", "5", "--epsilon", "1", "--count", "1"],
    "verify": ["verify", "FILE"],
    "check": ["related", "check", "FILE", "--factor", "2", "--length", "1"],
    "network": ["related", "network", "FILE", "--epsilon", "1"],
    "plan": ["plan", "--chain", "FILE", "--step", "1h", "--period", "1d", "--participants", "9"],
    "release": ["release", "d.csv", "--chain", "FILE"],
}


def refused(words, name, run, reason):
    code, out, message = run(*(name if word == "FILE" else word for word in words))
    assert (code, out) == (2, ""), message
    assert message.count("\n") == 1
    assert reason in message


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/dev/zero", "cannot read /dev/zero: it is a device, not a file"),
        ("pipe", "cannot read pipe: it is a pipe that nobody writes to"),
        ("socket", "cannot read socket: it is a socket, not a file"),
        ("sub", "cannot read sub: Is a directory"),
        ("round", "cannot read round: Too many levels of symbolic links"),
        ("huge.json", "cannot read huge.json: it is larger than 33,554,432 bytes, the most that is read"),
    ],
)
def test_what_is_no_file_or_too_large_is_refused(folder, run, monkeypatch, words, name, reason):
    monkeypatch.setattr(_files, "WAIT", 0.0)
    if name == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(name)
    elif name == "round":
        os.symlink("round", "round")
    elif name == "huge.json":
        with open(name, "wb") as stream:
            stream.truncate(10**13)  # takes no room on the disk
    refused(words, name, run, reason)


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_standard_input_is_bounded(folder, run, monkeypatch, words):
    with open("/dev/zero") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        refused(words, "-", run, "cannot read standard input: it is larger than 33,554,432 bytes")


@pytest.mark.parametrize("slow", [False, True])
def test_a_pipe_that_somebody_writes_to_is_read(run, monkeypatch, slow):
    """As a shell's <(command), also where the command takes longer than a pipe is given to find a writer."""
    monkeypatch.setattr(_files, "WAIT", 0.0)
    end, other = os.pipe()
    with os.fdopen(end), os.fdopen(other, "w") as writer:
        say = threading.Timer(0.1 if slow else 0, lambda: (writer.write(MODEL), writer.close()))
        say.start()
        if not slow:
            say.join()
        code, out, _ = run("scale", f"/dev/fd/{end}", "--length", 5, "--epsilon", 1, "--mechanism", "group-dp")
        say.join()
    assert code == 0
    assert "group-dp" in out


def test_a_named_pipe_is_read_once_its_writer_comes(folder, run):
    with ThreadPoolExecutor() as pool:
        writing = pool.submit((folder / "pipe").write_text, MODEL)  # waits for the reader
        code, out, _ = run("scale", "pipe", "--length", 5, "--epsilon", 1, "--mechanism", "group-dp")
        writing.result()
    assert code == 0
    assert "group-dp" in out
