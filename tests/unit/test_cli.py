"""The command line and model files."""

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.cli import scale as scale_command
from pufferflow.models import model_document, parse_model, read_model, write_model

THETA_1 = {"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], "initial_distribution": [1, 0]}
PERIODIC = {"transition_matrix": [[0, 1], [1, 0]]}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"chains": [THETA_1]}))
    return str(path)


def fails_with(result, message):
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("pufferflow: error: ")
    assert err.count("\n") == 1
    assert message in err


# -- scale -------------------------------------------------------------------------------------------


def test_json_of_all_mechanisms(model, run):
    code, out, err = run("scale", model, "--length", 50, "--length", 100, "--epsilon", 1, "--epsilon", 0.2, "--json")
    assert (code, err) == (0, "")
    results = json.loads(out)
    assert [(r["epsilon"], r["mechanism"]) for r in results] == [(e, m) for e in (1, 0.2) for m in pf.MECHANISMS]
    keys = [
        "mechanism",
        "epsilon",
        "length",
        "scale",
        "status",
        "reason",
        "node",
        "quilt",
        "influence",
        "chain",
        "count",
        "window",
        "knows",
        "private",
    ]
    assert [r["mechanism"] for r in results if not r["private"]] == ["entry-dp"] * 2
    assert all(list(r) == keys for r in results)
    assert [r["mechanism"] for r in results if r["count"]] == ["wasserstein"] * 2
    by_name = {r["mechanism"]: r for r in results if r["epsilon"] == 1}
    exact = by_name["mqm-exact"]
    assert exact["scale"] == pf.mqm_exact(read_model(model), 100, 1.0).scale
    assert (exact["node"], exact["quilt"], exact["length"]) == (8, {"left": 7, "right": 5}, 100)
    assert (exact["chain"], exact["status"], exact["reason"]) == (0, "ok", "")
    gk16 = by_name["gk16"]
    assert (gk16["scale"], gk16["quilt"], gk16["status"]) == (None, None, "not applicable")
    assert "spectral norm" in gk16["reason"]


def test_options_reach_their_mechanisms(model, run):
    options = ("--convention", "published", "--eigengap", "general", "--json")
    _, out, _ = run("scale", model, "--length", 100, "--epsilon", 1, *options)
    scales = {r["mechanism"]: r["scale"] for r in json.loads(out)}
    assert scales["mqm-exact"] == pytest.approx(13.02192350)
    assert scales["mqm-approx"] == pf.mqm_approx(read_model(model), 100, 1.0, eigengap="general").scale


def test_table(model, run):
    arguments = ("--mechanism", "mqm-exact", "--mechanism", "gk16", "--mechanism", "group-dp")
    code, out, _ = run("scale", model, "--length", 100, "--epsilon", 1, *arguments)
    assert code == 0
    head, exact, gk16, group = out.splitlines()
    assert head.split() == ["mechanism", "epsilon", "scale", "node", "quilt", "influence", "status"]
    scale = repr(pf.mqm_exact(read_model(model), 100, 1.0).scale)
    assert exact.split() == ["mqm-exact", "1.0", scale, "X8", "{X1,", "X13}", "0.149532", "ok"]
    assert gk16.split()[:6] == ["gk16", "1.0", "-", "-", "-", "-"]
    assert "not applicable: the spectral norm" in gk16
    assert group.split() == ["group-dp", "1.0", "100.0", "-", "-", "-", "ok"]
    assert exact.index("{X1") == head.index("quilt")


def test_one_sided_and_trivial_quilts_in_the_table(tmp_path, run):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"chains": [PERIODIC]}))
    assert "{}" in run("scale", path, "--length", 5, "--epsilon", 1, "--mechanism", "mqm-exact")[1]
    path.write_text('{"binary_interval": [0.4, 0.6]}')
    assert "{X1}" in run("scale", path, "--length", 2, "--epsilon", 3, "--mechanism", "mqm-exact")[1]


def test_mechanism_that_cannot_work_on_the_chain(tmp_path, run):
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"chains": [PERIODIC]}))
    code, out, _ = run("scale", path, "--length", 5, "--epsilon", 1, "--json")
    results = {r["mechanism"]: r for r in json.loads(out)}
    assert code == 0
    assert results["mqm-approx"]["status"] == "not applicable"
    assert "period 2" in results["mqm-approx"]["reason"]
    assert results["mqm-approx"]["scale"] is None
    assert results["mqm-approx"]["length"] == 5
    assert results["mqm-exact"]["scale"] == 5
    asked = ("--mechanism", "mqm-exact", "--mechanism", "mqm-approx")
    fails_with(run("scale", path, "--length", 5, "--epsilon", 1, *asked), "needs an aperiodic chain")


