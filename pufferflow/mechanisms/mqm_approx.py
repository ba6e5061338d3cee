"""MQMApprox: the Markov Quilt Mechanism with max-influence bounded by the mixing of the chain."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from pufferflow.errors import ParameterError
from pufferflow.influence.search import Candidate, divide_up, quilt_card, score, worst_alike
from pufferflow.markov.chain import UNIT_ROUNDOFF, Floats
from pufferflow.markov.families import GapKind, as_family
from pufferflow.mechanisms.base import AnyFamily, Lengths, NoiseScale, Quilt, check_epsilon, longest, mechanism


@mechanism("mqm-approx")
def mqm_approx(family: AnyFamily, length: Lengths, epsilon: float, *, eigengap: GapKind = "auto") -> NoiseScale:
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
    eigengap : {"auto", "general", "reversible"}
        Which g to use: that of PP*, valid for all chains, or the larger one of reversible chains;
        ``"auto"`` takes the latter exactly for the chains in detailed balance.

    Raises
    ------
    ParameterError
        ε, a length or ``eigengap`` is out of range.
    ChainError
        A chain is reducible or periodic, or not reversible where that is asked.
    """
    epsilon = check_epsilon(epsilon)
    if eigengap not in get_args(GapKind):
        raise ParameterError(f"eigengap {eigengap!r} is unknown; choose from {', '.join(get_args(GapKind))}")
    records = longest(length)
    theta = as_family(family)
    for chain in theta.chains:
        chain.require_ergodic("mqm-approx")
    bound = _MixingBound(theta.smallest_stationary_probability(), theta.eigengap(eigengap), records, epsilon)
    worst = worst_alike(records, bound.solve)
    return NoiseScale(
        "mqm-approx",
        epsilon,
        records,
        worst.score,
        node=worst.node,
        quilt=Quilt(worst.left, worst.right),
        influence=worst.influence,
    )


class _MixingBound:
    """Best quilt of a node when the max-influence is a sum of a left and a right term."""

    def __init__(self, smallest_probability: float, gap: float, length: int, epsilon: float) -> None:
        self.length, self.epsilon = length, epsilon
        self.smallest_probability, self.gap = smallest_probability, gap
        # a quilt (a, b) with (a + b − 1)/ε above a score that is reached cannot be best
        reached = length / epsilon
        n = 1
        while n < length and 2 * n - 1 < epsilon * reached:
            e = 3 * float(self._term(np.array([n]))[0])
            if e < epsilon:
                reached = min(reached, (2 * n - 1) / (epsilon - e))
            n *= 2
        self.distances = np.arange(1, min(length, math.floor(epsilon * reached) + 2))
        self.right = self._term(self.distances)
        self.left = 2 * self.right

    def _term(self, distance: NDArray[np.int64]) -> Floats:
        """log((1 + Δ_t)/(1 − Δ_t)), infinite where Δ_t ≥ 1, rounded up."""
        exponent = self.gap * distance / 2
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            delta = np.exp(-exponent) / self.smallest_probability
            delta = np.minimum(delta * (1 + (8 + 4 * exponent) * UNIT_ROUNDOFF), 1.0)
            bound: Floats = (np.log1p(delta) - np.log1p(-delta)) * (1 + 8 * UNIT_ROUNDOFF)
        return bound

    def solve(self, node: int) -> Candidate:
        """Best quilt of ``node`` by Dinkelbach's method: min card − λ(ε − e) falls apart into a and b."""
        a, left = self.distances[: node - 1], self.left[: node - 1]
        b, right = self.distances[: self.length - node], self.right[: self.length - node]
        best = Candidate(node, None, None, 0.0, divide_up(self.length, self.epsilon))
        while True:
            i = int(np.argmin(a + best.score * left)) if a.size else None
            j = int(np.argmin(b + best.score * right)) if b.size else None
            options = []
            if i is not None:
                options.append(self._candidate(node, int(a[i]), None, left[i]))
            if j is not None:
                options.append(self._candidate(node, None, int(b[j]), right[j]))
            if i is not None and j is not None:
                options.append(self._candidate(node, int(a[i]), int(b[j]), left[i] + right[j]))
            challenger = min(options, key=lambda c: c.score, default=best)
            if challenger.score >= best.score:
                return best
            best = challenger

    def _candidate(self, node: int, a: int | None, b: int | None, influence: float) -> Candidate:
        card = quilt_card(self.length, node, a, b)
        return Candidate(node, a, b, float(influence), score(card, float(influence), self.epsilon))
