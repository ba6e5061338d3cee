"""Theorem 2.4 of Song et al.: guarantees against who believes in a chain outside Θ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from pufferflow._util.checks import check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError, ParameterError
from pufferflow.general import Distance
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Family, finite_chains

MOST_ENTRIES = 2 * 10**7
"""T k up to which the distance is computed: numbers in each of some tables."""

_INFINITE = 1e100
"""Stands for +∞ in sums, so that a path that cannot happen (−∞) stays one."""

Array = TypeVar("Array", Bools, Floats)


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
    supports = (
        _along(chain.initial_support, chain.transition_matrix > 0, length, np.dot)
        for chain in (theta, tilde)
    )
    protected, secrets = supports
    missing = np.argwhere(secrets & ~protected)
    if len(missing):  # a secret that Θ does not protect
        return CloseAdversary(math.inf, True, 0, int(missing[0, 0]) + 1, int(missing[0, 1]))
    worst = CloseAdversary(0.0, True, 0, None, None)
    for one, other in ((tilde, theta), (theta, tilde)):
        own: Floats = np.asarray(one.initial_distribution)
        others: Floats = np.asarray(other.initial_distribution)
        steps, matrix = one.transition_matrix, other.transition_matrix
        if np.array_equal(steps, matrix) and np.array_equal(own, others):
            continue  # the same chain
        sure = np.where(one.initial_support, np.maximum(own, SAFE_MINIMUM), 0.0)
        trusted = other.initial_support & (others >= SAFE_MINIMUM)
        before = _log_ratios(sure, np.where(trusted, others, 0.0))
        ratios = _log_ratios(steps, matrix)
        ahead = _along(before, ratios, length, _longest)
        after = _along(np.zeros(len(own)), ratios.T, length, _longest)[::-1]
        masses = _along(own, steps, length, np.dot), _along(others, matrix, length, np.dot)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.where(masses[0] >= SAFE_MINIMUM, masses[0], 0.0))
            values = ahead + after + np.log(np.maximum(masses[1], SAFE_MINIMUM)) - logs
        values = np.where(secrets, values, -np.inf)
        node, state = divmod(int(values.argmax()), len(own))
        value = float(values[node, state])
        if value > _INFINITE / 2:
            return CloseAdversary(math.inf, True, 0, node + 1, state)
        sizes = np.abs([ahead, after])
        size = float(sizes[sizes < 1e90].max(initial=0.0))
        # sums of T logarithms, in parts up to 6 · size; products of T matrices; stationary starts
        error = length * (size + one.states + 8) + abs(value) + 1500
        error *= 16 * UNIT_ROUNDOFF
        error += 2 * sum(c.stationary_error for c in (theta, tilde) if c.start == "stationary")
        if value + error > worst.delta:
            worst = CloseAdversary(value + error, True, 0, node + 1, state)
    return worst


def _along(
    first: Array, matrix: Array, length: int, product: Callable[[Array, Array], Array]
) -> Array:
    """Rows first, first · M, first · M², …: as many again with each power of M."""
    rows, power = first[None, :], matrix
    while len(rows) < length:
        rows = np.concatenate([rows, product(rows[: length - len(rows)], power)])
        power = product(power, power)
    return rows


def _longest(rows: Floats, steps: Floats) -> Floats:
    """Largest sum of an entry of a row and the step from there, at each end of a step."""
    return np.stack([(rows + steps[:, y]).max(axis=1) for y in range(steps.shape[1])], axis=1)


def _log_ratios(p: Floats, q: Floats) -> Floats:
    """Log of p/q: −∞ where p is 0, ``_INFINITE`` where only q is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(p) - np.log(q)
    return np.asarray(np.where(p == 0, -np.inf, np.minimum(ratios, _INFINITE)))
