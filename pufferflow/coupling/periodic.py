"""Loss of chains that change with a public clock: chains that follow a clock in ``docs/leakage.md``."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.jit import constant, most_threads
from pufferflow._util.protection import Protection
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.coupling._clock_kernels import forget_walk, walk
from pufferflow.coupling.blocks import forgotten
from pufferflow.coupling.roots import TOLERANCE, Loss, largest_cost, scale_below
from pufferflow.coupling.sides import (
    PORTION,
    CouplingSide,
    ForgettingSide,
    LeakageEquation,
    Side,
    costs_of,
    largest_log_cross_ratios,
    largest_logs,
    no_trees,
    post_fixed_point,
    ranges,
    scattered,
)
from pufferflow.errors import ChainError
from pufferflow.models.periodic import PeriodicChain
from pufferflow.models.powers import matrix_power

_Stored = NDArray[np.float32]

_EXACT_WORK = 20_000
_EXACT_STEPS = 3_000
_CLOSE = 1e-6
_ALWAYS, _SELDOM = (1, 1e-7), (8, 1e-3)
"""After how many steps trees are checked, and how far, in c, their potentials may leave the polytope."""
_ROOM = 1.5
_NEAR = 1e-3, 8.0
"""Room above leakages that were found at another c, in units of it, and for each relative change of c."""
_PASSES = 20
_STEPS = 4_000
_SLOW = 0.3
_FARTHEST = 2**20
"""Steps of the longest blocks, at most."""
_SLOW_WORK = 10**7
_TOLERANCE = 5e-4
"""How far below ε, relatively, the loss at the scale that is returned may be."""
_SMALL = 1e-5
_FEW, _DRAFTED = 8, 1e-2
"""Matrices of a draft of a slow chain, and its tolerance."""


class Way(Protocol):
    """One direction of time: the steps of a period, cut into pieces that share a matrix."""

    pieces: int
    ended: threading.Event
    """Set where what is worked out serves nothing any more: the walks of other threads end by EndedError."""

    def walk(self, piece: int, now: Floats, cost: float, cap: float) -> _Stored:
        """Leakages after each step of a piece, rounded up, shape (steps, k, k); ``now`` becomes the last ones."""

    def phases(self, piece: int) -> NDArray[np.intp]:
        """Phases of the nodes that those are of."""


class EndedError(Exception):
    """The thread that waits for a walk was interrupted."""


class _Clock(NamedTuple):
    """What both directions know."""

    chain: PeriodicChain
    ahead: bool

    @property
    def pieces(self) -> int:
        return len(self.chain.transition_matrices)

    def phases(self, piece: int) -> NDArray[np.intp]:
        r = self.chain.repeat
        if self.ahead:  # backwards from the end of the period
            return np.arange((self.pieces - piece) * r - 1, (self.pieces - piece - 1) * r - 1, -1)
        return np.arange(piece * r + 1, (piece + 1) * r + 1) % self.chain.period

    def before(self, piece: int) -> int:
        """Phase of the node from which the first step of the piece leads."""
        return int(self.phases(piece)[0] + (1 if self.ahead else -1)) % self.chain.period

    def matrix(self, piece: int) -> Floats:
        matrix: Floats = self.chain.transition_matrices[self.pieces - 1 - piece if self.ahead else piece]
        return matrix


class _Piece(NamedTuple):
    """What couplings of a piece have for every c: phases, laws, bounds of their ratios, and values of the nodes."""

    phases: NDArray[np.intp]
    laws: tuple[Floats, float, Bools]
    ratios: Floats
    possible: Bools


class CouplingWay:
    """Couplings: what lies ahead, or the past of a stationary chain.

    Unless leakages are to be what ``trees_alone`` prove, none is larger than the log of a ratio of two laws.
    """

    def __init__(
        self, chain: PeriodicChain, *, ahead: bool, differ: Floats | None = None, trees_alone: bool = False
    ) -> None:
        self._clock = _Clock(chain, ahead)
        self._trees_alone = trees_alone
        self._ratios: dict[int, Floats] = {}
        self._known: dict[int, _Piece] = {}
        self.pieces, self.ended = self._clock.pieces, threading.Event()
        k = chain.states
        self._differ = 1 - np.eye(k) if differ is None else differ
        self._trees: list[tuple[Any, Any, Any]] = []
        self._checks = _SELDOM if is_slow(chain) else _ALWAYS
        self._empty = no_trees(k)

    def freeze(self) -> None:
        """Solve no pair any more: from now on leakages are those that the trees found last prove."""
        self._checks = 0, 0.0

    def trees(self, piece: int) -> Iterator[tuple[int, int, list[int]]]:
        """Yield the tree of every pair of values that has one, as :func:`tree_parents`."""
        return tree_parents(self._trees[piece])

    def phases(self, piece: int) -> NDArray[np.intp]:
        """As :meth:`Way.phases`."""
        return self._clock.phases(piece)

    def walk(self, piece: int, now: Floats, cost: float, cap: float) -> _Stored:
        """As :meth:`Way.walk`."""
        phases, (rows, error, alike), ratios, possible = self._piece(piece)
        if piece < len(self._trees):
            trees = self._trees[piece]
        else:  # those of the hour before are a good start
            nodes, above, arcs = self._trees[-1] if self._trees else self._empty
            trees = nodes.copy(), above.copy(), arcs.copy()
            self._trees.append(trees)
        out = np.empty((len(phases), *now.shape), dtype=np.float32)
        limits = cost * self._differ, constant(np.minimum(cap, ratios))
        _walk((rows, error, alike), possible, now, limits, trees, self._checks, out, self.ended)
        return out

    def _piece(self, piece: int) -> _Piece:
        if piece in self._known:
            return self._known[piece]
        clock, phases = self._clock, self.phases(piece)
        rows, ratios, error = clock.matrix(piece)[None], self._ratios_of_laws(piece, phases[:1]), 0.0
        if not clock.ahead:  # at each phase others; not all at once, so that signals arrive
            parts: list[tuple[Floats, Floats]] = []
            for first, last in ranges(len(phases), 100 * clock.chain.states**2):
                _check(self.ended)
                of_part, error = reversed_rows(clock.chain, phases[first:last])
                parts.append((of_part, self._ratios_of_laws(piece, phases[first:last])))
            rows = np.concatenate([of_part for of_part, _ in parts])
            ratios = ratios if self._trees_alone else np.concatenate([of_part for _, of_part in parts])
        alike: Bools = (rows[0][:, None] == rows[0][None]).all(axis=-1) & clock.ahead
        laws = constant(rows), 2 * error + 4 * UNIT_ROUNDOFF, alike  # in total variation
        possible: Bools = clock.chain.possible[np.append(clock.before(piece), phases)]
        made = _Piece(phases, laws, ratios, possible)
        if not is_slow(clock.chain):  # those of others fill the memory
            self._known[piece] = made
        return made

    def _ratios_of_laws(self, piece: int, phases: NDArray[np.intp]) -> Floats:
        """Bounds of the largest log ratio of the laws given two values, rounded up, shape (n, k, k) or (1, k, k)."""
        chain, matrix = self._clock.chain, self._clock.matrix(piece)
        if self._trees_alone:
            return np.full((1, *matrix.shape), np.inf)
        if piece not in self._ratios:
            self._ratios[piece] = largest_logs(matrix if self._clock.ahead else matrix.T)
        ratios = self._ratios[piece][None]
        if not self._clock.ahead:  # the law of the record before is the joint one over that of the record
            laws = chain.stationary_distributions[phases]
            logs = np.log(laws, out=np.zeros_like(laws), where=laws > 0)
            ratios = ratios + (logs[:, None, :] - logs[:, :, None])
            error = 4.1 * chain.stationary_error + 8000 * UNIT_ROUNDOFF
        else:
            error = 2000 * UNIT_ROUNDOFF
        return np.maximum(ratios, 0.0) + 8 * UNIT_ROUNDOFF * np.abs(ratios) + error


def _walk(
    laws: tuple[Floats, float, Bools],
    possible: Bools,
    now: Floats,
    limits: tuple[Floats, Floats],
    trees: tuple[Any, Any, Any],
    checks: tuple[int, float],
    out: _Stored,
    ended: threading.Event | None = None,
) -> None:
    """All steps of :func:`walk`, in calls that return before a signal has waited long."""
    tables, place = (now, np.empty_like(now)), 0
    while place < out.size:
        _check(ended)
        place = walk(laws, possible, tables, limits, trees, checks, out, (place, PORTION))


def _check(ended: threading.Event | None) -> None:
    if ended is not None and ended.is_set():
        raise EndedError


def tree_parents(trees: tuple[Any, Any, Any]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the tree of every pair: each node's parent, from 1, and 0 for the root.

    The parent is negative where the arc leads from there to the node.
    """
    nodes, above, arcs = trees
    k = len(nodes)
    for x, y in np.argwhere(nodes[:, :, 0] >= 0).tolist():
        line = nodes[x, y].tolist()
        parents = [0] * k
        for i in range(1, k):
            parents[line[i]] = (1 if arcs[x, y, i] < k * k else -1) * (line[above[x, y, i]] + 1)
        yield x, y, parents


