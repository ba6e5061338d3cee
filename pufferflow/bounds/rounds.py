"""Leakages at every phase of a periodic chain: ``docs/leakage.md``, section 12."""

import copy
import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from pufferflow._util.jit import most_threads
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.bounds.blocks import Block, block, blocks_of, times
from pufferflow.bounds.distribution_sets import (
    ExactRows,
    Trees,
    conditional,
    no_trees,
    reweighted_rows,
)
from pufferflow.bounds.solver import beginning
from pufferflow.bounds.walks import ALWAYS, SELDOM, Stored, Stretch
from pufferflow.models.powers import matrix_power
from pufferflow.models.processes import PeriodicChain

_FARTHEST = 2**20
"""Largest number of steps of a block."""
_SLOW_WORK = 10**7
_CLOSE = 1e-6
_ROOM = 1.5
_NEAR = 1e-3, 8.0
"""Margins above leakages at another c, in units of it, and per relative change of c."""
_PASSES = 40
_STEPS = 4_000
_SLOW = 0.97  # changes of faster convergence may turn, and extrapolation then diverges
_FEW = 4


class Cycle:
    """One direction of time: the steps of a period, cut into pieces that share a matrix.

    Leakages at its phases, at successive c, are tables A_t in nats, shape (k, k), with
    Φ(A_{t+1}) ≤ A_t (backward Φ(A_t) ≤ A_{t+1}) for all t of the period, reached from above by
    iterates with this property. They hold for segments of any length.

    Parameters
    ----------
    chain : PeriodicChain
    around : int
        Largest number of records of a side.
    forward : bool
    known : bool
        Whether the distributions of the neighbours are known: forward, or backward for a
        stationary chain. Otherwise they may be reweighted in any way: backward for any start, or
        with side information.
    """

    def __init__(self, chain: PeriodicChain, around: int, *, forward: bool, known: bool) -> None:
        self.chain, self.forward, self.known, self._around = chain, forward, known, around
        self.pieces, k = len(chain.transition_matrices), chain.states
        self.is_slow = chain.period * k**3 > _SLOW_WORK
        """Whether a period takes seconds, so that the search is less exact."""
        self.ended = threading.Event()
        """Set when results are no longer needed: recursions of other threads raise EndedError."""
        self._stretches: dict[int, Stretch] = {}
        self._trees: list[Trees] = []
        self._corners = np.empty((self.pieces, k, k))  # the last leakages after each piece
        self._start = np.zeros((k, k))  # the last leakages at the end of a period, in units of c
        self._found_at = 0.0  # the c of these; 0: they are a guess

    def _phases(self, piece: int) -> Ints:
        """Return the phases of the nodes of a piece, in the order of the recursion."""
        r = self.chain.repeat
        if self.forward:  # backwards from the end of the period
            return np.arange((self.pieces - piece) * r - 1, (self.pieces - piece - 1) * r - 1, -1)
        return np.arange(piece * r + 1, (piece + 1) * r + 1) % self.chain.period

    def nodes(self, phases: Ints, blocks: Sequence[Block] = ()) -> Stretch:
        """Return nodes at these phases, in order, with blocks of steps between them."""
        chain, steps = self.chain, phases if self.forward else phases - 1
        before = phases[:1] + (1 if self.forward else -1)
        possible: Bools = chain.possible[np.concatenate([before, phases]) % chain.period]
        numbers, which = np.unique(steps % chain.period // chain.repeat, return_inverse=True)
        matrices = chain.transition_matrices[numbers]
        if not self.known:
            weights = matrices if self.forward else matrices.transpose(0, 2, 1)
            roots = [reweighted_rows(table).roots for table in weights]
            return Stretch(possible, which=which, roots=roots, blocks=blocks)
        if self.forward:
            return Stretch(possible, matrices[which] if len(matrices) > 1 else matrices)
        given = chain.stationary_distributions[steps % chain.period]
        rows = conditional(given[:, None, :] * matrices[which].transpose(0, 2, 1))
        error = 2 * chain.stationary_error + 2 * (chain.states + 4) * UNIT_ROUNDOFF
        return Stretch(possible, rows, error)

    # -- through several steps, for distributions that may be reweighted ---------------------------

    def _piece(self, piece: int) -> Stretch:
        """Return the nodes of a piece; if neighbours are unknown, with blocks of its steps."""
        if self.known:
            return self.nodes(self._phases(piece))
        _, *several = blocks_of(self._weights(piece), None, self.chain.repeat + 1, pairwise=True)
        return self.nodes(self._phases(piece), [found for found in several if found.rows])

    def _weights(self, piece: int) -> Floats:
        """Return weights of the neighbour's values given each value, up to any reweighting."""
        matrices = self.chain.transition_matrices
        return np.asarray(matrices[self.pieces - 1 - piece] if self.forward else matrices[piece].T)

    @cached_property
    def _blocks(self) -> list[tuple[int, int, Block]]:
        """Blocks of 1, 2, 4, … pieces, with the pieces at whose ends they end and begin.

        They end when longer blocks do not mix better.
        """
        pieces, steps, k = range(self.pieces), self.chain.repeat, self.chain.states
        tables = [matrix_power(self._weights(piece), steps) for piece in pieces]
        ends = [self.chain.possible[self._phases(piece)[-1]] for piece in pieces]
        apart: list[Bools] = [there[:, None] & there & ~np.eye(k, dtype=np.bool_) for there in ends]
        blocks: list[tuple[int, int, Block]] = []
        while True:
            starts = [(piece - steps // self.chain.repeat) % self.pieces for piece in pieces]
            found = [block(steps, *given, None) for given in zip(tables, apart, strict=True)]
            blocks += zip(pieces, starts, found, strict=True)
            largest = max(float(one.limit.max()) for one in found)
            if largest < max(1e-9, 16 * steps * (k + 3) * UNIT_ROUNDOFF) or steps > _FARTHEST:
                return blocks
            tables = [times(tables[piece], tables[start]) for piece, start in enumerate(starts)]
            steps *= 2

    # -- leakages at successive c ------------------------------------------------------------------

    def _walk(self, piece: int, now: Floats, cost: float, cap: float) -> Stored:
        """Return leakages after each step of a piece, rounded up, (steps, k, k).

        ``now`` is replaced by the last ones.
        """
        if piece not in self._stretches:
            self._stretches[piece] = self._piece(piece)
        # trees of the previous piece are a good start
        if self.known and piece == len(self._trees):
            last = self._trees[-1] if self._trees else no_trees(len(now))
            self._trees.append(copy.deepcopy(last))
        trees = self._trees[piece] if self.known else no_trees(0)
        costs = cost * (1 - np.eye(len(now)))
        checks = SELDOM if self.is_slow else ALWAYS
        out, now[:] = self._stretches[piece].walk(now.copy(), costs, cap, trees, checks, self.ended)
        if self.is_slow:  # trees of several pieces need too much memory
            del self._stretches[piece]
        if not self.known:
            now[:] = np.minimum(now, self._ends[piece])
            out[-1] = np.nextafter(now.astype(np.float32), np.float32(np.inf))
        return out[1:]

    def _at_ends(self, cost: float, above: Floats) -> Floats:
        """Return bounds of the leakages at the end of each piece, by blocks of pieces: theorem (b).

        Every iterate from ``above`` is a bound.
        """
        ends, before = np.tile(above, (self.pieces, 1, 1)), np.inf
        while ends.max() < before * (1 - 1e-5):
            before = ends.max()
            for piece, start, through in self._blocks:
                if (through.steps - 1) * cost < ends[piece].max():  # leakage of the nodes between
                    found = through.leakages(cost + float(ends[start].max()), cost)
                    ends[piece] = np.minimum(ends[piece], found * (1 + 4 * UNIT_ROUNDOFF))
        return ends

    # -- a period that ends at or below its start --------------------------------------------------

    def begin(self) -> float:
        """Reset the search: start from leakages of the average matrix, for a small c.

        If a period takes seconds start from the average of the leakages of a few matrices, which
        may mix much more slowly than the average matrix.
        """
        chain = self.chain
        matrices = chain.transition_matrices
        some = matrices[:: math.ceil(len(matrices) / _FEW)] if self.is_slow else ()
        few = [matrices.mean(axis=0), *some]
        if not self.forward:
            past = np.ones(chain.states)
            if chain.start == "stationary":
                past = chain.stationary_distributions.mean(axis=0)
            few = [conditional(matrix.T * past) for matrix in few]
        average, *found = [beginning(ExactRows(rows), self._around) for rows in few]
        mixing = [table for table in found if table.max() < self._around / 2]
        self._start, self._found_at = np.mean(mixing or [average], axis=0), 0.0
        return float(self._start.max())

    def tables(self, cost: float) -> list[Floats]:
        """Return leakages at every phase at c, (k, k) each, that another period hardly changes.

        Periods are iterated from above the last leakages, and extrapolated if they converge slowly.
        Tables with an end at or below their start are valid.
        """
        room, k, period = _ROOM, len(self._start), self.chain.period
        if self._found_at:
            room = min(room, 1 + _NEAR[0] + _NEAR[1] * abs(math.log(cost / self._found_at)))
        cap = self._around * cost * (1 + 16 * UNIT_ROUNDOFF)
        self._found = np.empty((period, k, k), dtype=np.float32)
        above = cap * (1 - np.eye(k))
        start, valid, change = np.minimum(room * cost * self._start, above), above, 0.0
        join = False
        if not self.known:
            self._ends = self._at_ends(cost, above)
        for _ in range(_PASSES + _STEPS // period):
            now = self._round(start, cost, cap, join=join)
            before, change = change, float(abs(now - start).max())
            ratio = change / before if before else 0.0
            rest = ratio / (1 - ratio) if _SLOW < ratio < 1 else 0.0  # of the changes to come
            proved = bool((now <= start).all())
            if proved and change * max(rest, 1) <= _CLOSE * now.max():
                break
            valid = start if proved else valid
            if rest:
                now, change = np.maximum(now + rest * (now - start), 0.0), 0.0
            join = proved and not rest
            start = now if join else np.minimum(now * (1 + _CLOSE), above)
        else:
            for start in (valid, above):
                now = self._round(start, cost, cap)
                if (now <= start).all():  # as it is from above
                    break
        self._start, self._found_at = now / cost, cost
        return list(self._found.astype(np.float64))

    def _round(self, start: Floats, cost: float, cap: float, *, join: bool = False) -> Floats:
        """Iterate one period; return the leakages at its end, and store all of them rounded up.

        If it continues the last one it may ``join`` it, where it hardly differs, up to its end.
        """
        now = start.copy()
        for piece in range(self.pieces):
            self._found[self._phases(piece)] = self._walk(piece, now, cost, cap)
            last = self._corners[piece]
            if join and (now <= last).all() and (last - now).max() <= _CLOSE * now.max():
                return start
            self._corners[piece] = now
        return now


def at_once(sides: Sequence[Cycle], cost: float) -> list[list[Floats]]:
    """Return the leakages of both sides, by two threads that end if this one is interrupted."""
    if most_threads() == 1:
        return [side.tables(cost) for side in sides]
    for side in sides:
        side.ended.clear()
    threads = ThreadPoolExecutor(2)
    try:
        return list(threads.map(lambda side: side.tables(cost), sides))
    except BaseException:
        for side in sides:
            side.ended.set()
        raise
    finally:
        threads.shutdown(cancel_futures=True)
