"""From leakages of the two sides of a node to the loss of a mechanism, and to the smallest scale it allows."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from tqdm import tqdm

from pufferflow._protection import NARROWEST, Protection
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats, Ints
from pufferflow.coupling._pair_kernels import forget_blocks
from pufferflow.coupling.blocks import Blocks, PastBlock, past_blocks
from pufferflow.coupling.nodes import NO_BLOCKS, Nodes
from pufferflow.coupling.sides import (
    ChainSide,
    CouplingSide,
    ForgettingSide,
    LeakageEquation,
    clear_diagonal,
    costs_of,
    newton_iterate,
    portions,
    post_fixed_point,
    reached,
)
from pufferflow.errors import ChainError
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.windows import followers, largest_after

_EXACT_WORK = 20_000
_EXACT_NODES = 400
_KEPT = 16
_SMALL_EPSILON, _TINY_EPSILON = 1e-4, 1e-9
"""Up to the first the limit of small c is taken, too, which knows no blocks; up to the second it alone: elsewhere
rounding would show.
"""
_TOLERANCE = 1e-7
_DRAFTS = 12
NEAR = 0.5
"""Spread up to which a law is near another one."""
_GUESSES = 6
_Made = TypeVar("_Made")

MOST_STATES = 64
"""Largest number of states for which couplings of all pairs of values are computed by default."""


class Loss(NamedTuple):
    """Largest loss of a window, in nats and rounded up, with its first node, 1-based."""

    value: float
    node: int


class View(NamedTuple):
    """A side at one c: its map Φ_c plus ``extra``, never above ``cap``."""

    side: ChainSide
    cost: float
    linear: bool
    extra: Floats | float
    cap: Floats
    differ: Floats  # 1 where two values differ in what a mechanism sees
    kappa: float = 0.0  # of Theorem 8, where linear

    @property
    def costs(self) -> Floats:
        """c·1[z and y differ]."""
        return self.cost * self.differ

    def step(self, before: Floats) -> Floats:
        """Leakages of a node from those of its neighbour."""
        image = self.side.apply(costs_of(before, self.costs), self.linear) + self.extra
        image = np.minimum(image, self.cap)
        clear_diagonal(image)
        return np.asarray(image)


class Past(NamedTuple):
    """A node (or, the last of a list, all nodes from it on), the values it can take and what its past leaks."""

    node: int
    secrets: Bools
    leakages: Floats


class ChainLeakage:
    """Upper bounds of the loss over the windows of one chain, for mechanisms known only by c.

    Short chains get the recursions (c) node by node, long ones their post-fixed points; (b) caps both. A window is a
    node in what follows, of a chain that is shorter by the records the window has beyond one: its past is that of its
    first record, what lies ahead that of its last one, which other values can be those of.

    Parameters
    ----------
    protection : Protection
        Where other records may be known, both sides are taken under all laws of their next node (Lemma 6).
    pairs : bool
        Whether to use couplings (c), or blocks (b) alone, which cost less on many states.
    differ : float array, shape (k, k), optional
        1 where a mechanism can tell two values apart, otherwise 0; by default it can tell all.
    """

    def __init__(
        self,
        chain: MarkovChain,
        length: int,
        protection: Protection = NARROWEST,
        *,
        pairs: bool = True,
        differ: Floats | None = None,
    ) -> None:
        if chain.start == "stationary":  # transient states never occur
            chain = chain.restricted(chain.initial_support)
        self._window = min(protection.window, length)
        length -= self._window - 1  # as many windows, and as far as either side goes
        self._chain, self._length, self._pairs = chain, length, pairs
        self._informed = protection.knows == "any records"
        matrix = chain.transition_matrix
        self._last = followers(matrix, self._window)
        self._zeros = np.zeros_like(matrix)
        self._differ = 1 - np.eye(chain.states) if differ is None else differ
        self._ahead: CouplingSide | ForgettingSide = (
            ForgettingSide(matrix.T) if self._informed else CouplingSide(matrix)
        )
        self._forgets: dict[bytes, ForgettingSide] = {}
        # a known record ends what leaks through it, a known label of a state does not: no powers of P then
        near = 1 if self._informed and differ is not None else None
        rows = matrix.T if self._informed else matrix
        self._ahead_blocks = Blocks(rows, 0.0, length, forget=self._informed, farthest=near)
        self._reversed: CouplingSide | None = None
        reversal: Floats | None = None
        error = 2 * chain.stationary_error + 4 * UNIT_ROUNDOFF
        if chain.is_irreducible and not self._informed:
            with suppress(ChainError):  # stationary probabilities too small to divide by
                reversal = chain.time_reversal
        if reversal is not None and reversal[matrix.T > 0].min() < SAFE_MINIMUM:
            reversal = None
        if reversal is not None:
            self._reversed = CouplingSide(reversal, error)
        if chain.start == "stationary" and reversal is not None:
            self._past_blocks = Blocks(reversal, error, length)
        else:
            self._past_blocks = Blocks(matrix, 0.0, length, forget=True, farthest=near)
        self._early = min(length, _EXACT_NODES, max(1, _EXACT_WORK // chain.states**3)) if pairs else 1
        self.exact = pairs and self._early == length
        """Whether every node is computed, rather than bounded by a post-fixed point."""
        self._starts: dict[tuple[str, bool], Floats] = {}
        self._spreads: list[float] = []
        self._laws: list[tuple[Floats, Bools]] = []
        self._conditionals: dict[int, CouplingSide | None] = {}
        self._nodes: dict[str, Nodes] = {}
        self._farthest = 0.0  # largest leakage of a pair at the last loss
        self._settle: Callable[[LeakageEquation, Floats], Floats] = post_fixed_point
        self._costs: dict[float, float] = {}
        self._moved = 0.0  # how far, relatively, the last steps towards post-fixed points led
        alike = self._early == 1 < length or (not self.exact and chain.start == "stationary" and reversal is not None)
        self._one_tail = pairs and alike and chain.states > 1 and not self._informed
        """Whether one bound of a side serves all nodes, and blocks may do nothing for it."""

    @property
    def chain(self) -> MarkovChain:
        """The chain, without transient states if they never occur."""
        return self._chain

    @property
    def early(self) -> int:
        """Number of nodes that are looked at one by one."""
        return self._early

    @property
    def reversed(self) -> CouplingSide | None:
        """The node before under the stationary law, where there is one that can be divided by."""
        return self._reversed

    def loss(self, cost: float) -> Loss:
        """Bound of the loss of a mechanism whose density changes by at most e^cost with one entry."""
        if self._one_tail:
            loss = self._loss(cost, *self._plain_caps(cost))
            ends = (self._ahead_blocks, self._bounds[0]), (self._past_blocks, self._bounds[-1])
            if not any(blocks.bind(cost, leakages) for blocks, leakages in ends):
                return loss
        return self._loss(cost, self._ahead_blocks.caps(cost), self._past_blocks.caps(cost))

    def _plain_caps(self, cost: float) -> tuple[Floats, Floats]:
        """What all nodes of a side tell together."""
        cap = np.full_like(self._zeros, (self._length - 1) * cost * (1 + 4 * UNIT_ROUNDOFF))
        return cap, cap

    def _loss(
        self, cost: float, ahead_cap: Floats, past_cap: Floats, *, linear: bool = False, kappa: float = 0.0
    ) -> Loss:
        side = View(self._ahead, cost, linear, kappa * self._ahead.distances, ahead_cap, self._differ, kappa)
        if self.exact:
            ahead = list(self._all_nodes("ahead", side))
        else:
            ahead = [self._fixed("ahead", side) if self._pairs else ahead_cap]
        self._farthest = max(float(bound.max()) for bound in ahead)
        value, node = 0.0, 1
        pasts = self._pasts(cost, linear, kappa, past_cap)
        self._bounds = ahead[0], pasts[-1].leakages
        beyond = [self._of_windows(leakages) for leakages in ahead]
        for past in pasts:
            told = self.told(side, beyond[self._length - past.node if self.exact else 0], past)
            if told > value:
                value, node = told, past.node
            self._farthest = max(self._farthest, float(past.leakages.max()))
        loss = min(value, (self._length + self._window - 1) * cost)
        return Loss(loss * (1 + 4 * UNIT_ROUNDOFF), node)

    def _of_windows(self, leakages: Floats) -> Floats:
        """Largest leakage of the last values of two windows, by their first values."""
        if self._window == 1:
            return leakages
        return largest_after(leakages, self._last)

    def told(self, view: View, ahead: Floats, past: Past) -> float:
        """Loss of a window at the c of ``view``, from what its two sides leak."""
        both = ahead + past.leakages
        if not past.secrets.all():
            both = np.where(past.secrets[:, None] & past.secrets[None, :], both, 0.0)
        return self._window * view.cost + float(both.max())

    def _fixed(self, name: str, side: View, floor: Floats | float = 0.0) -> Floats:
        """Post-fixed point of a side, started from the one found last; the first of the past, from that ahead."""
        key = name, side.linear
        start = self._start(key, side.side) * side.cost
        equation = LeakageEquation(side.side, side.costs, side.cap, linear=side.linear, extra=side.extra, floor=floor)
        leakages = self._settle(equation, start)
        self._starts[key] = leakages / side.cost
        self._moved = max(self._moved, float(np.abs(leakages - start).max() / (side.cost + leakages.max())))
        return leakages

    def _start(self, key: tuple[str, bool], side: ChainSide) -> Floats:
        """Leakages to start from, in units of c."""
        known = self._starts.get(key)
        if known is None and isinstance(side, ForgettingSide):
            known = self._starts.get(("ahead", key[1]))
        return side.start() if known is None else known

    # -- the past of every node ------------------------------------------------------------------

    def _pasts(self, cost: float, linear: bool, kappa: float, cap: Floats) -> list[Past]:
        """The pasts of all nodes, or of the early ones and a bound of all later ones."""
        matrix = self._chain.transition_matrix
        forget = View(self._forgetting(np.ones(len(matrix), dtype=np.bool_)), cost, linear, 0.0, cap, self._differ)
        stationary = self._stationary_side(cost, linear, kappa, cap)
        pasts = [Past(1, self._chain.initial_support, self._zeros)]
        if self._chain.start == "stationary" and (stationary is not None or not self._pairs):
            if self.exact:
                assert stationary is not None
                told = self._all_nodes("stationary", stationary)
                return [Past(i, pasts[0].secrets, leakages) for i, leakages in enumerate(told, 1)]
            tail = cap if stationary is None else self._fixed("stationary", stationary)
            return [*pasts, Past((self._length + 2) // 2, pasts[0].secrets, tail)]
        if linear or (self._chain.start == "given" and not self._informed):
            told = self._early_pasts(forget, stationary, kappa)
        else:
            told = self._early_nodes.leakages(cost, forget.costs, cap, self._all_blocks(cost))
        pasts = [Past(i, *of_node) for i, of_node in enumerate(zip(self._early_secrets, told, strict=True), 1)]
        if self.exact:
            return pasts
        tail = cap
        if self._pairs:
            near, spread = None, math.inf
            if stationary is not None:
                spread = self.spread(self._early)
                near = self._near_stationary(stationary, spread, pasts[-1].leakages, kappa)
            if near is not None and spread < 1e-7 * cost:
                tail = near
            else:  # each of them bounds all later nodes
                tail = self._fixed("forget", forget)
                if near is not None:
                    tail = np.minimum(tail, near)
                for block in () if linear else self.past_blocks:
                    view = forget._replace(side=block.side, extra=block.extra(cost) * (1 - np.eye(len(matrix))))
                    tail = np.minimum(tail, self._fixed(f"forget {block.steps}", view))
        return [
            *pasts,
            Past(
                max(self._early + 1, (self._length + 2) // 2),
                reached(np.ones(len(matrix), dtype=np.bool_), matrix),
                tail,
            ),
        ]

    def _all_nodes(self, name: str, view: View) -> Floats:
        """Leakages of all nodes of a side, shape (length, k, k); the first has none."""
        if view.linear:
            told = np.zeros((self._length, *self._zeros.shape))
            for i in range(1, self._length):
                told[i] = view.step(told[i - 1])
            return told
        if name not in self._nodes:
            side = view.side
            if isinstance(side, CouplingSide):
                self._nodes[name] = Nodes(self._length, coupling=side)
            else:
                self._nodes[name] = Nodes(self._length, [side] * (self._length - 1))
        return self._nodes[name].leakages(view.cost, view.costs, view.cap)

    @cached_property
    def _early_secrets(self) -> list[Bools]:
        """Values that each of the early nodes can take."""
        secrets = [self._chain.initial_support]
        while len(secrets) < self._early:
            secrets.append(reached(secrets[-1], self._chain.transition_matrix))
        return secrets

    @cached_property
    def _early_nodes(self) -> Nodes:
        """The early nodes, where their laws are not known."""
        coupling, spreads = None, None
        if self._chain.start == "any" and self._pairs and self._reversed is not None:
            coupling, spreads = self._reversed, np.array([self.spread(i) for i in range(1, self._early + 1)])
        return Nodes(self._early, [self._forgetting(states) for states in self._early_secrets[:-1]], coupling, spreads)

    def _early_pasts(self, forget: View, stationary: View | None, kappa: float) -> Floats:
        """As :attr:`_early_nodes`, where some laws are known, and in the limit of small c."""
        cost, linear, cap = forget.cost, forget.linear, forget.cap
        told = np.zeros((self._early, *self._zeros.shape))
        for i in range(2, self._early + 1):
            before = told[i - 2]
            conditional = self.conditional(i)
            if conditional is not None:
                extra = kappa * conditional.distances
                bound = View(conditional, cost, linear, extra, cap, self._differ).step(before)
            else:
                bound = forget._replace(side=self._forgetting(self._early_secrets[i - 2])).step(before)
                if not linear and self.past_blocks:
                    self._through_blocks(told[: i - 1], forget, bound)
                if self._chain.start == "any" and stationary is not None and self.spread(i - 1) < math.inf:
                    farthest = cost + float(before.max()) + kappa  # κ is 0 unless linear
                    more = beyond_stationary(self.spread(i - 1), self.spread(i), farthest, linear)
                    bound = np.minimum(bound, stationary.step(before) + more)
                    clear_diagonal(bound)
            told[i - 1] = bound
        return told

    @cached_property
    def past_blocks(self) -> list[PastBlock]:
        """Pasts of several steps whose law is not known; none on many states, where each takes long."""
        if self._informed or self._one_tail or not self._pairs:
            return []
        return past_blocks(self._chain.transition_matrix, self._length)

    @cached_property
    def _stacked_blocks(self) -> tuple[Ints, Floats, Bools]:
        """Steps, laws and secrets of all of them."""
        rows, secrets = zip(*(block.side.law for block in self.past_blocks), strict=True)
        return np.array([block.steps for block in self.past_blocks]), np.array(rows), np.array(secrets)

    def _through_blocks(self, history: Floats, forget: View, bound: Floats) -> None:
        """Lower the ``bound`` of a node's past to what all blocks let through, from the pasts of those before."""
        k = len(bound)
        blocks = self._all_blocks(forget.cost)
        for pairs in portions(k, len(self.past_blocks) * k**2):
            forget_blocks(blocks, history, forget.costs, forget.cap, bound, pairs)

    def _all_blocks(self, cost: float) -> tuple[Any, ...]:
        """The blocks at c, as ``forget_blocks`` takes them."""
        if not self.past_blocks:
            return NO_BLOCKS
        return *self._stacked_blocks, np.array([block.extra(cost) for block in self.past_blocks])

    def _forgetting(self, states: Bools) -> ForgettingSide:
        """The node before, under all laws on these states."""
        key = states.tobytes()
        if key not in self._forgets:
            self._forgets[key] = ForgettingSide(self._chain.transition_matrix * states[:, None])
        return self._forgets[key]

    def _stationary_side(self, cost: float, linear: bool, kappa: float, cap: Floats) -> View | None:
        if self._reversed is None or not self._pairs:
            return None
        return View(self._reversed, cost, linear, kappa * self._reversed.distances, cap, self._differ)

    def _near_stationary(self, stationary: View, spread: float, before: Floats, kappa: float) -> Floats | None:
        """Bound for all nodes after one whose past leaks ``before`` and whose law is near the stationary one (Lemma 7).

        What is added depends on the largest leakage, so that is guessed, from the last one found.
        """
        if not spread < NEAR:
            return None
        linear, name = stationary.linear, "near stationary"
        unit = stationary.cost + kappa
        largest = max(float(before.max()), float(self._starts.get((name, linear), self._zeros).max()) * stationary.cost)
        for _ in range(_GUESSES):
            more = beyond_stationary(spread, spread, unit + largest, linear)
            extra = stationary.extra + more * (1.0 - np.eye(self._chain.states))
            leakages = self._fixed(name, stationary._replace(extra=extra), before)
            if leakages.max() <= largest:
                return leakages
            largest = float(leakages.max()) * 1.01
        return None

    def spread(self, node: int) -> float:
        """Largest spread of log m(x)/π(x) over the laws m that an early node (or the one after them) can have.

        ∞ where there is no unique π > 0, or a probability is too small to tell.
        """
        if self._reversed is None:
            return math.inf
        stationary, k = self._chain.stationary_distribution, self._chain.states
        error = 2 * self._chain.stationary_error + 4 * node * (k + 3) * UNIT_ROUNDOFF
        if self._chain.start == "given":
            law, _ = self._law(node)
            if not (law >= SAFE_MINIMUM).all():
                return math.inf
            ratios = np.log(law / stationary)
            return float(ratios.max() - ratios.min()) + error
        if not self._spreads:
            power = np.eye(k)
            with np.errstate(divide="ignore", under="ignore"):
                for _ in range(self._early + 1):
                    logs = np.log(power / stationary)
                    spread = float((logs.max(axis=1) - logs.min(axis=1)).max()) if power.min() > 1e-290 else math.inf
                    self._spreads.append(spread)
                    power = np.dot(power, self._chain.transition_matrix)
        return self._spreads[node - 1] + error

    def _law(self, node: int) -> tuple[Floats, Bools]:
        """Law of an early node and the states it can take, from a given initial distribution."""
        if not self._laws:
            law, states = self._chain.initial_distribution, self._chain.initial_support
            assert law is not None
            for _ in range(self._early + 1):
                self._laws.append((law, states))
                law, states = law @ self._chain.transition_matrix, reached(states, self._chain.transition_matrix)
        return self._laws[node - 1]

    def conditional(self, node: int) -> CouplingSide | None:
        """The node before an early one, given its value; None where its law is not given or too small to divide by."""
        if self._chain.start == "any" or self._informed:
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

    # -- scales --------------------------------------------------------------------------------

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale that these bounds give for ε, and a node that decides; None where none is below ``upper``."""
        small, decided = small_budget(self._linear, epsilon, upper) if self._pairs else (None, False)
        if decided:
            return small
        low = 1 / (upper if small is None else small[0])
        with self._counted() as losses:
            if self._one_tail:
                guess, at_guess = self._guess(epsilon, low)
                if low <= guess and at_guess.value <= epsilon:
                    low, at_low = guess, at_guess
                else:
                    at_low = losses(low)
            else:
                at_low = losses(low)
            if at_low.value > epsilon:
                return small
            cost, loss = largest_cost(losses, epsilon, low, at_low, epsilon)
        return rounded_scale(cost), loss.node

    def _guess(self, epsilon: float, low: float) -> tuple[float, Loss]:
        """Cost whose loss is at most ε, and nearly so, with that loss; or one of larger loss.

        Newton's method for the leakages and the secant method for c at the same time, where nothing is proved on the
        way; then a few small steps down if the loss is just above ε.
        """
        cost = self._nearby(math.log(epsilon), low)
        point, slope, moved = None, 1.0, math.inf
        for _ in range(_DRAFTS):
            with self._drafts():
                value = self._loss(cost, *self._plain_caps(cost)).value
            last, point = point, (math.log(cost), math.log(value))
            if last is not None and moved < 1e-2 and abs(point[0] - last[0]) > 1e-9:
                slope = min(max((point[1] - last[1]) / (point[0] - last[0]), 0.5), 2.0)
            moved = self._moved
            step = (math.log(epsilon) - _TOLERANCE - point[1]) / slope
            cost = min(cost * math.exp(step), epsilon)
            if moved < 3e-5 and abs(step) < 1e-4:
                break
        for _ in range(4):
            loss = self.loss(cost)
            if loss.value <= epsilon or loss.value > epsilon * (1 + 1e-3):
                break
            cost *= (epsilon * (1 - _TOLERANCE) / loss.value) ** (1 / slope)
        self._costs[math.log(loss.value)] = math.log(cost)
        return cost, loss

    @contextmanager
    def _drafts(self) -> Iterator[None]:
        self._moved = 0.0
        self._settle = newton_iterate
        try:
            yield
        finally:
            self._settle = post_fixed_point

    def _nearby(self, wanted: float, low: float) -> float:
        """Cost to start from, between those of other losses (logarithms of both are kept), or for small leakages."""
        if self._costs:
            # of two losses that nearly agree the line through them may lead anywhere
            return math.exp(min(max(_interpolated(self._costs, wanted), math.log(low) - 1), wanted))
        self._settle = _as_started
        try:
            loss = self._loss(low, *self._plain_caps(low))
        finally:
            self._settle = post_fixed_point
        return min(low * math.exp(wanted) / loss.value, math.exp(wanted))

    @contextmanager
    def _counted(self) -> Iterator[Callable[[float], Loss]]:
        """:meth:`loss`, counted by a progress bar where each takes seconds: without couplings there are many states."""
        if self._pairs:
            yield self.loss
            return
        what = f"leakage of {self._chain.states} states, some five losses"
        with tqdm(desc=what, unit=" losses", delay=1, disable=None, leave=False) as bar:

            def counted(cost: float) -> Loss:
                loss = self.loss(cost)
                bar.update()
                return loss

            yield counted

    def _linear(self, kappa: float) -> tuple[Loss, float]:
        """Loss in the limit of small c with an allowance of κ, in units of c, and the largest leakage of a pair."""
        cap = np.full_like(self._zeros, float(self._length - 1))
        return self._loss(1.0, cap, cap, linear=True, kappa=kappa), self._farthest


def rounded_scale(cost: float) -> float:
    """Smallest scale whose inverse, as a float, is at most c."""
    scale = math.nextafter(1 / cost, math.inf)
    while 1 / scale > cost:
        scale = math.nextafter(scale, math.inf)
    return scale


def small_budget(
    limit: Callable[[float], tuple[Loss, float]], epsilon: float, upper: float
) -> tuple[tuple[float, int] | None, bool]:
    """:func:`small_scale` where ε is small, otherwise None, and whether it is the last word."""
    if epsilon > _SMALL_EPSILON:
        return None, False
    small, kappa = small_scale(limit, epsilon, upper)
    return small, epsilon <= _TINY_EPSILON and kappa < 1e-3


def small_scale(
    limit: Callable[[float], tuple[Loss, float]], epsilon: float, upper: float
) -> tuple[tuple[float, int] | None, float]:
    """Scale from the limit of small c, None if not below ``upper``, and a bound κ of what the limit neglects.

    ``limit`` returns the loss of the limit for κ, in units of c, and the largest leakage of a pair. κ is relative to c
    (Theorem 8).
    """
    kappa = 0.0
    for _ in range(6):
        loss, largest = limit(kappa)
        cost = epsilon / loss.value
        farthest = cost * (1 + largest)
        needed = farthest**2 / 2 * math.exp(farthest) / cost * (1 + 1e-9) if farthest < 1 else math.inf
        if needed <= kappa:
            scale = loss.value / epsilon * (1 + 8 * UNIT_ROUNDOFF)
            return (scale, loss.node) if scale < upper else None, kappa
        kappa = 1.2 * needed
        if not kappa < 0.1:
            break
    return None, math.inf


def _interpolated(known: dict[float, float], x: float) -> float:
    """Between the two next points, or along the line through the last two; with slope 1 from a single one."""
    if len(known) == 1:
        [(at, value)] = known.items()
        return value + x - at
    one, other = sorted(known, key=lambda at: abs(at - x))[:2]
    return known[one] + (known[other] - known[one]) * (x - one) / (other - one)


def _as_started(equation: LeakageEquation, start: Floats) -> Floats:
    return np.minimum(start, equation.given_cap)


def beyond_stationary(spread: float, following: float, farthest: float, linear: bool) -> float:
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

    Secant steps for log loss over log c, kept between the largest c known to suffice and the smallest that does not;
    where they do not lead there soon, as where the loss rises steeply, every other one halves what lies between.
    """
    tolerance = _TOLERANCE
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
        if len(points) > 8 and len(points) % 2:
            cost = math.sqrt(below * above)
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


_kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


def kept(make: Callable[..., _Made], *arguments: Any, **options: Any) -> _Made:
    """Bounds of a family, shared by all calls on the same objects: plans of one ε are where the next one starts.

    They are worked out in place, so every thread has its own.
    """
    key = threading.get_ident(), make, *arguments, *options.items()
    made = _kept.pop(key, None) or make(*arguments, **options)
    while len(_kept) >= _KEPT:
        _kept.popitem(last=False)
    _kept[key] = made
    return made


def chain_leakage(
    chain: MarkovChain, length: int, protection: Protection = NARROWEST, *, pairs: bool = True
) -> ChainLeakage:
    """Bounds of ``chain``, kept for further calls."""
    return kept(ChainLeakage, chain, length, protection, pairs=pairs)
