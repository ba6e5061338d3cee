"""Names of files and options that are no Unicode text: POSIX allows any bytes."""

import json
import os
import shutil
from pathlib import Path

import pytest

import pufferflow as pf

pytestmark = pytest.mark.usefixtures("only_svg", "scales_once")
NO_TEXT = os.fsdecode(b"a\xff")


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"2021-06-01T00:{i:02d},{'sit' if i // 4 % 2 else 'walk'}\n" for i in range(60))
    (tmp_path / NO_TEXT).write_text("time,value\n" + rows)


def test_a_file_whose_name_is_no_text_is_fitted():
    pf.fit_records(NO_TEXT).sample.save("sample.json")
    assert json.loads(Path("sample.json").read_text(encoding="utf-8"))["dataset"] == "a\\udcff"


@pytest.mark.parametrize(
    "option", ["decimal", "thousands", "separator", "time", "value", "participant", "group", "timezone", "time-format"]
)
def test_options_that_are_no_text_are_refused(run, option):
    code, _, err = run("fit", NO_TEXT, f"--{option}", "\udcff")
    assert code == 2
    assert err.removeprefix("pufferflow: error: ").lstrip("-").startswith(f"{option} '\\udcff' is no Unicode text")
    assert os.listdir() == [NO_TEXT]


@pytest.mark.parametrize("figure", [False, True])
def test_data_whose_name_is_no_text_are_released(figure):
    """The statement names the ledger: once that failed after the reservation, and the budget was gone."""
    family = pf.ChainFamily([pf.MarkovChain([[0.75, 0.25], [0.25, 0.75]])])
    model = pf.PublicModel(family, pf.RecordFormat(pf.StateSpace.categories(["sit", "walk"]), 60))
    shutil.copy(NO_TEXT, "copy\udcff.csv")
    pf.release_histogram("copy\udcff.csv", model, 1.0, ledger="copy\udcff.ledger")
    made = pf.release_histogram(
        NO_TEXT, model, 1.0, ledger=f"{NO_TEXT}.ledger", output="out", figure=figure, chain_is_public=True
    )
    assert f"the ledger {made.account.ledger}" in made.statement
    assert made.account.ledger == "a\\udcff.ledger"
    assert json.loads(Path("out/publish/histogram.json").read_text(encoding="utf-8"))["warnings"] == [*made.warnings]
    assert any("copy\\udcff.ledger" in warning for warning in made.warnings)


@pytest.mark.parametrize("words", [["export", "electricity", "e.csv", "--minutes=--"], ["fit", "e.csv", "--time=--"]])
def test_dashes_are_no_value(run, words):
    """argparse takes them out and leaves an empty list."""
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"pufferflow: error: {words[-1].partition('=')[0]} is '--'; give a value")
