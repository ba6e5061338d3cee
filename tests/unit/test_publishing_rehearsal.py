"""A rehearsal of a release: it says what a release would do and refuses what one would, and leaves nothing behind."""

import json

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import write_model

pytestmark = pytest.mark.usefixtures("scales_once")
VALUES = pd.Series(np.random.default_rng(4).integers(0, 3, 900))
CHAIN = pf.MarkovChain([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
MODEL = pf.PublicModel(pf.ChainFamily([CHAIN]), pf.RecordFormat(pf.StateSpace.categories(["0", "1", "2"])))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    VALUES.to_frame("value").to_csv("d.csv", index=False)
    write_model("m.json", MODEL.family, MODEL.records)
    return tmp_path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ASKED = ["release", "d.csv", "--chain", "m.json", "--epsilon", "1", "--limit", "2", "--no-figure"]


def test_it_says_what_the_release_then_does_and_leaves_nothing(folder, capsys):
    before = content(folder)
    assert cli.main([*ASKED, "--dry-run", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert cli.main([*ASKED, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert content(folder) == before
    for count in np.bincount(VALUES):
        assert str(count) not in said + json.dumps(facts)
    assert "records     900 in 1 segment(s) of 1 participant(s), the longest of 900 steps" in said
    assert "a dry run: nothing was drawn, written or paid for" in said
    assert cli.main([*ASKED, "--json"]) == 0
    released = json.loads(capsys.readouterr().out)
    for key in ("records", "participants", "segments", "longest_segment", "epsilon", "mechanism", "scale", "certified"):
        assert facts[key] == released[key]
    assert facts["noise_scale"] == released["noise"]["scale"]
    width = (released["bins"][0]["high_95"] - released["bins"][0]["low_95"]) / 2
    assert facts["error_95"] == pytest.approx(width)
    assert facts["left"] == pytest.approx(pf.Ledger("d.csv.ledger").to_dict()["left"])


def test_it_refuses_what_the_release_would(folder, capsys):
    ledger = folder / "d.csv.ledger"
    model = pf.read_public_model("m.json")
    pf.release_histogram("d.csv", model, 1.5, ledger=ledger, limit=2.0)
    before = content(folder)
    for words, message in (
        ([], "the limit of d.csv.ledger is 2"),
        (["--limit", "9"], "has the limit 2, not 9"),
        (["--ledger", "m.json"], "m.json is read and would be overwritten"),
        (["--mechanism", "entry-dp"], "entry-dp hides nothing"),
        (["--output", "m.json"], "m.json exists already"),
        (["--value", "x"], "there is no column 'x'"),
        (["--decimal", ","], "made other steps of the records"),
    ):
        assert cli.main([*ASKED, "--dry-run", *words]) == 2
        captured = capsys.readouterr()
        assert message in captured.err
        assert captured.out == ""
    assert content(folder) == before


def test_without_a_ledger_in_python():
    facts = pf.rehearse_release(VALUES, MODEL, 1.0, ledger=None)
    assert (facts["limit"], facts["left"]) == (None, None)
    assert facts["records"] == 900


def test_other_signs_make_other_steps(tmp_path):
    book = tmp_path / "ledger"
    model = pf.PublicModel(MODEL.family, pf.RecordFormat(pf.StateSpace.numeric([0.5, 1.5])))
    pf.release_histogram(VALUES, model, 0.1, ledger=book, limit=9.0)
    pf.release_histogram(VALUES, model, 0.1, ledger=book)
    with pytest.raises(pf.LedgerError, match="made other steps of the records"):
        pf.release_histogram(VALUES, model, 0.1, ledger=book, reading=pf.Reading(thousands=","))
