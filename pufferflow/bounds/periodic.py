"""Loss of chains with a period: time-inhomogeneous chains in ``docs/leakage.md``."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.jit import most_threads
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.blocks import Block, block, times
from pufferflow.bounds.distribution_sets import (
    ExactRows,
    Trees,
    conditional,
    no_trees,
    reweighted_rows,
)
from pufferflow.bounds.roots import TOLERANCE, Loss, scale_below
from pufferflow.bounds.solver import LeakageEquation, post_fixed_point
from pufferflow.bounds.walks import ALWAYS, SELDOM, Stored, Stretch
from pufferflow.models.periodic import PeriodicChain
from pufferflow.models.powers import matrix_power
from pufferflow.models.protection import Protection

Phases: TypeAlias = NDArray[np.intp]

_EXACT_WORK = 20_000
_EXACT_STEPS = 3_000
_CLOSE = 1e-6
_ROOM = 1.5
_NEAR = 1e-3, 8.0
"""Margins above leakages at another c, in units of it, and per relative change of c."""
_PASSES = 20
_STEPS = 4_000
_SLOW = 0.3
_FARTHEST = 2**20
"""Largest number of steps of a block."""
_SLOW_WORK = 10**7
_TOLERANCE = 5e-4
"""Relative tolerance of the loss at the returned scale, below ε."""
_SMALL, _FEW = 1e-3, 4


class Way:
    """One direction of time: the steps of a period, cut into pieces that share a matrix.

    Parameters
    ----------
    chain : PeriodicChain
    forward : bool
    known : bool
        Whether the distributions of the neighbours are known: forward, or backward for a
        stationary chain. Otherwise they may be reweighted in any way: backward for any start, or
        with side information.
    """

    def __init__(self, chain: PeriodicChain, *, forward: bool, known: bool) -> None:
        self._chain, self._forward, self._is_known = chain, forward, known
        self.pieces = len(chain.transition_matrices)
        self.ended = threading.Event()
        """Set when results are no longer needed: recursions of other threads raise EndedError."""
        self._stretches: dict[int, Stretch] = {}
        self._trees: list[Trees] = []
        self._checks = SELDOM if is_slow(chain) else ALWAYS
        self._ends: tuple[float, float, Floats] | None = None
        self.start: Floats | None = None
        """The last leakages at the end of a period, in units of c."""
        self._found_at = 0.0  # the c of these; 0: they are a guess

    def phases(self, piece: int) -> Phases:
        """Return the phases of the nodes of a piece, in the order of the recursion."""
        r = self._chain.repeat
        if self._forward:  # backwards from the end of the period
            return np.arange((self.pieces - piece) * r - 1, (self.pieces - piece - 1) * r - 1, -1)
        return np.arange(piece * r + 1, (piece + 1) * r + 1) % self._chain.period

    def walk(self, piece: int, now: Floats, cost: float, cap: float) -> Stored:
        """Return leakages after each step of a piece, rounded up, (steps, k, k).

        ``now`` is replaced by the last ones.
        """
        if piece not in self._stretches:
            self._stretches[piece] = self._piece(piece)
        # trees of the previous piece are a good start
        if self._is_known and piece == len(self._trees):
            last = self._trees[-1] if self._trees else no_trees(len(now))
            self._trees.append(copy.deepcopy(last))
        trees = self._trees[piece] if self._is_known else no_trees(0)
        costs = cost * (1 - np.eye(len(now)))
        out, now[:] = self._stretches[piece].walk(
            now.copy(), costs, cap, trees, self._checks, self.ended
        )
        if is_slow(self._chain):  # trees of several pieces need too much memory
            del self._stretches[piece]
        if not self._is_known:
            now[:] = np.minimum(now, self._at_ends(cost, cap)[piece])
            out[-1] = np.nextafter(now.astype(np.float32), np.float32(np.inf))
        return out[1:]

    def nodes(self, phases: Phases, blocks: Sequence[Block] = ()) -> Stretch:
        """Return nodes at these phases, in order, with blocks of steps at regular distances."""
        chain, steps = self._chain, phases if self._forward else phases - 1
        before = phases[:1] + (1 if self._forward else -1)
        possible: Bools = chain.possible[np.concatenate([before, phases]) % chain.period]
        numbers, which = np.unique(steps % chain.period // chain.repeat, return_inverse=True)
        matrices = chain.transition_matrices[numbers]
        if not self._is_known:
            weights = matrices if self._forward else matrices.transpose(0, 2, 1)
            sets = [reweighted_rows(table) for table in weights]
            reweighted = [sets[number] for number in which]
            return Stretch(possible, reweighted=reweighted, blocks=blocks, every=False)
        if self._forward:
            return Stretch(possible, matrices[which] if len(matrices) > 1 else matrices)
        given = chain.stationary_distributions[steps % chain.period]
        rows = conditional(given[:, None, :] * matrices[which].transpose(0, 2, 1))
        error = 2 * chain.stationary_error + 2 * (chain.states + 4) * UNIT_ROUNDOFF
        return Stretch(possible, rows, error)

    # -- through several steps, for distributions that may be reweighted ---------------------------

    def _piece(self, piece: int) -> Stretch:
        """Return the nodes of a piece; if neighbours are unknown, with blocks of 2, 4, … steps."""
        phases, blocks, steps = self.phases(piece), list[Block](), 2
        while not self._is_known and steps <= self._chain.repeat:
            power = matrix_power(self._weights(piece), steps)
            blocks.append(block(steps, power, self._apart(phases), None, pairwise=True))
            steps *= 2
        return self.nodes(phases, blocks)

    def _weights(self, piece: int) -> Floats:
        """Return weights of the neighbour's values given each value, up to any reweighting."""
        matrices = self._chain.transition_matrices
        return np.asarray(matrices[self.pieces - 1 - piece] if self._forward else matrices[piece].T)

    def _apart(self, phases: Phases) -> Bools:
        """Return the pairs of different values that a node of these phases can have."""
        there: Bools = np.asarray(self._chain.possible[phases].any(axis=0))
        return there[:, None] & there & ~np.eye(len(there), dtype=np.bool_)

    @cached_property
    def _blocks(self) -> list[list[tuple[int, Block]]]:
        """Return blocks of 1, 2, 4, … pieces before the end of each, and their beginnings.

        They end when longer blocks do not mix better.
        """
        pieces, repeat = self.pieces, self._chain.repeat
        tables = [matrix_power(self._weights(piece), repeat) for piece in range(pieces)]
        blocks: list[list[tuple[int, Block]]] = [[] for _ in range(pieces)]
        size = 1
        while True:
            for piece, product in enumerate(tables):
                apart = self._apart(self.phases(piece)[-1:])
                found = block(size * repeat, product, apart, None)
                blocks[piece].append(((piece - size) % pieces, found))
            rounding = 16 * size * repeat * (self._chain.states + 3) * UNIT_ROUNDOFF
            largest = max(float(of_piece[-1][1].limit.max()) for of_piece in blocks)
            if largest < max(1e-9, rounding) or size * repeat > _FARTHEST:
                return blocks
            tables = [
                times(table, tables[(piece - size) % pieces]) for piece, table in enumerate(tables)
            ]
            size *= 2

    def _at_ends(self, cost: float, cap: float) -> Floats:
        """Return bounds of the leakages at the end of each piece, by blocks of pieces: theorem (b).

        Every iterate from the cap is a bound.
        """
        if self._ends is None or self._ends[:2] != (cost, cap):
            ends, before = np.full((self.pieces, *(self._chain.states,) * 2), cap), np.inf
            while ends.max() < before * (1 - 1e-3):
                before = ends.max()
                for piece, of_piece in enumerate(self._blocks):
                    for start, through in of_piece:
                        # leakage of the nodes between
                        if (through.steps - 1) * cost < ends[piece].max():
                            found = through.leakages(cost + float(ends[start].max()), cost)
                            ends[piece] = np.minimum(ends[piece], found * (1 + 4 * UNIT_ROUNDOFF))
                            np.fill_diagonal(ends[piece], 0.0)
            self._ends = cost, cap, ends
        return self._ends[2]

    # -- a period that ends at or below its start --------------------------------------------------

    def begin(self, length: int) -> float:
        """Reset the search: start from leakages of the average matrix, for a small c.

        If a period takes seconds start from the average of the leakages of a few matrices, which
        may mix much more slowly than the average matrix.
        """
        chain = self._chain
        matrices = chain.transition_matrices
        few = [matrices.mean(axis=0)]
        if is_slow(chain):
            few += list(matrices[:: math.ceil(len(matrices) / _FEW)])
        if not self._forward:
            past = np.ones(chain.states)
            if chain.start == "stationary":
                past = chain.stationary_distributions.mean(axis=0)
            few = [conditional(matrix.T * past) for matrix in few]
        cap = np.full_like(few[0], (length - 1) * _SMALL)
        start = np.random.default_rng(0).random(cap.shape) / 2 * _SMALL
        average, *found = [
            post_fixed_point(LeakageEquation(ExactRows(matrix), _SMALL, cap), start)
            for matrix in few
        ]
        mixing = [table for table in found if table.max() < cap.max() / 2]
        self.start, self._found_at = np.mean(mixing or [average], axis=0) / _SMALL, 0.0
        return float(self.start.max())

    def family(self, cost: float, cap: float) -> Stored:
        """Return leakages at every phase at c that another period would hardly change.

        Periods are iterated from above the last leakages, or from below if that does not decrease.
        Tables with an end at or below their start are valid. So are those of which a part is
        replaced by a further iteration from their end, once it reaches them again.
        """
        assert self.start is not None
        room, k = _ROOM, len(self.start)
        if self._found_at:
            room = min(room, 1 + _NEAR[0] + _NEAR[1] * abs(math.log(cost / self._found_at)))
        self._found = np.empty((self._chain.period, k, k), dtype=np.float32)
        self._corners = np.empty((self.pieces, k, k))
        above, safe, fallen, proved = cap * (1 - np.eye(k)), None, 0.0, False
        start = np.minimum(room * cost * self.start, above)
        for turn in range(_PASSES + _STEPS // self._chain.period):
            now, joined = self._round(start, cost, cap, join=proved and safe is start)
            proved = joined or bool((now <= start).all())
            if joined or (proved and (start - now).max() <= _CLOSE * now.max()):
                break
            if proved:  # continue, or extrapolate; if that is too low, go back
                before, fallen = fallen, float((start - now).max())
                ratio = fallen / before if before else 0.0
                last, safe, start = start, now, now
                if _SLOW < ratio < 1:
                    start = np.maximum(now - 0.9 * ratio / (1 - ratio) * (last - now), 0.0)
            elif safe is not None:  # too low an extrapolation, or weaker trees
                if start is safe:
                    safe = np.minimum(np.maximum(safe, now) * (1 + _CLOSE), above)
                start, fallen = safe, 0.0
            elif turn == 0:  # too low, or above a fixed point from which leakages only grow
                start = np.zeros((k, k))
            else:  # from below, slightly more each time, until it ends below its start
                start = np.minimum(np.maximum(start, now * (1 + _CLOSE)), above)
        if not proved:
            now, _ = self._round(above, cost, cap, join=False)  # never above its start
        self.start, self._found_at = now / cost, cost
        return self._found

    def _round(self, start: Floats, cost: float, cap: float, *, join: bool) -> tuple[Floats, bool]:
        """Iterate one period; return the leakages at its end, and whether it joined the last one.

        ``_corners`` and ``_found`` have the leakages after each piece, and all of them rounded up.
        """
        now = start.copy()
        for piece in range(self.pieces):
            self._found[self.phases(piece)] = self.walk(piece, now, cost, cap)
            corner = self._corners[piece]
            if join and (now <= corner).all() and (corner - now).max() <= _CLOSE * now.max():
                return self._corners[-1], True
            self._corners[piece] = now
        return now, False


class PeriodicLeakage:
    """Upper bounds of the loss at every phase of a periodic chain, for all c-DP mechanisms.

    In short segments every node is computed. For long ones the leakages of the two sides are
    families A_t and B_t with Φ(A_{t+1}) ≤ A_t and Φ(B_t) ≤ B_{t+1} for all t of the period,
    reached from above by iterates with this property.
    """

    def __init__(self, chain: PeriodicChain, length: int, protection: Protection) -> None:
        self._chain, self._length = chain, length
        self._window = min(protection.window, length)
        informed = protection.side_information == "any"
        reversible = chain.start == "stationary" and not informed and chain.stationary_error < 1
        if reversible:
            reversible = bool(chain.stationary_distributions[chain.possible].min() >= SAFE_MINIMUM)
        self._forward = Way(chain, forward=True, known=not informed)
        self._backward = Way(chain, forward=False, known=reversible)
        work = length * chain.period
        self._exact = work <= _EXACT_STEPS and work * chain.states**3 <= _EXACT_WORK

    def loss(self, cost: float) -> Loss:
        """Return a bound of the loss at c, at the worst phase, which a middle node can have."""
        return Loss(float(self.profile(cost).max()), (self._length + 2) // 2)

    def profile(self, cost: float) -> Floats:
        """Return bounds of the loss at c of windows that begin at each phase, shape (period,).

        Segments begin at any phase, so that every node can have every phase.
        """
        self._begin()
        return self._profile(cost)

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Return the smallest scale by these bounds for ε, and its node; None if ≥ ``upper``."""
        guess = 1 + self._begin()
        tolerance = _TOLERANCE if is_slow(self._chain) else TOLERANCE

        def loss(cost: float) -> Loss:
            return Loss(float(self._profile(cost).max()), (self._length + 2) // 2)

        return scale_below(loss, epsilon, upper, max(1 / upper, epsilon / guess), tolerance)

    def _begin(self) -> float:
        """Reset the search: results do not depend on earlier ones; return leakage over c."""
        ways = (self._forward, self._backward) if not self._exact else ()
        return sum(way.begin(self._length) for way in ways)

    def _profile(self, cost: float) -> Floats:
        cap = (self._length - 1) * cost * (1 + 4 * UNIT_ROUNDOFF)
        bound = self._node_by_node(cost) if self._exact else self._all_round(cost, cap)
        bound = np.minimum(self._window * cost + bound, self._length * cost)
        return np.asarray(bound * (1 + 4 * UNIT_ROUNDOFF))

    # -- short segments ----------------------------------------------------------------------------

    def _node_by_node(self, cost: float) -> Floats:
        """Return the largest A + B at every phase, over the nodes with that phase."""
        k, period, around = self._chain.states, self._chain.period, self._length - self._window
        tables = np.zeros((2, around + 1, period, k, k))  # by side, nodes on it, and phase
        for side, (way, turn) in enumerate(((self._forward, -1), (self._backward, 1))):
            for first in range(period if around else 0):
                phases = (first + turn * np.arange(around + 1)) % period
                stretch = way.nodes(phases[1:])
                cap, trees = around * cost * (1 + 4 * UNIT_ROUNDOFF), no_trees(k)
                stored, _ = stretch.walk(np.zeros((k, k)), cost * (1 - np.eye(k)), cap, trees)
                tables[side, np.arange(around + 1), phases] = stored
        forward, backward = tables[0, ::-1], tables[1]
        if self._window == 1:
            return np.asarray((forward + backward).max(axis=(0, 2, 3)))
        last = np.roll(forward.max(axis=(2, 3)), 1 - self._window, axis=1)
        return np.asarray((last + backward.max(axis=(2, 3))).max(axis=0))

    # -- long segments -----------------------------------------------------------------------------

    def _all_round(self, cost: float, cap: float) -> Floats:
        """Return the same over nodes of segments of any length."""
        ways = self._forward, self._backward
        if most_threads() == 1:
            forward, backward = (way.family(cost, cap) for way in ways)
        else:
            forward, backward = self._at_once(cost, cap)
        if self._window == 1:
            bound = [float((a + b).max()) for a, b in zip(forward, backward, strict=True)]
            return np.array(bound) * (1 + 2e-7)
        last = np.roll(forward.max(axis=(1, 2)), 1 - self._window).astype(np.float64)
        return np.asarray(last + backward.max(axis=(1, 2)))

    def _at_once(self, cost: float, cap: float) -> list[Stored]:
        """Return the families of both sides, by two threads that end if this one is interrupted."""
        ways = self._forward, self._backward
        for way in ways:
            way.ended.clear()
        threads = ThreadPoolExecutor(2)
        try:
            return list(threads.map(lambda way: way.family(cost, cap), ways))
        except BaseException:
            for way in ways:
                way.ended.set()
            raise
        finally:
            threads.shutdown(cancel_futures=True)


def is_slow(chain: PeriodicChain) -> bool:
    """Return whether a period takes seconds, so that the search is less exact."""
    return chain.period * chain.states**3 > _SLOW_WORK
