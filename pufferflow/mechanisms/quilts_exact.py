"""MQMExact: the Markov Quilt Mechanism with exact max-influence."""

from __future__ import annotations

from typing import Any, get_args

from pufferflow._util.checks import Lengths, check_choice, check_epsilon, longest
from pufferflow._util.protection import SideInformation, check_protection
from pufferflow.errors import ChainError
from pufferflow.influence.quilts import Convention, influence_tables, worst_node
from pufferflow.mechanisms.base import Mechanism, NoiseScale, not_applicable, of_quilt, unfit_informed
from pufferflow.models.families import AnyFamily, as_family


def mqm_exact(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
    convention: Convention = "exact",
    certified: bool = False,
) -> NoiseScale:
    """Scale of MQMExact (Song et al., Algorithm 3), rounded up.

    Quilt nodes more than 2,048 steps away are looked at only at some distances, and nodes of close scores are no longer
    told apart once many have been. Both only raise the scale, by less than 0.13 %, for chains slow enough
    (:mod:`pufferflow.influence.quilts`).

    Parameters
    ----------
    family : Family or MarkovChain
        Θ, of chains that stand for it. With ``"any"`` initial distribution the initial term of eq. 5 is replaced as in
        C.4.
    length : int or sequence of int
        Segment lengths of the independent chains. Scores of quilts that fit a segment do not fall
        when it grows, so the longest segment decides (for every node of the shorter one, the same
        node of the longer one has no smaller best score).
    epsilon : float
        ε > 0.
    window : int
        How many consecutive records are hidden together: X_N grows by as many as they have beyond one
        (:mod:`pufferflow.influence.quilts`).
    side_information : {"none", "any"}
        With ``"any"`` the mechanism is not applicable: the max-influence is that on somebody who knows none.
    convention : {"exact", "published"}
        ``"exact"`` lets the left quilt node take only values it can take (Definition 4.1);
        ``"published"`` uses eq. 5 as printed, which is never smaller.
    certified : bool
        Whether to make a certificate and take its scale (:meth:`NoiseScale.certified`): proved with interval
        arithmetic, and tight to the last digits but for chains that forget in more than some 10⁹ steps (a few
        per cent more).

    Returns
    -------
    NoiseScale
        With the worst node, its best quilt and max-influence, and the chain that decides.

    Raises
    ------
    ParameterError
        ε, a length, ``window``, ``side_information`` or the convention is out of range.
    ChainError
        The family has no chains that stand for it, such as one between bounds; use leakage there.
    """
    epsilon = check_epsilon(epsilon)
    protection = check_protection(window, side_information)
    check_choice(convention, "convention", get_args(Convention))
    records = longest(length)
    theta = as_family(family)
    if reason := unfit_informed("mqm-exact", side_information):
        return not_applicable("mqm-exact", epsilon, records, reason, protection)
    nodes = [worst_node(influence_tables(c, convention, window), records, epsilon) for c in theta.chains]
    index = max(range(len(nodes)), key=lambda i: nodes[i].score)
    result = of_quilt("mqm-exact", epsilon, records, nodes[index], window, index)
    return result.certified(family, convention) if certified else result


def _unfit(family: AnyFamily, length: Lengths, *, side_information: SideInformation = "none", **options: Any) -> str:
    """Why the mechanism cannot work: for such an adversary, or without a matrix whose powers say what a quilt tells."""
    if reason := unfit_informed("mqm-exact", side_information):
        return reason
    try:
        return "" if as_family(family).chains else "the family has no chains"
    except ChainError as error:
        return str(error)


MQM_EXACT = Mechanism("mqm-exact", mqm_exact, _unfit)
