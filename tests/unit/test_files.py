"""Files are written whole or not at all, read up to a size, and refused if they are malformed; what
takes long is estimated before it starts, and refused above one bound: see refusals.txt too.
"""

import json
import multiprocessing
import os
import re
import sys
import threading
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.files import check_output, write_atomic
from pufferflow._util.work import A_SECOND, MAX_WORK, afford, allowing, is_allowed, spend
from pufferflow.cli.options import theta_of
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS, compute_scale
from pufferflow.mechanisms.registry import scale_work
from pufferflow.models.files import write_model
from pufferflow.records.schema import Schema
from pufferflow.records.states import StateSpace

MODEL = pf.ChainFamily([pf.MarkovChain([[0.6, 0.4], [0.5, 0.5]])]).document()
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("value\n" + "0\n1\n" * 25)
    records = {"records": {"states": {"names": ["0", "1"]}}}
    (tmp_path / "m.json").write_text(json.dumps(MODEL | records))
    (tmp_path / "sub").mkdir()
    os.mkfifo("pipe")
    os.symlink("round", "round")
    return tmp_path


def test_what_is_not_in_the_way_is_written(folder, run):
    scale = ("scale", "m.json", "--length", 5, "--epsilon", 1, "--certificate", "sub/c.json")
    release = ("release", "d.csv", "--chain", "m.json", "--accept-noise", "--output", "sub/x")
    said = "pufferflow: error: d.csv.chain.json exists already; give another name\n"
    assert run("fit", "d.csv", "--states", "0,1")[0] == 0
    assert run("fit", "d.csv", "--states", "0,1") == (2, "", said)
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


# -- malformed JSON, every document for certain: anything but a refusal fails the test ------------

CHAIN = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
TIMES = np.datetime_as_string(np.datetime64("2021-06-01T00:00", "m") + np.arange(20)).tolist()
TABLE = ["time,value", *(f"{time},{('sit', 'walk')[i // 3 % 2]}" for i, time in enumerate(TIMES))]
JUNK = [None, True, False, "", "x", -1, -5, 1.5, 1e300, [], [None], {}, {"x": None}]


def bad(value):
    """Values with junk somewhere, the first entries of lists among it, or without a part."""
    for key in list(value) if isinstance(value, dict) else range(min(len(value), 1)):
        if key in ("left", "right", "records"):  # where null is a quilt without that node
            continue
        inner = bad(value[key]) if isinstance(value[key], dict | list) else ()
        for part in (*inner, *JUNK):
            yield {**value, key: part} if isinstance(value, dict) else [part, *value[1:]]
        if isinstance(value, list):
            yield value[1:]
        elif key != "initial_distribution":
            yield {other: value[other] for other in value if other != key}


