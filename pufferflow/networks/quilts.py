"""Markov quilts of a Bayesian network: d-separation, and the quilts of a node, best first.

Given X_Q, let N be X_i with everything that is d-connected to it and not in Q: the smallest nearby
set for Q. Members of Q that are d-separated from X_i given the others add nothing; quilts without
such members are *minimal*, and one of them is optimal. The search extends *partial* quilts: a
subset Q' of the quilt and a subset N' of the nearby set. The first variable in breadth-first order
from X_i along trails active given Q' that is in neither set is added to one or the other; it stays
connected by the trail that reached it. If no such variable is left, Q' is a quilt; every minimal
one is reached exactly once. Sets of variables are bit masks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count
from typing import Any

from pufferflow._util.checks import check_type
from pufferflow.networks.network import BayesianNetwork


@dataclass(frozen=True)
class MarkovQuilt:
    """A Markov quilt X_Q of X_i (Definition 4.2): X_R is independent of X_i given X_Q."""

    node: str
    """X_i."""
    quilt: tuple[str, ...]
    nearby: tuple[str, ...]
    """X_N, with X_i."""
    remote: tuple[str, ...]
    """X_R, all other variables."""

    @classmethod
    def of(cls, network: BayesianNetwork, node: int, quilt: int, nearby: int) -> MarkovQuilt:
        """Return the quilt of indices by the names of the variables."""
        sets = quilt, nearby, (1 << len(network)) - 1 & ~(quilt | nearby)
        named = (tuple(network.names[v] for v in members(of)) for of in sets)
        return cls(network.names[node], *named)


def markov_quilts(network: BayesianNetwork, node: str) -> Iterator[MarkovQuilt]:
    """Yield all minimal Markov quilts of a node, in the order of card(X_N).

    X_N is the smallest nearby set for X_Q, and no variable of X_Q is d-separated from X_i by the
    others. Every other quilt has a score at least that of one of these. There may be exponentially
    many. Raises NetworkError: there is no such variable.
    """
    check_type(network, "network", BayesianNetwork)
    i = network.index(node)
    for _, quilt, nearby, complete in best_first(network, i, lambda _, n: n.bit_count()):
        if complete:
            yield MarkovQuilt.of(network, i, quilt, nearby)


def best_first(
    network: BayesianNetwork, node: int, key: Callable[[int, int], Any]
) -> Iterator[tuple[Any, int, int, bool]]:
    """Yield (key, quilt, nearby, complete) of the partial quilts of a node, the smallest key first.

    ``key(quilt, nearby)`` must not fall as the sets grow: then no later quilt has a smaller key
    than the last one. ``complete``: it is a minimal quilt.
    """
    order = count()
    pending = [(key(0, 1 << node), next(order), 0, 1 << node)]
    while pending:
        value, _, quilt, nearby = heappop(pending)
        trail = reached(network, node, quilt)
        v = next((v for v in trail if not (quilt | nearby) >> v & 1), None)
        yield value, quilt, nearby, v is None and len(trail) == (quilt | nearby).bit_count()
        if v is not None:
            for part in ((quilt | 1 << v, nearby), (quilt, nearby | 1 << v)):
                heappush(pending, (key(*part), next(order), *part))


def members(mask: int) -> list[int]:
    """Return the elements of a set, increasing."""
    return [v for v, bit in enumerate(f"{mask:b}"[::-1]) if bit == "1"]


def mask_of(elements: Iterable[int]) -> int:
    """Return the set of distinct elements."""
    return sum(1 << v for v in elements)


def reached(network: BayesianNetwork, node: int, observed: int) -> list[int]:
    """Return the variables d-connected to ``node``, nearest first, ``node`` included.

    Given are the others in ``observed``; those of it in the result end an active trail ("Bayes
    ball").
    """
    opened = 0  # colliders that an observation opens
    for v in members(observed):
        opened |= network.ancestors[v]
    trail = [(node, True)]  # a variable, and whether it was reached from a child
    met = set(trail)
    for v, upwards in trail:
        hidden = not observed >> v & 1
        steps = [(c, False) for c in network.children[v]] if hidden else []
        if hidden if upwards else opened >> v & 1:
            steps = [(p, True) for p in network.parents[v]] + steps
        for step in steps:
            if step not in met:
                met.add(step)
                trail.append(step)
    return list(dict.fromkeys(v for v, _ in trail))


@lru_cache(maxsize=2**12)
def branches(network: BayesianNetwork, node: int) -> list[int]:
    """Return the sets into which X_i divides the others: mutually independent given X_i.

    A trail that is active given X_i alone avoids i or passes it from a parent to a parent, so these
    are the connected components of the graph without i, those with parents of i joined.
    """
    left = (1 << len(network)) - 1 & ~(1 << node)
    found, first = [], mask_of(network.parents[node])
    while left:
        branch = frontier = first or left & -left
        first = 0
        while frontier:
            edges = [network.parents[v] + network.children[v] for v in members(frontier)]
            frontier = mask_of({u for ends in edges for u in ends}) & left & ~branch
            branch |= frontier
        found.append(branch)
        left &= ~branch
    return found