def walk_once(rows: Floats, possible: Bools, leakages: Floats, costs: Floats) -> tuple[float, tuple[Any, Any, Any]]:
    """Largest Φ of pairs of laws, rounded up, and the trees that prove it."""
    k = len(rows)
    now, trees = leakages.copy(), no_trees(k)
    out = np.empty((1, k, k), dtype=np.float32)
    laws = constant(rows[None]), 0.0, np.zeros((k, k), dtype=np.bool_)
    caps, there = constant(np.full((1, k, k), np.inf)), np.array([np.ones_like(possible), possible])
    _walk(laws, there, now, (costs, caps), trees, _ALWAYS, out)
    return float(now.max()), trees


def reversed_rows(chain: PeriodicChain, phases: NDArray[np.intp]) -> tuple[Floats, float]:
    """Law of the record before one of each phase given its value, shape (n, k, k), and a bound of relative errors."""
    before = chain.stationary_distributions[(phases - 1) % chain.period]
    steps = chain.transition_matrices[(phases - 1) % chain.period // chain.repeat]
    rows = before[:, None, :] * steps.transpose(0, 2, 1)
    totals = rows.sum(axis=2, keepdims=True)
    rows = np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0)
    return rows, 2 * chain.stationary_error + 2 * (chain.states + 4) * UNIT_ROUNDOFF


