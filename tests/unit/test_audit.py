"""The exact loss of several scales at once, and the command; see test_worked_values too."""

import json

import numpy as np
import pytest

import pufferflow as pf
from pufferflow.audit import CountQuery, HistogramQuery, privacy_losses
from pufferflow.mechanisms import MECHANISMS

THETA_1 = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]], [1, 0])


@pytest.mark.parametrize("query", [CountQuery({1}), HistogramQuery()])
@pytest.mark.parametrize("start", ["stationary", "any"])
def test_losses_at_several_scales_are_those_of_the_worst_chain_at_each(query, start):
    chains = [
        pf.MarkovChain(matrix, start)
        for matrix in ([[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]])
    ]
    scales = [5.0, 0.7, 40.0]
    found = privacy_losses(pf.ChainFamily(chains), 9, scales, query)
    for scale, one in zip(scales, found, strict=True):
        alone = [pf.privacy_loss(chain, 9, scale, query).loss for chain in chains]
        assert one == pf.privacy_loss(pf.ChainFamily(chains), 9, scale, query)
        assert (one.loss, one.chain) == (max(alone), int(np.argmax(alone)))


@pytest.fixture
def audit(tmp_path, run):
    def audit_(*arguments, chain=THETA_1, epsilon=("--epsilon", 1)):
        path = tmp_path / "model.json"
        path.write_text(json.dumps(pf.ChainFamily([chain]).document()))
        return run("audit", path, *epsilon, *arguments)

    return audit_


def rows_of(result):
    code, out, err = result
    assert (code, err) == (0, "")
    return {row["mechanism"]: row for row in json.loads(out)}


def test_audit_of_all_mechanisms_states_which_do_not_apply(audit):
    asked = ("--length", 30, "--count", 1)
    rows, printed = rows_of(audit(*asked, "--json")), audit(*asked)[1]
    assert set(rows) == set(MECHANISMS)
    assert rows["gk16"]["loss"] is None
    assert rows["gk16"]["reason"] in printed
    assert rows["entry-dp"]["ratio"] > 1 > rows["mqm-exact"]["ratio"]
    assert printed.splitlines()[1].split()[:2] == ["mechanism", "scale"]
    for name, row in rows.items():
        if row["loss"] is not None:
            assert row["scale"] == MECHANISMS[name](THETA_1, 30, 1.0).scale
            exact = pf.privacy_loss(THETA_1, 30, row["scale"], CountQuery({1}))
            assert (row["loss"], row["lower"]) == (exact.loss, exact.lower)
            assert (row["guarantee"], row["ratio"]) == (1.0, exact.loss)


def test_audit_of_windows(audit):
    rows = rows_of(audit("--length", 40, "--count", 1, "--protect", 5, "--json"))
    scale = pf.leakage(THETA_1, 40, 1.0, window=5).scale
    assert (rows["leakage"]["scale"], rows["leakage"]["window"]) == (scale, 5)
    exact = pf.privacy_loss(THETA_1, 40, scale, CountQuery([1]), window=5)
    assert rows["leakage"]["loss"] == exact.loss <= 1
    assert rows["wasserstein"]["scale"] is None
    assert "windows of 5" in audit("--length", 40, "--count", 1, "--scale", 30, "--protect", 5)[1]


def test_audit_of_wasserstein_is_of_the_states_counted(audit):
    three = pf.MarkovChain([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])
    asked = ("--length", 20, "--mechanism", "wasserstein", "--json")
    (row,) = rows_of(audit("--count", 2, *asked, chain=three)).values()
    assert row["scale"] == pf.wasserstein(three, 20, 1.0, states=[2]).scale
    assert row["loss"] <= 1
    (row,) = rows_of(audit("--histogram", *asked, chain=three)).values()
    assert row["scale"] is None
    assert "the query is missing" in row["reason"]


def test_audit_of_a_scale_and_of_one_mechanism_with_an_option(audit):
    asked = ("--length", 20, "--histogram", "--scale", 3)
    (row,) = rows_of(audit(*asked, "--json", epsilon=())).values()
    assert (row["guarantee"], row["ratio"], row["query"]) == (None, None, "histogram")
    assert row["loss"] == pf.privacy_loss(THETA_1, 20, 3.0, HistogramQuery()).loss
    assert "-" in audit(*asked, epsilon=())[1]
    asked = ("--length", 100, "--count", 1, "--mechanism", "mqm-exact", "--convention", "published")
    assert "0.23746252" in audit(*asked)[1]
    asked = ("--histogram", "--mechanism", "group-dp", "--length", 20)
    assert audit(*asked)[0] == audit(*asked, "--most-work", 1e9)[0] == 0


def test_a_scale_of_zero_is_a_fact_and_the_other_rows_go_on(audit):
    """A count of all states is the same for every secret."""
    asked = ("--length", 20, "--count", 0, "--count", 1)
    rows = rows_of(audit(*asked, "--json"))
    nothing = rows.pop("wasserstein")
    assert nothing["scale"] == nothing["loss"] == nothing["ratio"] == 0
    assert nothing["status"] == "ok"
    assert "reveals nothing" in nothing["reason"]
    assert "reveals nothing" in audit(*asked)[1]
    assert all(row["loss"] < 1e-9 for row in rows.values() if row["scale"] is not None)


def test_a_scale_too_small_to_audit_costs_its_row_only(audit):
    """Asked for by name, it is an error: see refusals.txt."""
    rows = rows_of(audit("--length", 5, "--count", 1, "--json", epsilon=("--epsilon", 200)))
    assert (rows["entry-dp"]["loss"], rows["entry-dp"]["status"]) == (None, "not audited")
    assert "at least 0.00667" in rows["entry-dp"]["reason"]
    assert rows["group-dp"]["loss"] > 0
