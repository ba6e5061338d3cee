"""Networks by definition: joint distributions, every set Q, graph separation by networkx."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import networkx as nx
import numpy as np
from enumeration import DIGITS, _sixty_fourths, influence_ratio

from pufferflow.networks import BayesianNetwork, Variable


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
        whole = [Fraction(p) * 64 for p in table.ravel().tolist()]
        assert all(p.denominator == 1 for p in whole)
        scope = [*network.parents[v], v]
        values = (
            np.array([int(p) for p in whole], dtype=object)
            .reshape(table.shape)
            .transpose(np.argsort(scope))
        )
        shape = [network.tables[u].shape[-1] if u in scope else 1 for u in range(len(network))]
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


def influence_of(joint, node, quilt):
    """Max-influence to ``DIGITS`` digits, by Definition 4.1."""
    numerator, denominator = influence_ratio(joint, [node], quilt)
    with localcontext() as context:
        context.prec = DIGITS
        return (
            (Decimal(numerator) / Decimal(denominator)).ln() if denominator else Decimal("Infinity")
        )


def quilt_table(network, nodes=None):
    """For every node all (quilt, nearby, max-influence)."""
    joint = joint_weights(network)
    return {
        node: [
            (quilt, nearby, influence_of(joint, node, quilt))
            for quilt, nearby in all_quilts(network, node)
        ]
        for node in (range(len(network)) if nodes is None else nodes)
    }


def exact_scale(table, epsilon, counted=None):
    """σ of Algorithm 2 over all quilts."""
    exact = Decimal(epsilon)
    with localcontext() as context:
        context.prec = DIGITS
        return max(
            min(_card(nearby, counted) / (exact - e) for _, nearby, e in quilts if e < exact)
            for quilts in table.values()
        )


def _card(nearby, counted):
    return sum(counted is None or v in counted for v in nearby)


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