class ForgettingWay:
    """All laws of the next node: the past of any start, or either direction where other records may be known."""

    def __init__(self, chain: PeriodicChain, *, ahead: bool) -> None:
        self._clock = _Clock(chain, ahead)
        self.pieces, self.ended = self._clock.pieces, threading.Event()
        self._blocks = _blocks(self._clock)
        self._within: dict[int, list[_Block]] = {}
        self._ends: tuple[float, float, Floats] | None = None

    def phases(self, piece: int) -> NDArray[np.intp]:
        """As :meth:`Way.phases`."""
        return self._clock.phases(piece)

    def walk(self, piece: int, now: Floats, cost: float, cap: float) -> _Stored:
        """As :meth:`Way.walk`."""
        if piece not in self._within:
            self._within[piece] = _within(self._clock, piece)
        phases, within, matrix = self.phases(piece), self._within[piece], self._clock.matrix(piece)
        roots, k = ForgettingSide(matrix.T if self._clock.ahead else matrix).roots, len(matrix)
        filled = np.zeros((k, k)), np.empty((k, k, 1), dtype=np.int32), np.empty((k, k, 1))
        out = np.empty((len(phases), *now.shape), dtype=np.float32)
        possible, largest = constant(self._clock.chain.possible[phases]), np.empty(len(phases) + 1)
        largest[0] = now.max()
        sizes = constant(np.array([block.steps for block in within], dtype=np.int64))
        limits = constant(np.array([block.limit for block in within]).reshape(len(within), k, k))
        blocks = sizes, limits
        for steps in ranges(len(phases), k**4):
            _check(self.ended)
            forget_walk(roots, possible, now, (cost, cap), blocks, filled, (out, largest), steps)
        now[:] = np.minimum(now, self._at_ends(cost, cap)[piece])
        out[-1] = np.nextafter(now.astype(np.float32), np.float32(np.inf))
        return out

    def _at_ends(self, cost: float, cap: float) -> Floats:
        """Bounds of the leakages at the end of each piece, through blocks of whole pieces: theorem (b).

        From the cap on, every iterate is one.
        """
        if self._ends is None or self._ends[:2] != (cost, cap):
            ends = np.full((self.pieces, *(self._clock.chain.states,) * 2), cap)
            while True:
                before = ends.max()
                for piece, of_piece in enumerate(self._blocks):
                    for start, block in of_piece:
                        if (block.steps - 1) * cost < ends[piece].max():  # what the nodes between tell
                            ends[piece] = np.minimum(ends[piece], block.through(float(ends[start].max()), cost))
                if ends.max() >= before * (1 - 1e-3):
                    break
            self._ends = cost, cap, ends
        return self._ends[2]


