"""Distributions of a node's neighbours, on either side, for every process.

This module decides when the past is unknown: for a given start, any start, a stationary
distribution that underflows.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints
from pufferflow.bounds.blocks import Block, Blocks, block, blocks_of, blocks_of_sets
from pufferflow.bounds.distribution_sets import (
    ExactRows,
    PairBound,
    ReweightedRows,
    conditional,
    reweighted_rows,
)
from pufferflow.bounds.robust import AffineRows
from pufferflow.bounds.rounds import Cycle
from pufferflow.bounds.walks import Stretch
from pufferflow.errors import ChainError
from pufferflow.models.bounded import BoundedFamily, RowSets
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import Protection
from pufferflow.models.powers import Supports, followed, matrix_power
from pufferflow.models.processes import HiddenChain, PeriodicChain

_EXACT_WORK = 20_000
_EXACT_NODES, _EXACT_STATES = 400, 12
"""Number of early nodes with leakages of their own, in full up to this number of states."""
_SETS_NODES = 10
"""Length of segments all of whose nodes are computed, of families between bounds."""

_NEAR = 0.5
"""Largest spread of a distribution that is near another one."""


@dataclass(frozen=True, eq=False)
class Side:
    """One direction of time.

    Attributes
    ----------
    sets : tuple of PairBound
        Sets for the neighbour of every node after the early ones; each alone bounds its leakages.
        Known rows come first: if their spread is tiny, the others are left out.
    blocks : Blocks
        Bounds of all leakages through several steps.
    early : Stretch, optional
        The first nodes, after one without a neighbour.
    cycle : Cycle, optional
        The steps of a period, for periodic chains, instead of all others.
    """

    sets: tuple[PairBound, ...] = ()
    blocks: Blocks = field(default_factory=Blocks)
    early: Stretch | None = None
    cycle: Cycle | None = None


@dataclass(frozen=True, eq=False)
class Process:
    """A process with equal steps except for the first ones, and a window of its records.

    Attributes
    ----------
    length, window : int
        T, and records of a window.
    secrets : bool array, shape (m, k, k)
        Pairs of values that differ in a record; values are histories of m records, usually of one.
    forward, backward : Side
    exact : bool
        Whether every node is computed, rather than bounded together with others.
    possible : list of bool array, shape (k,)
        Values that the first record of a window can have after 0, 1, … early nodes, and later.
    last : bool array, shape (k, k), optional
        Values of a window's last record that can follow each of its first one; any by default.
    observed : list of ExactRows or None
        Distributions of the value given each observation, if known, of the first nodes and later.
    """

    length: int
    window: int
    secrets: Bools
    forward: Side
    backward: Side
    exact: bool
    possible: list[Bools]
    last: Bools | None = None
    observed: Sequence[ExactRows | None] = (None,)

    @cached_property
    def distance(self) -> Floats:
        """Number of records in which two values differ, shape (k, k)."""
        return np.asarray(self.secrets.sum(axis=0, dtype=np.float64))

    @property
    def around(self) -> int:
        """Records outside a window."""
        return self.length - self.window

    @property
    def phases(self) -> int:
        """Number of phases of the later nodes."""
        return 1 if self.forward.cycle is None else self.forward.cycle.chain.period


def _different(k: int) -> Bools:
    return ~np.eye(k, dtype=np.bool_)[None]


def _every(k: int) -> Bools:
    return np.ones(k, dtype=np.bool_)


def of_sets(
    family: BoundedFamily, length: int, protection: Protection, *, pairs: bool = True
) -> Process:
    """Return the process of chains with rows in sets, varying by step (Theorem I1, Lemma I2).

    Without ``pairs`` the neighbours' distributions are bounded as if side information reweighted
    them.
    """
    k, window = family.states, min(protection.window, length)
    coupled = pairs and protection.side_information == "none"

    def sets(rows: RowSets) -> tuple[PairBound, ...]:
        known = ReweightedRows(rows.log_ratios())
        return (AffineRows(rows), known) if coupled else (known,)

    blocks = list(blocks_of_sets(family.rows, length))
    forward = Side(sets(family.rows), Blocks(ahead for ahead, _ in blocks))
    past = ReweightedRows(family.rows.log_ratios(columns=True))
    reverse = sets(family.backward.rows) if family.backward is not None else ()
    backward = Side((past, *reverse), Blocks(behind for _, behind in blocks))
    exact = length <= _SETS_NODES
    return Process(length, window, _different(k), forward, backward, exact, [_every(k)] * 2)


def of_histories(family: HiddenChain, length: int, protection: Protection) -> Process:
    """Return the process of chains of order m with side information "any" (Theorem L2).

    m records are a step of a chain on histories, and side information about them reweights its
    distributions as usual.
    """
    histories = family.histories
    assert histories is not None
    k, order = histories.shape
    power, support = matrix_power(family.chain.transition_matrix, order)
    forward, backward = (
        Side((found.rows,))
        for ways in ((power, support), (power.T, support.T))
        if (found := block(order, ways, _different(k)[0], None, pairwise=True)).rows is not None
    )
    secrets = histories.T[:, :, None] != histories.T[:, None]
    window = min(protection.window, length)
    return Process(length, window, secrets, forward, backward, False, [_every(k)] * 2)


def of_periodic(chain: PeriodicChain, length: int, protection: Protection) -> list[Process]:
    """Return the process of a periodic chain at all phases, or for short segments one per phase.

    Segments may begin at any phase.
    """
    k, period, window = chain.states, chain.period, min(protection.window, length)
    known = protection.side_information == "none"
    reversible = known and chain.start == "stationary" and chain.stationary_error < 1
    if reversible:
        steps = chain.transition_matrices[chain.transition_matrices > 0]
        rarest = chain.stationary_distributions[chain.possible].min() * steps.min()
        reversible = bool(rarest >= SAFE_MINIMUM)
    forward = Cycle(chain, length - window, forward=True, known=known)
    backward = Cycle(chain, length - window, forward=False, known=reversible)
    shared, possible = (length, window, _different(k)), [_every(k)] * 2
    if length == window or length * period * k**3 > _EXACT_WORK:
        sides = Side(cycle=forward), Side(cycle=backward)
        return [Process(*shared, *sides, False, possible)]
    found, far = [], np.arange(1, length - window + 1)
    for first in range(period):
        after = Side(early=forward.nodes(first + length - 1 - far))
        before = Side(early=backward.nodes(first + far))
        found.append(Process(*shared, after, before, True, possible))
    return found


def of_chain(
    family: MarkovChain | HiddenChain, length: int, protection: Protection, *, pairs: bool = True
) -> Process:
    """Return the process of one chain; hidden states with equal observations have distance 0.

    Without ``pairs`` it has blocks alone, which take less time on many states.
    """
    chain = family if isinstance(family, MarkovChain) else family.chain
    seen = family.observations if isinstance(family, HiddenChain) else None
    if chain.start == "stationary":  # transient states never occur
        seen = None if seen is None else seen[chain.initial_support]
        chain = chain.recurrent
    return _ChainProcess(chain, length, protection, pairs, seen).process()


class _ChainProcess:
    """A chain with one matrix, and the distributions of its nodes.

    A window is treated as one node of a chain that is shorter by the other records of the window:
    backward from its first record, forward from its last one, whose values are different pairs.
    """

    def __init__(
        self,
        chain: MarkovChain,
        length: int,
        protection: Protection,
        pairs: bool,
        seen: Ints | None,
    ) -> None:
        self.chain, self.matrix, self.pairs = chain, chain.transition_matrix, pairs
        self.seen = None if seen is None else np.unique(seen, return_inverse=True)[1]
        self.informed = protection.side_information == "any"
        self.length, self.window = length, min(protection.window, length)
        self.count = length - self.window + 1
        k = chain.states
        most = _EXACT_NODES if k <= _EXACT_STATES else max(1, _EXACT_WORK // k**3)
        self.early = min(self.count, most) if pairs else 1
        self.exact = pairs and self.early == self.count
        self.error = 2 * chain.stationary_error + 4 * UNIT_ROUNDOFF
        self.reversal: Floats | None = None
        if chain.is_irreducible and not self.informed:
            with suppress(ChainError):  # stationary probabilities too small to divide by
                reversal, pi = chain.time_reversal, chain.stationary_distribution
                if (self.matrix.T * pi)[self.matrix.T > 0].min() >= SAFE_MINIMUM:
                    self.reversal = reversal
        # of the early nodes: values, distributions from a given start, spreads (Lemma 7)
        supports = Supports(chain.initial_support, self.matrix > 0, self.early)
        self.possible = [supports.at(node) for node in range(1, self.early + 1)]
        self.given: list[Floats] = []
        if chain.start == "given" and (now := chain.initial_distribution) is not None:
            while len(self.given) < self.early:
                self.given.append(now)
                now = now @ self.matrix
        self.spreads = np.zeros(1) if chain.start == "stationary" else self._spreads()

    def _spreads(self) -> Floats:
        """Return the largest spread of log m(x)/π(x) over distributions m of each early node.

        It is ∞ without a unique π > 0, or if a probability is too small.
        """
        spreads, rounding = np.full(self.early, np.inf), 4 * (self.chain.states + 3) * UNIT_ROUNDOFF
        if self.reversal is not None:
            rows = self.given[0][None] if self.given else np.eye(self.chain.states)
            for node in range(self.early):
                if rows.min() > SAFE_MINIMUM:
                    logs = np.log(rows / self.chain.stationary_distribution)
                    spreads[node] = (logs.max(axis=1) - logs.min(axis=1)).max()
                    spreads[node] += self.error + (node + 1) * rounding
                rows = rows @ self.matrix
        return spreads

    def process(self) -> Process:
        """Return the process."""
        stationary, k = self.chain.start == "stationary", self.chain.states
        seen = np.arange(k) if self.seen is None else self.seen
        every: Bools = np.ones((self.count * self.exact, k), dtype=np.bool_)
        if self.informed:
            forward = self._reweighted(self.matrix, every)
        else:
            forward = self._known(self.matrix, 0.0, every)
        if stationary and self.reversal is not None:
            backward = self._known(self.reversal, self.error, every)
        else:
            backward = self._reweighted(self.matrix.T, np.array(self.possible))
        later: Bools = self.chain.initial_support if stationary else self.matrix.max(axis=0) > 0
        observed: list[ExactRows | None] = [None]
        if self.pairs and self.window == 1 and self.seen is not None and not self.informed:
            nodes = range(1 if stationary else self.early + 1)
            observed = [self._of_observations(node) for node in nodes]
        return Process(
            self.length,
            self.window,
            np.not_equal.outer(seen, seen)[None],
            forward,
            backward,
            self.exact,
            [*self.possible, later],
            last=followed(np.eye(k, dtype=np.bool_), self.matrix > 0, self.window - 1),
            observed=observed,
        )

    def _known(self, rows: Floats, error: float, possible: Bools) -> Side:
        """Return the side of nodes whose neighbours all have these distributions."""
        blocks = Blocks(blocks_of(rows, error, self.count))
        if not self.pairs:
            return Side((), blocks)
        early = Stretch(possible, rows[None], error) if self.exact else None
        return Side((ExactRows(rows, error),), blocks, early)

    def _reweighted(self, weights: Floats, possible: Bools) -> Side:
        """Return the side of nodes whose neighbours' distributions are known up to reweighting.

        ``possible`` has the values of the early ones, whose distributions may be known.
        """
        # known records end the leakage, known observations of hidden states do not
        farthest = 2 if self.informed and self.seen is not None else self.count
        pairwise = self.pairs and self.early > 1 and not self.informed
        blocks = Blocks(blocks_of(weights, None, farthest, pairwise=pairwise))
        if not self.pairs:
            return Side((), blocks)
        sets: list[PairBound] = [reweighted_rows(weights)]
        if self.reversal is not None and (spread := float(self.spreads[-1])) < _NEAR:
            sets.insert(0, ExactRows(self.reversal, self.error, spread))
        early = self._stretch(weights, possible, blocks.pairwise) if len(possible) else None
        return Side(tuple(sets), blocks, early)

    def _stretch(self, weights: Floats, possible: Bools, blocks: list[Block]) -> Stretch:
        """Return the first nodes, each with the distributions of the one before it."""
        before, which = np.unique(possible[:-1], axis=0, return_inverse=True)
        tables = [reweighted_rows(weights * states).roots for states in before]
        rows, error, spreads = None, 0.0, None
        if self.given and not self.informed:
            given, error = np.array(self.given), 2 * self.early * (len(weights) + 3) * UNIT_ROUNDOFF
            joint, there = given[:-1, None] * weights, possible[:-1, None] & (weights > 0)
            rare: Bools = np.asarray(((given < SAFE_MINIMUM) & possible).any(axis=1))
            unsure = ((joint < SAFE_MINIMUM) & there).any(axis=(1, 2)) | rare[1:] | rare[:-1]
            rows, which = conditional(joint), np.where(unsure, which, -1)
            spreads = np.append(np.where(unsure, np.inf, 0.0), 0.0)
        elif self.reversal is not None:
            rows, error, spreads = self.reversal[None], self.error, self.spreads
        return Stretch(possible, rows, error, spreads, which=which, roots=tables, blocks=blocks)

    def _of_observations(self, node: int) -> ExactRows | None:
        """Return the distributions of the state of node 0, 1, … given its observation, or None."""
        assert self.seen is not None
        k, spread = self.chain.states, 0.0
        if self.given and node < self.early:
            known, states = self.given[node], self.possible[node]
            error = 2 * (node + 1) * (k + 3) * UNIT_ROUNDOFF
        else:
            if (spread := float(self.spreads[min(node, len(self.spreads) - 1)])) == math.inf:
                return None
            known, error = self.chain.stationary_distribution, 2 * self.chain.stationary_error
            states = known > 0
        observed = self.seen == np.arange(k)[:, None]
        rows = conditional(np.where(states & observed, known, 0.0))
        if min(known[states].min(), rows[rows > 0].min()) < SAFE_MINIMUM:
            return None
        error += (k + 4) * UNIT_ROUNDOFF
        return ExactRows(rows, error, spread)
