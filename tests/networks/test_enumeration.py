"""Networks and their mechanism against enumeration, and mqm_exact on chains; files, commands."""

import json
import math
from decimal import Decimal
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from cases import counts, seeds
from enumeration import _sixty_fourths, exact_scale, log_influence, random_chain

import pufferflow as pf
from pufferflow import networks
from pufferflow._util.work import MAX_WORK, allowing
from pufferflow.errors import NetworkError, ParameterError
from pufferflow.networks import BayesianNetwork, Variable, influence, mechanism
from pufferflow.networks.mechanism import markov_quilt_mechanism

EPSILONS = [1e-4, 0.1, 0.7, 2.0, 6.0, 1e4]
KINDS = ["tree", "polytree", "grid", "general"]
HALF = [0.5, 0.5]
ANN = Variable("Ann", [0.9, 0.1])
BOB = Variable("Bob", [[0.95, 0.05], [0.4, 0.6]], ["Ann"])
PAIR = BayesianNetwork([BOB, ANN])
CHAIN = pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]])


def random_graph(rng, kind, nodes):
    """Edges (parent, child), all from a smaller to a larger number."""
    if kind == "tree":
        return [(int(rng.integers(v)), v) for v in range(1, nodes)]
    if kind == "polytree":  # a tree with edges either way: colliders without loops
        new = rng.permutation(nodes)
        return [
            tuple(sorted((int(new[int(rng.integers(v))]), int(new[v])))) for v in range(1, nodes)
        ]
    if kind == "grid":  # 2 × nodes / 2
        width = nodes // 2
        right = [(r * width + c, r * width + c + 1) for r in range(2) for c in range(width - 1)]
        return right + [(c, width + c) for c in range(width)]
    density = rng.uniform(0.15, 0.6)
    return [(u, v) for u, v in combinations(range(nodes), 2) if rng.random() < density]


def random_network(rng, kind, nodes, zeros=0.25):
    """A network with tables in multiples of 1/64, some zero, its variables in random order."""
    edges = random_graph(rng, kind, nodes)
    states = (
        rng.integers(1, 4, size=nodes) if rng.random() < 0.3 else rng.integers(2, 4, size=nodes)
    )
    variables = []
    for v in range(nodes):
        parents = [int(u) for u in rng.permutation([u for u, w in edges if w == v])]
        table = np.empty((*states[parents], states[v]))
        # near the uniform distribution influences are small and quilts useful
        spread = rng.choice([0.3, 1.0, 8.0])
        for at in np.ndindex(table.shape[:-1]):
            weights = rng.gamma(spread, size=states[v]) + 0.01
            if rng.random() < zeros:
                weights *= rng.random(states[v]) < 0.6
            if not weights.any():
                weights[rng.integers(states[v])] = 1
            table[at] = [float(p) for p in _sixty_fourths(weights)]
        variables.append(Variable(f"V{v}", table, [f"V{u}" for u in parents]))
    return BayesianNetwork([variables[i] for i in rng.permutation(nodes)])


def joint_weights(network):
    """Weights of all joint states, an axis per variable: integers; tables are multiples of 1/64."""
    weights = np.ones((1,) * len(network), dtype=object)
    for v, table in enumerate(network.tables):
        scope = [*network.parents[v], v]
        values = np.array([int(p * 64) for p in table.ravel()], dtype=object)
        assert (values / 64 == table.ravel()).all()
        shape = [network.tables[u].shape[-1] if u in scope else 1 for u in range(len(network))]
        values = values.reshape(table.shape).transpose(np.argsort(scope))
        weights = weights * values.reshape(shape)
    return weights


def all_quilts(network, node):
    """Every set Q without ``node``, with the smallest nearby set for it (indices)."""
    graph = nx.DiGraph([(p, v) for v, parents in enumerate(network.parents) for p in parents])
    graph.add_nodes_from(range(len(network)))
    others = [v for v in range(len(network)) if v != node]
    for size in range(len(others) + 1):
        for quilt in combinations(others, size):
            rest = [v for v in others if v not in quilt]
            remote = [v for v in rest if nx.is_d_separator(graph, node, v, set(quilt))]
            yield list(quilt), [node, *(v for v in rest if v not in remote)]


def quilt_table(network, nodes=None):
    """For every node all (quilt, nearby, max-influence)."""
    joint = joint_weights(network)
    return {
        node: [
            (quilt, nearby, log_influence(joint, [node], quilt))
            for quilt, nearby in all_quilts(network, node)
        ]
        for node in (range(len(network)) if nodes is None else nodes)
    }


