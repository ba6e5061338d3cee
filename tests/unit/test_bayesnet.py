"""Networks, their files, the mechanism's arguments and the command line."""

import json

import numpy as np
import pytest
from cases import counts

import pufferflow as pf
from pufferflow._work import MOST_WORK, allowing
from pufferflow.related import bayesnet
from pufferflow.related.bayesnet import elimination, mechanism
from pufferflow.related.bayesnet.influence import influence_table
from pufferflow.related.bayesnet.quilts import NodeSearch
from pufferflow.related.bayesnet.separation import separation

HALF = [0.5, 0.5]
COPY = [[1, 0], [0, 1]]
ANN = pf.Variable("Ann", [0.9, 0.1])
BOB = pf.Variable("Bob", [[0.95, 0.05], [0.4, 0.6]], ["Ann"], ["well", "ill"])
PAIR = pf.BayesianNetwork([BOB, ANN])


def tree(nodes, rng, concentration=3.0):
    law = rng.dirichlet(np.full(2, concentration))
    tables = (rng.dirichlet(np.full(2, concentration), size=2) for _ in range(1, nodes))
    later = (pf.Variable(f"V{v}", table, [f"V{(v - 1) // 2}"]) for v, table in enumerate(tables, 1))
    return pf.BayesianNetwork([pf.Variable("V0", law), *later])


# -- networks ----------------------------------------------------------------------------------------


def test_a_network():
    assert PAIR.names == ("Bob", "Ann")
    assert PAIR.parents == ((1,), ())
    assert PAIR.children == ((), (0,))
    assert PAIR.states == (("well", "ill"), ("0", "1"))
    assert PAIR.ancestors == (0b11, 0b10)
    assert not PAIR.tables[0].flags.writeable


def test_rows_are_normalised():
    table = pf.BayesianNetwork([pf.Variable("A", [0.3 + 4e-10, 0.7])]).tables[0]
    assert abs(table.sum() - 1) <= 2**-52


def test_axes_follow_the_order_of_the_parents():
    table = np.zeros((3, 2, 2))
    table[..., 0] = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
    table[..., 1] = 1 - table[..., 0]
    big = pf.Variable("Big", [0.2, 0.3, 0.5])
    both = pf.BayesianNetwork([pf.Variable("C", table, ["Big", "Ann"]), ANN, big])
    law = elimination.joint_law(both, [1, 0, 2])
    assert law.values[1, 0, 2] == pytest.approx(0.1 * 0.5 * 0.6)  # Ann = 1, C = 0, Big = 2


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ([], "no variables"),
        ([ANN, ANN], "'Ann' is given twice"),
        ([pf.Variable("", HALF)], "non-empty string"),
        ([pf.Variable(3, HALF)], "non-empty string"),
        ([BOB], "unknown parent 'Ann'"),
        ([ANN, pf.Variable("B", [COPY, COPY], ["Ann", "Ann"])], "the parent 'Ann' twice"),
        ([ANN, pf.Variable("B", COPY, "Ann")], "parents is 'Ann'; it must be a list"),
        ([pf.Variable("A", COPY, ["A"])], "the cycle A → A"),
        ([pf.Variable("A", COPY, ["B"]), pf.Variable("B", COPY, ["A"]), ANN], "the cycle A → B → A"),
        ([*(pf.Variable(v, COPY, [p]) for v, p in ("CB", "AD", "BA", "DB", "EC"))], "the cycle B → D → A → B"),
        ([pf.Variable("A", COPY)], "shape (2, 2), not (2,), as it has no parents"),
        ([ANN, pf.Variable("B", HALF, ["Ann"])], "not (2, 2) (2 for 'Ann', then its own states)"),
        ([pf.Variable("A", [0.5, [0.5]])], "nested lists of equal lengths"),
        ([pf.Variable("A", ["x", "y"])], "must be numbers"),
        ([pf.Variable("A", 1.0)], "is empty"),
        ([pf.Variable("A", [])], "is empty"),
        ([pf.Variable("A", [1.5, -0.5], states=["no", "yes"])], "has -0.5 for state 'yes'"),
        ([ANN, pf.Variable("B", [[1, 0], [np.nan, 1]], ["Ann"])], "has nan for state '0' given Ann = 1"),
        ([ANN, pf.Variable("B", [[1, 0], [0.5, 0.4]], ["Ann"])], "'B' given Ann = 1 sum to 0.9"),
        ([pf.Variable("A", HALF, states=["a"])], "has 1 states, but rows of 2"),
        ([pf.Variable("A", HALF, states=["a", "a"])], "the state 'a' twice"),
        ([pf.Variable("A", HALF, states="ab")], "states is 'ab'; it must be a list"),
    ],
)
def test_what_is_no_network(variables, message):
    with pytest.raises(pf.NetworkError) as caught:
        pf.BayesianNetwork(variables)
    assert message in str(caught.value)


