"""Commands of the README and of the guide to own data, on fewer minutes: nothing fitted, or a chain of another year."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.records.sample import load_sample

pytestmark = pytest.mark.usefixtures("scales_once")
MINUTES = 2 * 1440
ROOT = Path(__file__).parents[2]
GUIDE = "docs/howto/own_data.md"


def commands(word, page="README.md"):
    """The words of the one block of shell commands that has ``word``."""
    text = (ROOT / page).read_text().replace("\\\n", "")
    (block,) = [block for block in text.split("```") if block.startswith("sh\n") and word in block]
    return [line.split()[1:] for line in block.removeprefix("sh").strip().splitlines()]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run commands in a folder of their own; what each said, by its first word."""
    monkeypatch.chdir(tmp_path)

    def run(commands):
        said = {}
        for words in commands:
            assert cli.main(words + (["--minutes", str(MINUTES)] if words[0] == "export" else [])) == 0
            captured = capsys.readouterr()
            assert captured.err == ""
            said[words[0]] = captured.out
        return said

    return run


def check_release(states, certificate):
    """The numbers that were released are those of the second year but for the noise, which is proved."""
    release = json.loads(Path("second.csv.release/publish/histogram.json").read_text())
    watts = pd.read_csv("second.csv")["watts"].dropna().to_numpy()
    exact = np.bincount(states.encode_numbers(watts), minlength=len(release["bins"])) / len(watts)
    released = np.array([row["frequency"] for row in release["bins"]])
    assert release["records"] == len(watts)
    worst = pf.error_quantile(release["noise"]["scale"], len(exact), len(watts), confidence=1 - 1e-9, kind="bins")
    assert np.abs(released - exact).max() <= worst
    proved = pf.verify_certificate(json.loads(Path(certificate).read_text()))
    assert 2 * proved.lower <= release["noise"]["scale"]


def test_release_with_nothing_fitted(run, only_svg):
    said = run(commands("ledger show", GUIDE))
    first, second = (pd.read_csv(name, parse_dates=["time"]) for name in ("first.csv", "second.csv"))
    assert len(first) == len(second) == MINUTES // 2
    assert second["time"].iloc[0] - first["time"].iloc[-1] == pd.Timedelta(minutes=1)
    assert "Guarantee:" in said["release"]
    assert "steps later overlap in at least 0.4" in said["release"]
    assert "was chosen, not fitted" in said["release"]
    assert said["ledger"].startswith(("limit 1, spent ", "verified: "))
    assert said["verify"].startswith("verified: leakage at epsilon 1 for all Markov chains whose laws 60 steps apart")
    model = pf.read_public_model("second.csv.release/publish/chain.json")
    assert model.family == pf.ForgettingFamily(60, 0.4)
    check_release(model.records.states, "second.csv.release/publish/certificate.json")


def test_hourly_profile_with_an_hour_protected(run, only_svg):
    """Nothing is fitted; each hour lies within what the noise allows but for 1 run in 10^8."""
    said = run(commands("mean-by-hour"))
    assert "Courses of any 60 steps in a row (3600 s)" in said["release"]
    assert "expected_error" in said["release"]
    assert said["verify"].startswith("verified: leakage at epsilon 1 for all Markov chains whose laws 60 steps apart")
    second = pd.read_csv("second.csv", parse_dates=["time"]).dropna()
    exact = second["watts"].clip(0, 5000).groupby(second["time"].dt.strftime("%H:00")).mean()
    released = pd.read_csv("second.csv.release/publish/statistics.csv").set_index("cell")
    assert (released["size"] == second["time"].dt.strftime("%H:00").value_counts()[released.index]).all()
    error = (released["value"] - exact[released.index]).abs()
    assert (error < 22 * released["expected_error"]).all()
    proved = pf.verify_certificate(json.loads(Path("second.csv.release/publish/certificate.json").read_text()))
    [table] = json.loads(Path("second.csv.release/publish/statistics.json").read_text())["statistics"]
    assert table["noise"]["scale"] >= table["lipschitz"] * float(proved.lower)


def test_release_with_a_chain_of_another_year(run, only_svg):
    export = commands("ledger show", GUIDE)[0]
    said = run([export, *commands("--chain", GUIDE)])
    assert "time step   60 s" in said["fit"]
    assert "Guarantee:" in said["release"]
    model = pf.read_public_model("first.csv.chain.json")
    sample = load_sample("first.csv.sample.json")
    assert sample.participants[0].observations == pd.read_csv("first.csv")["watts"].notna().sum()
    assert sample.states == model.records.states.names
    check_release(model.records.states, "second.csv.release/internal/certificate.json")


def test_windows_of_the_export(tmp_path, capsys):
    path = str(tmp_path / "x.csv")
    assert cli.main(["export", "electricity", path, "--from", "2008-01-01T00:00", "--minutes", "3"]) == 0
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["time", *(f"2008-01-01T00:0{i}" for i in range(3))]
    for wrong in (["--from", "soon"], ["--minutes", "0"], ["--minutes", "9999999"], ["--from", "2010-01-01"]):
        assert cli.main(["export", "electricity", path, *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_help_is_quick_because_nothing_is_loaded():
    heavy = "import sys; from pufferflow.cli import main; main(['--help']); print([m for m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1]
    for name in ("numpy", "pandas", "scipy", "numba", "matplotlib", "opendp", "flint"):
        assert f"'{name}'" not in loaded


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_every_command_has_help(command, capsys):
    assert cli.main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Example: " in out
    assert f"usage: pufferflow {command}" in out
