"""Networks, their files, and the command line."""

import json

import numpy as np
import pytest

import pufferflow as pf
from pufferflow._util.work import MAX_WORK, allowing
from pufferflow.errors import NetworkError, ParameterError
from pufferflow.networks import BayesianNetwork as Network
from pufferflow.networks import (
    Variable,
    chain_network,
    influence,
    markov_quilt_mechanism,
    max_influence,
    mechanism,
    network_cost,
    read_networks,
)

V = Variable
HALF = [0.5, 0.5]
ANN = V("Ann", [0.9, 0.1])
BOB = V("Bob", [[0.95, 0.05], [0.4, 0.6]], ["Ann"])
PAIR = Network([BOB, ANN])
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])


def test_networks():
    assert (PAIR.names, PAIR.parents, PAIR.children) == (("Bob", "Ann"), ((1,), ()), ((), (0,)))
    assert PAIR.ancestors == (0b11, 0b10)
    assert not PAIR.tables[0].flags.writeable
    assert abs(Network([V("A", [0.3 + 4e-10, 0.7])]).tables[0].sum() - 1) <= 2**-52


def test_the_result():
    found = markov_quilt_mechanism(PAIR, 6.0)
    assert (found.mechanism, found.node, found.quilt) == ("mqm-network", "Bob", ("Ann",))
    assert found.scale == pytest.approx(1 / (6 - found.influence), rel=1e-15)
    other = Network([ANN, V("Bob", HALF)])  # another graph
    both = markov_quilt_mechanism([other, PAIR], 6.0)
    assert (both.scale, both.network) == (found.scale, 1)
    unread = markov_quilt_mechanism(PAIR, 6.0, secrets=["Bob"], query=["Ann"])
    assert (unread.nearby, unread.scale) == (("Bob",), 0.0)  # what Ann reveals of Bob is below ε
    assert markov_quilt_mechanism(PAIR, 1.0, secrets=["Bob"], query=["Ann"]).scale == 1.0


def test_large_networks(monkeypatch):
    """What takes long is refused, the search of a node has its share, large tables are skipped."""
    chain = chain_network(CHAIN, 1000)
    with allowing(MAX_WORK), pytest.raises(ParameterError, match="1000 variables would take"):
        markov_quilt_mechanism(chain, 1.0)
    tree = chain_network(CHAIN, 12)
    whole = markov_quilt_mechanism(tree, 4.0)
    computed = influence.log_ratios.cache_info().misses
    assert whole == markov_quilt_mechanism(tree, 4.0)
    assert influence.log_ratios.cache_info().misses == computed  # once for all ε
    monkeypatch.setattr(mechanism, "MAX_STEPS", 0)
    part = markov_quilt_mechanism(tree, 4.0)
    assert (whole.optimal, part.optimal) == (True, False)
    assert whole.scale <= part.scale
    one = [V(f"V{v}", np.ones((1,) * (1 + (v > 0))), [f"V{v - 1}"] * (v > 0)) for v in range(80)]
    assert markov_quilt_mechanism(Network(one), 2.0).scale == pytest.approx(0.5, rel=1e-15)
    monkeypatch.undo()
    monkeypatch.setattr(influence, "MAX_CELLS", 4)
    ring = Network([V("P", HALF), V("Q", HALF), V("R", np.full((2, 2, 2), 0.5), ["P", "Q"])])
    found = markov_quilt_mechanism(ring, 1.0)
    assert (found.scale, found.quilt, found.optimal) == (3.0, (), False)
    with pytest.raises(NetworkError, match="too large tables"):
        max_influence(ring, "R", ["P", "Q"])


# -- files and the command line ----------------------------------------------------------------

DOCUMENT = {
    "variables": [{"name": v.name, "table": v.table, "parents": v.parents} for v in (BOB, ANN)]
}


def test_command_line(run, tmp_path):
    (tmp_path / "two.json").write_text(json.dumps({"networks": [DOCUMENT, DOCUMENT]}))
    for one in read_networks(tmp_path / "two.json"):
        assert (one.names, one.parents) == (PAIR.names, PAIR.parents)
        assert all((a == b).all() for a, b in zip(one.tables, PAIR.tables, strict=True))
    asked = ("related", "network", "-", "--epsilon", 6, "--epsilon", 1, "--releases", 3)
    code, out, err = run(*asked, "--json", stdin=json.dumps(DOCUMENT))
    assert (code, err) == (0, "")
    results, found = json.loads(out), markov_quilt_mechanism(PAIR, 6)
    cost = network_cost(PAIR, [found.scale] * 3)
    assert [r["epsilon"] for r in results] == [6, 1]
    assert results[0] == found.to_dict() | {"cost": cost}
    head, row, _ = run(*asked, stdin=json.dumps(DOCUMENT))[1].splitlines()
    assert head.split()[:6] == ["epsilon", "scale", "node", "quilt", "nearby", "influence"]
    assert row.split()[1:5] == [repr(found.scale), "Bob", "Ann", "Bob"]
    assert row.split()[-1] == repr(cost)
