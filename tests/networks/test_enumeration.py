"""The Markov Quilt Mechanism on networks against enumeration, and against mqm_exact on chains."""

from decimal import Decimal

import numpy as np
import pytest
from cases import counts, seeds
from enumeration import random_chain
from plain_networks import (
    all_quilts,
    exact_scale,
    influence_of,
    joint_weights,
    largest_loss,
    quilt_table,
    random_network,
)

import pufferflow as pf
from pufferflow import networks
from pufferflow.networks import (
    BayesianNetwork,
    Variable,
    markov_quilt_mechanism,
    mechanism,
)

EPSILONS = [1e-4, 0.1, 0.7, 2.0, 6.0, 1e4]
KINDS = ["tree", "polytree", "grid", "general"]


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
                exact = exact_scale(table, epsilon, query)
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
            exact = exact_scale(table, epsilon)
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
            exact = influence_of(joint, kept[0], kept[1:])
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
