"""The command: signals, pipes, odd names, hostile lines; what it prints, and what it refuses."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import fuzz_cli
import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow import cli
from pufferflow.cli import OLD
from pufferflow.cli.printing import flag
from pufferflow.mechanisms import MECHANISMS

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
    code = "import sys; from pufferflow.cli import main, scale; read = scale.read_public_model; "
    code += "scale.read_public_model = lambda path: (print('reads', flush=True), read(path)); "
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
    rows = "".join(f"2024-01-01T{m // 60:02}:{m % 60:02}Z,{m * 37 % 900}\n" for m in range(300))
    (tmp_path / "part\udcff.csv").write_text(f"time,watts\n{rows}")
    words = ["release", "--mixing", "5min", "0.5", "--edges", "300", "--accept-noise"]
    done = subprocess.run([*COMMAND, *words, b"part\xff.csv"], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"safe to publish: part\\udcff.csv.release/publish/\n")


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


CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
RELEASE = "release t.csv --mixing 1h 0.4 --participant who --statistic mean --bounds 0 3 --unit kWh"


@pytest.fixture
def printed(folder, run):
    """What a command that succeeds prints, beside a table and a model."""
    times = pd.date_range("2024-01-01", periods=48, freq="30min", tz="UTC").astype(str)
    values = np.random.default_rng(1).uniform(0, 3, 9600).round(2)
    rows = {"who": np.repeat(range(200), 48), "time": np.tile(times, 200), "kW": values}
    pd.DataFrame(rows).to_csv("t.csv", index=False)

    def printed(words):
        code, out, err = run(*words.split())
        assert (code, err) == (0, ""), err
        return json.loads(out) if "--json" in words else out

    return printed


def test_scales_of_all_mechanisms(printed):
    rows = printed("scale m.json --length 9 --length 100 --epsilon 1 --epsilon 0.2 --json")
    pairs = [(epsilon, name) for epsilon in (1, 0.2) for name in MECHANISMS]
    assert [(row["epsilon"], row["mechanism"]) for row in rows] == pairs
    assert {row["mechanism"] for row in rows if not row["private"]} == {"entry-dp"}
    asked = "--mechanism leakage --protect 5 --side-information any --json"
    (row,) = printed(f"scale m.json --length 100 --epsilon 1 {asked}")
    assert row["scale"] == pf.leakage(CHAIN, 100, 1.0, window=5, side_information="any").scale


def test_a_release_in_six_lines_and_its_ledger(printed, run):
    asked = f"{RELEASE} --protect 1d"
    for dry in ("--dry-run", "--dry-run --simulate 7"):
        assert "a dry run: nothing was drawn" in printed(f"{asked} {dry}")
    whole = RELEASE.replace("--mixing 1h 0.4", "--protect participant --dry-run")
    assert "missing model of the readings: give --mixing TIME" in printed(whole)
    assert {*os.listdir()} == {*FILES}
    lines = printed(asked).splitlines()
    assert [line.split()[0] for line in lines] == ["mean:", "protects", "ledger", "safe"]
    assert lines[-1] == "safe to publish: t.csv.release/publish/"
    assert run(*asked.split(), "--output", "again")[0] == 2
    assert printed("ledger show pufferflow.ledger --json")["spent_percent"] > 50
    digest = printed("ledger verify pufferflow.ledger").split()[-1]
    assert "is as it was then" in printed(f"ledger verify pufferflow.ledger --noted {digest}")
    limit = ("ledger", "set-limit", "pufferflow.ledger", "1d", "2")
    assert "add --yes to change it" in run(*limit)[2]
    assert "1 before, 2 now" in run(*limit, "--yes")[1]
    entered = "ledger add pufferflow.ledger mean --participant who --value kW --from 2023-01-01"
    assert "entered: " in printed(f"{entered} --to 2023-01-31 --cost 1e-9 --whole 0.01")
    for more in ([], ["--cost", "0"]):  # without a bound
        assert run("ledger", "add", "pufferflow.ledger", "all", *more)[0] == 2
    assert printed(f"{asked} --output again --json")["folder"] == "again"
    rows = printed("ledger show pufferflow.ledger --json")["releases"]
    begins = {"2024-01-01T00:00:00Z", "2023-01-01T00:00:00Z"}
    assert ([row["number"] for row in rows], {row["from"] for row in rows}) == ([1, 2, 3], begins)


def test_a_release_with_a_delta_and_its_ledger(printed, run):
    kinds = "mean-by-hour,sum-by-hour,histogram-by-hour,exceedances-by-hour,mean-by-weekday"
    asked = f"{RELEASE} --edges 1,2 --threshold 1 --statistic {kinds} --accept-noise --delta 1e-6"
    assert "(epsilon 1, delta 1e-06)" in printed(f"{asked} --ledger new")
    ((promise,), (row,)) = (printed("ledger show new --json")[n] for n in ("promises", "releases"))
    assert (promise["delta"], row["charge"]["cost"], "rho" in row["charge"]) == (1e-6, "0", True)
    assert printed("ledger show new").startswith("protect  epsilon  delta  spent_percent\n")
    entered = "ledger add new mean --participant who --value kW --cost 0 --from 2023-01-01"
    assert "entered: " in printed(f"{entered} --to 2023-01-31 --rho 1e-9 --delta 1e-12")
    whole = "--protect participant --share 0.5 --delta 1e-6 --accept-noise --ledger two"
    printed(f"{RELEASE} {whole} --output two.release")
    tiny = "ledger add two mean --participant who --value kW --cost 0 --whole 0 --rho 1e-30"
    assert run(*tiny.split())[0] == 2  # of all readings of a participant it has no bound
    assert "entered: " in printed(f"{tiny} --whole-rho 1e-26")
    limit = "ledger", "set-limit", "new", "reading", "1", "--yes"
    assert "raise it" in run(*limit)[2]  # Gaussian noise keeps no promise without a delta
    assert "1 before, 1 now" in run(*limit, "--delta", "1e-5")[1]


VALUE = "77123"
ROWS = "".join(f"{who},2024-01-01T0{i}:00Z,{VALUE}.{i}\n" for who in "ab" for i in range(9))
FILES = {"m.json": '{"chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]]}]}'}
FILES["t.csv"] = f"who,time,value\n{ROWS}"
NOISY = "release t.csv --mixing 3 0.5 --participant who --accept-noise"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize("name", ["decimal", "time"])
def test_options_that_are_no_text(folder, run, name):
    code, out, err = run(*f"{NOISY} --edges 1 --{name} \udcff".split())
    assert (code, out, err.count("\n"), {*os.listdir()}) == (2, "", 1, {*FILES})


@pytest.mark.parametrize("word", OLD)
def test_old_commands_are_refused_with_the_new_ones(folder, run, word):
    code, out, err = run(word)
    assert (code, out, err) == (2, "", f"pufferflow: error: {word} {OLD[word]}\n")


def test_a_fault_of_the_program_quotes_nothing(folder, run, monkeypatch):
    monkeypatch.setattr("pufferflow.publish.release.Prepared", lambda *_, **__: int(f"x{VALUE}"))
    code, out, err = run(*f"{NOISY} --edges 1".split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "a fault of this program: ValueError (<lambda>, line" in err
    assert VALUE not in err
