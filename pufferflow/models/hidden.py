"""Hidden Markov chains: chains of higher order, hidden Markov models, semi-Markov chains."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_list, check_numbers, check_type, check_whole
from pufferflow._util.types import Bools
from pufferflow.errors import ChainError
from pufferflow.models.chain import STATIONARY, MarkovChain, checked_distributions
from pufferflow.models.families import STARTS, Family


class HiddenChain(Family):
    """A chain U of hidden states of which only observations are recorded, X_t = o(U_t); immutable.

    Secrets and queries are about observations. Chains of order m (:meth:`of_order`), hidden Markov models
    (:meth:`hidden`) and semi-Markov chains (:meth:`with_durations`) are such chains.

    Parameters
    ----------
    chain : MarkovChain
        U, with its initial distribution.
    observations : sequence of int, length n
        The observation of every state of U, counted from 0; several states may have the same.

    Raises
    ------
    ParameterError
        ``chain`` is no chain, or an observation no integer of at least 0.
    ChainError
        There is not one observation a state.
    """

    no_chains = "this needs Markov chains, and the observations of a hidden chain are none; use leakage or group-dp"

    def __init__(self, chain: MarkovChain, observations: ArrayLike) -> None:
        check_type(chain, "chain", MarkovChain)
        named = [
            check_whole(observation, "an observation", 0, 2**31)
            for observation in check_list(observations, "observations")
        ]
        if len(named) != chain.states:
            raise ChainError(
                f"{len(named)} observations for a chain of {chain.states} states; give one observation a state"
            )
        self.chain = chain
        """U."""
        self.observations: NDArray[np.intp] = np.array(named, dtype=np.intp)
        """Label of every state of U, shape (n,), read-only."""
        self.observations.flags.writeable = False

    def __repr__(self) -> str:
        return f"HiddenChain({self.chain.states} states, {self.states} observations)"

    @property
    def states(self) -> int:
        """Number of observations, k: what records can be."""
        return int(self.observations.max()) + 1

    @cached_property
    def words(self) -> NDArray[np.intp] | None:
        """The history of every state: its last m observations, the latest last, shape (n, m), if that determines it.

        So it is in chains of order m, for which Theorem L2 of ``docs/leakage.md`` holds. None where the observations
        before a state are not always the same, or do not distinguish the states. Before a state that nothing leads
        to, observations have numbers of their own, which no record has.
        """
        steps = self.chain.transition_matrix > 0
        words, told = self.observations[:, None], 0
        while True:
            classes = np.unique(words, axis=0, return_inverse=True)[1].ravel()
            if classes.max() + 1 == len(words):
                return words
            if classes.max() + 1 == told:
                return None
            told, longer = classes.max() + 1, np.empty((len(words), words.shape[1] + 1), dtype=np.intp)
            for state, observation in enumerate(self.observations):
                before = np.flatnonzero(steps[:, state])
                if len(set(classes[before])) > 1:
                    return None
                longer[state, :-1] = words[before[0]] if len(before) else -1 - state
                longer[state, -1] = observation
            words = longer

    # -- kinds of them -----------------------------------------------------------------------------

    @classmethod
    def of_order(cls, probabilities: ArrayLike, initial_distribution: str | ArrayLike = STATIONARY) -> HiddenChain:
        """Chain of order m: every record depends on the m before it, and these are the hidden state.

        Parameters
        ----------
        probabilities : array_like, shape (k,) · (m + 1)
            ``probabilities[x_1, …, x_m, y]``: of y after x_1, …, x_m, the latest last. Rows of zeros are of m records
            that never follow each other.
        initial_distribution : {"stationary", "any"} or array_like, shape (k,) · m
            Law of the last m records at the first record of a segment: of itself and of the m − 1 before it.

        Raises
        ------
        ChainError
            A law is none, or leads to m records that never follow each other.
        """
        given = check_numbers(probabilities, "probabilities")
        k = given.shape[0] if given.ndim else 0
        if given.ndim < 2 or not k or set(given.shape) != {k}:
            raise ChainError(
                f"the probabilities have shape {given.shape}; give k · k for order 1, k · k · k for order 2, and so on"
            )
        order = given.ndim - 1
        rows = given.reshape(-1, k)
        kept = np.flatnonzero(rows.any(axis=1))
        place = np.full(len(rows), -1)
        place[kept] = np.arange(len(kept))
        after = (kept[:, None] * k + np.arange(k)) % len(rows)  # the oldest of the m records goes
        lost = (rows[kept] != 0) & (place[after] < 0)
        if lost.any():
            row, y = np.argwhere(lost)[0]
            pasts = [np.unravel_index(number, (k,) * order) for number in (kept[row], after[row, y])]
            came, goes = (", ".join(str(int(x) + 1) for x in past) for past in pasts)
            raise ChainError(f"states {came} lead to {goes}, whose row of probabilities is all zero; give that row")
        matrix = np.zeros((len(kept),) * 2)
        here = np.repeat(np.arange(len(kept)), k)
        used = (place[after] >= 0).ravel()
        matrix[here[used], place[after].ravel()[used]] = rows[kept].ravel()[used]
        start: Any = initial_distribution
        if not isinstance(start, str):
            law = check_numbers(start, "initial_distribution")
            if law.shape != given.shape[:-1]:
                raise ChainError(f"the initial distribution has shape {law.shape}; give {given.shape[:-1]}")
            if law.ravel()[place < 0].any():
                raise ChainError("the initial distribution has records that never follow each other")
            start = law.ravel()[kept]
        return cls(MarkovChain(matrix, start), kept % k)

    @classmethod
    def hidden(cls, chain: MarkovChain, emission: ArrayLike) -> HiddenChain:
        """Hidden Markov model: every state of a chain shows one of k observations at random.

        Parameters
        ----------
        chain : MarkovChain
            The states behind the records, with their initial distribution.
        emission : array_like, shape (h, k)
            ``emission[s, x]``: probability that state s shows observation x.

        Raises
        ------
        ChainError
            A row is no distribution, or there is not one row a state.
        """
        check_type(chain, "chain", MarkovChain)
        shown = checked_distributions(emission, "emission matrix")
        if len(shown) != chain.states:
            raise ChainError(f"the emission matrix has {len(shown)} rows for {chain.states} states; give one a state")
        state, observation = np.nonzero(shown)
        chances = shown[state, observation]
        matrix = chain.transition_matrix[np.ix_(state, state)] * chances
        if chain.start == "given":
            assert chain.initial_distribution is not None
            return cls(MarkovChain(matrix, chain.initial_distribution[state] * chances), observation)
        return cls(MarkovChain(matrix, chain.start), observation)

    @classmethod
    def with_durations(
        cls, transition_matrix: ArrayLike, durations: ArrayLike, initial_distribution: str | ArrayLike = STATIONARY
    ) -> HiddenChain:
        """Semi-Markov chain: a visit to a state lasts a random number of records, then another state follows.

        Parameters
        ----------
        transition_matrix : array_like, shape (k, k)
            Law of the state after a visit to each state.
        durations : array_like, shape (k, d)
            ``durations[x, n − 1]``: probability that a visit to x lasts n records; every visit ends after d.
        initial_distribution : {"stationary", "any"} or array_like, shape (k,)
            Law of the state at the first record, at which a visit then begins.

        Raises
        ------
        ChainError
            A row is no distribution, or there is not one row a state.
        """
        jumps = checked_distributions(transition_matrix, "transition matrix")
        lasts = checked_distributions(durations, "matrix of durations")
        if len(lasts) != len(jumps):
            raise ChainError(f"the durations have {len(lasts)} rows for {len(jumps)} states; give one a state")
        # a hidden state is a state with the number of records that its visit has lasted
        beyond = np.cumsum(lasts[:, ::-1], axis=1)[:, ::-1]  # it lasts at least n
        state, age = np.nonzero(beyond)
        ends = lasts[state, age] / beyond[state, age]
        ends[[not beyond[x, n + 1 :].any() for x, n in zip(state, age, strict=True)]] = 1.0
        first = np.flatnonzero(age == 0)
        matrix = np.zeros((len(state),) * 2)
        matrix[:, first] = ends[:, None] * jumps[state]
        stays = np.flatnonzero(ends < 1)
        matrix[stays, stays + 1] += 1 - ends[stays]
        start: Any = initial_distribution
        if not isinstance(start, str):
            law = check_numbers(start, "initial_distribution")
            if law.shape != (len(jumps),):
                raise ChainError(f"the initial distribution has shape {law.shape}; give one probability a state")
            start = np.zeros(len(state))
            start[first] = law
        return cls(MarkovChain(matrix, start), state)

    # -- as a family -------------------------------------------------------------------------------

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of observations."""
        return (self.states,)

    @property
    def occurring(self) -> Bools:
        """Labels that occur at some time, shape (k,)."""
        return np.bincount(self.observations[self.chain.occurring], minlength=self.states) > 0

    @property
    def has_given_start(self) -> bool:
        """Whether records begin with a law that is given."""
        return self.chain.start == "given"

    def text(self, public: bool) -> str:
        """Say in words which processes these are."""
        return (
            f"the chain of the model on {self.chain.states} hidden states, of which {self.states} observations are "
            f"recorded, from {STARTS[self.chain.start]}"
        )

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {"hidden": self.chain.document() | {"observations": self.observations.tolist()}}
