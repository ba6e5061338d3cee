"""Max-influence over all chains of an interval family, bounded from above, and chains that come near the bound.

Two numbers bound every max-influence of eq. 5, whatever the initial distribution. Over all chains P of the family,

    φ_n = sup of log P^n(x, z) / P^n(x', z),    ψ_n = sup of log P^n(x, z) P^n(x', z') / (P^n(x', z) P^n(x, z')).

*Quilts.* The forward term at distance b is at most φ_b. The initial and the backward term together are at most ψ_a:
m_i = m_{i−a} P^a mixes the rows of P^a, so m_i(x') / m_i(x) ≤ P^a(y, x') / P^a(y, x) for some y, and the product with
P^a(z, x) / P^a(z, x') is one of ψ_a. Hence e(a, b) ≤ ψ_a + φ_b, the same at all nodes: ``influence.additive``.
Both fall with the distance (data processing), and ψ ≤ 2φ.

*Sets.* Let u(x, S) ≥ P^m(x, S) ≥ l(x, S) for all chains of the family: u(·, S) = max p·u'(·, S) over the rows p
within their bounds, u' that of m − 1 steps, and l with minima (steps may even use different chains). The optimal p is
found greedily: the lower bounds first, what is left of the mass to the best states. With the bounds of P^m in the place
of those of P one step makes 2m.

*Forward.* P^{m+n}(x, z) = p·h with p = P^m(x, ·) and h = P^n(·, z), whose values lie within a factor e^φ, φ = φ_n. For
fixed rows p, p' the ratio p·h / p'·h is a quotient of linear functions of h, so largest at a vertex of the cube
[1, e^φ]^k, h = 1 + c 1_S with c = e^φ − 1. Therefore

    φ_{m+n} ≤ G_m(φ_n),    G_m(φ) = max over x ≠ x' and S of log (1 + c u(x, S)) / (1 + c l(x', S)),

and G_m(∞), where single states suffice as S, bounds φ_m itself: that is where the recursion starts, at the first m
whose l are positive.

*Backward.* In P^{m+n}(x, z) / P^{m+n}(x, z') = p·h / p·h' write h = g h': it is the mean of g under q ∝ p h'. The
values of g lie within a factor e^ψ, those of h' within e^φ (ψ = ψ_n, φ = φ_n), so q(S) lies between
l/(l + (1 − l) e^φ) and u e^φ/(1 + (e^φ − 1) u); the forward argument with these bounds and c = e^ψ − 1 gives ψ_{m+n}.

*Total variation.* If d bounds P^m(x, S) − P^m(x', S), G_m(φ) ≤ log(1 + c d), and d_{2m} ≤ d_m² (Dobrushin). Beyond
``MOST_SETS`` states the sets are too many; then d, the largest ½ Σ_z |p(z) − p'(z)| with p(z) and p'(z) apart as far as
their bounds allow, or Σ_z (u(x, z) − l(x', z))⁺ where that is smaller, takes their place.

*One centre.* All steps follow the same P, which none of this uses. Fix a chain C of the family, E = P − C, whose rows
sum to 0, and η_y ≥ ½ Σ_z |E(y, z)|. For a function h with oscillation osc h (largest minus smallest value)
|(Eh)(y)| ≤ η_y osc h. With v = e_x − e_x' and P^n = C^n + Σ_{j<n} C^j E P^{n−1−j}, therefore

    P^n(x, z) − P^n(x', z) ≤ C^n(x, z) − C^n(x', z) + Σ_{j<n} K_j osc_{n−1−j}(z),

where K_j = max over x, x' of Σ_y |vC^j(y)| η_y and osc_n(z) bounds the oscillation of P^n(·, z): it is in turn the
largest right-hand side over x and x', and osc_0 = 1. Divided by l(x', z) this bounds the ratio for each pair, hence φ
and ψ. The same renewal inequality, with the total variation between rows of C^n in the place of the oscillation, bounds
d_n. It decays at nearly the rate of C^n where the family is narrow, while u − l stays at the width of the family.

A single chain has u = l = P^m up to rounding, so φ and ψ are exact and only adding them up is lost.

*Rounding.* φ, ψ, u and d are rounded up and l down, by factors that cover the roundings of a step: the scale is never
too small.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Floats
from pufferflow.influence.additive import best_additive, worst_additive
from pufferflow.influence.search import Candidate
from pufferflow.markov.bounds import TransitionBounds

MOST_SETS = 10
"""Most states of a family whose sets of states are all looked at."""

FIRST = 64
"""Distances of the first level, all of them; u and l of so many steps are found step by step."""

POINTS = 512
"""Distances beyond are taken to about one part in POINTS / 2."""

LARGE = 600.0
"""From here on a bound counts as infinite, so that its exponential does not overflow."""

STUCK = 512
"""Distance from which a bound that does not fall any more is given up."""

CENTRED = 2048
"""Largest distance to which a chain at the centre of the family is followed."""

_BLOCK = 2**21


class Reach(NamedTuple):
    """Bounds of the probabilities P^m(x, S), one column a set S."""

    lower: Floats
    upper: Floats


def row_optimum(low: Floats, high: Floats, values: Floats, largest: bool) -> Floats:
    """Largest or smallest p·h over the rows p between low and high, rounded outward, for every row and column h ≥ 0.

    ``low`` and ``high`` have shape (k, k), ``values``, whose columns are the h, and the result shape (k, s).
    """
    k = len(low)
    block = max(1, _BLOCK // (k * k))
    if values.shape[1] > block:
        parts = [values[:, i : i + block] for i in range(0, values.shape[1], block)]
        return np.concatenate([row_optimum(low, high, part, largest) for part in parts], axis=1)
    order = np.argsort(-values if largest else values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    width = (high - low)[:, order]
    before = np.cumsum(width, axis=1) - width
    # more mass raises and less mass lowers p·h, so the slack for the rounding of the sums goes outward
    slack = (4 * k * UNIT_ROUNDOFF) * (1 if largest else -1)
    room = np.maximum(1 - low.sum(axis=1)[:, None, None] - before + slack, 0.0)
    total: Floats = ((low[:, order] + np.minimum(width, room)) * ordered).sum(axis=1)
    error = 4 * (k + 4) * UNIT_ROUNDOFF
    if largest:
        possible = (high > 0).astype(np.float32) @ (values > 0).astype(np.float32) > 0
        return np.where(possible, np.clip(total * (1 + error), SAFE_MINIMUM, 1.0), 0.0)
    total *= 1 - error
    return np.where(total >= SAFE_MINIMUM, total, 0.0)


def _extend(rows: Reach, reach: Reach) -> Reach:
    """Bounds after the steps of ``rows`` (single states) followed by those of ``reach``."""
    return Reach(
        row_optimum(rows.lower, rows.upper, reach.lower, largest=False),
        row_optimum(rows.lower, rows.upper, reach.upper, largest=True),
    )


class _Steps(NamedTuple):
    """What m steps do to a bound: the function G_m of φ, and its like for ψ."""

    reach: Reach
    front: Reach  # for the pairs of a set and two states that matter; empty where there are too many sets
    variation: float

    def forward(self, phi: float) -> float:
        """Bound of φ after m steps more."""
        c = math.expm1(phi)
        value = math.log1p(c * self.variation)
        if self.front.upper.size:
            lower, upper = self.front
            value = min(value, float(np.log1p(c * (upper - lower) / (1 + c * lower)).max()))
        return max(value * (1 + 16 * UNIT_ROUNDOFF), SAFE_MINIMUM)

    def backward(self, phi: float, psi: float) -> float:
        """Bound of ψ after m steps more."""
        if not self.front.upper.size:
            return math.inf
        tilt, c = math.exp(-phi), math.expm1(psi)
        lower = self.front.lower * tilt / (1 - self.front.lower * (1 - tilt))
        upper = self.front.upper / (tilt + self.front.upper * (1 - tilt))
        excess = np.maximum(upper - lower, 0.0) + 16 * UNIT_ROUNDOFF
        return float(np.log1p(c * excess / (1 + c * lower)).max()) * (1 + 16 * UNIT_ROUNDOFF)


def _front(reach: Reach) -> Reach:
    """Pairs u(x, S), l(x', S) with x ≠ x' of which no other is at least as far apart on both sides."""
    order = np.argsort(reach.lower, axis=0)
    least, second = (np.take_along_axis(reach.lower, order[i : i + 1], axis=0) for i in (0, 1))
    others = np.where(np.arange(len(order))[:, None] == order[0], second, least)
    upper, lower = reach.upper.ravel(), others.ravel()
    order = np.lexsort((lower, -upper))
    upper, lower = upper[order], lower[order]
    best = np.minimum.accumulate(lower)
    keep = np.append(True, lower[1:] < best[:-1])
    return Reach(lower[keep], upper[keep])


def _direct(singles: Reach, differences: Floats) -> tuple[float, float]:
    """φ and ψ from bounds of P^n(x, z) and of its differences, shape (x, x', z)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.minimum(differences, singles.upper[:, None, :] - singles.lower[None, :, :])
        ratios = np.where(excess > 0, excess / singles.lower[None, :, :], 0.0)
    table = np.log1p(ratios.max(axis=2)) * (1 + 8 * UNIT_ROUNDOFF)
    np.fill_diagonal(table, 0.0)
    forward, backward = float(table.max()), float((table + table.T).max())
    return max(forward, SAFE_MINIMUM), max(backward * (1 + 2 * UNIT_ROUNDOFF), SAFE_MINIMUM)


class _Centre:
    """Differences between rows of P^n by way of one chain of the family, for growing n."""

    def __init__(self, family: TransitionBounds) -> None:
        k = family.states
        width = family.high - family.low
        total = width.sum(axis=1, keepdims=True)
        share = np.clip((1 - family.low.sum(axis=1, keepdims=True)) / np.where(total > 0, total, 1.0), 0.0, 1.0)
        self._matrix = family.low + share * width
        above, below = family.high - self._matrix, self._matrix - family.low
        half = np.maximum(above, below).sum(axis=1) / 2
        away = np.minimum(half, np.minimum(above.sum(axis=1), below.sum(axis=1)))
        self._away = np.maximum(away * (1 + 1e-14) + np.where(total[:, 0] > 0, 8 * k * UNIT_ROUNDOFF, 0.0), 0.0)  # η
        # C^n has a relative error of n (k + 3) roundings; that the rows of E sum to 0 only nearly weighs as much
        self._error = 16 * (k + 8) * UNIT_ROUNDOFF * family.high.max(axis=0)
        self._power = np.eye(k)
        self._weights = np.empty(CENTRED)  # K_j
        self._oscillations = np.ones((CENTRED + 1, k))
        self._variations = np.ones(CENTRED + 1)
        self.n = 0

    @property
    def variation(self) -> float:
        """Bound of the total variation between two rows of P^n."""
        return float(self._variations[self.n])

    def advance(self) -> Floats:
        """Go to n + 1; return bounds of P^n(x, z) − P^n(x', z), shape (x, x', z)."""
        before = np.abs(self._power[:, None, :] - self._power[None, :, :])
        up = 1 + (2 * self.n + 16 + len(self._power)) * UNIT_ROUNDOFF
        self._weights[self.n] = float((before @ self._away).max()) * up + self.n * float(self._error.max()) * float(
            self._away.sum()
        )
        self.n = n = self.n + 1
        self._power = np.asarray(self._power @ self._matrix)
        # K_0 belongs to n − 1 steps, K_{n−1} to none
        weights = self._weights[:n][::-1]
        drift = weights @ self._oscillations[:n] * up
        difference = self._power[:, None, :] - self._power[None, :, :]
        bound: Floats = difference + (drift + n * self._error)
        self._oscillations[n] = np.minimum(self._oscillations[n - 1], bound.max(axis=(0, 1)))
        apart = float(np.abs(difference).sum(axis=2).max()) / 2 * up + n * float(self._error.sum())
        apart += float(weights @ self._variations[:n]) * up
        self._variations[n] = min(self._variations[n - 1], self._variations[1] * self._variations[n - 1] * up, apart)
        return bound


class IntervalInfluence:
    """φ and ψ of one family at growing distances.

    Parameters
    ----------
    family : TransitionBounds
        Of at least two states.

    Attributes
    ----------
    distances : list of int
    forward, backward : list of float
        φ and ψ at those distances.
    """

    def __init__(self, family: TransitionBounds) -> None:
        k = family.states
        self._one = Reach(family.low, family.high)
        self._all_sets = k <= MOST_SETS
        if self._all_sets:
            members = (np.arange(1, 2**k - 1) >> np.arange(k)[:, None] & 1).astype(np.float64)
            self._columns = 2 ** np.arange(k) - 1
        else:
            members = np.eye(k)
            self._columns = np.arange(k)
        self.distances: list[int] = []
        self.forward: list[float] = []
        self.backward: list[float] = []
        self._at: dict[int, int] = {}
        self._steps: dict[int, _Steps] = {}
        self._narrow = True  # whether entries of P^n and their differences may still give the better bound
        self._useless = 0  # at how many distances in a row they did not
        self._centre = _Centre(family)
        reach = Reach(members, members)
        for n in range(1, FIRST + 1):
            reach = _extend(self._one, reach)
            self._add(n, 1, self._singles(reach))
            if n & (n - 1) == 0:
                self._remember(n, reach)
        self._last = self._singles(reach)

    @property
    def stuck(self) -> bool:
        """Whether the last doubling of the distance brought so little that more will not help.

        Stopping is never wrong, only farther distances are then left unused.
        """
        n = self.distances[-1]
        now, before = self.forward[-1], self.forward[self._at[n // 2]]
        return n >= STUCK and (math.isinf(now) or (now > 0.97 * before and now > before - 0.1))

    def grow(self) -> None:
        """Double the largest distance."""
        n = self.distances[-1]
        stride = max(1, 2 * n // POINTS)
        hop = self._singles(self._steps[stride].reach)
        for distance in range(n + stride, 2 * n + 1, stride):
            if self._narrow:
                self._last = _extend(hop, self._last)
            self._add(distance, stride, self._last)
        steps = self._steps[n]
        self._remember(2 * n, _extend(self._singles(steps.reach), steps.reach))

    def derivation(self, left: set[int], right: set[int]) -> list[tuple[int, int]]:
        """How ψ at the distances ``left`` and φ at the distances ``right`` come about.

        Returns
        -------
        list of (int, int)
            Pairs (n, m), by increasing n: the bound at n follows from that at n − m, m steps before, or for m = 0
            from the entries of P^n. Bounds at distances not listed are those at the next smaller one that is.
        """
        pairs = set()
        todo = [(n, True) for n in left] + [(n, False) for n in right]
        seen = set(todo)
        while todo:
            n, backward = todo.pop()
            i = self._at[n]
            bounds = self.backward if backward else self.forward
            needed = []
            if i and bounds[i] == bounds[i - 1]:
                needed = [(self.distances[i - 1], backward)]
            elif backward and bounds[i] == 2 * self.forward[i]:
                needed = [(n, False)]
            else:
                m = self._hop(i, backward)
                pairs.add((n, m))
                needed = [(n - m, side) for side in {False, backward}] if m else []
            todo += [one for one in needed if one not in seen]
            seen.update(needed)
        return sorted(pairs)

    def _hop(self, index: int, backward: bool) -> int:
        """Steps by which the bound at one of the distances was found, 0 if without any."""
        n = self.distances[index]
        for m, steps in self._steps.items():
            before = self._at.get(n - m)
            if before is not None and self.forward[before] < LARGE:
                phi, psi = self.forward[before], self.backward[before]
                if backward and psi < LARGE and steps.backward(phi, psi) <= self.backward[index]:
                    return m
                if not backward and steps.forward(phi) <= self.forward[index]:
                    return m
        return 0

    def _singles(self, reach: Reach) -> Reach:
        return Reach(reach.lower[:, self._columns], reach.upper[:, self._columns])

    def _add(self, n: int, stride: int, singles: Reach) -> None:
        forward, backward = (self.forward[-1], self.backward[-1]) if self.distances else (math.inf, math.inf)
        m = stride
        while m < n and m in self._steps:
            before = self._at[n - m]
            phi, psi = self.forward[before], self.backward[before]
            if phi < LARGE:
                forward = min(forward, self._steps[m].forward(phi))
                backward = min(backward, self._steps[m].backward(phi, psi) if psi < LARGE else math.inf)
            m *= 2
        if self._narrow:
            differences = np.full(3 * singles.lower.shape[:1], math.inf)
            while self._centre.n < n <= CENTRED:  # those of fewer steps than n may be the smaller ones
                differences = self._centre.advance()
            phi, psi = _direct(singles, differences)
            useless = math.isfinite(forward) and phi >= forward and psi >= backward
            self._useless = self._useless + 1 if useless else 0
            self._narrow = self._useless < FIRST
            forward, backward = min(forward, phi), min(backward, psi)
        self._at[n] = len(self.distances)
        self.distances.append(n)
        self.forward.append(forward)
        self.backward.append(min(backward, 2 * forward))

    def _remember(self, m: int, reach: Reach) -> None:
        half = self._steps[m // 2].variation if m > 1 else 1.0
        variation = max(half * half * (1 + 2 * UNIT_ROUNDOFF), SAFE_MINIMUM)
        if self._all_sets:
            front = _front(reach)
            spread = float((front.upper - front.lower).max())
        else:
            front = Reach(np.empty(0), np.empty(0))
            excess = reach.upper[:, None, :] - reach.lower[None, :, :]
            apart = np.maximum(excess, excess.transpose(1, 0, 2)).sum(axis=2) / 2
            apart = np.minimum(apart, np.maximum(excess, 0.0).sum(axis=2))
            np.fill_diagonal(apart, 0.0)
            spread = float(apart.max())
        error = 2 * (len(reach.lower) + 2) * UNIT_ROUNDOFF
        variation = min(variation, max(spread * (1 + error), SAFE_MINIMUM))
        if self._centre.n == m:
            variation = min(variation, max(self._centre.variation, SAFE_MINIMUM))
        self._steps[m] = _Steps(reach, front, variation)


class _Tabled:
    """One side of a node, by bounds at given distances."""

    def __init__(self, distances: list[int], terms: list[float]) -> None:
        self._distances, self._terms = np.array(distances), np.array(terms)

    def term(self, distance: int) -> float:
        """Bound at one of the distances."""
        return float(self._terms[np.searchsorted(self._distances, distance)]) if distance else math.inf

    def distance(self, weight: float, limit: int) -> int:
        """Distance t ≤ ``limit`` with the smallest t + weight · term(t); 0 if there is none."""
        count = int(np.searchsorted(self._distances, limit, side="right"))
        if not count:
            return 0
        return int(self._distances[np.argmin(self._distances[:count] + weight * self._terms[:count])])


@lru_cache(maxsize=16)
def interval_influence(family: TransitionBounds) -> IntervalInfluence:
    """Bounds for ``family``, shared by all calls on the same object."""
    return IntervalInfluence(family)


class IntervalSearch:
    """Best quilts for all chains of a family at once, with any initial distribution.

    Distances are added until the node that decides could not use a larger one: a quilt at distance d covers at
    least d nodes, so it scores at least d / ε.

    A node stands for ``window`` records (see *Windows* in ``influence.search``); the bounds are those of all pairs of
    values, so they hold for the last values of windows, too.

    Attributes
    ----------
    worst : Candidate
        Node and quilt whose score bounds the MQMExact scale of every chain of the family.
    """

    def __init__(self, family: TransitionBounds, length: int, epsilon: float, window: int = 1) -> None:
        self.window = min(window, length)
        self.length = length = length - self.window + 1
        self.epsilon = epsilon
        self._bounds = None if family.states == 1 else interval_influence(family)
        while True:
            if self._bounds is None:  # nothing to infer
                self._left = self._right = _Tabled([1], [0.0])
            else:
                self._left = _Tabled(self._bounds.distances, self._bounds.backward)
                self._right = _Tabled(self._bounds.distances, self._bounds.forward)
            self.worst = worst_additive(length, epsilon, self._left, self._right, self.window)
            if self._bounds is None or self._bounds.stuck:
                return
            if self._bounds.distances[-1] >= min(length - 1, epsilon * self.worst.score):
                return
            self._bounds.grow()

    def best_quilt(self, node: int) -> Candidate:
        """Best quilt of ``node``."""
        return best_additive(node, self.length, self.epsilon, self._left, self._right, self.window)

    def influence(self, left: int | None, right: int | None) -> float:
        """Bound of the max-influence of the quilt at these distances, as best quilts have them."""
        behind = 0.0 if left is None else self._left.term(left)
        return behind + (0.0 if right is None else self._right.term(right))

    def derivation(self, left: set[int], right: set[int]) -> list[tuple[int, int]]:
        """How the bounds at some distances come about; as :meth:`IntervalInfluence.derivation`."""
        return [(1, 0)] if self._bounds is None else self._bounds.derivation(left, right)


def worst_of_family(family: TransitionBounds, length: int, epsilon: float, window: int = 1) -> Candidate:
    """Node and quilt whose score bounds the MQMExact scale of every chain of the family."""
    return IntervalSearch(family, length, epsilon, window).worst
