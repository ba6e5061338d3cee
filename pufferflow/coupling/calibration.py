"""From leakages of the two sides of a node to the loss of a mechanism, and to the smallest scale it allows."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats
from pufferflow.coupling.blocks import Blocks
from pufferflow.coupling.sides import CouplingSide, ForgettingSide, Side, costs_of, post_fixed_point, reached
from pufferflow.errors import ChainError
from pufferflow.markov.chain import MarkovChain

_EXACT_WORK = 20_000
_EXACT_NODES = 400
_KEPT = 16
_SMALL_EPSILON = 1e-4

MOST_STATES = 64
"""Largest number of states for which couplings of all pairs of values are computed by default."""


class Loss(NamedTuple):
    """Largest loss of a node, in nats and rounded up, with the node, 1-based."""

    value: float
    node: int


class _View(NamedTuple):
    """A side at one c: its map Φ_c plus ``extra``, never above ``cap``."""

    side: Side
    cost: float
    linear: bool
    extra: Floats | float
    cap: Floats

    def step(self, before: Floats) -> Floats:
        """Leakages of a node from those of its neighbour."""
        image = self.side.apply(costs_of(before, self.cost), self.linear) + self.extra
        image = np.minimum(image, self.cap)
        np.fill_diagonal(image, 0.0)
        return np.asarray(image)


class _Past(NamedTuple):
    """A node (or, the last of a list, all nodes from it on), the values it can take and what its past leaks."""

    node: int
    secrets: Bools
    leakages: Floats


class ChainLeakage:
    """Upper bounds of the loss over the nodes of one chain, for mechanisms known only by c.

    Short chains get the recursions (c) node by node, long ones their post-fixed points; (b) caps both.

    Parameters
    ----------
    pairs : bool
        Whether to use couplings (c), or blocks (b) alone, which cost less on many states.
    """

    def __init__(self, chain: MarkovChain, length: int, *, pairs: bool = True) -> None:
        if chain.start == "stationary":  # transient states never occur
            chain = chain.restricted(chain.initial_support)
        self._chain, self._length, self._pairs = chain, length, pairs
        matrix = chain.transition_matrix
        self._zeros = np.zeros_like(matrix)
        self._ahead = CouplingSide(matrix)
        self._forget = ForgettingSide(matrix)
        self._ahead_blocks = Blocks(matrix, 0.0, length)
        self._reversed: CouplingSide | None = None
        reversal: Floats | None = None
        error = 2 * chain.stationary_error + 4 * UNIT_ROUNDOFF
        if chain.is_irreducible:
            with suppress(ChainError):  # stationary probabilities too small to divide by
                reversal = chain.time_reversal
        if reversal is not None and reversal[matrix.T > 0].min() < SAFE_MINIMUM:
            reversal = None
        if reversal is not None:
            self._reversed = CouplingSide(reversal, error)
        if chain.start == "stationary" and reversal is not None:
            self._past_blocks = Blocks(reversal, error, length)
        else:
            self._past_blocks = Blocks(matrix, 0.0, length, forget=True)
        self._early = min(length, _EXACT_NODES, max(1, _EXACT_WORK // chain.states**3)) if pairs else 1
        self.exact = pairs and self._early == length
        """Whether every node is computed, rather than bounded by a post-fixed point."""
        self._starts: dict[tuple[str, bool], Floats] = {}
        self._spreads: list[float] = []
        self._laws: list[tuple[Floats, Bools]] = []
        self._conditionals: dict[int, CouplingSide | None] = {}
        self._farthest = 0.0  # largest leakage of a pair at the last loss

    def loss(self, cost: float) -> Loss:
        """Bound of the loss of a mechanism whose density changes by at most e^cost with one entry."""
        return self._loss(cost, self._ahead_blocks.caps(cost), self._past_blocks.caps(cost))

    def _loss(
        self, cost: float, ahead_cap: Floats, past_cap: Floats, *, linear: bool = False, kappa: float = 0.0
    ) -> Loss:
        side = _View(self._ahead, cost, linear, kappa * self._ahead.distances, ahead_cap)
        if self.exact:
            ahead = [self._zeros]
            for _ in range(self._length - 1):
                ahead.append(side.step(ahead[-1]))
        else:
            ahead = [self._fixed("ahead", side) if self._pairs else ahead_cap]
        self._farthest = max(float(bound.max()) for bound in ahead)
        value, node = 0.0, 1
        for past in self._pasts(cost, linear, kappa, past_cap):
            both = ahead[self._length - past.node if self.exact else 0] + past.leakages
            largest = float(np.where(past.secrets[:, None] & past.secrets[None, :], both, 0.0).max())
            if largest > value:
                value, node = largest, past.node
            self._farthest = max(self._farthest, float(past.leakages.max()))
        return Loss(min(cost + value, self._length * cost) * (1 + 4 * UNIT_ROUNDOFF), node)

    def _fixed(self, name: str, side: _View) -> Floats:
        """Post-fixed point of a side, started from the one found last; the first of the past, from that ahead."""
        key = name, side.linear
        known = self._starts.get(key, self._starts.get(("ahead", side.linear)))
        if known is not None:
            start = known * side.cost
        else:  # distinct distances: plans between equal ones are degenerate, which costs time
            k = self._chain.states
            start = np.random.default_rng(0).random((k, k)) * (side.cost / 2)
        leakages = post_fixed_point(side.side, side.cost, side.cap, start, linear=side.linear, extra=side.extra)
        self._starts[key] = leakages / side.cost
        return leakages

    # -- the past of every node ------------------------------------------------------------------

    def _pasts(self, cost: float, linear: bool, kappa: float, cap: Floats) -> list[_Past]:
        """The pasts of all nodes, or of the early ones and a bound of all later ones."""
        matrix = self._chain.transition_matrix
        forget = _View(self._forget, cost, linear, 0.0, cap)
        stationary = self._stationary_side(cost, linear, kappa, cap)
        pasts = [_Past(1, self._chain.initial_support, self._zeros)]
        if self._chain.start == "stationary" and (stationary is not None or not self._pairs):
            if self.exact:
                assert stationary is not None
                for i in range(2, self._length + 1):
                    pasts.append(_Past(i, pasts[0].secrets, stationary.step(pasts[-1].leakages)))
                return pasts
            tail = cap if stationary is None else self._fixed("stationary", stationary)
            return [*pasts, _Past((self._length + 2) // 2, pasts[0].secrets, tail)]
        for i in range(2, self._early + 1):
            secrets, before = reached(pasts[-1].secrets, matrix), pasts[-1].leakages
            conditional = self._conditional(i)
            if conditional is not None:
                bound = _View(conditional, cost, linear, kappa * conditional.distances, cap).step(before)
            else:
                bound = forget.step(before)
                if self._chain.start == "any" and stationary is not None and self._spread(i - 1) < math.inf:
                    farthest = cost + float(before.max()) + kappa  # κ is 0 unless linear
                    away = _away(self._spread(i - 1), self._spread(i), farthest, linear)
                    bound = np.minimum(bound, stationary.step(before) + away)
                    np.fill_diagonal(bound, 0.0)
            pasts.append(_Past(i, secrets, bound))
        if self.exact:
            return pasts
        tail = cap
        if self._pairs:
            near = None
            if stationary is not None:
                spread = self._spread(self._early) if self._chain.start == "any" else self._distance()
                near = self._near_stationary(stationary, spread, pasts[-1].leakages)
            if near is None:
                tail = self._fixed("forget", forget)
            elif linear:  # its allowance for the spread grows with T; each of the two bounds all later nodes
                tail = np.minimum(near, self._fixed("forget", forget))
            else:
                tail = near
        return [
            *pasts,
            _Past(
                max(self._early + 1, (self._length + 2) // 2),
                reached(np.ones(len(matrix), dtype=np.bool_), matrix),
                tail,
            ),
        ]

    def _stationary_side(self, cost: float, linear: bool, kappa: float, cap: Floats) -> _View | None:
        if self._reversed is None or not self._pairs:
            return None
        return _View(self._reversed, cost, linear, kappa * self._reversed.distances, cap)

    def _near_stationary(self, stationary: _View, spread: float, before: Floats) -> Floats | None:
        """Bound for all nodes after one whose past leaks ``before`` and whose law is near the stationary one."""
        if not spread < 1e-7 * stationary.cost:
            return None
        reach = float(self._length) if stationary.linear else 1.0
        off_diagonal = 1.0 - np.eye(self._chain.states)
        extra = stationary.extra + (2 * spread * reach + 1e-7 * stationary.cost) * off_diagonal
        leakages = self._fixed("near stationary", stationary._replace(extra=extra))
        return leakages if (before <= leakages).all() else None

    def _spread(self, node: int) -> float:
        """Largest spread of log m(x)/π(x) over the laws m of a node, whatever the initial distribution."""
        if not self._spreads:
            power = np.eye(self._chain.states)
            error = 2 * self._chain.stationary_error
            with np.errstate(divide="ignore", under="ignore"):
                for i in range(1, self._early + 2):
                    ratios = np.log(power / self._chain.stationary_distribution)
                    spread = (
                        float((ratios.max(axis=1) - ratios.min(axis=1)).max()) if power.min() > 1e-290 else math.inf
                    )
                    self._spreads.append(spread + error + 4 * i * (self._chain.states + 3) * UNIT_ROUNDOFF)
                    power = np.dot(power, self._chain.transition_matrix)
        return self._spreads[node - 1]

    def _law(self, node: int) -> tuple[Floats, Bools]:
        """Law of an early node and the states it can take, from a given initial distribution."""
        if not self._laws:
            law, states = self._chain.initial_distribution, self._chain.initial_support
            assert law is not None
            for _ in range(self._early):
                self._laws.append((law, states))
                law, states = law @ self._chain.transition_matrix, reached(states, self._chain.transition_matrix)
        return self._laws[node - 1]

    def _conditional(self, node: int) -> CouplingSide | None:
        """The node before an early one, given its value; None where its law is not given or too small to divide by."""
        if self._chain.start == "any":
            return None
        if node not in self._conditionals:
            (before, states), (law, secrets) = self._law(node - 1), self._law(node)
            side = None
            if before[states].min() >= SAFE_MINIMUM and law[secrets].min() >= SAFE_MINIMUM:
                rows = np.zeros_like(self._chain.transition_matrix)
                rows[secrets] = (before[None, :] * self._chain.transition_matrix.T)[secrets]
                possible = (states[None, :] & (self._chain.transition_matrix.T > 0))[secrets]
                if rows[secrets][possible].min() >= SAFE_MINIMUM:
                    rows[secrets] /= rows[secrets].sum(axis=1, keepdims=True)
                    start = 2 * self._chain.stationary_error if self._chain.start == "stationary" else 0.0
                    side = CouplingSide(rows, start + 2 * node * (self._chain.states + 3) * UNIT_ROUNDOFF, secrets)
            self._conditionals[node] = side
        return self._conditionals[node]

    def _distance(self) -> float:
        """Spread of log m(x)/π(x) of the law m of the last early node."""
        law, _ = self._law(self._early)
        if not (law >= SAFE_MINIMUM).all():
            return math.inf
        ratios = np.log(law / self._chain.stationary_distribution)
        error = 2 * self._chain.stationary_error + 4 * self._early * (self._chain.states + 3) * UNIT_ROUNDOFF
        return float(ratios.max() - ratios.min()) + error

    # -- scales --------------------------------------------------------------------------------

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale that these bounds give for ε, and a node that decides; None where none is below ``upper``."""
        small = None
        if epsilon <= _SMALL_EPSILON and self._pairs:
            small, kappa = self._small_scale(epsilon)
            if small is not None and kappa < 1e-3:
                return small if small[0] < upper else None
            upper = upper if small is None else min(upper, small[0])
        low = 1 / upper
        with self._counted() as losses:
            at_low = losses(low)
            if at_low.value > epsilon:
                return small
            cost, loss = largest_cost(losses, epsilon, low, at_low, epsilon)
        scale = math.nextafter(1 / cost, math.inf)
        while 1 / scale > cost:
            scale = math.nextafter(scale, math.inf)
        return scale, loss.node

    @contextmanager
    def _counted(self) -> Iterator[Callable[[float], Loss]]:
        """:meth:`loss`, counted by a progress bar where each takes seconds: without couplings there are many states."""
        if self._pairs:
            yield self.loss
            return
        from tqdm import tqdm

        what = f"leakage of {self._chain.states} states, some five losses"
        with tqdm(desc=what, unit=" losses", disable=None, leave=False, delay=1) as bar:

            def counted(cost: float) -> Loss:
                loss = self.loss(cost)
                bar.update()
                return loss

            yield counted

    def _small_scale(self, epsilon: float) -> tuple[tuple[float, int] | None, float]:
        """Scale from the limit of small c, with a bound of what the limit neglects; and that bound, relative to c."""
        kappa = 0.0
        for _ in range(6):
            cap = np.full_like(self._zeros, float(self._length - 1))
            loss = self._loss(1.0, cap, cap, linear=True, kappa=kappa)
            cost = epsilon / loss.value
            farthest = cost * (1 + self._farthest)
            needed = farthest**2 / 2 * math.exp(farthest) / cost * (1 + 1e-9) if farthest < 1 else math.inf
            if needed <= kappa:
                return (loss.value / epsilon * (1 + 8 * UNIT_ROUNDOFF), loss.node), kappa
            kappa = 1.2 * needed
            if not kappa < 0.1:
                break
        return None, math.inf