class _Block(NamedTuple):
    """So many steps to a node, and the most that they tell of pairs of its values."""

    steps: int
    limit: Floats

    def through(self, rest: float, cost: float) -> Floats:
        """Bound of the leakages of the node if those at the other end are at most ``rest``."""
        told = forgotten(self.limit, cost + rest) + (self.steps - 1) * cost * (1 + 4 * UNIT_ROUNDOFF)
        np.fill_diagonal(told, 0.0)
        return told

    @property
    def margin(self) -> float:
        """Bound of the rounding of a product of so many matrices, of a logarithm."""
        return 4 * self.steps * (len(self.limit) + 3) * UNIT_ROUNDOFF


def _block(clock: _Clock, phases: NDArray[np.intp], steps: int, values: Floats, support: Bools) -> _Block:
    """The block of this product of matrices, for all nodes of these ``phases``."""
    secret: Bools = np.asarray(clock.chain.possible[phases].any(axis=0))
    if not clock.ahead:
        values, support = values.T, support.T
    rows = np.ascontiguousarray(np.where(support, values, 0.0))
    limit = largest_log_cross_ratios(rows, secret)
    limit += 2 * _Block(steps, limit).margin
    unsure: Bools = np.asarray((support & (rows < SAFE_MINIMUM)).any(axis=1))
    limit[unsure[:, None] | unsure[None, :]] = np.inf
    np.fill_diagonal(limit, 0.0)
    return _Block(steps, limit)


def _within(clock: _Clock, piece: int) -> list[_Block]:
    """Blocks of 2, 4, 8, … steps inside of a piece."""
    blocks, matrix = [], clock.matrix(piece)
    steps = 2
    while steps <= clock.chain.repeat:
        blocks.append(_block(clock, clock.phases(piece), steps, *matrix_power(matrix, steps)))
        steps *= 2
    return blocks


def _blocks(clock: _Clock) -> list[list[tuple[int, _Block]]]:
    """Blocks of 1, 2, 4, … pieces before the end of each, as far as they forget more and more, and where they begin."""
    pieces, repeat = clock.pieces, clock.chain.repeat
    tables = [matrix_power(clock.matrix(piece), repeat) for piece in range(pieces)]
    blocks: list[list[tuple[int, _Block]]] = [[] for _ in range(pieces)]
    size = 1
    while True:
        for piece, both in enumerate(tables):
            block = _block(clock, clock.phases(piece)[-1:], size * repeat, *both)
            blocks[piece].append(((piece - size) % pieces, block))
        last = [of_piece[-1][1] for of_piece in blocks]
        if max(float(block.limit.max()) for block in last) < max(1e-9, 4 * last[0].margin) or size * repeat > _FARTHEST:
            return blocks
        earlier = [tables[(piece - size) % pieces] for piece in range(pieces)]
        pairs = ((a, b) if clock.ahead else (b, a) for a, b in zip(tables, earlier, strict=True))
        tables = [(a[0] @ b[0], (a[1].astype(np.float32) @ b[1]) > 0) for a, b in pairs]
        size *= 2


