"""Model files: what they may hold, and what is said of those that hold anything else."""

import json

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.models import model_document, parse_model, read_model, write_model

THETA_1 = {"transition_matrix": [[0.9, 0.1], [0.4, 0.6]], "initial_distribution": [1, 0]}
PERIODIC = {"transition_matrix": [[0, 1], [1, 0]]}


def fails_with(result, message):
    code, out, err = result
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("pufferflow: error: ")
    assert message in err


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
        (b'{"chains": [[0.5]]}', "chain 1 must be an object with transition_matrix, not a list"),
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


@pytest.mark.parametrize("command", ["scale", "related network"])
def test_tables_whose_sums_are_beyond_floats_are_refused(tmp_path, run, command):
    """The sum that is to be 1 is infinite: once a traceback."""
    path, huge = tmp_path / "huge.json", [[1e308, 1e308], [0, 1]]
    chains = {"chains": [{"transition_matrix": huge, "initial_distribution": "any"}]}
    network = {"variables": [{"name": "Ann", "table": huge[0]}]}
    path.write_text(json.dumps(chains if command == "scale" else network))
    asked = ("--length", 5) if command == "scale" else ()
    code, out, err = run(*command.split(), path, *asked, "--epsilon", 1)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert ("inf, not to 1" if command == "scale" else "with the sum 1") in err
