"""MQMExact and MQMApprox: the Markov Quilt Mechanism on chains."""

import math
from dataclasses import replace
from typing import NamedTuple, get_args

from pufferflow._util.checks import Lengths, check_choice
from pufferflow._util.grids import of_epsilons
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_up
from pufferflow.influence.quilts import Candidate, Convention, QuiltSearch
from pufferflow.mechanisms.base import NoiseScale, Quilt, requested
from pufferflow.models.chain import GapKind
from pufferflow.models.families import AnyFamily, SideInformation, as_family, finite_chains

_LACKS = ("side_information",)  # the max-influence is for adversaries without any


@of_epsilons
def mqm_exact(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
    convention: Convention = "exact",
) -> NoiseScale:
    """Return the scale of MQMExact (Song et al., Algorithm 3), rounded up.

    Quilt nodes more than 2,048 steps away are searched only at some distances, which raises the
    scale by less than 0.1 %. For slow chains from given starts with very many ranges of nodes the
    last ranges share an upper bound (``docs/leakage.md``, section 16).

    Parameters
    ----------
    family : Family or MarkovChain
        Θ. With ``"any"`` initial distribution the initial term of eq. 5 is replaced as in C.4.
    length : int or sequence of int
        Segment lengths of the independent chains. The longest determines the scale: no node of a
        shorter one has a larger best score than the same node of the longest.
    epsilon : float or sequence of float
        ε > 0; of several the result is a list.
    window : int
        Number of consecutive records that are protected together.
    side_information : {"none", "any"}
        With ``"any"`` it is not applicable.
    convention : {"exact", "published"}
        ``"exact"`` restricts the left quilt node to its possible values (Definition 4.1);
        ``"published"`` uses eq. 5 as printed, which is never smaller.

    Returns
    -------
    NoiseScale
        With the worst node, its best quilt and max-influence, and the worst chain.

    Raises ChainError: no finite set of chains has the scale of the family; use leakage.
    """
    request = requested("mqm-exact", length, epsilon, window, side_information, _LACKS)
    check_choice(convention, "convention", get_args(Convention))
    if request.reason:
        return request
    query = request.length, request.epsilon, convention, request.window
    worst = [QuiltSearch(chain, *query).worst_node() for chain in finite_chains(family)]
    decides = max(range(len(worst)), key=lambda i: worst[i].score)
    return replace(_of_quilt(request, worst[decides]), chain=decides)


@of_epsilons
def mqm_approx(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
    eigengap: GapKind = "auto",
) -> NoiseScale:
    """Return the scale of MQMApprox (Song et al., Algorithm 4), rounded up.

    The max-influence of a quilt is bounded through π_min, the smallest stationary probability, and
    g, the eigengap, both minimal over Θ: with Δ_t = exp(−g t / 2) / π_min it is at most
    2 log((1 + Δ_a)/(1 − Δ_a)) + log((1 + Δ_b)/(1 − Δ_b)), for any initial distribution.

    Parameters
    ----------
    family, length, epsilon, window, side_information
        As for :func:`pufferflow.mqm_exact`; every chain irreducible and aperiodic.
    eigengap : {"auto", "general", "reversible"}
        Kind of g: that of PP*, valid for all chains, or the larger one of reversible chains;
        ``"auto"`` takes the latter exactly for the chains in detailed balance.

    Raises ChainError: a chain is reducible or periodic, or not reversible if that is requested.
    """
    request = requested("mqm-approx", length, epsilon, window, side_information, _LACKS)
    check_choice(eigengap, "eigengap", get_args(GapKind))
    if request.reason:
        return request
    theta = as_family(family)
    gap, smallest = theta.eigengap(eigengap), theta.smallest_stationary_probability()
    quilts = MixingQuilts(smallest, gap, request.length, request.epsilon, request.window)
    return _of_quilt(request, quilts.worst_node())


def _of_quilt(request: NoiseScale, worst: Candidate) -> NoiseScale:
    node, left, right, influence, score = worst
    return replace(request, scale=score, node=node, quilt=Quilt(left, right), influence=influence)


class MixingQuilts(NamedTuple):
    """Quilts with max-influence 2 f(a) + f(b) at all nodes, one term less per missing quilt node.

    f(t) = log((1 + Δ_t)/(1 − Δ_t)) with Δ_t = exp(−gap · t / 2) / smallest; nodes are the first
    records of windows.
    """

    smallest: float
    gap: float
    length: int
    epsilon: float
    window: int

    def worst_node(self) -> Candidate:
        """Return the node with the largest best score; all are equal nodes, as in section 16."""
        first, last = 1, max(self.length - self.window, 0) + 1
        worst = Candidate(1, None, None, 0.0, 0.0)
        while first <= last:
            best = self.best_quilt((first + last) // 2)
            worst = max(worst, best, key=lambda candidate: candidate.score)
            if (best.left is None) == (best.right is None):
                break
            first, last = (best.node + 1, last) if best.right else (first, best.node - 1)
        return worst

    def best_quilt(self, node: int) -> Candidate:
        """Return the best quilt of a node by Dinkelbach's method: card + σ e − σ ε separates."""
        best = Candidate(node, None, None, 0.0, divide_up(self.length, self.epsilon))
        window = min(self.window, self.length)
        while True:
            a, near, left = self._side(node, 2 * best.score)
            b, far, right = self._side(self.length - window + 2 - node, best.score)
            influence = 2 * left + right
            if influence >= self.epsilon:
                return best
            score = (near + far + window - 2) / (self.epsilon - influence) * (1 + 2**-51)
            if score >= best.score:
                return best
            best = Candidate(node, a, b, influence, score)

    def _side(self, end: int, weight: float) -> tuple[int | None, int, float]:
        """Return t < ``end`` or None, t or ``end``, and f(t), for the least t + weight · f(t)."""
        found: list[tuple[int | None, int, float]] = [(None, end, 0.0)]
        if self.smallest and self.gap and end > 1:
            # the derivative vanishes at Δ / (1 − Δ²) = 1 / s
            s = weight * self.gap
            least = (math.log((s + math.hypot(s, 2)) / 2) - math.log(self.smallest)) * 2 / self.gap
            below = max(1, math.floor(min(least, end - 1)))
            found += [(t, t, self._term(t)) for t in (below, below + 1) if t < end]
        return min(found, key=lambda side: side[1] + weight * side[2])

    def _term(self, t: int) -> float:
        """Return f(t), rounded up; infinite if Δ ≥ 1."""
        exponent = self.gap * t / 2
        delta = math.exp(-exponent) / self.smallest * (1 + (8 + 4 * exponent) * UNIT_ROUNDOFF)
        if delta >= 1:
            return math.inf
        return (math.log1p(delta) - math.log1p(-delta)) * (1 + 8 * UNIT_ROUNDOFF)
