"""Max-influence on Markov chains and the search for the best quilts."""

from __future__ import annotations

from pufferflow.errors import ParameterError
from pufferflow.influence.search import Candidate, chain_quilt_influence, worst_node
from pufferflow.influence.tables import Convention, influence_tables
from pufferflow.models.chain import MarkovChain

__all__ = ["Candidate", "Convention", "chain_influence", "influence_tables", "worst_node"]


def chain_influence(
    chain: MarkovChain, length: int, node: int, left: int | None, right: int | None, convention: Convention = "exact"
) -> float:
    """Max-influence on one node of the quilt at distances ``left`` and ``right`` (eq. 5), in nats.

    Parameters
    ----------
    chain : MarkovChain
    length : int
        T.
    node : int
        1 ≤ node ≤ T.
    left, right : int or None
        Distances a < node and b ≤ T − node of the quilt nodes; None for none on that side.
    convention : {"exact", "published"}
        As for :func:`pufferflow.mqm_exact`.

    Returns
    -------
    float
        Rounded up; infinite where the quilt node can rule a secret out.

    Raises
    ------
    ParameterError
        A node lies outside the chain.
    """
    fits_left = left is None or 1 <= left < node
    fits_right = right is None or 1 <= right <= length - node
    inside = 1 <= node <= length and fits_left and fits_right
    if not inside:
        raise ParameterError(
            f"quilt at distances {left} and {right} of node {node} leaves the chain of {length} nodes; choose others"
        )
    return chain_quilt_influence(influence_tables(chain, convention), length, node, left, right)