def scale_of(table, epsilon, counted=None):
    """σ of Algorithm 2 over all quilts."""

    def card(nearby):
        return sum(counted is None or v in counted for v in nearby)

    quilts = [[(card(nearby), e) for _, nearby, e in of_node] for of_node in table.values()]
    return exact_scale(quilts, epsilon)


def largest_loss(network, scale, secrets, query):
    """Largest log ratio of the densities of a noisy count under two secrets, at integer outputs.

    Counted are the variables of ``query`` in their last state: a change of one of them changes the
    count by at most 1. The largest ratio over all real outputs is attained at an integer.
    """
    weights = (joint_weights(network) / 64 ** len(network)).astype(float).ravel()
    states = np.indices([t.shape[-1] for t in network.tables]).reshape(len(network), -1)
    hits = sum((states[v] == network.tables[v].shape[-1] - 1).astype(int) for v in query)
    outputs = np.arange(len(query) + 1)
    noise = np.exp(-np.abs(outputs[:, None] - outputs[None, :]) / scale)
    worst = 0.0
    for node in secrets:
        counts = np.zeros((network.tables[node].shape[-1], len(outputs)))
        np.add.at(counts, (states[node], hits), weights)
        counts = counts[counts.sum(axis=1) > 0]
        densities = counts / counts.sum(axis=1, keepdims=True) @ noise
        worst = max(worst, *(math.log(column.max() / column.min()) for column in densities.T))
    return worst


def drawn(seed, count, nodes=(2, 3, 4, 5, 6, 6, 7)):
    rng = np.random.default_rng([4, seed])
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        yield random_network(rng, kind, 6 if kind == "grid" else int(rng.choice(nodes))), rng


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_scale_is_the_best_over_all_quilts_and_never_below(seed):
    """Also of some secrets and a query of some variables; and the loss of a noisy count of it."""
    for network, rng in drawn(seed, 10):
        n, names = len(network), np.array(network.names)
        some = [rng.permutation(n)[: rng.integers(1, n + 1)].tolist() for _ in "sq"]
        for secrets, query in (some, (range(n), range(n))):
            table = quilt_table(network, secrets)
            named = (names[list(of)].tolist() for of in (secrets, query))
            options = dict(zip(("secrets", "query"), named, strict=True))
            for epsilon in EPSILONS:
                exact = scale_of(table, epsilon, query)
                found = markov_quilt_mechanism(network, epsilon, **options)
                assert found.optimal
                assert Decimal(found.scale) >= exact, (network.tables, epsilon)
                assert found.scale <= float(exact) * (1 + 1e-12 + 1e-12 / epsilon), network.tables
                quilts = {frozenset(quilt): row for quilt, *row in table[network.index(found.node)]}
                nearby, e = quilts[frozenset(map(network.index, found.quilt))]
                assert {network.index(name) for name in found.nearby} == set(nearby)
                assert 0 <= found.influence - float(e) + 1e-16 <= 1e-12
                if n <= 6 and found.scale and 0.1 <= epsilon <= 6:
                    assert largest_loss(network, found.scale, secrets, query) <= epsilon + 1e-9


@pytest.mark.parametrize("number", counts(4, 12))
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_without_the_search_the_scale_is_still_private(seed, number, monkeypatch):
    monkeypatch.setattr(mechanism, "LIMIT", 0)
    larger = 0
    for network, _ in drawn(20 + seed, number):
        table = quilt_table(network)
        for epsilon in EPSILONS:
            exact = scale_of(table, epsilon)
            found = markov_quilt_mechanism(network, epsilon)
            assert exact <= Decimal(found.scale) <= Decimal(len(network) / epsilon * (1 + 1e-15))
            larger += found.scale > float(exact) * (1 + 1e-9)
            quilt = {network.index(name) for name in found.quilt}
            rows = [row for row in table[network.index(found.node)] if set(row[0]) == quilt]
            own = len(found.nearby) / (epsilon - float(rows[0][2]))
            assert own <= found.scale * (1 + 1e-12)
    assert larger < 3 * number  # of six times as many: often optimal, not always


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_minimal_quilts_dominate_all_others(seed):
    for network, _ in drawn(50 + seed, 8, nodes=(1, 2, 4, 6)):
        for node, name in enumerate(network.names):
            minimal = [
                tuple(frozenset(map(network.index, names)) for names in (q.quilt, q.nearby))
                for q in networks.markov_quilts(network, name)
            ]
            cards = [len(nearby) for _, nearby in minimal]
            assert cards == sorted(cards)
            assert len(set(minimal)) == len(minimal)
            every = {frozenset(q): frozenset(nearby) for q, nearby in all_quilts(network, node)}
            for quilt, nearby in minimal:
                assert every[quilt] == nearby
                assert not any(every[quilt - {q}] <= nearby for q in quilt)
            for quilt, nearby in every.items():
                assert any(q <= quilt and n <= nearby for q, n in minimal)