def _away(spread: float, following: float, farthest: float, linear: bool) -> float:
    """How much more than under P* the past of a node can leak at most.

    The law of the node before is π times e^r with r of the given spread, that of the node one with the following one;
    so the laws of the node before given x are P*(x, ·) times e^r up to a factor, within the spread in total variation.
    """
    variation = -math.expm1(-spread) * (1 + 4 * UNIT_ROUNDOFF)
    if linear:
        return 2 * variation * farthest * (1 + 4 * UNIT_ROUNDOFF)
    growth = math.expm1(farthest) if farthest < 600 else math.inf
    return min(spread + following, 2 * math.log1p(variation * growth)) * (1 + 4 * UNIT_ROUNDOFF)


def largest_cost(
    loss: Callable[[float], Loss], epsilon: float, low: float, at_low: Loss, high: float
) -> tuple[float, Loss]:
    """Largest c ≤ ``high`` with loss(c) ≤ ε, to about 1e-7, from below: the loss there was computed and is at most ε.

    Secant steps for log loss over log c, kept between the largest c known to suffice and the smallest that does not.
    """
    tolerance = 1e-7
    below, at_below = low, at_low
    above = high * (1 + tolerance)
    points = [(math.log(low), math.log(at_low.value / epsilon))]
    for _ in range(60):
        if at_below.value >= epsilon * (1 - 2 * tolerance) or above <= below * (1 + 2 * tolerance):
            break
        x, y = points[-1]
        slope = 1.0
        if len(points) > 1 and points[-2][0] != x:
            slope = (y - points[-2][1]) / (x - points[-2][0])
        slope = slope if 0.05 < slope < 20 else 1.0
        cost = math.exp(min(x - (y + tolerance) / slope, 700.0))
        if not below * (1 + tolerance / 2) < cost < above * (1 - tolerance / 2):
            near = min(high, below * (1 + tolerance)) if cost <= below * (1 + tolerance) else math.sqrt(below * above)
            cost = near if below < near < above else math.sqrt(below * above)
        cost = min(cost, high)
        if cost <= below:
            break
        at_cost = loss(cost)
        points.append((math.log(cost), math.log(at_cost.value / epsilon)))
        if at_cost.value <= epsilon:
            below, at_below = cost, at_cost
            if cost == high:
                break
        else:
            above = cost
    return below, at_below


_kept: OrderedDict[tuple[int, MarkovChain, int, bool], ChainLeakage] = OrderedDict()


def chain_leakage(chain: MarkovChain, length: int, *, pairs: bool = True) -> ChainLeakage:
    """Bounds of ``chain``, shared by all calls on the same object: plans of one ε are where the next one starts.

    They are worked out in place, so every thread has its own.
    """
    key = threading.get_ident(), chain, length, pairs
    leakage = _kept.pop(key, None) or ChainLeakage(chain, length, pairs=pairs)
    while len(_kept) >= _KEPT:
        _kept.popitem(last=False)
    _kept[key] = leakage
    return leakage