def bad_texts(document):
    """Text that is no JSON, or JSON with something impossible somewhere."""
    text = json.dumps(document)
    yield from (text[:n].encode() for n in range(0, len(text), 1 + len(text) // 20))
    yield from (b"[" * 10**n for n in range(1, 6))
    yield from (text.encode() + b"\x00", text.encode() + b"\x00{}", b"\xff\xfe", b"\xff\xfe{}")
    for one in (*bad(document), document | {"xkey": 1}):
        if one != document:
            yield json.dumps(one).encode()


RELEASE = ("release", "data.csv", "--chain", "public.json", "--accept-noise")
SCALE = ("scale", "model.json", "--length", 10, "--epsilon", 1, "--mechanism", "mqm-exact")


@pytest.mark.parametrize("words", [RELEASE, SCALE, ("verify", "certificate.json")])
def test_one_sentence_and_nothing_written(tmp_path, monkeypatch, run, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("\n".join(TABLE))
    form = Schema(states=StateSpace.categories(["sit", "walk"]), step_seconds=60)
    write_model(tmp_path / "public.json", CHAIN, form)
    write_model(tmp_path / "model.json", CHAIN)
    (tmp_path / "certificate.json").write_text(json.dumps(pf.certify(CHAIN, 20, 1.0)))
    [file] = [tmp_path / word for word in words if str(word).endswith(".json")]
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for content in bad_texts(json.loads(before[file])):
        file.write_bytes(content)
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1), (content, err)
        assert err.startswith("pufferflow: error: ")
        assert "Traceback" not in err
        assert "walk" not in err or words is not RELEASE
        assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before | {file: content}


# -- what a command takes --------------------------------------------------------------------------


def chain(states, start="stationary", seed=0):
    rows = np.random.default_rng(seed).dirichlet(np.ones(states), states) + 1e-4
    return pf.MarkovChain(rows / rows.sum(axis=1, keepdims=True), start)


def clock(states, repeat):
    matrices = [chain(states, seed=seed).transition_matrix for seed in range(24)]
    return pf.PeriodicChain(matrices, repeat=repeat)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for k in (2, 64, 150):
        write_model(tmp_path / f"{k}.json", chain(k))


ASKED = ("scale", "64.json", "--length", 10, "--epsilon", 1)


def test_more_is_allowed_by_name(files, run, monkeypatch):
    def compute(*words, **options):
        raise AssertionError("it was started")

    for name in MECHANISMS:
        monkeypatch.setitem(MECHANISMS, name, compute)
    words = (*ASKED, "--mechanism", "leakage", "--most-work", 1e12)
    assert "AssertionError (compute, " in run(*words)[2]


def test_scales_that_take_too_long_are_left_out_where_none_is_named(files, run):
    code, out, _ = run(*ASKED, "--json", "--most-work", 1e9)
    rows = {row["mechanism"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["leakage"]["status"] == "not applicable"
    assert re.search("it would take about .*--most-work", rows["leakage"]["reason"])
    assert rows["mqm-exact"]["status"] == "ok"


def test_a_release_says_that_its_noise_takes_long(files, capsys):
    asked = Namespace(mixing=None, chain="150.json")
    assert theta_of(asked).family.states == 150
    warning = r"warning: to find and prove the noise would take about \d+ \w+"
    assert re.search(warning, capsys.readouterr().err)
    asked.protect = "participant"
    theta_of(asked)
    asked.chain = "2.json"
    theta_of(asked)
    assert capsys.readouterr().err == ""


def test_in_python_nothing_is_bounded():
    afford(1e300, "it", "do less")
    assert is_allowed(1e300)
    with allowing(10):
        assert not is_allowed(11)
        spend(6, "a search", "give less")
        reason = r"^a search takes more than the 10 operations .*; give less, or"
        with pytest.raises(ParameterError, match=reason):
            spend(6, "a search", "give less")
        with allowing(100):
            spend(60, "a search", "give less")
    spend(1e300, "a search", "give less")


HIDDEN = {"transition_matrix": [["1/2", "1/2"], ["1/3", "2/3"]], "length": 50}
HIDDEN |= {"observation_matrix": [["1/5", "4/5"], ["2/3", "1/3"]]}
HIDDEN |= {"initial_distributions": {"yes": [1, 0], "no": [0, 1]}}
NEXT = {"table": [[0.5, 0.5], [0.25, 0.75]]}
LINE = [{"name": f"v{i}", "parents": [f"v{i - 1}"]} | NEXT for i in range(1, 9)]
LINE = {"variables": [{"name": "v0", "table": [0.5, 0.5]}, *LINE]}
SEARCHES = [("check", HIDDEN, "--factor=3"), ("network", LINE, "--epsilon=1")]


@pytest.mark.parametrize(("command", "document", "option"), SEARCHES)
def test_a_search_ends_at_the_bound(command, document, option, tmp_path, run, monkeypatch):
    # estimated before, and refused then
    monkeypatch.setattr("pufferflow.networks.mechanism.OPERATIONS_PER_SUM", 0.0)
    (tmp_path / "file").write_text(json.dumps(document))
    words = ("related", command, tmp_path / "file", option)
    assert run(*words)[0] == 0
    code, out, err = run(*words, "--most-work", 1000)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "takes more than the 1e+03 operations that are taken on; " in err


def test_every_mechanism_of_a_household_is_taken_on():
    """That of 51 states, with its certificate, by kinds and numbers alone."""
    for name in MECHANISMS:
        plain, proved = (scale_work(name, chain(51), 100, certified=c) for c in (False, True))
        assert 0 < plain <= proved
        assert plain + proved < MAX_WORK
        assert scale_work(name, chain(51, seed=2), 100) == plain


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "asked"),
    [(chain, (40, "stationary")), (chain, (30, "any")), (clock, (20, 1)), (clock, (13, 60))],
)
def test_estimates_are_near_what_was_measured(made, asked):
    """On a busy or fast machine: a factor of ten says that the formula is of this world."""
    compute_scale("leakage", made(3, asked[1]), 100, 1.0)
    theta, begin = made(*asked), time.process_time()
    compute_scale("leakage", theta, 10**5, 1.0)
    taken = time.process_time() - begin
    assert taken / 10 < scale_work("leakage", theta, 10**5) / A_SECOND < taken * 10
