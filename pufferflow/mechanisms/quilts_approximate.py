"""MQMApprox: the Markov Quilt Mechanism with max-influence bounded by the mixing of the chain."""

from __future__ import annotations

import math
from typing import Any, get_args

from pufferflow._util.checks import Lengths, check_choice, check_epsilon, longest
from pufferflow._util.protection import SideInformation, check_protection
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError
from pufferflow.influence._kernels import INFINITE
from pufferflow.influence.quilts import InfluenceTables, worst_node
from pufferflow.mechanisms.base import Mechanism, NoiseScale, not_applicable, of_quilt, unfit_informed
from pufferflow.models.chain import MarkovChain
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
    worst = worst_node(_MixingTables(smallest, gap, window), records, epsilon)
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


class _MixingTables(InfluenceTables):
    """Bounds of the max-influence through mixing, the same for all pairs of values: one entry each."""

    def __init__(self, smallest: float, gap: float, window: int) -> None:
        super().__init__(MarkovChain([[1.0]]), "exact", window)
        self.smallest, self.gap = smallest, gap

    def _fill(self, out: Floats, distance: int, states: Bools | None) -> None:
        exponent = self.gap * distance / 2
        out[:] = INFINITE
        if self.smallest:
            delta = math.exp(-exponent) / self.smallest * (1 + (8 + 4 * exponent) * UNIT_ROUNDOFF)
            if delta < 1:
                term = (math.log1p(delta) - math.log1p(-delta)) * (1 + 8 * UNIT_ROUNDOFF)
                out[:] = term if states is None else 2 * term


MQM_APPROX = Mechanism("mqm-approx", mqm_approx, _unfit)