def test_standard_input(run, monkeypatch):
    content = json.dumps({"binary_interval": [0.3, 0.7]}).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    code, out, _ = run("scale", "-", "--length", 100, "--epsilon", 1, "--mechanism", "mqm-exact", "--json")
    assert code == 0
    assert json.loads(out)[0]["scale"] / 100 == pytest.approx(0.0722, abs=5e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND (see pufferflow --help)"),
        (["scales"], "invalid choice: 'scales'"),
        (["scale"], "the following arguments are required: MODEL.json, --length, --epsilon (see pufferflow scale"),
        (["scale", "MODEL", "--length", "1"], "the following arguments are required: --epsilon"),
        (["scale", "MODEL", "--length", "x", "--epsilon", "1"], "argument --length: invalid int value: 'x'"),
        (["scale", "MODEL", "--length", "0", "--epsilon", "1"], "a segment length is 0"),
        (["scale", "MODEL", "--length", "9" * 30, "--epsilon", "1"], "a segment length is 9999"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "y"], "argument --epsilon: invalid float value: 'y'"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "-1"], "epsilon is -1.0; it must be a positive number"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "nan"], "epsilon is nan"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "1", "--mechanism", "no"], "mechanism 'no' is unknown"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "1", "--convention", "no"], "invalid choice: 'no'"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "1", "--eigengap", "no"], "invalid choice: 'no'"),
        (["scale", "MODEL", "--length", "5", "--epsilon", "1", "--jsn"], "unrecognized arguments: --jsn"),
    ],
)
def test_bad_arguments(model, run, arguments, message):
    fails_with(run(*[model if a == "MODEL" else a for a in arguments]), message)


@pytest.mark.parametrize(("arguments", "example"), [(["--help"], "Example: "), (["scale", "--help"], "Example: echo")])
def test_help_has_an_example(run, arguments, example):
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert example in out
    assert "usage: pufferflow" in out


@pytest.mark.parametrize(
    "words", ["release t.csv --epsilon 1", "plan --accuracy 0.1", "simulate t.csv --epsilon 1 --seed 1"]
)
def test_what_is_assumed_must_be_said(run, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    fails_with(run(*words.split()), "give --forgets with a number of steps")


def test_version(run):
    assert run("--version") == (0, f"pufferflow {pf.__version__}\n", "")


def test_interrupt(model, run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(scale_command, "read_model", interrupt)
    assert run("scale", model, "--length", 5, "--epsilon", 1) == (130, "", "")


@pytest.fixture
def verifying(tmp_path):
    """A command of a process of its own, which prints."""
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(pf.certify(pf.BinaryInterval(0.3, 0.7), 5, 1.0)))
    return [sys.executable, "-m", "pufferflow.cli", "verify", str(path)]


def test_a_reader_that_goes_away_is_no_error(verifying):
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(verifying, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_example_of_the_help_works(run):
    arguments = ["scale", "-", "--length", "100", "--epsilon", "1"]
    content = json.dumps({"chains": [THETA_1]})
    code, out, err = run(*arguments, stdin=content)
    assert (code, err) == (0, "")
    assert "12.934051" in out
    fails_with(run(*arguments, "--json", "--mechanism", "x", stdin=content), "mechanism 'x' is unknown; choose from ")


# -- model files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty; it must hold"),
        (b"  \n", "is empty; it must hold"),
        (b"\xff\xfe\x00", "is not UTF-8 text (byte 1)"),
        (b'{"chains": [}', "is not JSON: Expecting value at line 1, column 13"),
        (b'{\n "chains" 5}', "is not JSON: Expecting ':' delimiter at line 2, column 11"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"binary_interval": [NaN, 0.5]}', "NaN is not a JSON number"),
        (b'{"binary_interval": [0.1, Infinity]}', "Infinity is not a JSON number"),
        (b'{"binary_interval": [0.1, 1e999]}', "binary interval [0.1, inf]: needs 0 < low"),
        (b'{"binary_interval": [0.1, ' + b"1" * 5000 + b"]}", "holds a number that cannot be read"),
        (b"[]", "total_variation, forgetting, labelled, periodic, not a list"),
        (b"null", "a model is an object with one of the keys chains, binary_interval, interval, "),
        (b"3", "not a number"),
        (
            b"{}",
            "exactly one of the keys chains, binary_interval, interval, total_variation, forgetting, labelled, ",
        ),
        (b'{"chains": [], "binary_interval": [0.3, 0.7]}', "it has chains and binary_interval"),
        (b'{"chain": []}', "the model has the unknown key 'chain'; allowed are chains, binary_interval"),
        (b'{"chains": [], "chains": []}', "the key 'chains' is given twice in one object"),
        (b'{"chains": []}', "the family holds no chain; give at least one"),
        (b'{"chains": {}}', "chains must be a list of chains, not an object"),
        (b'{"chains": [[0.5]]}', "chain 1 must be an object with a transition_matrix, not a list"),
        (b'{"chains": [{}]}', "chain 1 has no transition_matrix"),
        (
            b'{"chains": [{"transition_matrix": [[1]]}, {"matrix": [[1]]}]}',
            "chain 2 has the unknown key 'matrix'; allowed are transition_matrix, initial_distribution",
        ),
        (b'{"chains": [{"transition_matrix": 1}]}', "chain 1: transition_matrix must be a list of rows"),
        (b'{"chains": [{"transition_matrix": [["1"]]}]}', "each a list of numbers"),
        (b'{"chains": [{"transition_matrix": [[true]]}]}', "each a list of numbers"),
        (b'{"chains": [{"transition_matrix": []}]}', "chain 1: the transition matrix must be non-empty"),
        (b'{"chains": [{"transition_matrix": [[0.5, 0.4], [0, 1]]}]}', "chain 1: row 1 of the transition matrix sums"),
        (b'{"chains": [{"transition_matrix": [[1], [1]]}]}', "chain 1: the transition matrix must be square"),
        (b'{"chains": [{"transition_matrix": [[1], [0.5, 0.5]]}]}', "rows of equal length"),
        (b'{"chains": [{"transition_matrix": [[1' + b"0" * 400 + b"]]}]}", "too large"),
        (
            b'{"chains": [{"transition_matrix": [[1]], "initial_distribution": null}]}',
            'chain 1: initial_distribution must be a list of numbers, "stationary" or "any"',
        ),
        (
            b'{"chains": [{"transition_matrix": [[1]], "initial_distribution": "none"}]}',
            "chain 1: initial distribution 'none' is unknown",
        ),
        (
            b'{"chains": [{"transition_matrix": [[1, 0], [0, 1]]}]}',
            "chain 1: the stationary distribution is not unique",
        ),
        (b'{"binary_interval": [0.3]}', "binary_interval must be a list of two numbers, low and high"),
        (b'{"binary_interval": {"low": 0.3}}', "binary_interval must be a list of two numbers"),
        (b'{"binary_interval": [0.3, "0.7"]}', "binary_interval must be a list of two numbers"),
        (b'{"binary_interval": [0.7, 0.3]}', "binary interval [0.7, 0.3]: needs 0 < low ≤ high < 1"),
    ],
)
def test_bad_model(tmp_path, run, content, message):
    path = tmp_path / "model.json"
    path.write_bytes(content)
    result = run("scale", path, "--length", 5, "--epsilon", 1)
    fails_with(result, message)
    assert str(path) in result[2]


