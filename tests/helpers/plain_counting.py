"""The plain twin of counting records: a whole record of one participant at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pufferflow.records.sample import Participant


def reduce_record(
    name: str,
    group: str,
    steps: NDArray[np.int64],
    states: NDArray[np.int64],
    n_states: int,
    longest_gap: float,
) -> Participant:
    """Count states and transitions of one record.

    Parameters
    ----------
    name, group : str
        Stored in the result.
    steps : int array, shape (n,)
        Time step of each observation, strictly increasing, n >= 1.
    states : int array, shape (n,)
        State of each observation, 0 <= state < n_states.
    n_states : int
        Number of states k.
    longest_gap : float
        Missing steps in a row that one chain may span; a longer gap starts a new chain.

    Returns
    -------
    Participant
        A segment spans all steps from its first to its last observation. Only observations one
        step apart give a transition, so a bridged gap adds to the length and to nothing else.
    """
    missing = np.diff(steps) - 1
    adjacent = missing == 0
    pairs = states[:-1][adjacent] * n_states + states[1:][adjacent]
    cuts = np.flatnonzero(missing > longest_gap) + 1
    first = steps[np.concatenate(([0], cuts))]
    last = steps[np.concatenate((cuts - 1, [-1]))]
    return Participant(
        name,
        group,
        tuple((last - first + 1).tolist()),
        np.bincount(states, minlength=n_states),
        np.bincount(pairs, minlength=n_states**2).reshape(n_states, n_states),
    )
