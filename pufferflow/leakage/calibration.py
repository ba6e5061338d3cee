"""From leakages of the two sides of a node to the loss of a mechanism, and to the smallest scale it allows."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pufferflow.errors import ChainError
from pufferflow.leakage.couplings import CouplingSide, ForgettingSide, Side, costs_of, post_fixed_point
from pufferflow.markov.chain import SAFE_MINIMUM, UNIT_ROUNDOFF, Bools, Floats, MarkovChain

_EXACT_WORK = 30_000
_KEPT = 16
_SMALL_EPSILON = 1e-4


class Loss(NamedTuple):
    """Largest loss of a node, in nats and rounded up, with the node, 1-based."""

    value: float
    node: int


class ChainLeakage:
    """Upper bounds of the loss over the nodes of one chain, for mechanisms known only by c.

    Short chains get the recursions (c) node by node, long ones their post-fixed points.

    Parameters
    ----------
    chain : MarkovChain
    length : int
        T.
    """

    def __init__(self, chain: MarkovChain, length: int) -> None:
        self.chain, self.length = chain, length
        inside = chain.initial_support
        if chain.start == "stationary" and not inside.all():  # transient states never occur
            chain = MarkovChain(chain.transition_matrix[np.ix_(inside, inside)])
        self._model = chain
        matrix = chain.transition_matrix
        self._forward = CouplingSide(matrix)
        self._forget = ForgettingSide(matrix)
        self._backward: Side = self._forget
        self._reversed: CouplingSide | None = None
        if chain.start != "any" and chain.is_irreducible:
            try:
                self._reversed = CouplingSide(chain.time_reversal, 2 * chain.stationary_error + 4 * UNIT_ROUNDOFF)
            except ChainError:  # stationary probabilities too small to divide by
                pass
            if chain.start == "stationary" and self._reversed is not None:
                self._backward = self._reversed
        self._early = min(length, _EXACT_WORK // chain.states**3)
        self.exact = self._early == length
        """Whether every node is computed, rather than bounded by a post-fixed point."""
        self._starts: dict[tuple[str, bool], Floats] = {}
        self._reach = 0.0  # largest leakage of a pair at the last loss

    def loss(self, cost: float) -> Loss:
        """Bound of the loss of a mechanism whose density changes by at most e^cost with one entry."""
        return self._loss(cost, linear=False, kappa=0.0)

    def _loss(self, cost: float, *, linear: bool, kappa: float) -> Loss:
        extra = kappa * self._forward.distances
        if self.exact:
            ahead = [self._zeros]
            for _ in range(self.length - 1):
                ahead.append(self._step(self._forward, ahead[-1], cost, linear, extra))
        else:
            ahead = [self._fixed("forward", self._forward, cost, linear, extra)]
        self._reach = max(float(bound.max()) for bound in ahead)
        worst = Loss(0.0, 1)
        for i, secret, behind in self._pasts(cost, linear, kappa):
            both = np.where(secret[:, None] & secret[None, :], ahead[self.length - i if self.exact else 0] + behind, 0.0)
            self._reach = max(self._reach, float(behind.max()))
            worst = max(worst, Loss(float(both.max()), i), key=lambda found: found.value)
        value = min(cost + worst.value, self.length * cost) * (1 + 4 * UNIT_ROUNDOFF)
        return Loss(value, worst.node)

    @property
    def _zeros(self) -> Floats:
        return np.zeros((self._model.states, self._model.states))

    def _step(self, side: Side, before: Floats, cost: float, linear: bool, extra: Floats | float = 0.0) -> Floats:
        image = side.apply(costs_of(before, cost), linear) + extra
        np.fill_diagonal(image, 0.0)
        return np.asarray(image)

    def _fixed(self, name: str, side: Side, cost: float, linear: bool, extra: Floats | float = 0.0) -> Floats:
        """Post-fixed point of a side, started from the one found last."""
        key = name, linear
        if key in self._starts:
            start = self._starts[key] * cost
        else:  # distinct distances: plans between equal ones are degenerate, which costs time
            k = self._model.states
            start = np.random.default_rng(0).random((k, k)) * (cost / 2)
        found = post_fixed_point(side, cost, self.length, start, linear=linear, extra=extra)
        self._starts[key] = found / cost
        return found

    # -- the past of every node ------------------------------------------------------------------

    def _pasts(self, cost: float, linear: bool, kappa: float) -> list[tuple[int, Bools, Floats]]:
        """Nodes, the values they can take and the leakages of their past; the last one bounds all later nodes."""
        everything = np.ones(self._model.states, dtype=np.bool_)
        if self._model.start == "given":
            return self._given_pasts(cost, linear, kappa)
        extra = kappa * self._reversed.distances if self._backward is self._reversed and self._reversed else 0.0
        pasts = [(1, everything, self._zeros)]
        secret = everything
        steps = self._model.transition_matrix > 0
        if self.exact:
            for i in range(2, self.length + 1):
                if self._model.start == "any":
                    secret = steps[secret].any(axis=0)
                pasts.append((i, secret, self._step(self._backward, pasts[-1][2], cost, linear, extra)))
        else:
            if self._model.start == "any":
                secret = steps.any(axis=0)
            pasts.append(((self.length + 2) // 2, secret, self._fixed("backward", self._backward, cost, linear, extra)))
        return pasts

    def _given_pasts(self, cost: float, linear: bool, kappa: float) -> list[tuple[int, Bools, Floats]]:
        """As :meth:`_pasts` with the laws of the early nodes; later ones are near the stationary law or any."""
        matrix, k = self._model.transition_matrix, self._model.states
        law = self._model.initial_distribution
        assert law is not None
        secret = law > 0
        pasts = [(1, secret, self._zeros)]
        side: CouplingSide | None = None
        for i in range(2, self._early + 1):
            before, reached = law, secret
            law, secret = before @ matrix, (matrix[reached] > 0).any(axis=0)
            if before[reached].min() < SAFE_MINIMUM or law[secret].min() < SAFE_MINIMUM:
                pasts.append((i, secret, self._step(self._forget, pasts[-1][2], cost, linear)))
                continue
            rows = np.zeros((k, k))
            rows[secret] = (before[None, :] * matrix.T)[secret] / law[secret, None]
            error = 2 * i * (k + 3) * UNIT_ROUNDOFF
            if side is None:
                side = CouplingSide(rows, error, secret)
            else:
                side.replace(rows, error, secret)
            pasts.append((i, secret, self._step(side, pasts[-1][2], cost, linear, kappa * side.distances)))
        if self.exact:
            return pasts
        tail = self._near_stationary(law, pasts[-1][2], cost, linear, kappa)
        if tail is None:
            tail = self._fixed("forget", self._forget, cost, linear)
        pasts.append((max(self._early + 1, (self.length + 2) // 2), (matrix > 0).any(axis=0), tail))
        return pasts

    def _near_stationary(
        self, law: Floats, before: Floats, cost: float, linear: bool, kappa: float
    ) -> Floats | None:
        """Bound for all nodes after one with the given law and past, if the law is close to the stationary one."""
        if self._reversed is None or not (law >= SAFE_MINIMUM).all():
            return None
        ratios = np.log(law / self._model.stationary_distribution)
        spread = float(ratios.max() - ratios.min())
        spread += 2 * self._model.stationary_error + 4 * self._early * (self._model.states + 3) * UNIT_ROUNDOFF
        if spread > 1e-7 * (1.0 if linear else cost):
            return None
        off_diagonal = 1.0 - np.eye(self._model.states)
        reach = self.length if linear else 1.0
        extra = (2 * spread * reach + 1e-7 * cost) * off_diagonal + kappa * self._reversed.distances
        found = self._fixed("stationary", self._reversed, cost, linear, extra)
        return found if (before <= found).all() else None

    # -- scales --------------------------------------------------------------------------------

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale with a loss of at most ε that these bounds give, and a worst node; None if not below ``upper``."""
        found = None
        if epsilon <= _SMALL_EPSILON:
            found, kappa = self._small_scale(epsilon)
            if found is not None and kappa < 1e-3:
                return found if found[0] < upper else None
            upper = upper if found is None else min(upper, found[0])
        low = 1 / upper
        at_low = self.loss(low)
        if at_low.value > epsilon:
            return found
        cost, loss = largest_cost(self.loss, epsilon, low, at_low, epsilon)
        scale = math.nextafter(1 / cost, math.inf)
        while 1 / scale > cost:
            scale = math.nextafter(scale, math.inf)
        return scale, loss.node

    def _small_scale(self, epsilon: float) -> tuple[tuple[float, int] | None, float]:
        """Scale from the limit of small c, with a bound of what the limit neglects; and that bound, relative to c."""
        kappa = 0.0
        for _ in range(6):
            loss = self._loss(1.0, linear=True, kappa=kappa)
            cost = epsilon / loss.value
            farthest = cost * (1 + self._reach)
            needed = farthest**2 / 2 * math.exp(farthest) / cost * (1 + 1e-9) if farthest < 1 else math.inf
            if needed <= kappa:
                return (loss.value / epsilon * (1 + 8 * UNIT_ROUNDOFF), loss.node), kappa
            kappa = 1.2 * needed
            if not kappa < 0.1:
                break
        return None, math.inf


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
        found = loss(cost)
        points.append((math.log(cost), math.log(found.value / epsilon)))
        if found.value <= epsilon:
            below, at_below = cost, found
            if cost == high:
                break
        else:
            above = cost
    return below, at_below


_kept: OrderedDict[tuple[MarkovChain, int], ChainLeakage] = OrderedDict()


def chain_leakage(chain: MarkovChain, length: int) -> ChainLeakage:
    """Bounds of ``chain``, shared by all calls on the same object: plans of one ε are where the next one starts."""
    key = chain, length
    found = _kept.pop(key, None) or ChainLeakage(chain, length)
    while len(_kept) >= _KEPT:
        _kept.popitem(last=False)
    _kept[key] = found
    return found
