"""Results of mechanisms and the noise they add; for their scales see test_worked_values."""

import json

import numpy as np
import plain_influence
import pytest

import pufferflow as pf
from pufferflow.audit import chain_sensitivity
from pufferflow.mechanisms import MECHANISMS, find_mechanism

WEAK = pf.MarkovChain([[0.6, 0.4], [0.4, 0.6]])
FIELDS = [
    *("mechanism", "epsilon", "length", "scale", "status", "reason", "node", "quilt", "influence"),
    *("chain", "count", "window", "side_information"),
]


@pytest.mark.parametrize("name", MECHANISMS)
def test_results_name_their_setting_and_are_plain_json(name):
    assert MECHANISMS[name] is find_mechanism(name)
    result = MECHANISMS[name](WEAK, [5, 50], 1)
    assert (result.mechanism, result.status, result.reason) == (name, "ok", "")
    assert result.length == (5 if name == "wasserstein" else 50)
    fields = json.loads(json.dumps(result.to_dict()))
    assert list(fields) == FIELDS
    assert fields["scale"] == result.scale
    assert type(result.scale) is float


@pytest.mark.parametrize("several", [[1.0], (0.5, 2.0), np.array([0.5, 2.0])])
@pytest.mark.parametrize(
    "function", [*MECHANISMS.values(), pf.certify, pf.event_epsilon, pf.lower_bound]
)
def test_several_epsilons_have_a_list_of_results(function, several):
    alone = [function(WEAK, [5, 50], float(epsilon)) for epsilon in several]
    assert function(WEAK, [5, 50], epsilon=several) == alone


@pytest.mark.parametrize("rare", [1 / 8, 1 / 64])
def test_the_printed_eigengap_would_be_too_large(rare):
    """Of a chain whose PP* is reducible, {0, 2} and {1} apart: half of what is needed and less."""
    chain = pf.MarkovChain([[rare, 1 - rare, 0], [0, 0, 1], [rare, 1 - rare, 0]])
    product = np.linalg.eigvals(chain.transition_matrix @ chain.time_reversal).real
    printed_gap = min(1 - abs(value) for value in product if value < 1 - 1e-9)
    assert (printed_gap, chain.eigengap("general")) == (pytest.approx(1), 0)
    smallest = float(chain.stationary_distribution.min())
    printed = plain_influence.approximate_noise_scale(150, 1.0, smallest, printed_gap)
    exact = pf.mqm_exact(chain, 150, 1.0).scale
    assert printed < exact / 1.9
    assert pf.mqm_approx(chain, 150, 1.0).scale >= exact


@pytest.mark.parametrize("alpha", [0.2, 0.3])
def test_the_corner_of_the_synthetic_class_has_the_largest_w(alpha):
    """On grids; of the whole class that is not proved."""
    stays = np.linspace(alpha, 1 - alpha, 5)
    found = {
        (p, q): chain_sensitivity(pf.MarkovChain([[p, 1 - p], [1 - q, q]], "any"), 30, [0, 1]).W
        for p in stays
        for q in stays
        if p >= q  # exchanging the states changes nothing
    }
    assert max(found.values()) == found[stays[-1], stays[-1]]


def test_the_command_counts_the_states_that_are_named(tmp_path, run):
    chain = pf.MarkovChain([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])
    model, proof = tmp_path / "model.json", tmp_path / "proof.json"
    model.write_text(json.dumps(pf.ChainFamily([chain]).document()))
    asked = ("scale", model, "--length", 30, "--epsilon", 1, "--mechanism", "wasserstein", "--json")
    assert json.loads(run(*asked)[1])[0]["status"] == "not applicable"
    counted = (*asked, "--count", 0, "--count", 2)
    expected = pf.wasserstein(chain, 30, 1.0, states=[0, 2]).to_dict() | {"private": True}
    assert json.loads(run(*counted)[1]) == [expected]
    assert run(*counted, "--length", 7, "--certificate", proof)[0] == 0
    assert json.loads(proof.read_text())["proofs"][0]["count"]["lengths"] == [7, 30]
    assert "the count with weights 1, 0, 1 alone" in run("verify", proof)[1]


@pytest.mark.parametrize("side_information", ["none", "any"])
def test_windows_and_side_information_are_computed_and_certified(side_information):
    chain = pf.MarkovChain([[0.7, 0.3], [0.4, 0.6]])
    for window, said in ((1, "single records"), (3, "any 3 records in a row"), (60, "any 60")):
        asked = {"window": window, "side_information": side_information}
        result = pf.leakage(chain, 50, 1.0, **asked)
        assert result.to_dict() | asked == result.to_dict()
        proved = result.certified(chain)
        assert (proved.window, proved.side_information) == (window, side_information)
        assert result.scale * (1 - 1e-6) <= proved.scale <= 1.3 * result.scale
        found = pf.verify_certificate(json.loads(json.dumps(proved.certificate))).subject
        assert said in found
        assert found.endswith(f"side information {side_information}")
