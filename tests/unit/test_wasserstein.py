import json
from itertools import product

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.audit import chain_sensitivity
from pufferflow.cli import main
from pufferflow.errors import ParameterError
from pufferflow.mechanisms import MECHANISMS
from pufferflow.mechanisms import wasserstein as module_or_function

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])
THETA_2 = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], [0.9, 0.1])
THREE = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])


# -- the mechanism ---------------------------------------------------------------------------------


def test_running_example():
    """W = 4 for θ1 and for θ2 at T = 100."""
    for chain in (THETA_1, THETA_2):
        found = chain_sensitivity(chain, 100, [0, 1])
        assert found.W == found.strict == 4
    for epsilon in (0.2, 1.0, 5.0):
        result = pf.wasserstein(pf.ChainFamily([THETA_1, THETA_2]), 100, epsilon)
        assert result.scale == pytest.approx(4 / epsilon)
        assert result.scale >= 4 / epsilon
        assert (result.status, result.mechanism) == ("ok", "wasserstein")
        assert (result.length, result.chain) == (100, 0)


def test_registry():
    assert MECHANISMS["wasserstein"] is pf.wasserstein is module_or_function


def test_states():
    assert (
        pf.wasserstein(THETA_1, 50, 1.0, states=[0]).scale == pf.wasserstein(THETA_1, 50, 1.0).scale
    )
    left_out = pf.wasserstein(THREE, 50, 1.0)
    assert (left_out.scale, left_out.status) == (None, "not applicable")
    assert "say which of the 3 states to count (states, or --count" in left_out.reason
    one, rest = (pf.wasserstein(THREE, 50, 1.0, states=s).scale for s in ([2], (0, 1)))
    assert one == rest
    assert pf.wasserstein(THREE, 50, 1.0, states=[0, 1, 2]).scale == 0
    assert pf.wasserstein(pf.MarkovChain([[1.0]]), 50, 1.0).scale == 0
    for states, message in (
        ([3], "state 3 is requested, but the chain has the states 0 to 2"),
        ([], "at least one state"),
        (1, "states is an int; give a set of states"),
    ):
        with pytest.raises(ParameterError, match=message):
            pf.wasserstein(THREE, 50, 1.0, states=states)


@pytest.mark.parametrize(
    ("family", "length", "reason"),
    [
        (pf.BinaryInterval(0.3, 0.7), 10, "finitely many chains"),
        (THETA_1, 10**6, "time of order T³"),
        (THETA_1, list(range(1900, 2000)), "time of order T³"),
    ],
)
def test_not_applicable(family, length, reason):
    result = pf.wasserstein(family, length, 1.0)
    assert (result.scale, result.status) == (None, "not applicable")
    assert reason in result.reason


def test_a_class_of_one_chain():
    result = pf.wasserstein(pf.BinaryInterval(0.5, 0.5), 10, 1.0)
    assert result.scale == pytest.approx(1.0)


def test_bad_numbers():
    with pytest.raises(ParameterError, match="epsilon is 0; it must be a positive number"):
        pf.wasserstein(THETA_1, 10, 0)
    with pytest.raises(ParameterError, match="length is a list"):
        pf.wasserstein(THETA_1, [3, 0], 1.0)


def test_command_line(tmp_path, capsys):
    model = tmp_path / "model.json"
    model.write_text(
        json.dumps({"chains": [{"transition_matrix": THREE.transition_matrix.tolist()}]})
    )
    arguments = ["scale", str(model), "--length", "30", "--epsilon", "1"]
    arguments += ["--mechanism", "wasserstein", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)[0]["status"] == "not applicable"
    assert main([*arguments, "--count", "0", "--count", "2"]) == 0
    expected = pf.wasserstein(THREE, 30, 1.0, states=[0, 2])
    assert json.loads(capsys.readouterr().out)[0] == expected.to_dict() | {"private": True}
    assert expected.to_dict()["count"] == {"states": [0, 2], "lengths": [30]}
    proof = tmp_path / "proof.json"
    counts = ["--count", "0", "--count", "2", "--length", "7"]
    assert main([*arguments, *counts, "--certificate", str(proof)]) == 0
    assert json.loads(proof.read_text())["proofs"][0]["count"]["lengths"] == [7, 30]
    capsys.readouterr()
    assert main(["verify", str(proof)]) == 0
    assert "the count with weights 1, 0, 1 alone" in capsys.readouterr().out
    assert main([*arguments, "--count", "7"]) == 2
    assert "state 7 is requested, but the chain has the states 0 to 2" in capsys.readouterr().err


def test_the_class_of_the_synthetic_experiment():
    """On grids the corner chain has the largest W; of the whole class that is not proved."""
    for alpha, known in ((0.2, 5), (0.3, 3)):
        stays = np.linspace(alpha, 1 - alpha, 5)
        largest = {
            (p, q): chain_sensitivity(pf.MarkovChain([[p, 1 - p], [1 - q, q]], "any"), 30, [0, 1]).W
            for p, q in product(stays, stays)
            if p >= q  # exchanging the states changes nothing
        }
        assert max(largest.values()) == largest[stays[-1], stays[-1]] == known
    corner = pf.MarkovChain([[0.8, 0.2], [0.2, 0.8]], "any")
    assert pf.wasserstein(corner, 30, 0.5).scale == 10