def test_a_chain_as_a_network():
    chain = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])
    found = pf.chain_network(chain, 3)
    assert found.names == ("X1", "X2", "X3")
    assert (found.tables[0] == chain.stationary_distribution).all()
    with pytest.raises(pf.NetworkError, match="no single network"):
        pf.chain_network(pf.MarkovChain(COPY, "any"), 3)
    with pytest.raises(pf.ParameterError, match="length is 0"):
        pf.chain_network(chain, 0)


# -- influence and quilts ----------------------------------------------------------------------------


def test_networks_that_would_take_hours_are_refused_before_the_work(monkeypatch):
    chain = pf.MarkovChain(COPY, [0.5, 0.5])
    for length in (1001, 10**18):
        with pytest.raises(pf.ParameterError, match=f"length is {length}; it must be an integer of at most 1000"):
            pf.chain_network(chain, length)
    monkeypatch.setattr(mechanism, "_worst", None)  # would be called to start
    with (
        allowing(MOST_WORK),
        pytest.raises(pf.ParameterError, match=r"of 1000 variables would take about"),
    ):
        pf.markov_quilt_mechanism(pf.chain_network(chain, 1000), 1.0)
    many = [pf.Variable(f"X{i}", [0.5, 0.5]) for i in range(1001)]
    with pytest.raises(pf.NetworkError, match="the network has 1001 variables; at most 1000 can be handled"):
        pf.BayesianNetwork(many)


def test_the_default_limit_leaves_every_node_of_a_large_network_its_share(monkeypatch):
    network_, taken = tree(12, np.random.default_rng(5)), []

    class Search(NodeSearch):
        def __init__(self, *arguments):
            taken.append(arguments[-1])
            super().__init__(*arguments)

    monkeypatch.setattr(mechanism, "NodeSearch", Search)
    whole = pf.markov_quilt_mechanism(network_, 1.0)
    assert set(taken) == {mechanism.LIMIT}
    monkeypatch.setattr(mechanism, "MOST_STEPS", 0)
    assert pf.markov_quilt_mechanism(network_, 1.0).scale >= whole.scale
    assert taken[-1] == 0


def test_influence_of_a_pair():
    assert pf.max_influence(PAIR, "Ann", ["Bob"]) == pytest.approx(np.log(0.6 / 0.05), rel=1e-14)
    assert pf.max_influence(PAIR, "Ann", []) == 0


def test_influence_rejects():
    with pytest.raises(pf.NetworkError, match="no variable 'Eve'"):
        pf.max_influence(PAIR, "Ann", ["Eve"])
    with pytest.raises(pf.NetworkError, match="contains 'Ann' itself"):
        pf.max_influence(PAIR, "Ann", ["Ann"])


def test_a_secret_that_is_certain_has_no_influence():
    sure = pf.BayesianNetwork([pf.Variable("A", [1, 0]), pf.Variable("B", COPY, ["A"])])
    assert pf.max_influence(sure, "A", ["B"]) == 0
    assert pf.max_influence(sure, "B", ["A"]) == 0


def test_a_copy_has_infinite_influence():
    copies = pf.BayesianNetwork([pf.Variable("A", HALF), pf.Variable("B", COPY, ["A"])])
    assert pf.max_influence(copies, "A", ["B"]) == np.inf


def test_a_collider_separates_its_parents_only_while_unseen():
    exclusive_or = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    collider = pf.BayesianNetwork(
        [pf.Variable("A", HALF), pf.Variable("B", HALF), pf.Variable("C", exclusive_or, ["A", "B"])]
    )
    found = {(q.quilt, q.nearby, q.remote) for q in pf.markov_quilts(collider, "A")}
    # given C alone, A and B depend
    assert found == {((), ("A", "C"), ("B",)), (("C",), ("A", "B"), ()), (("B", "C"), ("A",), ())}


def test_branches():
    family = pf.BayesianNetwork(
        [
            *(pf.Variable(name, HALF) for name in "ABL"),
            pf.Variable("I", [COPY, COPY], ["A", "B"]),
            *(pf.Variable(name, COPY, ["I"]) for name in "CD"),
        ]
    )
    branches = separation(family).branches(family.index("I"))
    named = {frozenset(family.names[v] for v in elimination.members(branch)) for branch in branches}
    assert named == {frozenset("AB"), frozenset("L"), frozenset("C"), frozenset("D")}


