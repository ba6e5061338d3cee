"""Fitting a chain to the counts of a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pufferflow._checks import check_numbers, check_positive
from pufferflow.errors import DataError
from pufferflow.markov.chain import STATIONARY, MarkovChain


def fit_chain(
    transition_counts: NDArray[np.int64],
    *,
    smoothing: float = 0.0,
    initial_distribution: str = STATIONARY,
) -> tuple[MarkovChain, NDArray[np.intp]]:
    """Maximum-likelihood chain of the states that occur (Song et al., section 5).

    Parameters
    ----------
    transition_counts : int array, shape (n, n)
        Steps from state (row) to state (column).
    smoothing : float
        Added to every count between states that occur; 0 is maximum likelihood.
    initial_distribution : {"stationary", "any"}
        Passed to :class:`MarkovChain`.

    Returns
    -------
    chain : MarkovChain
        On the k ≤ n states with at least one transition in or out.
    states : int array, shape (k,)
        Which states those are, as indices into the counts.

    Raises
    ------
    ParameterError
        ``smoothing`` is negative or not finite.
    DataError
        The counts are no square matrix, there is no transition at all, or a state is entered and never left.
    """
    smoothing = check_positive(smoothing, "smoothing", or_zero=True)
    counts = check_numbers(transition_counts, "transition_counts")
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not np.all((counts >= 0) & (counts < np.inf)):
        raise DataError("the transition counts must be a square matrix of numbers of at least 0; give one row a state")
    states = np.flatnonzero(counts.any(axis=0) | counts.any(axis=1))
    if states.size == 0:
        raise DataError("the sample has no transition, so no chain can be fitted; give at least two observations")
    counts = counts[np.ix_(states, states)] + smoothing
    with np.errstate(over="ignore"):
        totals = counts.sum(axis=1)
    for row in np.flatnonzero(np.isinf(totals)):
        raise DataError(
            f"the counts and the smoothing of the transitions from state {states[row] + 1} have a sum beyond the range "
            "of floats; give counts of records, and a smaller smoothing"
        )
    stuck = np.flatnonzero(totals == 0)
    if stuck.size:
        raise DataError(
            f"state {states[stuck[0]] + 1} is entered but never left in the sample, so its row cannot be fitted; "
            "set smoothing > 0 or merge it with another state"
        )
    return MarkovChain(counts / totals[:, None], initial_distribution), states