def test_influence_of_any_set():
    for network, rng in drawn(70, 24):
        joint, names = joint_weights(network), np.array(network.names)
        for _ in range(4):
            kept = rng.permutation(len(network))[: rng.integers(1, len(network) + 1)].tolist()
            found = networks.max_influence(network, names[kept[0]], names[kept[1:]].tolist())
            exact = log_influence(joint, kept[:1], kept[1:])
            assert exact <= Decimal(found)
            assert found <= float(exact) + 1e-12


def test_probabilities_below_the_range_of_floats_never_lower_the_influence():
    tiny = [[1.0, 1e-200], [1e-200, 1.0]]
    later = [Variable(*of) for of in (("B", tiny, ["A"]), ("C", tiny, ["B"]))]
    network = BayesianNetwork([Variable("A", [1.0, 1e-200]), *later])
    # P(C=1 | A=1) / P(C=1 | A=0) = 1e200 / 2
    assert networks.max_influence(network, "A", ["C"]) >= 200 * np.log(10)
    assert markov_quilt_mechanism(network, 1.0).scale == 3


def test_strongly_correlated_grid_of_4_by_4():
    """The queue is ordered by a bound that holds the influence: card(X_N) alone ends early."""
    cells = [(r, c) for r in range(4) for c in range(4)]
    grid = []
    for r, c in cells:
        parents = [f"{a}{b}" for a, b in ((r - 1, c), (r, c - 1)) if (a, b) in cells]
        share = sum(np.indices((2,) * len(parents))) / max(len(parents), 1)
        ill = 0.5 + 0.15 * np.sign(share - 0.5) if parents else np.float64(0.5)
        grid.append(Variable(f"{r}{c}", np.stack([1 - ill, ill], axis=-1), parents))
    found = markov_quilt_mechanism(BayesianNetwork(grid), 1.0, secrets=["11", "22"])
    assert found.optimal
    assert found.scale == pytest.approx(9.586589230345893, rel=1e-12)  # the trivial quilt: 16


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_on_chains_it_is_mqm_exact(seed):
    rng = np.random.default_rng([5, seed])
    chains = (random_chain(rng, int(rng.integers(1, 5))) for _ in range(60))
    for exact_chain, _ in zip((c for c in chains if c.start != "any"), range(6), strict=False):
        chain, length = pf.MarkovChain(*exact_chain.floats()), int(rng.choice([1, 2, 3, 8, 15, 30]))
        for epsilon in (0.3, 1.0, 4.0, 50.0):
            found = markov_quilt_mechanism(networks.chain_network(chain, length), epsilon)
            expected = pf.mqm_exact(chain, length, epsilon)
            assert found.optimal
            assert found.scale == pytest.approx(expected.scale, rel=1e-12), (exact_chain, length)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_cost_of_several_releases_is_the_best_over_all_quilts(seed):
    """The bound of one quilt for all releases, against every quilt and against Theorem 4.4."""
    for network, rng in drawn(40 + seed, 4, nodes=(2, 3, 4, 5)):
        table = quilt_table(network)
        scales = rng.uniform(0.3, 5, int(rng.integers(1, 5))).tolist()
        cost = networks.network_cost(network, scales)

        def exact(each, table=table):
            nodes = ((float(e) + len(nearby) * each for _, nearby, e in q) for q in table.values())
            return max(map(min, nodes))

        together = sum(1 / scale for scale in scales)
        assert cost == pytest.approx(exact(together), rel=1e-9)
        assert cost >= exact(together) * (1 - 1e-15)
        assert cost <= len(scales) * exact(1 / min(scales)) * (1 + 1e-9)  # Theorem 4.4
        assert markov_quilt_mechanism(network, cost).scale <= 1 / together
        own = [markov_quilt_mechanism(network, epsilon).scale for epsilon in (0.5, 2.0)]
        assert networks.network_cost(network, own) <= 2.5 * (1 + 1e-9)  # Σ ε_k


