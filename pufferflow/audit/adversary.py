"""Theorem 2.4 of Song et al.: guarantees against who believes in a chain outside Θ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pufferflow._util.checks import check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError, ParameterError
from pufferflow.general.framework import Distance
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Family, finite_chains

MOST_ENTRIES = 2 * 10**7
"""T k up to which the distance is computed: numbers in each of some tables."""

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
        What the adversary believes: a chain with a given or the stationary distribution.
    length : int
        T.

    Raises
    ------
    ChainError
        Θ is not finite, a number of states differs, or ``theta_tilde`` has "any" start.
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
    found = []
    for index, chain in enumerate(chains):
        if chain.states != theta_tilde.states:
            raise ChainError(
                f"chain {index + 1} has {chain.states} states, the adversary's "
                f"{theta_tilde.states}; use the same ones"
            )
        own = chain.initial_distribution is not None
        if not own:
            chain = MarkovChain(chain.transition_matrix, theta_tilde.initial_distribution)
        delta, node, state = _distance(chain, theta_tilde, length)
        found.append(CloseAdversary(delta, own or delta == 0, index, node, state))
    best = min(found, key=lambda one: one.delta)
    exact = all(one.exact or one.delta == math.inf for one in found)
    return replace(best, exact=best.exact and exact)


def _distance(
    theta: MarkovChain, tilde: MarkovChain, length: int
) -> tuple[float, int | None, int | None]:
    """Δ for one chain with an initial distribution, and the node and state that decide."""
    models: list[tuple[Floats, Floats]] = [
        (np.asarray(chain.initial_distribution), chain.transition_matrix)
        for chain in (tilde, theta)
    ]
    worst: tuple[float, int | None, int | None] = 0.0, None, None
    if all(map(np.array_equal, *models)):
        return worst  # the same chain
    stationary = sum(c.stationary_error for c in (theta, tilde) if c.start == "stationary")
    secrets: Bools | bool = True
    for (start, steps), (other, matrix) in (models, models[::-1]):
        sure = np.where(start > 0, np.maximum(start, SAFE_MINIMUM), 0.0)
        trusted = np.where(other >= SAFE_MINIMUM, other, 0.0)
        ratios = _log_ratios(steps, matrix)
        ahead = _along(_log_ratios(sure, trusted), ratios, length, _longest)
        after = _along(np.zeros(len(start)), ratios.T, length, _longest)[:, ::-1]
        mass, others = (
            _along(*model, length, np.dot) for model in ((start, steps), (other, matrix))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            values = ahead + after + np.log(np.maximum(others, SAFE_MINIMUM))
            values -= np.log(np.where(mass >= SAFE_MINIMUM, mass, 0.0))
        secrets &= ahead > -np.inf  # first those of the adversary; all are protected thereafter
        values = np.where(secrets, values, -np.inf)
        state, node = divmod(int(values.argmax()), length)
        value = float(values[state, node])
        if value > _INFINITE / 2:
            return math.inf, node + 1, state
        size = max(
            float(np.abs(one).max(where=np.abs(one) < 1e90, initial=0)) for one in (ahead, after)
        )
        # sums of T logarithms, in parts up to 6 · size; products of T matrices; stationary starts
        error = length * (size + len(start) + 8) + abs(value) + 1500
        value += 16 * UNIT_ROUNDOFF * error + 2 * stationary
        if value > worst[0]:
            worst = value, node + 1, state
    return worst


def _along(
    first: Floats, matrix: Floats, length: int, product: Callable[[Floats, Floats], Floats]
) -> Floats:
    """Columns first, Mᵀ · first, Mᵀ² · first, …: as many again with each power of M."""
    columns, power = first[:, None], matrix.T
    while columns.shape[1] < length:
        more = product(power, columns[:, : length - columns.shape[1]])
        columns = np.concatenate([columns, more], axis=1)
        power = product(power, power)
    return columns


def _longest(steps: Floats, columns: Floats) -> Floats:
    """As np.dot, with sums for products and maxima for sums."""
    return np.stack([(columns + step[:, None]).max(axis=0) for step in steps])


def _log_ratios(p: Floats, q: Floats) -> Floats:
    """Log of p/q: −∞ where p is 0, ``_INFINITE`` where only q is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(p) - np.log(q)
    return np.asarray(np.where(p == 0, -np.inf, np.minimum(ratios, _INFINITE)))
