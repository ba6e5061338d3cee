"""Markov quilts of a Bayesian network: d-separation, and the search for the best quilt of a node.

*One quilt, one separation.* Given X_Q, let N be X_i with everything that is d-connected to it and not in Q, and R the
rest. d-separation from X_i holds for R as a whole if it holds for its members, so this R is the largest and this
N the smallest one for Q. Members of Q that are themselves d-separated from X_i given the others add nothing (the
quilt without them has the same or a smaller N and no larger influence). What is left are the *minimal* quilts,
and one of them is optimal.

*Search.* A partial quilt is a set Q' of variables put into the quilt and a set N' put into the nearby set. The
first variable in breadth-first order from X_i along trails active given Q' that is in neither set is put into one
or the other; the trail that reached it is decided, so it stays connected whatever follows. Where no such variable
is left, Q' is a quilt. Every minimal quilt is reached exactly once. All quilts below a partial one have
card(N) ≥ card(N') and, by data processing, e(Q) ≥ e(Q'), which the influences of single variables bound from
below. Partial quilts are taken up in the order of the smallest score this allows, and the search ends when that
exceeds the best one found: it is exact, and local where influence decays. Only where more than ``limit`` partial
quilts have been taken up for a node does it give up, and improve the best quilt known by moving single variables
over the border; then the scale may be larger than needed, never smaller. Spheres in the moral graph (the
variables at distance 1, 2, …) and the trivial quilt are tried first in any case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count

from pufferflow._checks import check_type
from pufferflow._display import displayed
from pufferflow._rounding import divide_up, quilt_score
from pufferflow.related.bayesnet.elimination import TooLargeError, members
from pufferflow.related.bayesnet.influence import influence_table
from pufferflow.related.bayesnet.network import BayesianNetwork
from pufferflow.related.bayesnet.separation import separation


@dataclass(frozen=True)
@displayed("node", "quilt", "nearby", "remote")
class MarkovQuilt:
    """A Markov quilt X_Q of X_i (Definition 4.2): X_R is independent of X_i given X_Q.

    Attributes
    ----------
    node : str
        X_i.
    quilt, nearby, remote : tuple of str
        X_Q, X_N (with X_i) and X_R: together all variables.
    """

    node: str
    quilt: tuple[str, ...]
    nearby: tuple[str, ...]
    remote: tuple[str, ...]


def markov_quilts(network: BayesianNetwork, node: str) -> Iterator[MarkovQuilt]:
    """All minimal Markov quilts of a node, in the order of card(X_N).

    Minimal means that X_N is the smallest nearby set for X_Q and that no variable of X_Q is d-separated from X_i by
    the others. Every other quilt has a score at least that of one of these. There may be exponentially many; they
    are made one by one.

    Parameters
    ----------
    network : BayesianNetwork
    node : str

    Raises
    ------
    NetworkError
        There is no such variable.
    """
    check_type(network, "network", BayesianNetwork)
    i = network.index(node)
    graph = separation(network)
    everything = (1 << len(network)) - 1
    order = count()
    pending = [(1, next(order), 0, 1 << i)]
    while pending:
        _, _, quilt, nearby = heappop(pending)
        reached = graph.reached(i, quilt)
        v = next((v for v in reached if not (quilt | nearby) >> v & 1), None)
        if v is not None:
            heappush(pending, (nearby.bit_count(), next(order), quilt | 1 << v, nearby))
            heappush(pending, (nearby.bit_count() + 1, next(order), quilt, nearby | 1 << v))
        elif len(reached) == (quilt | nearby).bit_count():
            yield _named(network, i, quilt, nearby, everything & ~(quilt | nearby))


def _named(network: BayesianNetwork, node: int, *sets: int) -> MarkovQuilt:
    quilt, nearby, remote = (tuple(network.names[v] for v in members(mask)) for mask in sets)
    return MarkovQuilt(network.names[node], quilt, nearby, remote)


@dataclass(frozen=True)
class ScoredQuilt:
    """A quilt of a node with its score, sets as bit masks.

    Attributes
    ----------
    node, quilt, nearby : int
    influence : float
    score : float
        card / (ε − influence), rounded up.
    optimal : bool
        Whether no quilt of this node is better.
    """

    node: int
    quilt: int
    nearby: int
    influence: float
    score: float
    optimal: bool = False

    def named(self, network: BayesianNetwork) -> MarkovQuilt:
        """The quilt by the names of the variables."""
        everything = (1 << len(network)) - 1
        return _named(network, self.node, self.quilt, self.nearby, everything & ~(self.quilt | self.nearby))


class NodeSearch:
    """Best quilt of one node; see the module's text.

    Parameters
    ----------
    counted : int
        Bit mask of the variables that the query reads: card(X_N) counts these.
    limit : int
        Most partial quilts to take up.
    """

    def __init__(self, network: BayesianNetwork, node: int, epsilon: float, counted: int, limit: int) -> None:
        self.node = node
        self.epsilon = epsilon
        self.counted = counted
        self.limit = limit
        self._graph = separation(network)
        self._influence = influence_table(network)
        self._everything = (1 << len(network)) - 1
        self._skipped = False
        self.best = self._trivial()

    def _trivial(self) -> ScoredQuilt:
        _, nearby = self._graph.split(self.node, 0)
        return ScoredQuilt(self.node, 0, nearby, 0.0, divide_up(self._card(nearby), self.epsilon))

    def run(self, enough: float) -> ScoredQuilt:
        """Best quilt, or the first one found whose score is at most ``enough``."""
        for sphere in self._graph.spheres(self.node):
            if self.best.score <= enough:
                return self.best
            self._try(sphere)
        order = count()
        pending = [(self._bound(0, 1 << self.node), 0, next(order), 0, 1 << self.node)]
        taken = 0
        while pending and pending[0][0] < self.best.score:
            if self.best.score <= enough:
                return self.best
            if taken == self.limit:
                self._improve()
                return self.best
            taken += 1
            _, _, _, quilt, nearby = heappop(pending)
            reached = self._graph.reached(self.node, quilt)
            v = next((v for v in reached if not (quilt | nearby) >> v & 1), None)
            if v is None:
                if len(reached) == (quilt | nearby).bit_count():
                    self._evaluate(quilt, nearby)
                continue
            for part in ((quilt | 1 << v, nearby), (quilt, nearby | 1 << v)):
                bound = self._bound(*part)
                if bound < self.best.score:
                    # of equal bounds the fuller one first, to reach a quilt soon
                    heappush(pending, (bound, -part[0].bit_count(), next(order), *part))
        if not self._skipped:
            self.best = replace(self.best, optimal=True)
        return self.best

    def _improve(self) -> None:
        """Move single variables between the quilt and the nearby set as long as the score falls."""
        start = None
        while start is not self.best:
            start = self.best
            for v in members(start.quilt):
                self._try(self._everything & ~(start.nearby | 1 << v))
            for v in members(start.nearby & ~(1 << self.node)):
                self._try(self._everything & ~start.nearby | 1 << v)

    def _try(self, observed: int) -> None:
        """Evaluate the minimal quilt within ``observed``."""
        quilt, nearby = self._graph.split(self.node, observed)
        if self._bound(quilt, nearby) < self.best.score:
            self._evaluate(quilt, nearby)

    def _evaluate(self, quilt: int, nearby: int) -> None:
        try:
            e = self._influence(self.node, quilt)
        except TooLargeError:
            self._skipped = True
            return
        value = self._score(nearby, e)
        if value < self.best.score:
            self.best = ScoredQuilt(self.node, quilt, nearby, e, value)

    def _bound(self, quilt: int, nearby: int) -> float:
        """Lower bound, up to rounding, of the scores of all quilts that a partial one may become."""
        return self._score(nearby, self._influence.bound(self.node, quilt))

    def _score(self, nearby: int, influence: float) -> float:
        return quilt_score(self._card(nearby), influence, self.epsilon)

    def _card(self, nearby: int) -> int:
        return (nearby & self.counted).bit_count()
