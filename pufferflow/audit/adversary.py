"""Theorem 2.4 of Song et al.: guarantees against who believes in a chain outside Θ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pufferflow._util.checks import check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.audit._adversary_kernels import largest_ratio
from pufferflow.errors import ChainError, ParameterError
from pufferflow.general import Distance
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Family, finite_chains

MOST_ENTRIES = 10**8
"""T k up to which the distance is computed: numbers kept at a time."""

_INFINITE = 1e100
"""Stands for +∞ in sums, so that a path that cannot happen (−∞) stays one."""


@dataclass(frozen=True)
class CloseAdversary(Distance):
    """Distance from a family of chains.

    Attributes
    ----------
    exact : bool
        Whether ``delta`` is Δ itself up to rounding; otherwise it is an upper bound.
    chain : int
        Index in Θ of the closest chain.
    node, state : int or None
        The secret X_node = state that decides, the node from 1 and the state from 0; None where Δ
        is 0.
    """

    exact: bool
    chain: int
    node: int | None
    state: int | None


def close_adversary(
    theta: Family | MarkovChain, theta_tilde: MarkovChain, length: int
) -> CloseAdversary:
    """Δ of Theorem 2.4: min over θ ∈ Θ, max over s, of D∞ of θ̃|s and θ|s, either way.

    The secrets are X_i = x of positive probability under θ̃. The log-ratio of two paths is a sum
    along the path, so its maximum over the k^T paths through X_i = x is a longest path, found
    forwards and backwards in T k² steps. Δ grows linearly with T unless the transition matrices
    agree.

    Parameters
    ----------
    theta : Family or MarkovChain
        Θ, finitely many chains. For one with initial distribution "any" the member of Θ with that
        of ``theta_tilde`` is taken, which gives an upper bound.
    theta_tilde : MarkovChain
        What the adversary believes.
    length : int
        T.

    Returns
    -------
    CloseAdversary

    Raises
    ------
    ChainError
        Θ is not finite, the numbers of states differ, or ``theta_tilde`` has no initial
        distribution of its own.
    ParameterError
        ``length`` is not a positive integer, or too large.
    """
    length = check_whole(length, "length")
    chains = finite_chains(theta, "the distance to an adversary")
    if not isinstance(theta_tilde, MarkovChain) or theta_tilde.initial_distribution is None:
        raise ChainError(
            "the adversary needs a chain with one initial distribution; give a list of "
            "probabilities or stationary"
        )
    if length * theta_tilde.states > MOST_ENTRIES:
        raise ParameterError(
            f"length is {length}; the distance to an adversary is computed for up to "
            f"{MOST_ENTRIES // theta_tilde.states} records, and grows in proportion"
        )
    distances = []
    for index, chain in enumerate(chains):
        if chain.states != theta_tilde.states:
            raise ChainError(
                f"chain {index + 1} has {chain.states} states, the adversary's "
                f"{theta_tilde.states}; use the same ones"
            )
        assumed = chain
        if chain.initial_distribution is None:
            assumed = MarkovChain(chain.transition_matrix, theta_tilde.initial_distribution)
        distance = replace(_distance(assumed, theta_tilde, length), chain=index)
        bound = assumed is not chain and distance.delta > 0
        distances.append(replace(distance, exact=not bound))
    best = min(distances, key=lambda one: one.delta)
    exact = all(one.exact or one.delta == math.inf for one in distances)
    return replace(best, exact=best.exact and exact)


def _distance(theta: MarkovChain, tilde: MarkovChain, length: int) -> CloseAdversary:
    """As :func:`close_adversary` for one chain with an initial distribution."""
    secrets = _supports(tilde, length)
    missing = np.argwhere(secrets & ~_supports(theta, length))
    if len(missing):  # a secret that Θ does not protect
        return CloseAdversary(math.inf, True, 0, int(missing[0, 0]) + 1, int(missing[0, 1]))
    constant = theta.start == tilde.start == "stationary"
    worst = CloseAdversary(0.0, True, 0, None, None)
    for one, other in ((tilde, theta), (theta, tilde)):
        own, others = _start(one), _start(other)
        steps, matrix = one.transition_matrix, other.transition_matrix
        if np.array_equal(steps, matrix) and np.array_equal(own, others):
            continue  # the same chain
        value, node, state, size = largest_ratio(
            _log_ratios(one, other),
            (own, steps),
            (others, matrix),
            secrets,
            constant,
            length,
            SAFE_MINIMUM,
        )
        if value > _INFINITE / 2:
            return CloseAdversary(math.inf, True, 0, node + 1, state)
        # sums of T logarithms, each rounded; products of T matrices; the stationary distributions
        error = length * (size + one.states + 8) + abs(value) + 1500
        error *= 4 * UNIT_ROUNDOFF
        error += 2 * sum(c.stationary_error for c in (theta, tilde) if c.start == "stationary")
        if value + error > worst.delta:
            worst = CloseAdversary(value + error, True, 0, node + 1, state)
    return worst


def _start(chain: MarkovChain) -> Floats:
    assert chain.initial_distribution is not None
    return chain.initial_distribution


def _supports(chain: MarkovChain, length: int) -> Bools:
    """States of positive probability at each node, shape (length, k)."""
    edges = chain.transition_matrix > 0
    supports = np.empty((length, chain.states), dtype=np.bool_)
    support = chain.initial_support
    seen: dict[bytes, int] = {}
    for i in range(length):
        supports[i] = support
        first = seen.setdefault(support.tobytes(), i)
        if first < i:  # from here on it repeats
            supports[i:] = supports[first + (np.arange(length - i) % (i - first))]
            break
        support = np.asarray(edges[support].any(axis=0))
    return supports


def _log_ratios(one: MarkovChain, other: MarkovChain) -> tuple[Floats, Floats]:
    """Log θ/θ' of all probabilities: -∞ where θ is 0, ``_INFINITE`` where only θ' is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.log(one.transition_matrix) - np.log(other.transition_matrix)
        own, others = _start(one), _start(other)
        start = np.log(np.maximum(own, SAFE_MINIMUM)) - np.log(
            np.where(other.initial_support & (others >= SAFE_MINIMUM), others, 0)
        )
    steps = np.where(one.transition_matrix == 0, -np.inf, np.minimum(steps, _INFINITE))
    start = np.where(one.initial_support, np.minimum(start, _INFINITE), -np.inf)
    return start, steps