def test_too_large_tables_are_skipped_and_said_so(monkeypatch):
    monkeypatch.setattr(elimination, "MOST_CELLS", 4)
    star = pf.BayesianNetwork([pf.Variable("A", [[0.4, 0.6], [0.6, 0.4]], ["B"]), pf.Variable("B", HALF), ANN])
    ring = [pf.Variable("P", HALF), pf.Variable("Q", HALF), pf.Variable("R", np.full((2, 2, 2), 0.5), ["P", "Q"])]
    found = pf.markov_quilt_mechanism(pf.BayesianNetwork(ring), 1.0)
    assert (found.scale, found.quilt, found.optimal) == (3.0, (), False)
    with pytest.raises(pf.NetworkError, match="too large tables"):
        pf.max_influence(pf.BayesianNetwork(ring), "R", ["P", "Q"])
    assert pf.markov_quilt_mechanism(star, 3.0).optimal


def test_variables_with_one_state_do_not_exhaust_the_axes():
    one = [pf.Variable(f"V{v}", np.ones((1, 1)) if v else [1.0], [f"V{v - 1}"] if v else []) for v in range(80)]
    assert pf.markov_quilt_mechanism(pf.BayesianNetwork(one), 2.0).scale == pytest.approx(0.5, rel=1e-15)


# -- the mechanism -----------------------------------------------------------------------------------


def test_the_result():
    found = pf.markov_quilt_mechanism(PAIR, 6.0)
    assert (found.mechanism, found.node, found.quilt, found.nearby) == ("mqm-network", "Bob", ("Ann",), ("Bob",))
    given_well, given_ill = 0.04 / 0.895, 0.06 / 0.105  # P(Ann = 1 | Bob)
    assert found.influence == pytest.approx(np.log(given_ill / given_well), rel=1e-14)
    assert found.scale == pytest.approx(1 / (6 - found.influence), rel=1e-15)
    assert found.noise_scale(2) == 2 * found.scale
    assert found.release([3.0, 4.0], 1, np.random.default_rng(1)).shape == (2,)
    assert json.loads(json.dumps(found.to_dict()))["quilt"] == ["Ann"]


def test_several_networks_take_the_largest_scale():
    other = pf.BayesianNetwork([ANN, pf.Variable("Bob", HALF, states=["well", "ill"])])  # another graph
    alone = [pf.markov_quilt_mechanism(n, 6.0).scale for n in (other, PAIR)]
    both = pf.markov_quilt_mechanism([other, PAIR], 6.0)
    assert (both.scale, both.network) == (max(alone), 1)
    assert alone[0] == pytest.approx(1 / 6)


@pytest.mark.parametrize("cases", counts(4, 12))
def test_the_whole_search_is_never_worse_than_a_part(cases):
    better = 0
    for seed in range(cases):
        network_ = tree(12, np.random.default_rng(seed), concentration=1.0)
        parts = [pf.markov_quilt_mechanism(network_, 4.0, limit=n) for n in (0, 3, 30)]
        whole = pf.markov_quilt_mechanism(network_, 4.0)
        assert whole.optimal
        assert all(whole.scale <= part.scale for part in parts)
        better += whole.scale < parts[0].scale
    assert better


def test_more_epsilon_needs_less_noise():
    network_ = tree(15, np.random.default_rng(4))
    scales = [pf.markov_quilt_mechanism(network_, e).scale for e in (1e-80, 0.1, 0.5, 1, 2, 10, 1e80)]
    assert scales == sorted(scales, reverse=True)


def test_a_variable_outside_the_query_costs_nothing_of_its_own():
    found = pf.markov_quilt_mechanism(PAIR, 6.0, secrets=["Bob"], query=["Ann"])
    assert (found.nearby, found.scale) == (("Bob",), 0.0)  # what Ann's state says of Bob is below ε already
    assert pf.markov_quilt_mechanism(PAIR, 1.0, secrets=["Bob"], query=["Ann"]).scale == 1.0


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((PAIR, 0), {}, pf.ParameterError, "epsilon is 0"),
        ((PAIR, 1), {"limit": -1}, pf.ParameterError, "limit is -1"),
        ((PAIR, 1), {"limit": 1.5}, pf.ParameterError, "limit is 1.5"),
        (([], 1), {}, pf.NetworkError, "there is no network"),
        (([PAIR, 3], 1), {}, pf.NetworkError, "an int is no network"),
        (([PAIR, pf.BayesianNetwork([ANN])], 1), {}, pf.NetworkError, "network 2 differs from network 1"),
        ((PAIR, 1), {"secrets": ["Eve"]}, pf.NetworkError, "no variable 'Eve'"),
        ((PAIR, 1), {"secrets": []}, pf.NetworkError, "secrets variables is empty"),
        ((PAIR, 1), {"query": "Bob"}, pf.ParameterError, "query is 'Bob'; it must be a list"),
    ],
)
def test_the_mechanism_rejects(arguments, options, error, message):
    with pytest.raises(error) as caught:
        pf.markov_quilt_mechanism(*arguments, **options)
    assert message in str(caught.value)


