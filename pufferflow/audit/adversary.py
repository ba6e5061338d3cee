"""Theorem 2.4 of Song et al.: guarantees against who believes in a chain outside Θ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pufferflow._checks import check_whole
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.audit._adversary_kernels import largest_ratio, max_plus
from pufferflow.errors import ChainError
from pufferflow.general import Distance
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import Family, finite_chains

MOST_WORK = 10**10
"""T k² up to which the maximum over all paths is computed; beyond, a bound is."""

MOST_ENTRIES = 10**8
"""T k likewise: numbers kept at a time."""

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
        The secret X_node = state that decides, the node from 1 and the state from 0; None where
        only a bound is known.
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
    forwards and backwards in T k² steps. For very long chains Δ ≤ D∞(θ̃ ‖ θ) + D∞(θ ‖ θ̃) over
    whole paths is returned, from k³ log T steps: the ratio of P(X_i = x) under the two is at most
    that of paths. Δ grows linearly with T unless the transition matrices agree.

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
        ``length`` is not a positive integer.
    """
    length = check_whole(length, "length")
    chains = finite_chains(theta, "the distance to an adversary")
    if not isinstance(theta_tilde, MarkovChain) or theta_tilde.initial_distribution is None:
        raise ChainError(
            "the adversary needs a chain with one initial distribution; give a list of "
            "probabilities or stationary"
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
        distance = _distance(assumed, theta_tilde, length)
        if assumed is not chain and distance.delta > 0:
            distance = replace(distance, exact=False)
        distances.append(replace(distance, chain=index))
    best = min(distances, key=lambda one: one.delta)
    return replace(
        best, exact=best.exact and all(one.exact or one.delta == math.inf for one in distances)
    )


def _distance(theta: MarkovChain, tilde: MarkovChain, length: int) -> CloseAdversary:
    """As :func:`close_adversary` for one chain with an initial distribution."""
    k = theta.states
    bounded = length * k * k > MOST_WORK or length * k > MOST_ENTRIES
    if bounded:
        delta = _path_divergence(tilde, theta, length) + _path_divergence(theta, tilde, length)
        return CloseAdversary(delta, False, 0, None, None)
    secrets = _supports(tilde, length)
    missing = np.argwhere(secrets & ~_supports(theta, length))
    if len(missing):  # a secret that Θ does not protect
        return CloseAdversary(math.inf, True, 0, int(missing[0, 0]) + 1, int(missing[0, 1]))
    constant = theta.start == tilde.start == "stationary"
    laws = _law(theta), _law(tilde)
    worst = CloseAdversary(0.0, True, 0, None, None)
    for (one, own), (other, others) in (
        ((tilde, laws[1]), (theta, laws[0])),
        ((theta, laws[0]), (tilde, laws[1])),
    ):
        chains = (own, one.transition_matrix), (others, other.transition_matrix)
        largest = largest_ratio(
            _log_ratios(one, other), *chains, secrets, constant, length, SAFE_MINIMUM
        )
        value, node, state, size = largest
        if value > _INFINITE / 2:
            return CloseAdversary(math.inf, True, 0, node + 1, state)
        # sums of T logarithms, each rounded; products of T matrices; the stationary laws
        error = (
            4 * length * UNIT_ROUNDOFF * (size + 2)
            + 4 * (length * (k + 6) + abs(value) + 1500) * UNIT_ROUNDOFF
        )
        error += 2 * (theta.stationary_error * (theta.start == "stationary"))
        error += 2 * (tilde.stationary_error * (tilde.start == "stationary"))
        if np.array_equal(one.transition_matrix, other.transition_matrix) and np.array_equal(
            own, others
        ):
            value, error = 0.0, 0.0  # the same chain
        if value + error > worst.delta:
            worst = CloseAdversary(value + error, True, 0, node + 1, state)
    return worst


def _law(chain: MarkovChain) -> Floats:
    law = chain.initial_distribution
    assert law is not None
    return law


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
        own, others = _law(one), _law(other)
        start = np.log(np.where(one.initial_support, np.maximum(own, SAFE_MINIMUM), 0)) - np.log(
            np.where(other.initial_support & (others >= SAFE_MINIMUM), others, 0)
        )
    steps = np.where(one.transition_matrix == 0, -np.inf, np.minimum(steps, _INFINITE))
    start = np.where(one.initial_support, np.minimum(start, _INFINITE), -np.inf)
    return start, steps


def _path_divergence(one: MarkovChain, other: MarkovChain, length: int) -> float:
    """D∞ of two path laws, rounded up, by squaring in the max-plus algebra."""
    vector, power = (np.ascontiguousarray(part) for part in _log_ratios(one, other))
    vector = vector[None, :]
    error = 0.0
    largest = float(np.abs(power[np.abs(power) < _INFINITE / 2]).max(initial=0.0))
    steps, count = length - 1, 1
    while steps:
        if steps & 1:
            vector = max_plus(vector, power)
        steps >>= 1
        if steps:
            power = max_plus(power, power)
            count *= 2
    value = float(vector.max())
    if value > _INFINITE / 2:
        return math.inf
    # each of the T logarithms, and about 2 log2 T additions on every path
    error = (8 + 4 * length.bit_length()) * UNIT_ROUNDOFF * (length * (largest + 1) + 1500)
    error += one.stationary_error * (one.start == "stationary") + other.stationary_error * (
        other.start == "stationary"
    )
    return max(0.0, value) + error
