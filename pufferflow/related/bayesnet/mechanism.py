"""The Markov Quilt Mechanism on general Bayesian networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pufferflow._checks import check_epsilon, check_list, check_whole, named_type
from pufferflow._display import displayed
from pufferflow._noise import LaplaceNoise
from pufferflow._progress import progress
from pufferflow._work import afford
from pufferflow.errors import NetworkError
from pufferflow.related.bayesnet.network import BayesianNetwork
from pufferflow.related.bayesnet.quilts import NodeSearch, ScoredQuilt
from pufferflow.related.bayesnet.separation import separation

LIMIT = 5_000
"""Most partial quilts to take up for one node, by default: all of them in any network of 12 variables (below 2^12)."""

MOST_STEPS = 10**7
"""Steps along edges that the default limit leaves to the search for all nodes, however many."""

A_SUM = 5e4
"""Operations that it takes to sum one variable out of the joint law of a pair."""


@dataclass(frozen=True)
@displayed("mechanism", "epsilon", "scale", "node", "quilt", "influence", "reason")
class NetworkScale(LaplaceNoise):
    """The Laplace scale of the Markov Quilt Mechanism on networks, and why.

    Attributes
    ----------
    epsilon : float
    scale : float
        Laplace scale of a query that changes by at most 1 (L1 norm) when one variable changes, never below the
        exact value; an L-Lipschitz query gets L · scale on every coordinate.
    node : str
        A worst node.
    quilt, nearby : tuple of str
        Its active quilt X_Q and the nearby set X_N.
    influence : float
        Max-influence of that quilt, in nats.
    network : int
        Index of the network that decides.
    optimal : bool
        Whether the search was exhaustive: no set of Markov quilts of these networks gives a smaller scale.
    mechanism, reason : str
        ``"mqm-network"``; empty.
    """

    epsilon: float
    scale: float
    node: str
    quilt: tuple[str, ...]
    nearby: tuple[str, ...]
    influence: float
    network: int
    optimal: bool
    mechanism: str = "mqm-network"
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types."""
        fields = asdict(self) | {"quilt": list(self.quilt), "nearby": list(self.nearby)}
        del fields["reason"]
        return {"mechanism": fields.pop("mechanism"), **fields}


def markov_quilt_mechanism(
    networks: BayesianNetwork | Iterable[BayesianNetwork],
    epsilon: float,
    *,
    secrets: Iterable[str] | None = None,
    query: Iterable[str] | None = None,
    limit: int | None = None,
) -> NetworkScale:
    """Scale of the Markov Quilt Mechanism (Song et al., Algorithm 2), rounded up.

    The best quilt is taken for every network by itself, as Algorithm 3 does for chains: privacy is a statement
    about each θ in Θ, the scale is never larger than with one quilt for all of Θ, and the networks may have
    different graphs.

    Parameters
    ----------
    networks : BayesianNetwork or iterable of BayesianNetwork
        Θ. All have the same variables with the same states.
    epsilon : float
        ε > 0.
    secrets : iterable of str, optional
        Variables whose value is protected (default: all).
    query : iterable of str, optional
        Variables that the query reads (default: all). card(X_N) counts only these: given X_R and X_Q the others
        cannot change the answer. So variables nobody observes, such as common causes, may be part of a network.
    limit : int, optional
        Most partial quilts to take up for one node before the search settles for the best quilt found so far
        and its neighbours; see :mod:`pufferflow.related.bayesnet.quilts`. By default 5,000, or in large networks what
        :data:`MOST_STEPS` leaves to each node; where that is too few the scale is larger, never too small.

    Returns
    -------
    NetworkScale
        With a worst node, its active quilt and max-influence, and the network that decides.

    Raises
    ------
    ParameterError
        ε or the limit is out of range, or it takes more than is allowed.
    NetworkError
        There is no network, they differ in their variables or states, or a name is unknown.

    Examples
    --------
    >>> import pufferflow as pf
    >>> ann = pf.Variable("Ann", [0.9, 0.1])
    >>> bob = pf.Variable("Bob", [[0.95, 0.05], [0.4, 0.6]], parents=["Ann"])
    >>> found = pf.markov_quilt_mechanism(pf.BayesianNetwork([ann, bob]), epsilon=4)
    >>> found.node, found.quilt, found.scale
    ('Ann', (), 0.5)
    """
    epsilon = check_epsilon(epsilon)
    if limit is not None:
        limit = check_whole(limit, "limit", 0)
    family = require_alike([networks] if isinstance(networks, BayesianNetwork) else check_list(networks, "networks"))
    protected = _names(secrets, family[0], "secrets")
    read = _names(query, family[0], "query")
    work = len(protected) * sum(mask.bit_count() for network in family for mask in network.ancestors)
    afford(
        work * A_SUM,
        f"the search for quilts in {len(family)} networks of {len(family[0])} variables",
        "give smaller networks, or protect fewer variables (secrets)",
    )
    if limit is None:
        limit = min(LIMIT, MOST_STEPS // (len(protected) * sum(map(_steps, family))))
    index, best = _worst(family, protected, read, epsilon, limit)
    quilt = best.named(family[index])
    return NetworkScale(epsilon, best.score, quilt.node, quilt.quilt, quilt.nearby, best.influence, index, best.optimal)


def _steps(network: BayesianNetwork) -> int:
    """Variables and edges: what one separation takes."""
    return len(network) + sum(map(len, network.parents))


def _worst(
    family: Sequence[BayesianNetwork], protected: Sequence[str], read: Sequence[str], epsilon: float, limit: int
) -> tuple[int, ScoredQuilt]:
    """The quilt of a worst node, with the network it is in; a bar on a terminal counts the nodes."""
    worst: tuple[int, ScoredQuilt] | None = None
    with progress(total=len(family) * len(protected), desc="quilts", unit=" nodes") as bar:
        for index, network in enumerate(family):
            counted = sum(1 << network.index(name) for name in read)
            for node in _central_first(network, [network.index(name) for name in protected]):
                enough = -1.0 if worst is None else worst[1].score
                best = NodeSearch(network, node, epsilon, counted, limit).run(enough)
                if best.score > enough:
                    worst = index, best
                bar.update()
    assert worst is not None
    return worst


def _central_first(network: BayesianNetwork, nodes: list[int]) -> list[int]:
    """Nodes, those in the middle of the graph first: often the worst ones, after which the others are quick."""
    graph = separation(network)
    return sorted(nodes, key=lambda node: (sum(1 for _ in graph.spheres(node)), node))


def require_alike(family: list[BayesianNetwork]) -> list[BayesianNetwork]:
    """Return networks, or raise :class:`NetworkError` unless there are some and all have the same variables."""
    if not family:
        raise NetworkError("there is no network; give at least one")
    for network in family:
        if not isinstance(network, BayesianNetwork):
            raise NetworkError(f"{named_type(network)} is no network; give a BayesianNetwork or a list of them")
    first, *others = (dict(zip(network.names, network.states, strict=True)) for network in family)
    for i, other in enumerate(others, start=2):
        for name in [*first, *other]:
            if first.get(name) != other.get(name):
                raise NetworkError(
                    f"network {i} differs from network 1 in the variable {name!r} or its states; "
                    "all networks describe the same data"
                )
    return family


def _names(given: Iterable[str] | None, network: BayesianNetwork, what: str) -> list[str]:
    if given is None:
        return list(network.names)
    names = check_list(given, what)
    for name in names:
        network.index(name)
    if not names:
        raise NetworkError(f"the list of {what} variables is empty; name at least one, or leave it out")
    return list(dict.fromkeys(names))
