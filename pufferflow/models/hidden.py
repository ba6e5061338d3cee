"""Hidden Markov chains: chains of higher order, hidden Markov models, semi-Markov chains."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_numbers, check_type
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import STATIONARY, MarkovChain, checked_distributions
from pufferflow.models.families import STARTS, Family


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

    kind = "hidden"
    no_chains = "this needs Markov chains, not observations of one; use leakage or group-dp"

    def __init__(self, chain: MarkovChain, observations: ArrayLike) -> None:
        check_type(chain, "chain", MarkovChain)
        named = check_numbers(observations, "observations", ParameterError)
        is_whole = (named >= 0) & (named < 2**31) & (named == np.floor(named))
        if named.ndim != 1 or not is_whole.all():
            raise ParameterError("observations must be integers of at least 0; give one per state")
        if len(named) != chain.states:
            what = f"{len(named)} observations for a chain of {chain.states} states"
            raise ChainError(f"{what}; give one observation per state")
        self.chain = chain
        """U."""
        self.observations: NDArray[np.intp] = named.astype(np.intp)
        """Observation of every state of U, shape (n,), read-only."""
        self.observations.flags.writeable = False
        self.states: int = int(named.max()) + 1
        """Number of observations, k: the possible records."""

    def __repr__(self) -> str:
        return f"HiddenChain({self.chain.states} states, {self.states} observations)"

    @cached_property
    def histories(self) -> NDArray[np.intp] | None:
        """The history of every state: its last m observations, shape (n, m), if they determine it.

        The latest is last. Chains of order m have histories, and Theorem L2 of ``docs/leakage.md``
        holds; otherwise it is None. Before a state without predecessors observations have numbers
        of their own, which no record has.
        """
        steps = self.chain.transition_matrix > 0
        histories, distinguished = self.observations[:, None], 0
        while True:
            classes = np.unique(histories, axis=0, return_inverse=True)[1].ravel()
            if classes.max() + 1 == len(histories):
                return histories
            if classes.max() + 1 == distinguished:
                return None
            distinguished, before = classes.max() + 1, np.empty_like(histories)
            for state in range(len(histories)):
                earlier = np.flatnonzero(steps[:, state])
                if len(set(classes[earlier])) > 1:
                    return None
                before[state] = histories[earlier[0]] if len(earlier) else -1 - state
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
        for lost in np.flatnonzero(~np.isin(after, kept)):
            pasts = np.unravel_index([history[lost], after[lost]], given.shape[:-1])
            came, goes = (", ".join(map(str, past)) for past in np.transpose(pasts) + 1)
            what = f"states {came} lead to {goes}, whose row of probabilities is all zero"
            raise ChainError(f"{what}; give that row")
        matrix = np.zeros((len(kept),) * 2)
        matrix[np.searchsorted(kept, history), np.searchsorted(kept, after)] = rows[history, y]
        start = initial_distribution
        if not isinstance(start, str):
            first = _start(start, given.shape[:-1]).ravel()
            if np.delete(first, kept).any():
                what = "the initial distribution has records that never follow each other"
                raise ChainError(what)
            start = first[kept]
        return cls(MarkovChain(matrix, start), kept % k)

    @classmethod
    def hidden(cls, chain: MarkovChain, emission: ArrayLike) -> HiddenChain:
        """Return a hidden Markov model: state s emits x with probability ``emission[s, x]``."""
        check_type(chain, "chain", MarkovChain)
        shown = checked_distributions(emission, "emission matrix")
        if len(shown) != chain.states:
            what = f"the emission matrix has {len(shown)} rows for {chain.states} states"
            raise ChainError(f"{what}; give one per state")
        state, observation = np.nonzero(shown)
        chances = shown[state, observation]
        matrix = chain.transition_matrix[np.ix_(state, state)] * chances
        start: Any = chain.start
        if start == "given":
            assert chain.initial_distribution is not None
            start = chain.initial_distribution[state] * chances
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
        lasts = checked_distributions(durations, "matrix of durations")
        if len(lasts) != len(jumps):
            what = f"the durations have {len(lasts)} rows for {len(jumps)} states"
            raise ChainError(f"{what}; give one per state")
        # a hidden state is a state with the current duration of its visit
        longer = np.cumsum(lasts[:, ::-1], axis=1)[:, ::-1]  # it lasts at least n
        state, age = np.nonzero(longer)
        ends = lasts[state, age] / longer[state, age]
        goes_on = np.append(age[1:] > 0, False)
        ends[~goes_on] = 1.0
        first = np.flatnonzero(age == 0)
        matrix = np.zeros((len(state),) * 2)
        matrix[:, first] = ends[:, None] * jumps[state]
        stays = np.flatnonzero(ends < 1)
        matrix[stays, stays + 1] += 1 - ends[stays]
        start = initial_distribution
        if not isinstance(start, str):
            given = _start(start, (len(jumps),))
            start = np.zeros(len(state))
            start[first] = given
        return cls(MarkovChain(matrix, start), state)

    @property
    def occurring(self) -> Bools:
        """Mask of the observations that can occur, shape (k,)."""
        seen = self.observations[self.chain.occurring]
        return np.bincount(seen, minlength=self.states) > 0

    @property
    def has_given_start(self) -> bool:
        """Whether the initial distribution is given."""
        return self.chain.start == "given"

    def text(self) -> str:
        """Return a description of these processes."""
        return (
            f"the chain of the model on {self.chain.states} hidden states, of which {self.states} "
            f"observations are recorded, from {STARTS[self.chain.start]}"
        )

    def document(self) -> dict[str, Any]:
        """Return the model as plain JSON types."""
        return {self.kind: self.chain.document() | {"observations": self.observations.tolist()}}


def _start(given: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return an initial distribution of a shape."""
    found = check_numbers(given, "initial_distribution", ChainError)
    if found.shape != shape:
        what = f"the initial distribution has shape {found.shape}"
        raise ChainError(f"{what}; give one of shape {shape}")
    return found