def test_model_that_cannot_be_opened(tmp_path, run):
    missing = tmp_path / "missing.json"
    fails_with(
        run("scale", missing, "--length", 5, "--epsilon", 1), f"cannot read {missing}: No such file or directory"
    )
    fails_with(run("scale", tmp_path, "--length", 5, "--epsilon", 1), f"cannot read {tmp_path}: Is a directory")


@pytest.mark.parametrize("start", ["stationary", "any", [0.1, 0.2, 0.7]])
def test_a_written_chain_is_read_back_exactly(tmp_path, start):
    rng = np.random.default_rng(3)
    for i in range(20):
        matrix = rng.dirichlet(np.ones(3), size=3)
        chain = pf.MarkovChain(matrix, start)
        (again,) = read_model(write_model(tmp_path / f"{i}.json", chain)).chains
        assert (again.transition_matrix == chain.transition_matrix).all()
        assert again.start == chain.start
        assert start == "any" or (again.initial_distribution == chain.initial_distribution).all()


def test_families_are_read_back(tmp_path):
    interval = pf.BinaryInterval(0.3, 0.6)
    assert read_model(write_model(tmp_path / "interval.json", interval)) == interval
    family = parse_model({"chains": [THETA_1, PERIODIC]})
    assert [c.start for c in family.chains] == ["given", "stationary"]
    assert parse_model(model_document(family)).chains[1].transition_matrix.tolist() == [[0, 1], [1, 0]]
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + json.dumps({"chains": [THETA_1]}).encode())
    assert len(read_model(tmp_path / "bom.json").chains) == 1


@pytest.mark.parametrize("command", ["scale", "network"])
def test_tables_whose_sums_are_beyond_floats_are_refused(tmp_path, run, command):
    """The sum that is to be 1 is infinite: once a traceback."""
    path, huge = tmp_path / "huge.json", [[1e308, 1e308], [0, 1]]
    chains = {"chains": [{"transition_matrix": huge, "initial_distribution": "any"}]}
    network = {"variables": [{"name": "Ann", "table": huge[0]}]}
    path.write_text(json.dumps(chains if command == "scale" else network))
    asked = ("--length", 5) if command == "scale" else ()
    code, out, err = run(command, path, *asked, "--epsilon", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "inf, not to 1" in err


def test_a_full_standard_output_is_named(verifying):
    with open("/dev/full", "w") as full:
        done = subprocess.run(verifying, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "pufferflow: error: standard output: No space left on device\n")
