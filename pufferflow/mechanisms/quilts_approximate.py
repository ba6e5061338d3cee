"""MQMApprox: the Markov Quilt Mechanism with max-influence bounded by the mixing of the chain."""

from __future__ import annotations

import math
from typing import Any, get_args

from pufferflow._util.checks import Lengths, check_choice, check_epsilon, longest
from pufferflow._util.protection import SideInformation, check_protection
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow.errors import ChainError
from pufferflow.influence.additive import worst_additive
from pufferflow.mechanisms.base import Mechanism, NoiseScale, not_applicable, of_quilt, unfit_informed
from pufferflow.models.families import AnyFamily, Family, GapKind, as_family


def mqm_approx(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
    eigengap: GapKind = "auto",
) -> NoiseScale:
    """Scale of MQMApprox (Song et al., Algorithm 4), rounded up.

    The max-influence of a quilt is bounded through π_min, the smallest stationary probability, and g,
    the eigengap, both minimal over Θ: with Δ_t = exp(−g t / 2) / π_min it is at most
    2 log((1 + Δ_a)/(1 − Δ_a)) + log((1 + Δ_b)/(1 − Δ_b)), whatever the initial distribution.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; every chain irreducible and aperiodic.
    length : int or sequence of int
        Segment lengths; the longest decides, as for MQMExact.
    epsilon : float
        ε > 0.
    window, side_information
        As for :func:`pufferflow.mqm_exact`; the bound is one of all pairs of values, so of those of windows.
    eigengap : {"auto", "general", "reversible"}
        Which g to use: that of PP*, valid for all chains, or the larger one of reversible chains;
        ``"auto"`` takes the latter exactly for the chains in detailed balance.

    Raises
    ------
    ParameterError
        ε, a length, ``window``, ``side_information`` or ``eigengap`` is out of range.
    ChainError
        A chain is reducible or periodic, or not reversible where that is asked.
    """
    epsilon = check_epsilon(epsilon)
    check_choice(eigengap, "eigengap", get_args(GapKind))
    records = longest(length)
    protection = check_protection(window, side_information)
    if reason := unfit_informed("mqm-approx", side_information):
        return not_applicable("mqm-approx", epsilon, records, reason, protection)
    theta = _ergodic(family)
    smallest, gap = theta.smallest_stationary_probability(), theta.eigengap(eigengap)
    hidden = min(protection.window, records)
    sides = _MixingBound(2, smallest, gap), _MixingBound(1, smallest, gap)
    worst = worst_additive(records - hidden + 1, epsilon, *sides, hidden)
    return of_quilt("mqm-approx", epsilon, records, worst, protection.window)


def _ergodic(family: AnyFamily) -> Family:
    """Return the family, or raise :class:`ChainError` where a chain does not mix."""
    theta = as_family(family)
    for chain in theta.chains:
        chain.require_ergodic("mqm-approx")
    return theta


def _unfit(
    family: AnyFamily,
    length: Lengths,
    *,
    side_information: SideInformation = "none",
    eigengap: GapKind = "auto",
    **options: Any,
) -> str:
    """Why the mechanism cannot work: the family is not finite, a chain does not mix, or not as it is asked."""
    if reason := unfit_informed("mqm-approx", side_information):
        return reason
    try:
        theta = _ergodic(family)
        if eigengap == "reversible":
            theta.eigengap(eigengap)
    except ChainError as error:
        return str(error)
    return ""


class _MixingBound:
    """One side of a node: ``factor`` times log((1 + Δ_t)/(1 − Δ_t))."""

    def __init__(self, factor: int, smallest_probability: float, gap: float) -> None:
        self.factor, self.smallest_probability, self.gap = factor, smallest_probability, gap

    def term(self, distance: int) -> float:
        """Infinite where Δ_t ≥ 1; rounded up."""
        if not distance or not self.smallest_probability:
            return math.inf
        exponent = self.gap * distance / 2
        delta = math.exp(-exponent) / self.smallest_probability * (1 + (8 + 4 * exponent) * UNIT_ROUNDOFF)
        if delta >= 1:
            return math.inf
        return self.factor * ((math.log1p(delta) - math.log1p(-delta)) * (1 + 8 * UNIT_ROUNDOFF))

    def distance(self, weight: float, limit: int) -> int:
        """Distance t ≤ ``limit`` with the smallest t + weight · term(t); 0 if there is no node that far.

        The sum is convex in t; its derivative vanishes where Δ/(1 − Δ²) = 1/s with s = weight · factor · g.
        """
        t = float(limit)
        if self.gap and self.smallest_probability:
            s = weight * self.factor * self.gap
            delta = 2 / (s + math.hypot(s, 2))
            t = -2 / self.gap * math.log(delta * self.smallest_probability)
        below = min(max(math.floor(min(t, limit)), 1), limit)
        return min((below, min(below + 1, limit)), key=lambda n: n + weight * self.term(n))


MQM_APPROX = Mechanism("mqm-approx", mqm_approx, _unfit)
