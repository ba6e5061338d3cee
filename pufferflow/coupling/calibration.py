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

from pufferflow._util.protection import NARROWEST, Protection
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.coupling._node_kernels import beyond_stationary
from pufferflow.coupling._reweighting_kernels import reweight_blocks
from pufferflow.coupling.blocks import Blocks, PastBlock, past_blocks
from pufferflow.coupling.nodes import NO_BLOCKS, Nodes
from pufferflow.coupling.roots import Loss, scale_below
from pufferflow.coupling.sides import (
    ChainSide,
    CouplingSide,
    ForgettingSide,
    LeakageEquation,
    RatioSide,
    clear_diagonal,
    costs_of,
    portions,
    post_fixed_point,
    reached,
)
from pufferflow.errors import ChainError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.powers import followers, largest_after

_EXACT_WORK = 20_000
_EXACT_NODES = 400
_KEPT = 16
NEAR = 0.5
"""Spread up to which a law is near another one."""
_GUESSES = 6
_Made = TypeVar("_Made")

MOST_STATES = 64
"""Largest number of states for which couplings of all pairs of values are computed by default."""


class View(NamedTuple):
    """A side at one c: its map Φ_c plus ``extra``, never above ``cap``."""

    side: ChainSide
    cost: float
    extra: Floats | float
    cap: Floats
    differ: Floats  # 1 where two values differ in what a mechanism sees

    @property
    def costs(self) -> Floats:
        """c·1[z and y differ]."""
        return self.cost * self.differ

    def step(self, before: Floats) -> Floats:
        """Leakages of a node from those of its neighbour."""
        image = np.minimum(self.side.apply(costs_of(before, self.costs)), self.side.limit) + self.extra
        image = np.fmin(image, self.cap)  # what is no number proves nothing
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
        self._informed = protection.side_information == "any"
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
        self._beginnings: dict[str, Floats] = {}
        self._starts: dict[str, Floats] = {}  # of post-fixed points, in units of c, from the last one found
        self._spreads: list[float] = []
        self._laws: list[tuple[Floats, Bools]] = []
        self._conditionals: dict[int, CouplingSide | None] = {}
        self._nodes: dict[str, Nodes] = {}
        alike = self._early == 1 < length or (not self.exact and chain.start == "stationary" and reversal is not None)
        self._one_tail = pairs and alike and chain.states > 1 and not self._informed
        """Whether one bound of a side serves all nodes, and blocks may do nothing for it."""

    def loss(self, cost: float) -> Loss:
        """Bound of the loss of a mechanism whose density changes by at most e^cost with one entry."""
        self._starts.clear()  # what is found does not depend on what was looked for before
        return self._nearby(cost)

    def _nearby(self, cost: float) -> Loss:
        """The same, from post-fixed points found at the last cost."""
        return self._loss(cost, self._ahead_blocks.caps(cost), self._past_blocks.caps(cost))

    def _loss(self, cost: float, ahead_cap: Floats, past_cap: Floats) -> Loss:
        side = View(self._ahead, cost, 0.0, ahead_cap, self._differ)
        if self.exact:
            ahead = list(self._all_nodes("ahead", side))
        else:
            ahead = [self._fixed("ahead", side) if self._pairs else ahead_cap]
        value, node = 0.0, 1
        pasts = self._pasts(cost, past_cap)
        beyond = [self._of_windows(leakages) for leakages in ahead]
        for past in pasts:
            told = self.told(side, beyond[self._length - past.node if self.exact else 0], past)
            if not told <= value:
                value, node = told, past.node
        most = (self._length + self._window - 1) * cost
        return Loss((value if value < most else most) * (1 + 4 * UNIT_ROUNDOFF), node)

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
        start = self._starts.get(name)
        if start is None and isinstance(side.side, RatioSide):
            start = self._starts.get("ahead")
        if start is None:
            start = self._beginning(name, side.side)
        equation = LeakageEquation(side.side, side.costs, side.cap, extra=side.extra, floor=floor)
        leakages = post_fixed_point(equation, start * side.cost)
        self._starts[name] = leakages / side.cost
        return leakages

    def _beginning(self, name: str, side: ChainSide) -> Floats:
        """Leakages to start from where none are known, in units of c; the same in every search."""
        if name not in self._beginnings:
            self._beginnings[name] = side.start()
        return self._beginnings[name]

    # -- the past of every node ------------------------------------------------------------------

    def _pasts(self, cost: float, cap: Floats) -> list[Past]:
        """The pasts of all nodes, or of the early ones and a bound of all later ones."""
        matrix = self._chain.transition_matrix
        forget = View(self._forgetting(np.ones(len(matrix), dtype=np.bool_)), cost, 0.0, cap, self._differ)
        stationary = self._stationary_side(cost, cap)
        pasts = [Past(1, self._chain.initial_support, self._zeros)]
        if self._chain.start == "stationary" and (stationary is not None or not self._pairs):
            if self.exact:
                assert stationary is not None
                told = self._all_nodes("stationary", stationary)
                return [Past(i, pasts[0].secrets, leakages) for i, leakages in enumerate(told, 1)]
            tail = cap if stationary is None else self._fixed("stationary", stationary)
            return [*pasts, Past((self._length + 2) // 2, pasts[0].secrets, tail)]
        if self._chain.start == "given" and not self._informed:
            told = self._early_pasts(forget)
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
                near = self._near_stationary(stationary, spread, pasts[-1].leakages)
            if near is not None and spread < 1e-7 * cost:
                tail = near
            else:  # each of them bounds all later nodes
                tail = self._fixed("forget", forget)
                if near is not None:
                    tail = np.minimum(tail, near)
                for block in self.past_blocks:
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
        if name not in self._nodes:
            side = view.side
            if isinstance(side, CouplingSide):
                self._nodes[name] = Nodes(self._length, coupling=side)
            else:
                self._nodes[name] = Nodes(self._length, [side] * (self._length - 1))
        return self._nodes[name].leakages(view.cost, view.costs, np.minimum(view.cap, view.side.limit))

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

    def _early_pasts(self, forget: View) -> Floats:
        """As :attr:`_early_nodes`, where the distributions of nodes are given, unless too small to divide by."""
        told = np.zeros((self._early, *self._zeros.shape))
        for i in range(2, self._early + 1):
            before = told[i - 2]
            conditional = self.conditional(i)
            if conditional is not None:
                told[i - 1] = forget._replace(side=conditional).step(before)
                continue
            told[i - 1] = forget._replace(side=self._forgetting(self._early_secrets[i - 2])).step(before)
            if self.past_blocks:
                self._through_blocks(told[: i - 1], forget, told[i - 1])
        return told

    @cached_property
    def past_blocks(self) -> list[PastBlock]:
        """Pasts of several steps whose law is not known; none on many states, where each takes long."""
        if self._informed or self._one_tail or not self._pairs:
            return []
        return past_blocks(self._chain.transition_matrix, self._length)

    @cached_property
    def _stacked_blocks(self) -> tuple[Ints, Floats]:
        """Steps and roots of all of them."""
        blocks = self.past_blocks
        return np.array([block.steps for block in blocks]), np.array([block.side.roots for block in blocks])

    def _through_blocks(self, history: Floats, forget: View, bound: Floats) -> None:
        """Lower the ``bound`` of a node's past to what all blocks let through, from the pasts of those before."""
        k = len(bound)
        blocks = self._all_blocks(forget.cost)
        for pairs in portions(k, len(self.past_blocks) * k**2):
            reweight_blocks(blocks, history, forget.costs, forget.cap, bound, pairs)

    def _all_blocks(self, cost: float) -> tuple[Any, ...]:
        """The blocks at c, as ``reweight_blocks`` takes them."""
        if not self.past_blocks:
            return NO_BLOCKS
        return *self._stacked_blocks, np.array([block.extra(cost) for block in self.past_blocks])

    def _forgetting(self, states: Bools) -> ForgettingSide:
        """The node before, under all laws on these states."""
        key = states.tobytes()
        if key not in self._forgets:
            self._forgets[key] = ForgettingSide(self._chain.transition_matrix * states[:, None])
        return self._forgets[key]

    def _stationary_side(self, cost: float, cap: Floats) -> View | None:
        if self._reversed is None or not self._pairs:
            return None
        return View(self._reversed, cost, 0.0, cap, self._differ)

    def _near_stationary(self, stationary: View, spread: float, before: Floats) -> Floats | None:
        """Bound for all nodes after one whose past leaks ``before`` and whose law is near the stationary one (Lemma 7).

        What is added depends on the largest leakage, so that is guessed, from the last one found.
        """
        if not spread < NEAR:
            return None
        name, cost = "near stationary", stationary.cost
        largest = max(float(before.max()), float(self._starts.get(name, self._zeros).max()) * cost)
        for _ in range(_GUESSES):
            more = beyond_stationary(spread, spread, cost + largest)
            leakages = self._fixed(name, stationary._replace(extra=more * (1.0 - np.eye(self._chain.states))), before)
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
        self._starts.clear()
        cost = 1 / upper
        if self._one_tail and self._reversed is not None:  # as if leakages grew with c
            told = self._beginning("ahead", self._ahead) + self._beginning("stationary", self._reversed)
            cost = max(cost, epsilon / (self._window + float(told.max())))
        with self._counted() as losses:
            return scale_below(losses, epsilon, upper, cost)

    @contextmanager
    def _counted(self) -> Iterator[Callable[[float], Loss]]:
        """:meth:`loss`, counted by a progress bar where each takes seconds: without couplings there are many states."""
        if self._pairs:
            yield self._nearby
            return
        what = f"leakage of {self._chain.states} states, some five losses"
        with tqdm(desc=what, unit=" losses", delay=1, disable=None, leave=False) as bar:

            def counted(cost: float) -> Loss:
                loss = self._nearby(cost)
                bar.update()
                return loss

            yield counted


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
