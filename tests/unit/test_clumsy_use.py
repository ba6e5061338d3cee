"""What hostile or clumsy use of the commands must not do: lose a ledger, tell a record, or pay for nothing."""

import errno
import json
import tempfile

import numpy as np
import pytest

import pufferflow as pf
from pufferflow import cli

FORGETS = ["--forgets", "5", "0.4", "--epsilon", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).choice(["a", "b"], 300)
    (tmp_path / "states.csv").write_text("value\n" + "\n".join(values) + "\n")
    return tmp_path


def said(capsys):
    return capsys.readouterr().err


@pytest.mark.parametrize("apart", ["1e-306", "1e-101", "1e101", "3e307"])
def test_bounds_are_no_nearer_and_no_farther_than_noise_can_hide(folder, capsys, apart):
    (folder / "numbers.csv").write_text("value\n" + "5\n" * 300)
    words = ["release", "numbers.csv", *FORGETS, "--no-figure", "--statistic", "mean", "--bounds", "0", apart]
    assert cli.main(words) == 2
    assert "apart, so take another unit" in said(capsys)
    assert not (folder / "numbers.csv.ledger").exists()


@pytest.mark.parametrize("edges", ["1e308:1e309:1e307", "0:1e400:1e399"])
def test_edges_beyond_what_floats_hold_are_refused(folder, capsys, edges):
    assert cli.main(["release", "states.csv", *FORGETS, "--edges", edges]) == 2
    assert "edges are" in said(capsys)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("b\na\nb\na\na\n", ["--states", "a,b"]),
        ("0,5\n1,5\n2,5\n1,5\n", ["--edges", "0:2:1", "--separator", ";", "--decimal", ","]),
    ],
)
def test_a_record_in_the_place_of_a_header_is_refused_unsaid(folder, capsys, text, options):
    (folder / "bare.csv").write_text(text)
    assert cli.main(["release", "bare.csv", *FORGETS, *options, "--no-figure"]) == 2
    out, err = capsys.readouterr()
    assert "seems to be data, not a header" in err
    assert not {"'b'", "'0,5'"} & {word.strip("; ,") for word in (out + err).split()}
    assert sorted(path.name for path in folder.iterdir()) == ["bare.csv", "states.csv"]


def ledger(path):
    pf.Ledger.create(path, 1.0)
    return path.read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "states.csv", "--chain", "kept.ledger"],
        ["fit", "states.csv", "--sample", "kept.ledger"],
        ["scale", "model.json", "--length", "9", "--epsilon", "1", "--certificate", "kept.ledger"],
        ["count", "states.csv", *FORGETS, "--threshold", "1", "--no-ledger", "--statement", "kept.ledger"],
    ],
)
def test_no_output_replaces_a_ledger(folder, capsys, words):
    kept = ledger(folder / "kept.ledger")
    model = {"chains": [pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]).document()]}
    (folder / "model.json").write_text(json.dumps(model))
    assert cli.main(words) == 2
    assert "kept.ledger is a ledger and would be lost" in said(capsys)
    assert (folder / "kept.ledger").read_bytes() == kept


def test_synthetic_records_replace_nothing(folder, capsys):
    assert cli.main(["release", "states.csv", *FORGETS, "--states", "a,b", "--no-figure"]) == 0
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in ("states.csv", "states.csv.ledger", "states.csv.release/publish/histogram.json"):
        assert cli.main(["synthesise", "states.csv.release", "--length", "9", "--output", path]) == 2
        assert "exists already" in said(capsys)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == kept


def test_given_edges_stay_whatever_occurs_between_them(folder):
    for name, odd in (("without", 350), ("with", 250)):
        values = [50, 150, 350, 450] * 50 + [odd] + [50, 150, 350, 450] * 50
        (folder / f"{name}.csv").write_text("value\n" + "\n".join(map(str, values)) + "\n")
        assert cli.main(["fit", f"{name}.csv", "--edges", "100:400:100"]) == 0
        model = json.loads((folder / f"{name}.csv.chain.json").read_text())
        assert model["records"]["states"]["edges"] == [100, 200, 300, 400]
        assert len(model["chains"][0]["transition_matrix"]) == 5


def test_a_private_fit_that_cannot_be_written_costs_nothing(folder, capsys, monkeypatch):
    homes = ["home,time,value"] + [
        f"{home},2026-01-01T00:{minute:02}:00Z,{'ab'[minute % 2]}" for home in range(400) for minute in range(12)
    ]
    (folder / "homes.csv").write_text("\n".join(homes) + "\n")
    words = ["fit", "homes.csv", "--private", "--epsilon", "2", "--states", "a,b", "--step", "60"]
    words += ["--participant", "home", "--most-transitions", "11", "--chain", "closed/model.json"]
    closed, make = folder / "closed", tempfile.mkdtemp
    closed.mkdir()

    def refuse(suffix=None, prefix=None, dir=None):
        if closed.samefile(dir or folder):
            raise PermissionError(errno.EPERM, "Operation not permitted", str(dir))
        return make(suffix, prefix, dir)

    with monkeypatch.context() as patch:
        patch.setattr("tempfile.mkdtemp", refuse)
        assert cli.main(words) == 2
    assert "not permitted" in said(capsys)
    assert not (folder / "homes.csv.ledger").exists()
    assert cli.main(words) == 0
    assert pf.Ledger(folder / "homes.csv.ledger").spent == pytest.approx(2.0, rel=1e-3)


def test_what_fails_once_it_is_paid_for_says_so(folder, capsys, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pufferflow.publishing.folder.os.utime", full)
    assert cli.main(["release", "states.csv", *FORGETS, "--states", "a,b", "--no-figure"]) == 2
    assert "No space left on device; the ledger counts it as spent all the same" in said(capsys)
    assert not (folder / "states.csv.release").exists()
    assert pf.Ledger(folder / "states.csv.ledger").spent == pytest.approx(1.0, rel=1e-3)