def _stepped(side: Side, before: Floats, cost: float, cap: float, possible: Bools) -> Floats:
    """Leakages of a node with these values from those of its neighbour."""
    image = np.minimum(np.minimum(side.apply(costs_of(before, cost)), side.limit), cap)
    image[~(possible[:, None] & possible[None, :])] = 0.0
    np.fill_diagonal(image, 0.0)
    return np.asarray(image)


class PeriodicLeakage:
    """Upper bounds of the loss at every phase of a periodic chain, for mechanisms known only by c.

    Of short segments every node is computed. For long ones the leakages of the two sides form families A_t and B_t with
    Φ(A_{t+1}) ≤ A_t and Φ(B_t) ≤ B_{t+1} all round the period: reached from above, where every iterate is one.
    """

    def __init__(self, chain: PeriodicChain, length: int, protection: Protection) -> None:
        self._chain, self._length, self._protection = chain, length, protection
        self._window = min(protection.window, length)
        self._informed = protection.side_information == "any"
        self._reversible = chain.start == "stationary" and not self._informed and chain.stationary_error < 1
        if self._reversible:
            self._reversible = bool(chain.stationary_distributions[chain.possible].min() >= SAFE_MINIMUM)
        self._ahead: Way = ForgettingWay(chain, ahead=True) if self._informed else CouplingWay(chain, ahead=True)
        self._past: Way = (CouplingWay if self._reversible else ForgettingWay)(chain, ahead=False)
        work = length * chain.period
        self._exact = work <= _EXACT_STEPS and work * chain.states**3 <= _EXACT_WORK
        self._sides: dict[tuple[int, bool], Side] = {}
        self._starts: list[Floats] = []  # of both directions, in units of c
        self._found_at = 0.0  # the c they were found at; 0: they are a guess

    def loss(self, cost: float) -> Loss:
        """Bound of the loss at c, at the phase at which it is largest, which a node in the middle can have."""
        self._starts, self._found_at = [], 0.0
        return self._nearby(cost)

    def _nearby(self, cost: float) -> Loss:
        """The same, from leakages found at the last cost."""
        losses = self._profile(cost)
        return Loss(float(losses.max()), (self._length + 2) // 2)

    def profile(self, cost: float) -> Floats:
        """Bound of the loss at c of a record (of a window that begins) at each phase, shape (period,).

        Over segments that begin at any phase, so that every node can have every phase.
        """
        self._starts, self._found_at = [], 0.0
        return self._profile(cost)

    def _profile(self, cost: float) -> Floats:
        cap = (self._length - 1) * cost * (1 + 4 * UNIT_ROUNDOFF)
        told = self._node_by_node(cost, cap) if self._exact else self._all_round(cost, cap)
        losses = np.minimum(self._window * cost + told, self._length * cost) * (1 + 4 * UNIT_ROUNDOFF)
        return np.asarray(losses)

    # -- short segments ------------------------------------------------------------------------------

    def _node_by_node(self, cost: float, cap: float) -> Floats:
        """Largest A + B at every phase, over the nodes with that phase."""
        chain, windows = self._chain, self._length - self._window + 1
        k, period = chain.states, chain.period
        ahead, past = ([np.zeros((period, k, k))] for _ in range(2))
        for _ in range(windows - 1):
            for both, forward in ((ahead, 1), (past, -1)):
                now = [
                    _stepped(
                        self._side(phase, forward > 0),
                        both[-1][(phase + forward) % period],
                        cost,
                        cap,
                        chain.possible[phase],
                    )
                    for phase in range(period)
                ]
                both.append(np.array(now))
        told = np.zeros(period)
        for node in range(windows):
            for phase in range(period):
                pair = ahead[windows - 1 - node][(phase + self._window - 1) % period], past[node][phase]
                largest = (pair[0] + pair[1]).max() if self._window == 1 else pair[0].max() + pair[1].max()
                told[phase] = max(told[phase], float(largest))
        return told

    def _side(self, phase: int, ahead: bool) -> Side:
        """The next (or the last) node given the value of one at this phase."""
        chain = self._chain
        key = (phase // chain.repeat if ahead else phase), ahead
        if key not in self._sides:
            matrix = chain.transition_matrix(phase if ahead else phase - 1)
            if self._informed or not (ahead or self._reversible):
                self._sides[key] = ForgettingSide(matrix.T if ahead else matrix)
            elif ahead:
                self._sides[key] = CouplingSide(matrix)
            else:
                rows, error = reversed_rows(chain, np.array([phase]))
                self._sides[key] = CouplingSide(rows[0], error, chain.possible[phase])
        return self._sides[key]

    # -- long segments -------------------------------------------------------------------------------

    def _all_round(self, cost: float, cap: float) -> Floats:
        """The same, over nodes of segments of any length."""
        chain = self._chain
        self._begin()
        room = self._room(cost)

        def family(way: Way, start: Floats) -> _Family:
            return Rounds(way, chain.period, cost, cap).family(start * cost, room)

        sides = (self._ahead, self._past), self._starts
        families = tuple(map(family, *sides)) if most_threads() == 1 else self._at_once(family, *sides)
        ahead, past = families
        self._starts, self._found_at = [family.start / cost for family in families], cost
        if self._window == 1:
            told = [float((a + b).max()) for a, b in zip(ahead.leakages, past.leakages, strict=True)]
            return np.array(told) * (1 + 2e-7)
        last = np.roll(ahead.leakages.max(axis=(1, 2)), 1 - self._window).astype(np.float64)
        return np.asarray(last + past.leakages.max(axis=(1, 2)))

    def _at_once(
        self, family: Callable[[Way, Floats], _Family], ways: tuple[Way, Way], starts: list[Floats]
    ) -> tuple[_Family, ...]:
        """The families of both sides, on two threads, which end as soon as this one is interrupted."""
        for way in ways:
            way.ended.clear()
        threads = ThreadPoolExecutor(2)
        try:
            return tuple(threads.map(family, ways, starts))
        except BaseException:
            for way in ways:
                way.ended.set()
            raise
        finally:
            threads.shutdown(cancel_futures=True)

    def _room(self, cost: float) -> float:
        """How much above those known the leakages at c may be."""
        if not self._found_at:
            return _ROOM
        return min(_ROOM, 1 + _NEAR[0] + _NEAR[1] * abs(math.log(cost / self._found_at)))

    def _begin(self) -> None:
        if not self._starts:
            self._starts = [average_leakages(self._chain, self._length, ahead=ahead) for ahead in (True, False)]

    # -- scales --------------------------------------------------------------------------------------

    def scale(self, epsilon: float, upper: float) -> tuple[float, int] | None:
        """Smallest scale that these bounds give for ε, and a node that decides; None where none is below ``upper``."""
        self._starts, self._found_at = [], 0.0
        cost = epsilon if self._exact else self._guess(epsilon)
        tolerance = _TOLERANCE if is_slow(self._chain) else TOLERANCE
        return scale_below(self._nearby, epsilon, upper, max(1 / upper, cost), tolerance)

    def _guess(self, epsilon: float) -> float:
        """A cost to start from: of a few of the matrices where all of them take minutes, or for small leakages."""
        few = self._few_matrices() if is_slow(self._chain) and not self._starts else None
        if few is not None:
            draft = PeriodicLeakage(few, self._length, self._protection)
            decided = largest_cost(draft._nearby, epsilon, draft._guess(epsilon), _DRAFTED)
            self._starts = draft._starts
            if decided is not None:
                return decided[0]
        self._begin()
        return epsilon / (1 + sum(float(start.max()) for start in self._starts))

    def _few_matrices(self) -> PeriodicChain | None:
        """A chain of some of the matrices, from all parts of the period."""
        chain = self._chain
        step = len(chain.transition_matrices) // _FEW
        if step < 2:
            return None
        try:
            return PeriodicChain(
                chain.transition_matrices[::step], repeat=chain.repeat, initial_distribution=chain.start
            )
        except ChainError:  # states that these few never leave
            return None


def average_leakages(chain: PeriodicChain, length: int, *, ahead: bool) -> Floats:
    """What leakages may be, in units of c: those of the average matrix, for a small c."""
    matrix = chain.transition_matrices.mean(axis=0)
    if not ahead:
        law = chain.stationary_distributions.mean(axis=0) if chain.start == "stationary" else np.ones(chain.states)
        matrix = matrix.T * law
        matrix = np.divide(matrix, (totals := matrix.sum(axis=1, keepdims=True)), where=totals > 0, out=matrix)
    cap = np.full_like(matrix, (length - 1) * _SMALL)
    equation = LeakageEquation(CouplingSide(matrix), _SMALL, cap)
    return post_fixed_point(equation, scattered(chain.states) * _SMALL) / _SMALL


def is_slow(chain: PeriodicChain) -> bool:
    """Whether a period takes seconds, so that exactness has a price."""
    return chain.period * chain.states**3 > _SLOW_WORK


class _Family(NamedTuple):
    """Leakages of a side at every phase, and those of the node at which a period begins."""

    leakages: _Stored
    start: Floats


class Rounds:
    """Leakages of a side, round after round of the period, from above, or from below where that does not lead down.

    Those that end at or below where they started are a family. So are those of which a part was replaced by a further
    round, started where they had ended, once it came to lie on or below them again.
    """

    def __init__(self, way: Way, period: int, cost: float, cap: float) -> None:
        self._way, self._cost, self._cap, self._period = way, cost, cap, period

    def family(self, start: Floats, room: float = _ROOM) -> _Family:
        """Return a family that another round would hardly change.

        ``start`` is a guess of where it begins: not above ``room`` times it.
        """
        k = len(start)
        above = self._cap * (1 - np.eye(k))
        self._clear(k)
        start = np.minimum(room * start, above)
        safe, fallen, joined, proved, rising = None, 0.0, False, False, False
        for _ in range(_PASSES + _STEPS // self._period):
            now, joined = self.round(start, proved and safe is start)
            proved = bool((now <= start).all()) or joined
            if joined or (proved and (start - now).max() <= _CLOSE * now.max()):
                break
            if proved:
                before, fallen = fallen, float((start - now).max())
                ratio = fallen / before if before else 0.0
                last, safe = start, now
                start = now
                if _SLOW < ratio < 1:  # a guess where it will end; if it is too low, back to where it was
                    start = np.maximum(now - 0.9 * ratio / (1 - ratio) * (last - now), 0.0)
            elif safe is not None:  # too low a guess, or trees prove less than those before
                if start is safe:
                    safe = np.minimum(np.maximum(safe, now) * (1 + _CLOSE), above)
                start, fallen = safe, 0.0
            elif not rising:  # too low, or beyond a fixed point from which leakages only grow: from below, then
                rising, start = True, np.zeros((k, k))
            else:  # slightly more at every step, so that a round ends below where it starts in the end
                start = np.minimum(np.maximum(start, now * (1 + _CLOSE)), above)
        if not proved:
            now, _ = self.round(above, False)  # never above where it started
        return _Family(self.found, now)

    def once(self, start: Floats) -> Floats:
        """Leakages at the end of a single round."""
        self._clear(len(start))
        return self.round(start, False)[0]

    def _clear(self, k: int) -> None:
        self.found = np.empty((self._period, k, k), dtype=np.float32)
        self.corners = np.empty((self._way.pieces, k, k))

    def round(self, start: Floats, join: bool) -> tuple[Floats, bool]:
        """One round; the leakages at its end, and whether it has joined the round before.

        ``corners`` and ``found`` have the leakages after each piece, and all of them rounded up.
        """
        now = start.copy()
        for piece in range(self._way.pieces):
            self.found[self._way.phases(piece)] = self._way.walk(piece, now, self._cost, self._cap)
            corner = self.corners[piece]
            if join and (now <= corner).all() and (corner - now).max() <= _CLOSE * now.max():
                return self.corners[-1], True
            self.corners[piece] = now
        return now, False
