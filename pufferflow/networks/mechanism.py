"""The Markov Quilt Mechanism on general Bayesian networks, and what several releases cost.

The scale at ε is max_i min_Q card(X_N)/(ε − e_Q), and the cost of a release of scale σ is max_i
min_Q [e_Q + card(X_N)/σ]. K releases cost at most K times the largest single cost (Theorem 4.4: the
sets of quilts are the same for all), and at most that of one release of scale 1/Σ_k 1/σ_k: given
the records the noises are independent, so all together change by at most
exp(card(X_N) · Σ_k 1/σ_k) with X_N.

All quilts below a partial one have card(N) ≥ card(N') and, by data processing, e(Q) ≥ e(Q'), which
bounds their score. Partial quilts are taken up in the order of this bound until it reaches the best
score found: the search is exact, and local if influence decays. The trivial quilt and spheres in
the moral graph are tried first. Beyond a limit of partial quilts of a node, the best one found is
improved by moving single variables; then the scale may be larger than needed, never smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from pufferflow._checks import check_epsilon, check_list, check_scale, check_type
from pufferflow._composition import PRECISION, joint_scale
from pufferflow._noise import LaplaceNoise
from pufferflow._rounding import divide_up, quilt_score
from pufferflow._work import afford
from pufferflow.errors import NetworkError, ParameterError
from pufferflow.networks.influence import influences
from pufferflow.networks.network import BayesianNetwork
from pufferflow.networks.quilts import MarkovQuilt, best_first, mask_of, members, reached, spheres

LIMIT = 5_000
"""Partial quilts to take up for a node: all of them in any network of 12 variables (2^12)."""

MAX_STEPS = 10**7
"""Steps along edges of the search for all nodes: in large networks it takes up fewer."""

OPERATIONS_PER_SUM = 5e4
"""Operations that it takes to sum one variable out of the joint distribution of a pair."""


@dataclass(frozen=True)
class NetworkScale(LaplaceNoise):
    """The Laplace scale of the Markov Quilt Mechanism on networks, and what decides it.

    Attributes
    ----------
    epsilon : float
    scale : float
        Laplace scale of a query that changes by at most 1 (L1 norm) when one variable changes,
        rounded up; an L-Lipschitz query gets L · scale on every coordinate.
    node, quilt, nearby : str, tuple of str, tuple of str
        A worst node, its active quilt X_Q and the nearby set X_N.
    influence : float
        Max-influence of that quilt, in nats.
    network : int
        Index of the network that decides.
    optimal : bool
        Whether no set of Markov quilts of these networks gives a smaller scale.
    """

    epsilon: float
    scale: float
    node: str
    quilt: tuple[str, ...]
    nearby: tuple[str, ...]
    influence: float
    network: int
    optimal: bool
    mechanism = "mqm-network"
    reason = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types."""
        names = {"quilt": list(self.quilt), "nearby": list(self.nearby)}
        return {"mechanism": self.mechanism, **asdict(self), **names}


@dataclass(frozen=True)
class NetworkCost:
    """What a number of releases on networks costs together: the two bounds, in nats, rounded up."""

    releases: int
    theorem_4_4: float
    """K · max_k ε_k."""
    quilts: float
    """The cost of one release of scale 1/Σ_k 1/σ_k; it is never above the other bound."""


def markov_quilt_mechanism(
    networks: BayesianNetwork | Iterable[BayesianNetwork],
    epsilon: float,
    *,
    secrets: Iterable[str] | None = None,
    query: Iterable[str] | None = None,
) -> NetworkScale:
    """Return the scale of the Markov Quilt Mechanism (Song et al., Algorithm 2), rounded up.

    Parameters
    ----------
    networks : BayesianNetwork or iterable of BayesianNetwork
        Θ. All have the same variables with the same states, and maybe different graphs: the best
        quilt is taken for every network by itself, as Algorithm 3 does for chains.
    epsilon : float
        ε > 0.
    secrets : iterable of str, optional
        Variables whose value is protected (default: all).
    query : iterable of str, optional
        Variables that the query reads (default: all). card(X_N) counts only these: given X_R and
        X_Q the others cannot change the answer, so hidden causes may be part of a network.

    Raises
    ------
    ParameterError
        ε or the limit is out of range, or it takes more work than is allowed.
    NetworkError
        There is no network, they differ in their variables or states, or a name is unknown.
    """
    epsilon = check_epsilon(epsilon)

    def score(card: int, influence: float) -> float:
        # only that of the empty quilt is exactly 0
        return quilt_score(card, influence, epsilon) if influence else divide_up(card, epsilon)

    search = _Search(networks, secrets, query)
    index, node, best = search.worst(score)
    quilt = MarkovQuilt.of(search.family[index], node, best.quilt, best.nearby)
    names = (quilt.node, quilt.quilt, quilt.nearby)
    return NetworkScale(epsilon, best.score, *names, best.influence, index, best.optimal)


