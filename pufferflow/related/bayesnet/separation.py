"""d-separation in the graph of a Bayesian network, sets of variables as bit masks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pufferflow.related.bayesnet.elimination import members
from pufferflow.related.bayesnet.network import BayesianNetwork


class Separation:
    """d-separation in the graph of a network."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._parents, self._children = network.parents, network.children
        self._ancestors = network.ancestors
        self._moral = [0] * len(network)
        for v, parents in enumerate(network.parents):
            family = sum(1 << u for u in (v, *parents))
            for u in (v, *parents):
                self._moral[u] |= family & ~(1 << u)

    def reached(self, node: int, observed: int) -> list[int]:
        """Variables d-connected to ``node`` given the other ones in ``observed``, nearest first, ``node`` included.

        The members of ``observed`` among them are those at which an active trail ends (the "Bayes ball").
        """
        opened = 0  # colliders that an observation opens
        for v in members(observed):
            opened |= self._ancestors[v]
        trail = [(node, True)]  # a variable, and whether it was reached from a child
        seen = {(node, True)}
        order: dict[int, None] = {}
        for v, upwards in trail:
            order[v] = None
            hidden = not observed >> v & 1
            steps: list[tuple[int, bool]] = []
            if hidden if upwards else opened >> v & 1:
                steps += [(p, True) for p in self._parents[v]]
            if hidden:
                steps += [(c, False) for c in self._children[v]]
            for step in steps:
                if step not in seen:
                    seen.add(step)
                    trail.append(step)
        return list(order)

    def split(self, node: int, observed: int) -> tuple[int, int]:
        """Minimal quilt within ``observed`` and its nearby set."""
        reached = sum(1 << v for v in self.reached(node, observed))
        return reached & observed, reached & ~observed

    def spheres(self, node: int) -> Iterator[int]:
        """Variables at distance 1, 2, … in the moral graph."""
        inside = layer = 1 << node
        while layer:
            around = 0
            for v in members(layer):
                around |= self._moral[v]
            layer = around & ~inside
            inside |= layer
            if layer:
                yield layer

    def branches(self, node: int) -> list[int]:
        """Sets into which ``node`` divides the other variables: given X_i they are mutually independent.

        A trail that is active given X_i alone avoids i, or passes it from a parent to a parent: so these are the
        connected components of the graph without i, those with parents of i joined.
        """
        left = (1 << len(self._parents)) - 1 & ~(1 << node)
        branches = []
        above = sum(1 << p for p in self._parents[node])
        while left:
            branch = frontier = above or left & -left
            above = 0
            while frontier:
                around = 0
                for v in members(frontier):
                    around |= sum(1 << u for u in (*self._parents[v], *self._children[v]))
                frontier = around & left & ~branch
                branch |= frontier
            branches.append(branch)
            left &= ~branch
        return branches


@lru_cache(maxsize=32)
def separation(network: BayesianNetwork) -> Separation:
    """d-separation of ``network``, shared by all calls on the same object."""
    return Separation(network)
