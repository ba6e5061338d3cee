"""Chains with a period in one direction of time: ``docs/leakage.md``, section 12."""

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.bounds.blocks import Block, block, times
from pufferflow.bounds.distribution_sets import conditional, reweighted_rows
from pufferflow.bounds.walks import Stretch
from pufferflow.models.periodic import PeriodicChain
from pufferflow.models.powers import matrix_power

Phases: TypeAlias = NDArray[np.intp]

_FARTHEST = 2**20
"""Largest number of steps of a block."""
_SLOW_WORK = 10**7


class Cycle:
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
        self.chain, self.forward, self.known = chain, forward, known
        self.pieces = len(chain.transition_matrices)
        self.is_slow = chain.period * chain.states**3 > _SLOW_WORK
        """Whether a period takes seconds, so that the search is less exact."""

    def phases(self, piece: int) -> Phases:
        """Return the phases of the nodes of a piece, in the order of the recursion."""
        r = self.chain.repeat
        if self.forward:  # backwards from the end of the period
            return np.arange((self.pieces - piece) * r - 1, (self.pieces - piece - 1) * r - 1, -1)
        return np.arange(piece * r + 1, (piece + 1) * r + 1) % self.chain.period

    def nodes(self, phases: Phases, blocks: Sequence[Block] = ()) -> Stretch:
        """Return nodes at these phases, in order, with blocks of steps at regular distances."""
        chain, steps = self.chain, phases if self.forward else phases - 1
        before = phases[:1] + (1 if self.forward else -1)
        possible: Bools = chain.possible[np.concatenate([before, phases]) % chain.period]
        numbers, which = np.unique(steps % chain.period // chain.repeat, return_inverse=True)
        matrices = chain.transition_matrices[numbers]
        if not self.known:
            weights = matrices if self.forward else matrices.transpose(0, 2, 1)
            sets = [reweighted_rows(table) for table in weights]
            reweighted = [sets[number] for number in which]
            return Stretch(possible, reweighted=reweighted, blocks=blocks, every=False)
        if self.forward:
            return Stretch(possible, matrices[which] if len(matrices) > 1 else matrices)
        given = chain.stationary_distributions[steps % chain.period]
        rows = conditional(given[:, None, :] * matrices[which].transpose(0, 2, 1))
        error = 2 * chain.stationary_error + 2 * (chain.states + 4) * UNIT_ROUNDOFF
        return Stretch(possible, rows, error)

    # -- through several steps, for distributions that may be reweighted ---------------------------

    def piece(self, piece: int) -> Stretch:
        """Return the nodes of a piece; if neighbours are unknown, with blocks of 2, 4, … steps."""
        phases, blocks, steps = self.phases(piece), list[Block](), 2
        while not self.known and steps <= self.chain.repeat:
            power = matrix_power(self._weights(piece), steps)
            blocks.append(block(steps, power, self._apart(phases), None, pairwise=True))
            steps *= 2
        return self.nodes(phases, blocks)

    def _weights(self, piece: int) -> Floats:
        """Return weights of the neighbour's values given each value, up to any reweighting."""
        matrices = self.chain.transition_matrices
        return np.asarray(matrices[self.pieces - 1 - piece] if self.forward else matrices[piece].T)

    def _apart(self, phases: Phases) -> Bools:
        """Return the pairs of different values that a node of these phases can have."""
        there: Bools = np.asarray(self.chain.possible[phases].any(axis=0))
        return there[:, None] & there & ~np.eye(len(there), dtype=np.bool_)

    @cached_property
    def blocks(self) -> list[list[tuple[int, Block]]]:
        """Return blocks of 1, 2, 4, … pieces before the end of each, and their beginnings.

        They end when longer blocks do not mix better.
        """
        pieces, repeat = self.pieces, self.chain.repeat
        tables = [matrix_power(self._weights(piece), repeat) for piece in range(pieces)]
        blocks: list[list[tuple[int, Block]]] = [[] for _ in range(pieces)]
        size = 1
        while True:
            for piece, product in enumerate(tables):
                apart = self._apart(self.phases(piece)[-1:])
                found = block(size * repeat, product, apart, None)
                blocks[piece].append(((piece - size) % pieces, found))
            rounding = 16 * size * repeat * (self.chain.states + 3) * UNIT_ROUNDOFF
            largest = max(float(of_piece[-1][1].limit.max()) for of_piece in blocks)
            if largest < max(1e-9, rounding) or size * repeat > _FARTHEST:
                return blocks
            tables = [
                times(table, tables[(piece - size) % pieces]) for piece, table in enumerate(tables)
            ]
            size *= 2