def test_a_grid_of_epsilons_reuses_influences():
    network_ = tree(12, np.random.default_rng(5))
    pf.markov_quilt_mechanism(network_, 1.0)
    known = len(influence_table(network_)._known)
    pf.markov_quilt_mechanism(network_, 1.0)
    assert len(influence_table(network_)._known) == known > 0


# -- files and the command line ----------------------------------------------------------------------


def test_a_network_read_back_is_the_same(tmp_path):
    networks = [tree(5, np.random.default_rng(6), c) for c in (1.0, 5.0)]
    path = bayesnet.write_networks(tmp_path / "networks.json", networks)
    found = bayesnet.read_networks(path)
    assert len(found) == 2
    for one, other in zip(networks, found, strict=True):
        assert (one.names, one.states, one.parents) == (other.names, other.states, other.parents)
        assert all((a == b).all() for a, b in zip(one.tables, other.tables, strict=True))
    assert bayesnet.read_networks(bayesnet.write_networks(tmp_path / "one.json", PAIR))[0].names == PAIR.names


@pytest.fixture
def network(run):
    def network_(document, *arguments):
        text = document if isinstance(document, str) else json.dumps(document)
        return run("related", "network", "-", *arguments, stdin=text)

    return network_


def test_command_line(network):
    document = bayesnet.network_document(PAIR)
    code, out, err = network(document, "--epsilon", 6, "--epsilon", 1, "--json")
    assert (code, err) == (0, "")
    results = json.loads(out)
    assert [r["epsilon"] for r in results] == [6, 1]
    assert results[0] == pf.markov_quilt_mechanism(PAIR, 6).to_dict()
    code, out, _ = network(document, "--epsilon", 6)
    head, row = out.splitlines()
    assert head.split() == ["epsilon", "scale", "node", "quilt", "nearby", "influence", "optimal", "cost"]
    assert row.split()[1:5] == [repr(results[0]["scale"]), "Bob", "Ann", "Bob"]
    code, out, _ = network(document, "--epsilon", 6, "--secret", "Ann", "--query", "Ann", "--json")
    assert json.loads(out)[0]["node"] == "Ann"
    code, out, _ = network(document, "--epsilon", 6, "--releases", 3, "--json")
    cost = pf.network_cost(PAIR, [results[0]["scale"]] * 3)
    assert json.loads(out)[0]["cost"] == {"releases": 3, "theorem_4_4": cost.theorem_4_4, "quilts": cost.quilts}
    code, out, _ = network(document, "--epsilon", 6, "--releases", 3)
    assert f"theorem_4_4 {cost.theorem_4_4}" in out
    code, _, err = network(document, "--epsilon", 6, "--releases", 0)
    assert code == 2
    assert "releases is 0; it must be an integer of at least 1" in err


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("", "is empty; it must hold"),
        ("{", "is not JSON"),
        ([], "not a list"),
        ({}, "it has neither"),
        ({"variables": [], "networks": []}, "it has both"),
        ({"chains": []}, "unknown key 'chains'"),
        ({"variables": 3}, "variables must be a list"),
        ({"variables": []}, "no variables"),
        ({"networks": 3}, "must be a list of networks"),
        ({"networks": []}, "there is no network"),
        ({"networks": [3]}, "network 1: a network is an object"),
        ({"networks": [{}]}, "network 1: variables must be a list"),
        ({"variables": ["Ann"]}, "variable 1 must be an object"),
        ({"variables": [{"name": "Ann"}]}, "variable 1 has no table"),
        ({"variables": [{"name": 3, "table": [1]}]}, "name must be a string"),
        ({"variables": [{"name": "Ann", "table": [1], "cpt": 2}]}, "unknown key 'cpt'"),
        ({"variables": [{"name": "Ann", "table": [1], "parents": "Bob"}]}, "parents must be a list of names"),
        ({"variables": [{"name": "Ann", "table": [True]}]}, "table must be numbers"),
        ({"variables": [{"name": "Ann", "table": 1}]}, "table must be numbers"),
        (
            {"networks": [{"variables": [{"name": "Ann", "table": [0.5, 0.4]}]}]},
            "network 1: the probabilities of 'Ann'",
        ),
    ],
)
def test_bad_files(network, document, message):
    code, out, err = network(document, "--epsilon", 1)
    assert (code, out) == (2, "")
    assert err.startswith("pufferflow: error: ")
    assert err.count("\n") == 1
    assert message in err
