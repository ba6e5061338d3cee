"""The command as a process: signals, closed pipes, odd names, help, hostile lines."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import fuzz_cli
import pytest
from cases import counts

import pufferflow as pf
from pufferflow import cli
from pufferflow.cli.printing import flag

COMMAND = [sys.executable, "-m", "pufferflow"]
ACTIONS = {"ledger": "show verify add set-limit", "related": "check noisymax network general"}
PIPES = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)


def test_output_that_nobody_reads_or_that_is_full(tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(pf.certify(pf.BinaryInterval(0.3, 0.7), 5, 1.0)))
    read, write = os.pipe()
    os.close(read)
    sentence = "pufferflow: error: standard output: No space left on device\n"
    for out, code, said in ((write, 141, ""), (os.open("/dev/full", os.O_WRONLY), 2, sentence)):
        words = [*COMMAND, "verify", str(path)]
        done = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True)
        os.close(out)
        assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_without_a_word(tmp_path, which):
    """It waits for its input, which never comes; nothing is left behind."""
    code = "import sys; from pufferflow.cli import main, scale; read = scale.read_model; "
    code += "scale.read_model = lambda path: (print('reads', flush=True), read(path)); "
    words = ["scale", "-", "--length", "5", "--epsilon", "1", "--certificate", "c.json"]
    process = [sys.executable, "-c", f"{code} sys.exit(main())", *words]
    # where SIGINT is ignored, as under nohup, a program ignores it too
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    with subprocess.Popen(process, cwd=tmp_path, preexec_fn=heed, **PIPES) as process:
        assert process.stdout.readline() == b"reads\n"
        process.send_signal(which)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_no_text(tmp_path):
    """POSIX allows any bytes in the name of a file."""
    release = "release --mixing 5min 0.5 --edges 300 --accept-noise"
    for words, said in (
        ("example --minutes 300", b"wrote part\\udcff.csv: 300 minutes\n"),
        (release, b"safe to publish: part\\udcff.csv.release/publish/\n"),
    ):
        line = [*COMMAND, *words.split(), b"part\xff.csv"]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True)
        assert (done.returncode, done.stdout[-len(said) :]) == (0, said), done.stderr


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_is_short_and_complete_with_an_example_that_works(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    for action in ACTIONS.get(command, "").split():
        assert run(command, action, "--help")[1].startswith(f"usage: pufferflow {command} {action}")
    code, said, err = run(command, "--help")
    assert (code, err, len(said.splitlines()) <= 60) == (0, "", True)
    program, *words = shlex.split(said.partition("Example: ")[2].rpartition("| ")[2])
    assert program == "pufferflow"
    assert cli._parser(words).parse_args(words).run
    if command == "release":
        assert {flag(field.name) for field in pf.release.options} <= {*said.split()}


@pytest.mark.parametrize("runs", counts(15, 200))
def test_hostile_command_lines(runs):
    """In a process of its own: what this one has loaded would count as the memory of every run."""
    script = [sys.executable, fuzz_cli.__file__, str(runs), "1"]
    path = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(script, capture_output=True, text=True, env=path)
    assert done.returncode == 0, done.stderr
