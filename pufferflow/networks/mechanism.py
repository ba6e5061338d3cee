"""Markov quilts of Bayesian networks, their mechanism, and the ε of several releases.

Given X_Q, let N be X_i with everything that is d-connected to it and not in Q: the smallest nearby
set for Q. Members of Q that are d-separated from X_i given the others add nothing; quilts without
such members are *minimal*, and one of them is optimal. The search extends *partial* quilts: a
subset Q' of the quilt and a subset N' of the nearby set. The first variable in breadth-first order
from X_i along trails active given Q' that is in neither set is added to one or the other; it stays
connected by the trail that reached it. If no such variable is left, Q' is a quilt; every minimal
one is reached exactly once. Sets of variables are bit masks.

The scale at ε is max_i min_Q card(X_N)/(ε − e_Q), and the cost of a release of scale σ is max_i
min_Q [e_Q + card(X_N)/σ]. Given the records the noises of several releases are independent, so all
together change by at most exp(card(X_N) · Σ_k 1/σ_k) with X_N: their cost is at most that of one
release of scale 1/Σ_k 1/σ_k, which is never above the K · max_k ε_k of Theorem 4.4.

All quilts below a partial one have card(N) ≥ card(N') and, by data processing, e(Q) ≥ e(Q'), so its
score bounds theirs. Partial quilts are extended in the order of their scores: the first complete
one is the best, and the search is local if influence decays. Beyond a limit of partial quilts of a
node, the best one, initially around the nearest 1, 2, 4, … variables, is improved by moving single
variables; then the scale may be larger than necessary, never smaller.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from numbers import Real
from typing import Any, NamedTuple, Self

from tqdm import tqdm

from pufferflow._util.checks import EPSILON_RANGE, check_list, check_positive, check_type
from pufferflow._util.noise import PRECISION, joint_scale
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_up
from pufferflow._util.work import afford
from pufferflow.errors import NetworkError, ParameterError
from pufferflow.networks.influence import influence_of, mask_of, members
from pufferflow.networks.network import BayesianNetwork

LIMIT = 5_000
"""Largest number of partial quilts of a node: all of them for 12 variables (2^12)."""

MAX_STEPS = 10**7
"""Steps along edges of the search for all nodes: large networks get fewer partial quilts."""

OPERATIONS_PER_SUM = 5e4
"""Operations for summing one variable out of the joint distribution of a pair."""


@dataclass(frozen=True)
class MarkovQuilt:
    """A Markov quilt X_Q of X_i (Definition 4.2): X_R is independent of X_i given X_Q."""

    node: str
    quilt: tuple[str, ...]
    nearby: tuple[str, ...]
    """X_N, with X_i."""
    remote: tuple[str, ...]
    """X_R, all other variables."""

    @classmethod
    def of(cls, network: BayesianNetwork, node: int, quilt: int, nearby: int) -> Self:
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
    pending = [(key(0, 1 << node), 0, 1 << node)]
    while pending:
        value, quilt, nearby = heappop(pending)
        trail = reached(network, node, quilt)
        v = next((v for v in trail if not (quilt | nearby) >> v & 1), None)
        yield value, quilt, nearby, v is None and len(trail) == (quilt | nearby).bit_count()
        if v is not None:
            for part in ((quilt | 1 << v, nearby), (quilt, nearby | 1 << v)):
                heappush(pending, (key(*part), *part))


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


@dataclass(frozen=True)
class NetworkScale:
    """The Laplace scale of the Markov Quilt Mechanism on networks, with the worst node X_i."""

    epsilon: float
    scale: float
    """Scale of a query that changes by at most 1 (L1 norm) when one variable changes, rounded up;
    an L-Lipschitz query gets L · scale on every coordinate."""
    node: str
    quilt: tuple[str, ...]
    """Its active quilt X_Q."""
    nearby: tuple[str, ...]
    influence: float
    """Max-influence of the quilt, in nats."""
    network: int
    """Index of the worst network."""
    optimal: bool
    """Whether no set of Markov quilts of these networks gives a smaller scale."""
    mechanism = "mqm-network"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON types."""
        names = {"quilt": list(self.quilt), "nearby": list(self.nearby)}
        return {"mechanism": self.mechanism, **asdict(self), **names}


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
        Θ. All have the same variables, possibly with different graphs: each network has its own
        best quilt, as in Algorithm 3 for chains.
    epsilon : float
        ε > 0.
    secrets : iterable of str, optional
        Variables whose value is protected (default: all).
    query : iterable of str, optional
        Variables that the query reads (default: all). card(X_N) counts only these: given X_R and
        X_Q the others cannot change the answer, so hidden causes may be part of a network.

    Raises ParameterError or NetworkError: ε is out of range, the search exceeds the work limit,
    there is no network, they differ in their variables, or a name is unknown.
    """
    epsilon = check_positive(epsilon, "epsilon", EPSILON_RANGE)

    def score(card: int, influence: float) -> float:
        if not influence < epsilon:  # also of tables that would be too large
            return math.inf
        if not influence:  # of the empty quilt alone
            return divide_up(card, epsilon)
        return card / (epsilon - influence) * (1 + 4 * UNIT_ROUNDOFF)

    index, network, worst = _worst(networks, secrets, query, score)
    quilt = MarkovQuilt.of(network, worst.node, worst.quilt, worst.nearby)
    names = (quilt.node, quilt.quilt, quilt.nearby)
    return NetworkScale(epsilon, worst.score, *names, worst.influence, index, worst.optimal)


def network_cost(
    networks: BayesianNetwork | Iterable[BayesianNetwork],
    scales: Iterable[float],
    *,
    secrets: Iterable[str] | None = None,
    query: Iterable[str] | None = None,
) -> float:
    """Return the total ε of Laplace releases of 1-Lipschitz queries, rounded up.

    ``scales`` are those of the noise of each release on the same networks, ``query`` the variables
    that any of the queries reads. Other parameters are those of :func:`markov_quilt_mechanism`.
    """
    noise = check_list(scales, "scales")
    if not noise or not all(isinstance(scale, Real) for scale in noise):
        raise ParameterError("scales must be one or more numbers; give that of each release")
    together = joint_scale(check_positive(scale, "scale", EPSILON_RANGE) for scale in noise)

    def score(card: int, influence: float) -> float:
        # rounded up so far that the scale at this ε, itself rounded up, is at most ``together``
        return (influence + card / together) * (1 + PRECISION / 4)

    return _worst(networks, secrets, query, score)[2].score


class _Quilt(NamedTuple):
    """The best known quilt of a node; sets are bit masks."""

    score: float
    node: int
    quilt: int
    nearby: int
    influence: float
    optimal: bool = False


def _worst(
    networks: Any, secrets: Any, query: Any, score: Callable[[int, float], float]
) -> tuple[int, BayesianNetwork, _Quilt]:
    """Return the best quilt of the node of the largest score, with its network and the index.

    The score increases in card(X_N) and in the influence.
    """
    single = isinstance(networks, BayesianNetwork)
    family = [networks] if single else check_list(networks, "networks")
    if not family:
        raise NetworkError("there is no network; give at least one")
    for i, network in enumerate(family, 1):
        check_type(network, f"network {i}", BayesianNetwork)
        for name in sorted(set(network.names) ^ set(family[0].names)):
            raise NetworkError(f"network {i} and network 1 differ in {name!r}")
    names = family[0].names
    protected = names if secrets is None else check_list(secrets, "secrets")
    read = names if query is None else check_list(query, "query")
    if not protected or not read:
        raise NetworkError("secrets and query must name at least one variable each")
    nodes = [
        (i, network, node, mask_of({network.index(name) for name in read}))
        for i, network in enumerate(family)
        for node in dict.fromkeys(map(network.index, protected))
    ]
    each = len(nodes) // len(family)
    ancestors = sum(mask.bit_count() for network in family for mask in network.ancestors)
    what = f"the search for quilts in {len(family)} networks of {len(names)} variables"
    advice = "give smaller networks, or protect fewer variables (secrets)"
    afford(each * ancestors * OPERATIONS_PER_SUM, what, advice)
    steps = sum(len(network) + sum(map(len, network.parents)) for network in family)
    limit = min(LIMIT, MAX_STEPS // (each * steps))
    found = 0, family[0], _Quilt(-1.0, 0, 0, 0, 0.0)
    for i, network, node, counted in tqdm(nodes, desc="quilts", disable=None, leave=False):
        best = _best(network, node, counted, score, limit, enough=found[2].score)
        if best.score > found[2].score:
            found = i, network, best
    return found


def _best(
    network: BayesianNetwork, node: int, counted: int, score: Any, limit: int, enough: float
) -> _Quilt:
    """Return the best quilt of a node, or the first one found of a score up to ``enough``."""
    everything, optimal = (1 << len(network)) - 1, True

    def within(observed: int) -> _Quilt:
        """Return the quilt of the node that consists of observed variables."""
        connected = mask_of(reached(network, node, observed))
        quilt, nearby = connected & observed, connected & ~observed
        e = influence_of(network, node, quilt)
        return _Quilt(score((nearby & counted).bit_count(), e), node, quilt, nearby, e)

    def better(observed: int) -> _Quilt:
        found = within(observed)
        return found if found.score < best.score else best  # also if its tables are too large

    def bound(quilt: int, nearby: int) -> tuple[float, int]:
        e = influence_of(network, node, quilt)  # NaN if the tables would be too large
        least = score((nearby & counted).bit_count(), 0.0 if math.isnan(e) else e)
        return least, -quilt.bit_count()  # of equal bounds the fuller quilt first

    best, trail = within(0), reached(network, node, 0)
    for size in (2**k for k in range(len(network).bit_length())):
        ball = mask_of(trail[:size])
        if best.score <= enough or score((ball & counted).bit_count(), 0.0) >= best.score:
            break
        best = better(everything & ~ball)
    for taken, ((least, _), quilt, _, complete) in enumerate(best_first(network, node, bound)):
        if least >= best.score or best.score <= enough:
            break
        if complete:
            best, before = better(quilt), best
            optimal &= best is not before  # else its tables would be too large
        if taken == limit:
            optimal, start = False, None
            while start is not best and best.score > enough:  # as long as the score falls
                start = best
                for v in members((start.quilt | start.nearby) & ~(1 << node)):
                    best = better(everything & ~start.nearby ^ 1 << v)
            break
    return best._replace(optimal=optimal)
