"""Processes that are not homogeneous chains of records: hidden Markov chains, periodic chains."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_choice, check_list, check_numbers, check_type, check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import STATIONARY, MarkovChain, checked_distributions, checked_start
from pufferflow.models.families import STARTS, Family, common_states
from pufferflow.models.powers import followed


class HiddenChain(Family):
    """A chain U of hidden states, whose observations X_t = o(U_t) are the records; immutable.

    Secrets and queries are about observations. Chains of order m (:meth:`of_order`), hidden Markov
    models (:meth:`hidden`) and semi-Markov chains (:meth:`with_durations`) are such chains.

    Parameters
    ----------
    chain : MarkovChain
        U, with its initial distribution.
    observations : sequence of int, length n
        The observation of every state of U, from 0; several states may have the same.
    """

    kind, fields = "hidden", (*MarkovChain.fields, "observations")

    def __init__(self, chain: MarkovChain, observations: ArrayLike) -> None:
        check_type(chain, "chain", MarkovChain)
        named = check_numbers(observations, "observations", ParameterError)
        is_whole = (named >= 0) & (named < 2**31) & (named == np.floor(named))
        if named.shape != (chain.states,) or not is_whole.all():
            each = f"one for each of the {chain.states} states"
            raise ChainError(f"observations must be integers of at least 0, {each}")
        self.chain = chain
        """U."""
        self.observations: NDArray[np.intp] = named.astype(np.intp)
        """Observation of every state of U, shape (n,), read-only."""
        self.observations.flags.writeable = False
        self.states: int = int(named.max()) + 1
        """Number of observations, k: the possible records."""
        seen = self.observations[chain.occurring]
        self.occurring = np.bincount(seen, minlength=self.states) > 0
        self.has_given_start = chain.start == "given"

    @cached_property
    def histories(self) -> NDArray[np.intp] | None:
        """The history of every state: its last m observations, shape (n, m), if they determine it.

        The latest is last. Chains of order m have histories, and Theorem L2 of ``docs/leakage.md``
        holds; otherwise it is None. Before a state without predecessors observations have numbers
        of their own, which no record has.
        """
        steps = self.chain.transition_matrix > 0
        one = steps.argmax(axis=0)  # state before each
        histories, known = self.observations[:, None], 0
        while True:
            classes = np.unique(histories, axis=0, return_inverse=True)[1].ravel()
            if (found := classes.max() + 1) == len(histories):
                return histories
            if found == known or (steps & (classes[:, None] != classes[one])).any():
                return None
            known = found
            before = np.where(steps.any(axis=0), histories[one].T, -1 - np.arange(len(one))).T
            histories = np.hstack([before, self.observations[:, None]])

    @classmethod
    def of_order(
        cls, probabilities: ArrayLike, initial_distribution: str | ArrayLike = STATIONARY
    ) -> HiddenChain:
        """Return the chain of order m, whose states are the last m records.

        ``probabilities[x_1, …, x_m, y]`` is that of y after x_1, …, x_m, the latest last; rows of
        zeros are of impossible histories. The initial distribution, if given, is that of the first
        record of a segment and the m − 1 before it, shape (k,) · m.
        """
        given = check_numbers(probabilities, "probabilities", ChainError)
        k = given.shape[0] if given.ndim else 0
        if given.ndim < 2 or not k or set(given.shape) != {k}:
            advice = "give k · k for order 1, k · k · k for order 2, and so on"
            raise ChainError(f"the probabilities have shape {given.shape}; {advice}")
        rows = given.reshape(-1, k)
        kept = np.flatnonzero(rows.any(axis=1))
        history, y = np.nonzero(rows)
        after = (history * k + y) % len(rows)  # the oldest of the m records is dropped
        for lost in np.setdiff1d(after, kept):
            past = ", ".join(str(x + 1) for x in np.unravel_index(lost, given.shape[:-1]))
            raise ChainError(f"states {past} can occur, so their row must not be all zero")
        matrix = np.zeros((len(kept),) * 2)
        matrix[np.searchsorted(kept, history), np.searchsorted(kept, after)] = rows[history, y]
        start = initial_distribution
        if not isinstance(start, str):
            first = checked_start(start, given.shape[:-1])
            if np.delete(first, kept).any():
                fault = "the initial distribution has records that never follow each other"
                raise ChainError(fault)
            start = first[kept]
        return cls(MarkovChain(matrix, start), kept % k)

    @classmethod
    def hidden(cls, chain: MarkovChain, emission: ArrayLike) -> HiddenChain:
        """Return a hidden Markov model: state s emits x with probability ``emission[s, x]``."""
        check_type(chain, "chain", MarkovChain)
        shown = checked_distributions(emission, "emission matrix", chain.states)
        state, observation = np.nonzero(shown)
        chances = shown[state, observation]
        matrix = chain.transition_matrix[np.ix_(state, state)] * chances
        start = chain.start if chain.given is None else chain.given[state] * chances
        return cls(MarkovChain(matrix, start), observation)

    @classmethod
    def with_durations(
        cls,
        transition_matrix: ArrayLike,
        durations: ArrayLike,
        initial_distribution: str | ArrayLike = STATIONARY,
    ) -> HiddenChain:
        """Return a semi-Markov chain: visits last a random number of records.

        ``transition_matrix`` has the distributions of the state after a visit to each, and
        ``durations[x, n − 1]`` is the probability that a visit to x lasts n records. An initial
        distribution, shape (k,), is that of the first state, whose visit begins with the segment.
        """
        jumps = checked_distributions(transition_matrix, "transition matrix")
        lasts = checked_distributions(durations, "matrix of durations", len(jumps))
        # a hidden state is a state with the current duration of its visit
        longer = np.cumsum(lasts[:, ::-1], axis=1)[:, ::-1]  # it lasts at least n
        state, age = np.nonzero(longer)
        ends = lasts[state, age] / longer[state, age]  # 1 at the longest duration
        begins = ends[:, None] * jumps[np.ix_(state, state)] * (age == 0)
        start = initial_distribution
        if not isinstance(start, str):
            start = checked_start(start, (len(jumps),))[state] * (age == 0)
        return cls(MarkovChain(begins + np.diag(1 - ends[:-1], 1), start), state)

    def description(self) -> str:
        """Return a description of these processes."""
        return (
            f"the chain of the model on {self.chain.states} hidden states, of which {self.states} "
            f"observations are recorded, from {STARTS[self.chain.start]}"
        )

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {self.kind: self.chain.document() | {"observations": self.observations.tolist()}}


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

    kind, fields = "periodic", ("transition_matrices", "repeat?", "initial_distribution?")

    def __init__(
        self,
        transition_matrices: ArrayLike,
        *,
        repeat: int = 1,
        initial_distribution: Literal["stationary", "any"] = STATIONARY,
    ) -> None:
        given = check_list(transition_matrices, "transition_matrices")
        parts = [checked_distributions(p, f"transition matrix {i}") for i, p in enumerate(given, 1)]
        self.states: int = common_states(map(len, parts), "transition matrices")
        """Number of states, k."""
        self.transition_matrices: Floats = np.stack(parts)
        """P_0, …, P_{p−1}, shape (p, k, k), read-only."""
        self.transition_matrices.flags.writeable = False
        self.repeat = check_whole(repeat, "repeat", most=10**6 // len(parts))
        """Consecutive steps of each matrix."""
        self.period = len(parts) * self.repeat
        """Number of phases."""
        check_choice(initial_distribution, "initial_distribution", ("stationary", "any"))
        self.start = self.initial_distribution = initial_distribution
        """Kind of initial distribution: stationary or any."""
        self.possible: Bools = np.ones((self.period, self.states), dtype=np.bool_)
        """Mask of the possible states at each phase, shape (period, k)."""
        if self.start == STATIONARY:
            self.possible = self.stationary_distributions > 0  # raises if they are not unique

    def transition_matrix(self, phase: int) -> Floats:
        """Return the matrix of the step from this phase to the next one, shape (k, k)."""
        return np.asarray(self.transition_matrices[phase % self.period // self.repeat])

    @cached_property
    def stationary_distributions(self) -> Floats:
        """Distribution of a record at every phase of the periodic process, shape (period, k).

        Possible values have at least 1e-300. Raises ChainError: it is not unique.
        """
        whole, found = self._whole_period, np.empty((self.period, self.states))
        now, possible = whole.stationary_distribution, whole.initial_support
        for phase in range(self.period):
            found[phase] = np.where(possible, np.maximum(now, 1e-300), 0.0)
            matrix = self.transition_matrix(phase)
            now, possible = found[phase] @ matrix, followed(possible, matrix > 0, 1)
            now = now / now.sum()
        found.flags.writeable = False
        return found

    @cached_property
    def _whole_period(self) -> MarkovChain:
        """The chain of the records at phase 0; probabilities that underflow are 1e-300."""
        whole, possible = np.eye(self.states), np.eye(self.states, dtype=np.bool_)
        for matrix in self.transition_matrices:
            whole = whole @ np.linalg.matrix_power(matrix, self.repeat)
            possible = followed(possible, matrix > 0, self.repeat)
        return MarkovChain(np.where(possible, np.maximum(whole, 1e-300), 0.0))

    @property
    def stationary_error(self) -> float:
        """Bound on the relative error of each entry of :attr:`stationary_distributions`.

        It holds down to about 1e-290. The error of a product of n matrices is at most n (k + 6)
        roundings, as nothing is subtracted; a relative error η of the whole period moves its
        stationary distribution by at most 2kη, and the elimination adds its own. It is infinite if
        a probability of the whole period underflows.
        """
        k, n, whole = self.states, self.period, self._whole_period.transition_matrix
        if whole[whole > 0].min() < SAFE_MINIMUM:
            return math.inf
        return (2 * k + 1) * n * (k + 6) * UNIT_ROUNDOFF + (n + 8.0 * k**3) * UNIT_ROUNDOFF

    def description(self) -> str:
        """Return a description of these processes."""
        return (
            f"the chain of the model with a public period of {self.period} steps and "
            f"{len(self.transition_matrices)} transition matrices, from {STARTS[self.start]}, at "
            "any phase of it"
        )
