"""Bayesian differential privacy from the largest and the smallest transition probability: a published baseline."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from pufferflow._checks import Lengths, check_epsilon, longest
from pufferflow._protection import Knowledge, check_protection
from pufferflow._rounding import UNIT_ROUNDOFF, quilt_score
from pufferflow.markov.families import AnyFamily, as_family, without_matrix
from pufferflow.mechanisms.base import Mechanism, NoiseScale, not_applicable


def bayesian_dp(
    family: AnyFamily, length: Lengths, epsilon: float, *, window: int = 1, knows: Knowledge = "any records"
) -> NoiseScale:
    """Scale w/(ε − 4 ln γ), γ the largest transition probability over the smallest one; rounded up.

    The bound of "Balancing Privacy and Utility in Correlated Data: A Study of Bayesian Differential Privacy" (PVLDB
    2025) for Markov chains: what is ε'-differentially private is private for ε' + 4 ln γ against adversaries who know
    any other records. It is vacuous for ε ≤ 4 ln γ. Never below the scale of :func:`pufferflow.leakage` with the same
    options.

    *Proof*, for w records. Whatever else is known, the law of the next record given the last one of the window is
    proportional to P(x, z) h(z) for some h ≥ 0, so any two such laws differ by at most the factor γ² (the ratio of
    the entries and that of the sums); likewise the one before. The records of the window cost w ε'.

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; γ is taken over all its transition probabilities.
    length : int or sequence of int
        Segment lengths; a window is no longer than the longest.
    epsilon : float
        ε > 0.
    window : int
        w, how many consecutive records are hidden together.
    knows : {"nothing", "any records"}
        What the guarantee is stated for; the scale is the same.

    Returns
    -------
    NoiseScale
        "not applicable", with the reason, where a transition has probability 0 or ε is too small.

    Raises
    ------
    ParameterError
        ε, a length, ``window`` or ``knows`` is out of range.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    protection = check_protection(window, knows)
    reason, spread = _unfit(family, records), math.inf
    if not reason:
        spread = 0.0 if records <= protection.window else _spread(family)  # nothing is left beside the window
    if not reason and epsilon <= spread:
        reason = f"epsilon is not above 4 ln(max P / min P) = {spread:.4g}, up to which this bound says nothing"
    if reason:
        return not_applicable("bayesian-dp", epsilon, records, reason, protection)
    scale = quilt_score(min(protection.window, records), spread, epsilon)
    return NoiseScale("bayesian-dp", epsilon, records, scale, influence=spread, **asdict(protection))


def _unfit(family: AnyFamily, length: Lengths, **options: Any) -> str:
    """Why the mechanism cannot work: there is no matrix, or some transition may be impossible."""
    if reason := without_matrix(family):
        return reason
    if _extremes(family)[0] <= 0:
        return "a transition has probability 0, so max P / min P is infinite"
    return ""


def _spread(family: AnyFamily) -> float:
    """4 ln(max P / min P), rounded up; 0 where they are the same."""
    smallest, largest = _extremes(family)
    return 4 * math.log(largest / smallest) * (1 + 8 * UNIT_ROUNDOFF) + (8 * UNIT_ROUNDOFF if largest > smallest else 0)


def _extremes(family: AnyFamily) -> tuple[float, float]:
    """Smallest and largest transition probability that a chain of Θ can have."""
    theta = as_family(family)
    if theta.bounds is not None:
        return float(theta.bounds.low.min()), float(theta.bounds.high.max())
    matrices = [chain.transition_matrix for chain in theta.chains]
    return min(float(m.min()) for m in matrices), max(float(m.max()) for m in matrices)


BAYESIAN_DP = Mechanism("bayesian-dp", bayesian_dp, _unfit)
