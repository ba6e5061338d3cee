"""Chains whose transition matrix depends on the phase of a public period."""

import math
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_choice, check_list, check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError
from pufferflow.models.chain import ANY, STATIONARY, MarkovChain, checked_distributions
from pufferflow.models.families import STARTS, Family
from pufferflow.models.powers import followed


class PeriodicChain(Family):
    """A chain on k states with a transition matrix for every phase of a public period; immutable.

    The step from a record at phase t to the next one, at phase t + 1, has the matrix of phase t;
    after the last phase comes phase 0. Phases count from 0. A segment may begin at any phase.

    Parameters
    ----------
    transition_matrices : sequence of p array_like, each of shape (k, k)
        One matrix for each part of the period: 24 for the hours of a day, 168 for those of a week.
    repeat : int
        Consecutive steps of each matrix: 60 for one matrix per hour and a record per minute.
    initial_distribution : {"stationary", "any"}
        Distribution of the first record: that of the process with this period, which must be
        unique, or any.
    """

    kind, parameters = "periodic", ("transition_matrices", "repeat", "initial_distribution")
    no_chains = "this needs one matrix, a periodic chain has several; use leakage or group-dp"

    def __init__(
        self,
        transition_matrices: ArrayLike,
        *,
        repeat: int = 1,
        initial_distribution: Literal["stationary", "any"] = STATIONARY,
    ) -> None:
        given = check_list(transition_matrices, "transition_matrices")
        parts = [checked_distributions(p, f"transition matrix {i}") for i, p in enumerate(given, 1)]
        if len(sizes := {len(matrix) for matrix in parts}) != 1:
            different = " and ".join(map(str, sorted(sizes))) or "no"
            advice = "give at least one, all with the same states"
            raise ChainError(f"the transition matrices have {different} states; {advice}")
        self.transition_matrices: Floats = np.stack(parts)
        """P_0, …, P_{p−1}, shape (p, k, k), read-only."""
        self.transition_matrices.flags.writeable = False
        self.states: int = self.transition_matrices.shape[1]
        """Number of states, k."""
        self.repeat = check_whole(repeat, "repeat", most=10**6 // len(parts))
        """Consecutive steps of each matrix."""
        self.period = len(parts) * self.repeat
        """Number of phases."""
        check_choice(initial_distribution, "initial_distribution", (STATIONARY, ANY))
        self.start = self.initial_distribution = initial_distribution
        """Kind of initial distribution: stationary or any."""
        if self.start == STATIONARY:
            _ = self.stationary_distributions  # raises if they are not unique

    def __repr__(self) -> str:
        period = f"period {self.period}, initial_distribution={self.start}"
        return f"PeriodicChain({self.states} states, {period})"

    def transition_matrix(self, phase: int) -> Floats:
        """Return the matrix of the step from this phase to the next one, shape (k, k)."""
        matrix: Floats = self.transition_matrices[phase % self.period // self.repeat]
        return matrix

    @cached_property
    def stationary_distributions(self) -> Floats:
        """Distribution of a record at every phase of the periodic process, shape (period, k).

        Raises ChainError: they are not unique.
        """
        try:
            now = self._whole_period[0].stationary_distribution
        except ChainError:
            what = "the distribution of the records at each phase is not unique"
            why = "for some states of phase 0 are never reached from one another"
            advice = 'give initial_distribution="any", or smooth the matrices'
            raise ChainError(f"{what}, {why}; {advice}") from None
        found = np.empty((self.period, self.states))
        with np.errstate(under="ignore"):
            for phase in range(self.period):
                found[phase] = now
                now = now @ self.transition_matrix(phase)
                now = now / now.sum()
        found.flags.writeable = False
        return found

    @cached_property
    def _whole_period(self) -> tuple[MarkovChain, bool]:
        """The chain of the records at phase 0, and whether none of its probabilities underflows."""
        whole, possible = np.eye(self.states), np.eye(self.states, dtype=np.bool_)
        with np.errstate(under="ignore"):
            for matrix in self.transition_matrices:
                whole = whole @ np.linalg.matrix_power(matrix, self.repeat)
                possible = followed(possible, matrix > 0, self.repeat)
        chain = MarkovChain(np.where(possible, np.maximum(whole, 1e-300), 0.0))
        return chain, bool((whole[possible] >= SAFE_MINIMUM).all())

    @property
    def stationary_error(self) -> float:
        """Bound on the relative error of each entry of :attr:`stationary_distributions`.

        It holds down to about 1e-290. The error of a product of n matrices is at most n (k + 6)
        roundings, as nothing is subtracted; a relative error η of the whole period moves its
        stationary distribution by at most 2kη, and the elimination adds its own. It is infinite if
        a probability of the whole period underflows.
        """
        k, n = self.states, self.period
        if not self._whole_period[1]:
            return math.inf
        return (2 * k + 1) * n * (k + 6) * UNIT_ROUNDOFF + (n + 8.0 * k**3) * UNIT_ROUNDOFF

    @cached_property
    def possible(self) -> Bools:
        """Mask of the possible states at each phase, shape (period, k)."""
        possible = np.ones((self.period, self.states), dtype=np.bool_)
        if self.start == STATIONARY:
            # exactly: probabilities may underflow
            possible[0] = self._whole_period[0].initial_support
            for phase in range(self.period - 1):
                edges = self.transition_matrix(phase) > 0
                possible[phase + 1] = followed(possible[phase], edges, 1)
        return possible

    def text(self) -> str:
        """Return a description of these processes."""
        start = f"{STARTS[self.start].removesuffix(' start')} distribution"
        return (
            f"the chain of the model with a public period of {self.period} steps and "
            f"{len(self.transition_matrices)} transition matrices, from {start}, at any phase of it"
        )