def test_networks():
    assert (PAIR.names, PAIR.parents, PAIR.children) == (("Bob", "Ann"), ((1,), ()), ((), (0,)))
    assert PAIR.ancestors == (0b11, 0b10)
    assert not PAIR.tables[0].flags.writeable
    assert abs(BayesianNetwork([Variable("A", [0.3 + 4e-10, 0.7])]).tables[0].sum() - 1) <= 2**-52


def test_the_result():
    found = markov_quilt_mechanism(PAIR, 6.0)
    assert (found.mechanism, found.node, found.quilt) == ("mqm-network", "Bob", ("Ann",))
    assert found.scale == pytest.approx(1 / (6 - found.influence), rel=1e-15)
    other = BayesianNetwork([ANN, Variable("Bob", HALF)])  # another graph
    both = markov_quilt_mechanism([other, PAIR], 6.0)
    assert (both.scale, both.network) == (found.scale, 1)
    unread = markov_quilt_mechanism(PAIR, 6.0, secrets=["Bob"], query=["Ann"])
    assert (unread.nearby, unread.scale) == (("Bob",), 0.0)  # what Ann reveals of Bob is below ε
    assert markov_quilt_mechanism(PAIR, 1.0, secrets=["Bob"], query=["Ann"]).scale == 1.0


def test_large_networks(monkeypatch):
    """What takes long is refused, the search of a node has its share, large tables are skipped."""
    chain = networks.chain_network(CHAIN, 1000)
    with allowing(MAX_WORK), pytest.raises(ParameterError, match="1000 variables would take"):
        markov_quilt_mechanism(chain, 1.0)
    tree = networks.chain_network(CHAIN, 12)
    whole = markov_quilt_mechanism(tree, 4.0)
    computed = influence.log_ratios.cache_info().misses
    assert whole == markov_quilt_mechanism(tree, 4.0)
    assert influence.log_ratios.cache_info().misses == computed  # once for all ε
    monkeypatch.setattr(mechanism, "MAX_STEPS", 0)
    part = markov_quilt_mechanism(tree, 4.0)
    assert (whole.optimal, part.optimal) == (True, False)
    assert whole.scale <= part.scale
    one = [Variable("V0", [1])]
    one += [Variable(f"V{v}", [[1]], [f"V{v - 1}"]) for v in range(1, 80)]
    assert markov_quilt_mechanism(BayesianNetwork(one), 2.0).scale == pytest.approx(0.5, rel=1e-15)
    monkeypatch.undo()
    monkeypatch.setattr(influence, "MAX_CELLS", 4)
    parents = [Variable(name, HALF) for name in "PQ"]
    ring = BayesianNetwork([*parents, Variable("R", [[HALF, HALF]] * 2, ["P", "Q"])])
    found = markov_quilt_mechanism(ring, 1.0)
    assert (found.scale, found.quilt, found.optimal) == (3.0, (), False)
    with pytest.raises(NetworkError, match="too large tables"):
        networks.max_influence(ring, "R", ["P", "Q"])


def test_files_and_the_command_line(run, tmp_path):
    document = {"variables": [vars(BOB), vars(ANN)]}
    (tmp_path / "two.json").write_text(json.dumps({"networks": [document, document]}))
    for one in networks.read_networks(tmp_path / "two.json"):
        assert (one.names, one.parents) == (PAIR.names, PAIR.parents)
        assert all((a == b).all() for a, b in zip(one.tables, PAIR.tables, strict=True))
    asked = ("related", "network", "-", "--epsilon", 6, "--epsilon", 1, "--releases", 3)
    code, out, err = run(*asked, "--json", stdin=json.dumps(document))
    assert (code, err) == (0, "")
    results, found = json.loads(out), markov_quilt_mechanism(PAIR, 6)
    cost = networks.network_cost(PAIR, [found.scale] * 3)
    assert [r["epsilon"] for r in results] == [6, 1]
    assert results[0] == found.to_dict() | {"cost": cost}
    head, row, _ = run(*asked, stdin=json.dumps(document))[1].splitlines()
    assert head.split()[:6] == ["epsilon", "scale", "node", "quilt", "nearby", "influence"]
    assert row.split()[1:5] == [repr(found.scale), "Bob", "Ann", "Bob"]
    assert row.split()[-1] == repr(cost)
