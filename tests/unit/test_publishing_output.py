"""What a release writes: what may leave apart from what must not, and no failure after it is paid for."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow import cli
from pufferflow.drawing import style
from pufferflow.models import write_model
from pufferflow.publishing import folder as folders
from pufferflow.publishing import release as releasing
from pufferflow.publishing.folder import draft

MATRIX = np.array([[0.8123456, 0.1876544], [0.2345678, 0.7654322]])
CHAIN = pf.MarkovChain(MATRIX)
pytestmark = pytest.mark.usefixtures("scales_once")
ODD_NAMES = (["$5%$", "字"], ["\\frac", "{"], ["<b>", "&amp;"], ["=1+1", "@a"])
MORE_ODD_NAMES = (["US$#1$", "é"], ["$$", "$"])


def model_of(names=("a", "b"), chain=CHAIN):
    return pf.PublicModel(pf.ChainFamily([chain]), pf.RecordFormat(pf.StateSpace.categories(list(names)), 60))


def rows(names=("a", "b"), count=400, seed=3):
    values = np.array(names)[np.random.default_rng(seed).integers(0, 2, count)]
    return pd.Series(values, index=pd.date_range("2021-01-01", periods=count, freq="min"))


@pytest.fixture
def place(tmp_path, monkeypatch, only_svg):
    """The current folder with a table and a public chain for it; figures are drawn in one format."""
    monkeypatch.chdir(tmp_path)
    rows().rename_axis("time").rename("value").to_csv("d.csv")
    model = model_of()
    write_model("m.json", model.family, model.records)
    return tmp_path


ASKED = ("release", "d.csv", "--chain", "m.json", "--epsilon", 1)


def modes(folder):
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*")}


def texts(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# -- what leaves -------------------------------------------------------------------------------------------


def test_nothing_that_may_leave_tells_the_chain(place, monkeypatch):
    """Of two chains whose noise is the same, and given the same noise, all that may leave is the same, bit for bit."""
    monkeypatch.setattr(releasing, "add_noise", lambda counts, scale: [7] * len(counts))
    near = MATRIX + np.array([[1e-9, -1e-9], [-1e-9, 1e-9]])
    for name, matrix in (("one", MATRIX), ("two", near)):
        model = model_of(chain=pf.MarkovChain(matrix))
        made = pf.release_histogram(rows(), model, 1.0, ledger=None, output=name)
        assert 0 < made.calibration.scale <= made.scale
    assert texts(place / "one" / "publish") == texts(place / "two" / "publish")
    assert texts(place / "one" / "internal") != texts(place / "two" / "internal")
    said = b"".join(texts(place / "one" / "publish").values()).decode("latin-1")
    assert "transition_matrix" not in said
    for probability in MATRIX.flat:
        assert f"{probability:.5f}"[:-1] not in said


def test_internal_is_for_its_owner_alone_and_whole(place, run):
    umask = os.umask(0o022)
    try:
        assert run(*ASKED)[0] == 0
    finally:
        os.umask(umask)
    found = modes(place / "d.csv.release")
    assert found.pop("internal") == 0o700
    assert found.pop("publish") == 0o755
    assert {name: mode for name, mode in found.items() if name.startswith("internal")} == {
        "internal/chain.json": 0o600,
        "internal/certificate.json": 0o600,
    }
    assert set(found.values()) == {0o600, 0o644}
    internal = place / "d.csv.release" / "internal"
    assert np.array_equal(pf.read_public_model(internal / "chain.json").family.chains[0].transition_matrix, MATRIX)
    assert run("verify", internal / "certificate.json")[0] == 0
    said = " ".join((place / "d.csv.release" / "publish" / "statement.txt").read_text().split())
    assert "The set of chains is not published, nor is the certificate" in said
    assert "internal/certificate.json proves" in said


def test_a_chain_of_public_records_leaves_where_that_is_said(place, run):
    code, out, _ = run(*ASKED, "--chain-is-public", "--no-figure")
    assert code == 0
    for name in ("chain.json", "certificate.json"):
        publish, internal = ((place / "d.csv.release" / part / name).read_bytes() for part in ("publish", "internal"))
        assert publish == internal
    assert "The set of chains and the certificate are published too" in " ".join(out.split())
    with pytest.raises(pf.ParameterError, match="chain_is_public"):
        pf.release_histogram(rows(), model_of(), 1.0, ledger=None, chain_is_public="yes")


def test_the_bounds_of_a_binary_interval_are_told_only_where_they_are_public():
    model = pf.PublicModel(pf.BinaryInterval(0.23456, 0.6), model_of().records)
    for public in (False, True):
        made = pf.release_histogram(rows(), model, 1.0, ledger=None, chain_is_public=public)
        assert ("0.23456" in made.statement) == public
        promised = made.promise.to_dict()
        assert "0.23456" not in str({key: value for key, value in made.to_dict().items() if key not in promised})
        assert ("0.23456" in str(promised)) == public


def test_of_a_simulation_nothing_may_leave(place, run):
    code, out, _ = run("simulate", "d.csv", "--chain", "m.json", "--epsilon", 1, "--seed", 1, "--output", "s")
    assert code == 0
    assert "wrote s/internal/" in out
    found = modes(place / "s")
    assert found.pop("internal") == 0o700
    assert set(found.values()) == {0o600}
    assert {Path(name).parent.name for name in found} == {"internal"}


def test_what_fit_writes_is_for_its_owner_alone(place, run):
    Path("d.csv.chain.json").write_text("an older one that everybody may read")
    code, out, _ = run("fit", "d.csv")
    assert code == 0
    assert "both are as private as the data" in out
    for name in ("d.csv.sample.json", "d.csv.chain.json"):
        assert (place / name).stat().st_mode & 0o777 == 0o600
    fit = pf.fit_records("d.csv")
    fit.sample.save("sample")
    fit.save_chain("chain")
    assert {(place / name).stat().st_mode & 0o777 for name in ("sample", "chain")} == {0o600}


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [*ODD_NAMES, *(pytest.param(names, marks=pytest.mark.long) for names in MORE_ODD_NAMES)], ids=" ".join
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_that_other_programs_would_read_as_more(place, names, monkeypatch):
    made = pf.release_histogram(rows(names), model_of(names), 1.0, ledger="ledger", output="out")
    assert made.figure_fault == ""
    read = json.loads((place / "out" / "publish" / "histogram.json").read_text())
    assert [row["state"] for row in read["bins"]] == names == read["states"]["names"]
    table = pd.read_csv(place / "out" / "publish" / "histogram.csv")
    assert table["state"].tolist() == [f"'{name}" if name[0] in "=+-@" else name for name in names]
    drawn = made.figure()
    drawn.canvas.draw()
    shown = [label.get_text() for label in drawn.axes[0].get_xticklabels()]
    assert len(shown) == 2
    assert not any(label.get_parse_math() for label in drawn.axes[0].get_xticklabels())
    if names == ODD_NAMES[0]:  # a formula, and what fonts may lack: in all formats
        monkeypatch.undo()
        assert len(style.save_figure(made.figure(), place / "drawn")) == 3


def test_formulas_are_cells_of_text_in_every_column():
    made = pf.simulate_release(None, model_of(["-", "+"]), 1.0, seed=1, length=50)
    assert [line.split(",")[0] for line in made.to_csv().splitlines()] == ["state", "'-", "'+"]
    assert made.to_frame()["state"].tolist() == ["-", "+"]


def test_half_a_character_is_no_name(place):
    for names in (["a", "\ud800"], ["\udcff", "b"]):
        with pytest.raises(pf.ParameterError, match=r"the name of a state '\\ud.*' is no Unicode text"):
            model_of(names)
    document = json.loads(Path("m.json").read_text())
    document["records"]["states"]["names"][0] = "\ud800"
    Path("m.json").write_text(json.dumps(document))
    with pytest.raises(pf.ModelError, match="half of a character"):
        pf.read_public_model("m.json")


# -- whatever can fail is tried before the reservation ------------------------------------------------------


def refused(done, place, before):
    code, out, err = done
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert set(os.listdir(place)) == before
    return err


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["release", "dry run"])
@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("x" * 300, "File name too long"),
        ("y" * 255 + "z", "File name too long"),
        ("/proc/x", "/proc/x"),
        ("d.csv", "d.csv exists already"),
        ("d.csv/x", "no folder d.csv"),
    ],
    ids=["300 letters", "256 letters", "unwritable", "taken", "in a file"],
)
def test_an_output_that_cannot_be_costs_nothing(place, run, output, message, dry):
    before = set(os.listdir(place))
    assert message in refused(run(*ASKED, "--output", output, *dry), place, before)


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["release", "dry run"])
def test_a_figure_that_cannot_be_drawn_costs_nothing(place, run, monkeypatch, dry):
    def fault(*_):
        raise ValueError("of this machine")

    before = set(os.listdir(place))
    monkeypatch.setattr(style, "save_figure", fault)
    err = refused(run(*ASKED, *dry), place, before)
    assert "the figure cannot be drawn (ValueError)" in err
    assert run(*ASKED, "--no-figure", *dry)[0] == 0


def test_a_backend_that_does_not_exist_costs_nothing(place):
    rows(count=20).rename_axis("time").rename("value").to_csv("d.csv")
    before = set(os.listdir(place))
    done = subprocess.run(
        [sys.executable, "-m", "pufferflow.cli", *map(str, ASKED), "--mechanism", "group-dp"],
        capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "nonsense"},
    )  # fmt: skip
    assert "MPLBACKEND" in refused((done.returncode, done.stdout, done.stderr), place, before)


@pytest.mark.parametrize("at", range(5))
def test_a_disk_that_is_full_costs_nothing(place, run, monkeypatch, at):
    real, calls = folders.write_atomic, []

    def full(path, text):
        calls.append(path)
        if len(calls) > at:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, text)

    before = set(os.listdir(place))
    monkeypatch.setattr(folders, "write_atomic", full)
    err = refused(run(*ASKED), place, before)
    assert err == "pufferflow: error: d.csv.release: No space left on device\n"


def test_a_figure_never_stops_numbers(place, run, monkeypatch):
    real, calls = style.save_figure, []

    def second_fails(figure, stem):
        calls.append(stem)
        written = real(figure, stem)
        if len(calls) > 1:
            raise RuntimeError("of this machine")
        return written

    monkeypatch.setattr(style, "save_figure", second_fails)
    code, out, err = run(*ASKED)
    assert (code, err, len(calls)) == (0, "", 2)
    said = "The figure is missing, for it could not be drawn (RuntimeError)."
    publish = place / "d.csv.release" / "publish"
    assert said in " ".join(out.split())
    assert said in " ".join((publish / "statement.txt").read_text().split())
    assert {path.name for path in publish.iterdir()} == {
        *("histogram.json", "histogram.csv"),
        *("statement.txt", "statement.md"),
    }
    assert [entry["released"] for entry in pf.Ledger("d.csv.ledger").to_dict()["releases"]] == [True]


def test_a_place_that_is_taken_meanwhile_loses_nothing(place, run, monkeypatch):
    real = releasing.add_noise

    def taken(counts, scale):
        (place / "d.csv.release" / "mine").write_text("mine")
        return real(counts, scale)

    monkeypatch.setattr(releasing, "add_noise", taken)
    code, _, err = run(*ASKED)
    assert code == 2
    (whole,) = re.findall(r"the release is whole in (\S+)\n", err)
    assert (place / whole / "publish" / "histogram.json").exists()
    assert (place / "d.csv.release" / "mine").read_text() == "mine"


# -- one output, several processes --------------------------------------------------------------------------


def in_a_fork(*words):
    """The command line in a process of its own."""
    if child := os.fork():
        return child
    with suppress(BaseException):
        os._exit(cli.main(list(map(str, words))))
    os._exit(1)


def test_of_two_that_want_the_same_output_one_is_refused_before_it_costs(place, run):
    before = set(os.listdir(place))
    with draft("out"):
        code, _, err = run(*ASKED, "--output", "out")
        assert (code, err) == (2, "pufferflow: error: out is being written by another process; give another output\n")
        assert not Path("d.csv.ledger").exists()
    assert set(os.listdir(place)) == before
    racing = [in_a_fork(*ASKED, "--limit", "9", "--no-figure", "--output", "out") for _ in range(3)]
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in racing]
    assert sorted(ended) == [0, 2, 2]
    assert [entry["released"] for entry in pf.Ledger("d.csv.ledger").to_dict()["releases"]] == [True]


def test_an_empty_folder_is_free_and_a_rehearsal_leaves_it(place, run):
    Path("out").mkdir()
    assert run(*ASKED, "--output", "out", "--dry-run", "--no-figure")[0] == 0
    assert list(Path("out").iterdir()) == []
    assert run(*ASKED, "--output", "out", "--no-figure")[0] == 0
    assert run(*ASKED, "--output", "out", "--no-figure", "--no-ledger")[0] == 2


CHEAP, CHEAPLY = (rows(count=20), model_of(), 0.01), {"figure": False, "mechanism": "group-dp"}


def killed_at(moment):
    """Release in a child that is killed before the given call that writes; whether it got that far."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with suppress(BaseException):
        calls = []

        def counted(real):
            def call(*words, **options):
                calls.append(real)
                if len(calls) == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*words, **options)

            return call

        folders.write_atomic = counted(folders.write_atomic)
        for name in ("mkdir", "rename", "chmod", "rmdir"):
            setattr(Path, name, counted(getattr(Path, name)))
        releasing.add_noise = counted(releasing.add_noise)
        Path(f"note-{moment}").touch()
        pf.release_histogram(*CHEAP, ledger=f"ledger-{moment}", output="out", **CHEAPLY)
    os._exit(0)


@pytest.mark.parametrize("every", counts(5, 1))
def test_killed_at_any_moment_there_is_nothing_or_all_and_the_next_start_cleans(place, every):
    pf.release_histogram(*CHEAP, ledger="ledger", **CHEAPLY)  # what is loaded once is loaded before
    moment = 0
    while killed_at(moment := moment + every):
        out = place / "out"
        content = {path.name for path in out.rglob("*")} if out.exists() else set()
        assert not content or content >= {"publish", "internal", "histogram.json", "statement.txt", "certificate.json"}
        if content:
            out.rename(place / f"made-{moment}")
        pf.release_histogram(*CHEAP, ledger=None, output="out", **CHEAPLY)
        (place / "out").rename(place / f"again-{moment}")
        assert not [path for path in place.iterdir() if path.name.startswith((".", "tmp"))]
    assert moment > 15
