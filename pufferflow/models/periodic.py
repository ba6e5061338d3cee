"""Chains whose transition matrix follows a public clock."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_choice, check_list, check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError
from pufferflow.models.chain import ANY, STATIONARY, MarkovChain, checked_distributions
from pufferflow.models.families import Family
from pufferflow.models.powers import followed

LONGEST_PERIOD = 10**6
"""Most phases of a clock."""


class PeriodicChain(Family):
    """A chain on k states with a transition matrix for every phase of a clock that everybody can read; immutable.

    The step from a record at phase t to the next one, at phase t + 1, has the matrix of phase t; after the last
    phase comes phase 0. Phases count from 0. A segment may begin at any phase, and the worst counts: whoever takes part
    begins when they like.

    Parameters
    ----------
    matrices : sequence of p array_like, each of shape (k, k)
        One matrix for each part of the period: 24 for the hours of a day, 168 for those of a week.
    repeat : int
        Steps that each matrix serves in a row: 60 for one matrix an hour and a record a minute.
    initial_distribution : {"stationary", "any"}
        Law of the first record: that of the process that repeats itself with the clock, which must be unique, or any.

    Raises
    ------
    ParameterError
        ``repeat`` or ``initial_distribution`` is out of range.
    ChainError
        A matrix is none, they differ in size, or the stationary law is not unique.
    """

    no_chains = "this needs one transition matrix, and a periodic chain has several; use leakage or group-dp"

    def __init__(
        self,
        matrices: ArrayLike,
        *,
        repeat: int = 1,
        initial_distribution: Literal["stationary", "any"] = STATIONARY,
    ) -> None:
        parts = check_list(matrices, "matrices")
        if not parts:
            raise ChainError("there is no transition matrix; give one for each part of the period")
        checked = []
        for i, part in enumerate(parts, 1):
            try:
                checked.append(checked_distributions(part, "transition matrix"))
            except ChainError as error:
                raise ChainError(f"matrix {i}: {error}") from error
        sizes = {len(matrix) for matrix in checked}
        if len(sizes) > 1:
            raise ChainError(f"the matrices have {' and '.join(map(str, sorted(sizes)))} states; give all the same")
        self.transition_matrices: Floats = np.stack(checked)
        """P_0, …, P_{p−1}, shape (p, k, k), read-only."""
        self.transition_matrices.flags.writeable = False
        self.repeat = check_whole(repeat, "repeat", most=LONGEST_PERIOD // len(checked))
        """Steps that each matrix serves in a row."""
        check_choice(initial_distribution, "initial_distribution", (STATIONARY, ANY))
        self.start = initial_distribution
        """Which kind of initial distribution the chain has."""
        if self.start == STATIONARY:
            _ = self.stationary_distributions  # raises where they are not unique

    def __repr__(self) -> str:
        return f"PeriodicChain({self.states} states, period {self.period}, initial_distribution={self.start})"

    @property
    def states(self) -> int:
        """Number of states, k."""
        return int(self.transition_matrices.shape[1])

    @property
    def period(self) -> int:
        """Phases of the clock."""
        return len(self.transition_matrices) * self.repeat

    def transition_matrix(self, phase: int) -> Floats:
        """Return the matrix of the step from this phase to the next one, shape (k, k)."""
        matrix: Floats = self.transition_matrices[phase % self.period // self.repeat]
        return matrix

    @cached_property
    def stationary_distributions(self) -> Floats:
        """Law of a record at every phase when the process repeats itself with the clock, shape (period, k).

        Raises
        ------
        ChainError
            They are not unique.
        """
        try:
            law = self._of_period[0].stationary_distribution
        except ChainError:
            raise ChainError(
                "the law of the records at each phase is not unique, for some states of phase 0 are never reached from "
                'one another; say initial_distribution="any", or smooth the matrices'
            ) from None
        laws = np.empty((self.period, self.states))
        with np.errstate(under="ignore"):
            for phase in range(self.period):
                laws[phase] = law
                law = law @ self.transition_matrix(phase)
                law = law / law.sum()
        laws.flags.writeable = False
        return laws

    @cached_property
    def _of_period(self) -> tuple[MarkovChain, bool]:
        """The chain of the records at phase 0, and whether all its probabilities are within what floats hold."""
        whole, possible = np.eye(self.states), np.eye(self.states, dtype=np.bool_)
        with np.errstate(under="ignore"):
            for matrix in self.transition_matrices:
                whole = whole @ np.linalg.matrix_power(matrix, self.repeat)
                possible = followed(possible, matrix > 0, self.repeat)
        chain = MarkovChain(np.where(possible, np.maximum(whole, 1e-300), 0.0))
        return chain, bool((whole[possible] >= SAFE_MINIMUM).all())

    @property
    def stationary_error(self) -> float:
        """Bound on the relative error of each entry of :attr:`stationary_distributions`, down to about 1e-290.

        That of a product of n matrices is at most n (k + 6) roundings, for all is added and nothing subtracted; a
        relative error η of the whole period moves its stationary law by at most 2kη, and the elimination adds its own.
        It is infinite where a probability of the whole period is too small for floats.
        """
        k, n = self.states, self.period
        if not self._of_period[1]:
            return math.inf
        return (2 * k + 1) * n * (k + 6) * UNIT_ROUNDOFF + (n + 8.0 * k**3) * UNIT_ROUNDOFF

    @cached_property
    def possible(self) -> Bools:
        """States that a record can have at each phase, shape (period, k): those a stationary chain has, or all."""
        everything = np.ones((self.period, self.states), dtype=np.bool_)
        if self.start == ANY:
            return everything
        states: Bools = self._of_period[0].initial_support  # exactly: a law may be too small for floats
        for phase in range(self.period):
            everything[phase] = states
            states = np.asarray((self.transition_matrix(phase)[states] > 0).any(axis=0))
        return everything

    # -- as a family -------------------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of states."""
        return (self.states,)

    def text(self, public: bool) -> str:
        """Say in words which processes these are."""
        start = "the stationary distribution of that phase" if self.start == STATIONARY else "any distribution"
        return (
            f"the chain of the model with a public clock of {self.period} steps and {len(self.transition_matrices)} "
            f"transition matrices, from {start}, at any phase of it"
        )

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {
            "periodic": {
                "transition_matrices": self.transition_matrices.tolist(),
                "repeat": self.repeat,
                "initial_distribution": self.start,
            }
        }
