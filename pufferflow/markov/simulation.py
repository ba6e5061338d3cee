"""Drawing paths."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pufferflow._checks import check_type, check_whole
from pufferflow._types import Floats
from pufferflow.errors import ParameterError
from pufferflow.markov.chain import MarkovChain

MOST_RECORDS = 10**9
"""Records of a path at most: their draws take 8 GB."""

_BLOCK = 2**16


def simulate_chain(chain: MarkovChain, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw a path X_1 … X_T, states 0 … k−1, shape (length,).

    Raises
    ------
    ParameterError
        The length is below 1, or the chain has ``"any"`` initial distribution (no law to draw from).
    """
    check_type(chain, "chain", MarkovChain)
    check_type(rng, "rng", np.random.Generator)
    length = check_whole(length, "length", most=MOST_RECORDS)
    start = chain.initial_distribution
    if start is None:
        raise ParameterError('a chain with initial_distribution="any" cannot be simulated; give a distribution')
    rows = np.cumsum(np.vstack([chain.transition_matrix, start]), axis=1)
    rows[:, -1] = 1.0
    draws, ends = rng.random(length), rows.tolist()
    path = np.empty(length, dtype=np.int64)
    state = chain.states
    for begin in tqdm(range(0, length, _BLOCK), desc="simulating", unit=" blocks", delay=1, disable=None, leave=False):
        block = draws[begin : begin + _BLOCK].tolist()
        for t, draw in enumerate(block):
            block[t] = state = bisect_right(ends[state], draw)  # on lists that is ten times as fast as searchsorted
        path[begin : begin + _BLOCK] = block
    return path


def simulate_binary_chains(
    start: Floats, stay_zero: Floats, stay_one: Floats, length: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Draw one binary path a row for many chains at once, as an array of shape (n, length).

    P(X_1 = 1), P(0|0) and P(1|1) of each chain have shape (n,).
    """
    uniforms = rng.random((len(start), length))
    paths = np.empty(uniforms.shape, dtype=np.int8)
    paths[:, 0] = uniforms[:, 0] < start
    for t in range(1, length):
        to_one = np.where(paths[:, t - 1] == 1, stay_one, 1 - stay_zero)
        paths[:, t] = uniforms[:, t] < to_one
    return paths