def network_cost(
    networks: BayesianNetwork | Iterable[BayesianNetwork],
    scales: Iterable[float],
    *,
    secrets: Iterable[str] | None = None,
    query: Iterable[str] | None = None,
) -> NetworkCost:
    """Return what Laplace releases of 1-Lipschitz queries on the same networks cost together.

    Parameters
    ----------
    networks, secrets, query
        As for :func:`markov_quilt_mechanism`; ``query`` are the variables that any query reads.
    scales : iterable of float
        The scale of the noise of each release.

    Raises
    ------
    ParameterError, NetworkError
        A scale is not a positive number; as for :func:`markov_quilt_mechanism`.
    """
    noise = check_list(scales, "scales")
    if not noise or not all(isinstance(scale, int | float | np.number) for scale in noise):
        raise ParameterError("scales must be one or more numbers; give that of each release")
    noise = [check_scale(scale) for scale in noise]
    search = _Search(networks, secrets, query)

    def cost(scale: float) -> float:
        def score(card: int, influence: float) -> float:
            # rounded up so far that the scale at this ε, itself rounded up, is at most ``scale``
            return (influence + card / scale) * (1 + PRECISION / 4)

        return search.worst(score)[2].score

    theorem = math.nextafter(len(noise) * cost(min(noise)), math.inf)
    return NetworkCost(len(noise), theorem, cost(joint_scale(noise)))


class _Quilt(NamedTuple):
    """The best quilt of a node that was found; sets as bit masks."""

    score: float
    quilt: int
    nearby: int
    influence: float
    optimal: bool = False


class _Search:
    """Networks, the variables to protect and those to count, and the search for worst nodes.

    A score is a function of card(X_N) and the influence that grows with both.
    """

    def __init__(self, networks: Any, secrets: Any, query: Any) -> None:
        single = isinstance(networks, BayesianNetwork)
        self.family = [networks] if single else check_list(networks, "networks")
        if not self.family:
            raise NetworkError("there is no network; give at least one")
        for i, network in enumerate(self.family, 1):
            check_type(network, f"network {i}", BayesianNetwork)
            one, first = (
                set(zip(n.names, n.states, strict=True)) for n in (network, self.family[0])
            )
            for name, _ in sorted(one ^ first):
                raise NetworkError(f"network {i} and network 1 differ in {name!r} or its states")
        self.protected = self._variables(secrets, "secrets")
        self.read = self._variables(query, "query")
        ancestors = sum(mask.bit_count() for network in self.family for mask in network.ancestors)
        afford(
            len(self.protected) * ancestors * OPERATIONS_PER_SUM,
            f"the search for quilts in {len(self.family)} networks of {len(one)} variables",
            "give smaller networks, or protect fewer variables (secrets)",
        )
        steps = sum(len(network) + sum(map(len, network.parents)) for network in self.family)
        self.limit = min(LIMIT, MAX_STEPS // (len(self.protected) * steps))

    def _variables(self, given: Any, what: str) -> list[str]:
        names = self.family[0].names if given is None else check_list(given, what)
        for name in names:
            self.family[0].index(name)
        if not names:
            raise NetworkError(f"the list {what} is empty; name at least one variable")
        return list(dict.fromkeys(names))

    def worst(self, score: Callable[[int, float], float]) -> tuple[int, int, _Quilt]:
        """Return the network, the node and the quilt of the largest score."""
        nodes = []
        for index, network in enumerate(self.family):
            # those in the middle first: often the worst, after which the others are quick
            here = sorted(map(network.index, self.protected))
            radius = {i: sum(1 for _ in spheres(network, i)) for i in here}
            nodes += [(index, i) for i in sorted(here, key=radius.__getitem__)]
        found = 0, 0, _Quilt(-1.0, 0, 0, 0.0)
        for index, node in tqdm(nodes, desc="quilts", unit=" nodes", disable=None, leave=False):
            best = self._best(self.family[index], node, score, enough=found[2].score)
            if best.score > found[2].score:
                found = index, node, best
        return found

    def _best(
        self,
        network: BayesianNetwork,
        node: int,
        score: Callable[[int, float], float],
        enough: float,
    ) -> _Quilt:
        """Return the best quilt of a node, or the first one found of a score up to ``enough``."""
        counted, influence = mask_of(map(network.index, self.read)), influences(network)
        best, exhaustive = _Quilt(math.inf, 0, 0, 0.0), True

        def bound(quilt: int, nearby: int) -> float:
            return score((nearby & counted).bit_count(), influence.bound(node, quilt))

        def better(quilt: int, nearby: int) -> _Quilt:
            nonlocal exhaustive
            e = influence(node, quilt)
            exhaustive &= not math.isnan(e)  # no quilt is skipped
            value = score((nearby & counted).bit_count(), e)
            return _Quilt(value, quilt, nearby, e) if value < best.score else best

        def within(observed: int) -> _Quilt:
            connected = mask_of(reached(network, node, observed))
            quilt, nearby = connected & observed, connected & ~observed
            return better(quilt, nearby) if bound(quilt, nearby) < best.score else best

        for observed in (0, *spheres(network, node)):
            best = within(observed) if best.score > enough else best
        # of equal bounds the fuller quilt first, to reach one soon
        partial = best_first(network, node, lambda q, n: (bound(q, n), -q.bit_count()))
        for taken, ((least, _), quilt, nearby, complete) in enumerate(partial):
            if least >= best.score:
                break
            if best.score <= enough:
                return best
            if taken == self.limit:
                exhaustive, start = False, None
                while start is not best:  # as long as the score falls
                    start = best
                    for v in members((start.quilt | start.nearby) & ~(1 << node)):
                        best = within((1 << len(network)) - 1 & ~start.nearby ^ 1 << v)
                break
            if complete:
                best = better(quilt, nearby)
        return best._replace(optimal=exhaustive)
