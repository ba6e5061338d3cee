"""Max-influence of a set of variables on one variable of a network (Definition 4.1).

X_i divides the other variables into branches that are mutually independent given X_i (left and right of a node
of a chain). So for each pair of secrets (x, x') the largest log ratio of X_Q is the sum, over branches, of those of
the part of X_Q there, just as eq. 5 has one term a side; the max-influence is the largest sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from pufferflow._checks import check_list, check_type
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Floats
from pufferflow.errors import NetworkError
from pufferflow.related.bayesnet.elimination import TooLargeError, joint_law, members, spend_search
from pufferflow.related.bayesnet.network import BayesianNetwork
from pufferflow.related.bayesnet.separation import separation


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
    check_type(network, "network", BayesianNetwork)
    i = network.index(node)
    inside = {network.index(name) for name in check_list(quilt, "quilt")}
    if i in inside:
        raise NetworkError(f"the quilt of {node!r} contains {node!r} itself; leave it out")
    try:
        return influence_table(network)(i, sum(1 << q for q in inside))
    except TooLargeError:
        raise NetworkError(
            f"the joint law of {node!r} and {len(inside)} quilt variables needs too large tables; use a smaller quilt"
        ) from None


class InfluenceTable:
    """Max-influences of one network, each computed when it is first asked for."""

    def __init__(self, network: BayesianNetwork) -> None:
        self._network = network
        self._branches = [separation(network).branches(node) for node in range(len(network))]
        self._known: dict[tuple[int, int], Floats | None] = {}  # None: too large

    def __call__(self, node: int, quilt: int) -> float:
        """Max-influence on ``node`` of the variables in the bit mask ``quilt``, rounded up.

        Raises TooLargeError: the elimination needs too large tables.
        """
        parts = [branch & quilt for branch in self._branches[node] if branch & quilt]
        total = sum((self._pairs(node, part) for part in parts), np.zeros(()))
        return float(total.max()) * (1 + 2 * len(parts) * UNIT_ROUNDOFF)

    def bound(self, node: int, quilt: int) -> float:
        """Lower bound, up to rounding, of :meth:`__call__` for all quilts with ``quilt`` in them; quick."""
        total = np.zeros(())
        try:
            for branch in self._branches[node]:
                singles = [self._pairs(node, 1 << v) for v in members(branch & quilt)]
                if singles:
                    total = total + np.maximum.reduce(singles)
        except TooLargeError:
            return 0.0
        return float(total.max())

    def _pairs(self, node: int, part: int) -> Floats:
        """Table over pairs of secrets (x, x') of the largest log P(x_A | x) / P(x_A | x'), rounded up."""
        key = node, part
        if key not in self._known:
            try:
                self._known[key] = self._compute(node, members(part))
            except TooLargeError:
                self._known[key] = None
        pairs = self._known[key]
        if pairs is None:
            raise TooLargeError
        return pairs

    def _compute(self, node: int, part: list[int]) -> Floats:
        law = joint_law(self._network, [node])
        joint = joint_law(self._network, [node, *part])
        secrets = law.support
        count = int(secrets.sum())
        masses = law.values[secrets][:, None]
        table = joint.values[secrets].reshape(count, -1)
        possible = joint.support[secrets].reshape(count, -1)
        spend_search(30 * count * table.size)
        # probabilities too small for floats: smallest safe number above a fraction line, 0 below it
        with np.errstate(divide="ignore"):
            upper = np.maximum(table, SAFE_MINIMUM) / np.where(masses < SAFE_MINIMUM, 0.0, masses)
            lower = np.where(table < SAFE_MINIMUM, 0.0, table) / np.maximum(masses, SAFE_MINIMUM)
            ratios = [(upper[x, possible[x]] / lower[:, possible[x]]).max(axis=1) for x in range(count)]
            logs: Floats = np.log(np.maximum(ratios, 1.0))
        roundings = 2 * (joint.roundings + law.roundings) + 8
        logs = logs * (1 + 4 * UNIT_ROUNDOFF) + 1.01 * roundings * UNIT_ROUNDOFF
        np.fill_diagonal(logs, 0.0)
        return logs


@lru_cache(maxsize=32)
def influence_table(network: BayesianNetwork) -> InfluenceTable:
    """Table of ``network``, shared by all calls on the same object: a grid of ε costs little more than one."""
    return InfluenceTable(network)
