"""Max-influence of a set of variables on one variable of a network (Definition 4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from pufferflow.bayesnet.elimination import TooLargeError, joint_law, members
from pufferflow.bayesnet.network import BayesianNetwork
from pufferflow.errors import NetworkError
from pufferflow.markov.chain import SAFE_MINIMUM, UNIT_ROUNDOFF


def max_influence(network: BayesianNetwork, node: str, quilt: Iterable[str]) -> float:
    """Largest log P(X_Q = x_Q | X_i = x) / P(X_Q = x_Q | X_i = x') over x, x' and x_Q, in nats, rounded up.

    Secrets x of probability 0 are no secrets; a value of X_Q that is possible under one secret only counts +∞.

    Parameters
    ----------
    network : BayesianNetwork
    node : str
        X_i.
    quilt : iterable of str
        X_Q, any set of other variables; of the empty one the influence is 0.

    Raises
    ------
    NetworkError
        A name is unknown, ``quilt`` contains ``node``, or the tables of the elimination would be too large.

    Notes
    -----
    Song, Wang, Chaudhuri (SIGMOD 2017), Definition 4.1, for Θ = {network}.
    """
    i = network.index(node)
    inside = {network.index(name) for name in quilt}
    if i in inside:
        raise NetworkError(f"the quilt of {node!r} contains {node!r} itself; leave it out")
    try:
        return influence_table(network)(i, sum(1 << q for q in inside))
    except TooLargeError:
        raise NetworkError(
            f"the joint law of {node!r} and {len(inside)} quilt variables needs too large tables; use a smaller quilt"
        ) from None


class InfluenceTable:
    """Max-influences of one network, each computed when it is first asked for.

    Parameters
    ----------
    network : BayesianNetwork
    """

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network
        self._known: dict[tuple[int, int], float | None] = {}  # None: too large

    def __call__(self, node: int, quilt: int) -> float:
        """Max-influence on ``node`` of the variables in the bit mask ``quilt``, rounded up.

        Raises
        ------
        TooLargeError
            The elimination needs too large tables.
        """
        key = node, quilt
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._compute(node, members(quilt)) if quilt else 0.0
        found = self._known[key]
        if found is None:
            raise TooLargeError
        return found

    def _compute(self, node: int, quilt: list[int]) -> float:
        law = joint_law(self._network, [node])
        secrets = law.support
        if secrets.sum() < 2:
            return 0.0
        joint = joint_law(self._network, [node, *quilt])
        count = int(secrets.sum())
        masses = law.values[secrets][:, None]
        table = joint.values[secrets].reshape(count, -1)
        possible = joint.support[secrets].reshape(count, -1)
        events = possible.any(axis=0)
        # probabilities too small for floats: smallest safe number above a fraction line, 0 below it
        with np.errstate(divide="ignore"):
            upper = np.maximum(table, SAFE_MINIMUM) / np.where(masses < SAFE_MINIMUM, 0.0, masses)
            lower = np.where(table < SAFE_MINIMUM, 0.0, table) / np.maximum(masses, SAFE_MINIMUM)
            largest = np.where(possible, upper, 0.0).max(axis=0)[events]
            ratio = float((largest / lower.min(axis=0)[events]).max())
        if math.isinf(ratio):
            return math.inf
        roundings = 2 * (joint.roundings + law.roundings) + 8
        return math.log(max(ratio, 1.0)) * (1 + 4 * UNIT_ROUNDOFF) + 1.01 * roundings * UNIT_ROUNDOFF


@lru_cache(maxsize=32)
def influence_table(network: BayesianNetwork) -> InfluenceTable:
    """Table of ``network``, shared by all calls on the same object: a grid of ε costs little more than one."""
    return InfluenceTable(network)
