"""The distribution of a count given one record of a chain, for every record, state and start.

X_i = x splits a chain: the records before i and those after it are independent given it. How likely
each count of the past is, together with X_i = x, follows by one pass forwards over P, and of the
future by one pass backwards. Nothing is subtracted or cut off, so relative errors only add up, in
far tails too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pufferflow._util.jit import constant
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats, Ints
from pufferflow.audit._count_kernels import NOTHING, convolve, prepend_record
from pufferflow.errors import ChainError
from pufferflow.models.chain import MarkovChain

Numbers = tuple[Floats, Ints]
"""Numbers m · 2^e: the mantissas and the exponents."""


def starts_of(chain: MarkovChain) -> Floats:
    """Return the initial distributions meant, one a row: the chain's own, or every single state.

    Raises ChainError: a probability is positive and beyond the range of floats.
    """
    own = chain.initial_distribution
    if own is None:
        return np.eye(chain.states)
    if own[chain.initial_support].min() < SAFE_MINIMUM:
        raise ChainError(
            f"a state has a positive probability below {SAFE_MINIMUM}, beyond the range of floats; "
            "use a chain without such rare states"
        )
    return own[None, :].copy()


def roundings(chain: MarkovChain, count: float) -> float:
    """Bound on the relative error after ``count`` roundings, and that of a stationary start."""
    start = 2 * chain.stationary_error if chain.start == "stationary" else 0.0
    return 1.1 * (UNIT_ROUNDOFF * count + start)


def relative_error(chain: MarkovChain, length: int, most: int) -> float:
    """Bound on the relative error of each probability, and of each sum of them.

    Each pass makes at most 2k + 8 roundings a record, the rows of P another k + 8, the convolution
    and the sums two for each of the ``most`` values of the count.
    """
    return roundings(chain, length * (5.0 * chain.states + 40) + 6.0 * most + 64)


@dataclass(frozen=True)
class CountsAtRecord:
    """Distributions of the count given X_node = x, or given a window that begins there.

    Attributes
    ----------
    node : int
        From 1.
    sizes : float array, shape (starts, states)
        log2 P(X_node = x) from each start; −∞ where it cannot be.
    past : list of Numbers, one a start, of shape (states, counts)
        Of the count before the node given X_node = x.
    future : Numbers, shape (states, counts)
        Of the count after the window given its last record.
    width : int
        Values that the whole count can have.
    """

    node: int
    sizes: Floats
    past: list[Numbers]
    future: Numbers
    width: int

    def distribution(self, start: int, first: int, last: int, own: int) -> Numbers:
        """Return that of the whole count, to which the window adds ``own``."""
        m, e = np.empty(self.width), np.empty(self.width, dtype=np.int64)
        before, after = (
            (m[x], e[x]) for (m, e), x in ((self.past[start], first), (self.future, last))
        )
        convolve(before, after, own, m, e)
        return m, e


def counts_at_records(
    chain: MarkovChain, length: int, weights: Sequence[int], window: int = 1
) -> Iterator[CountsAtRecord]:
    """Yield the distributions of Σ_t weights[X_t] at every record that begins a window.

    Parameters
    ----------
    chain : MarkovChain
    length : int
        Records, T.
    weights : sequence of int, shape (k,)
        What each state adds, at least 0.
    window : int
        Consecutive records that are the secret.
    """
    k, matrix, moves = chain.states, chain.transition_matrix, np.array(weights, dtype=np.int64)
    backward = np.ascontiguousarray(matrix.T)
    # the future of every record is kept at the ends of segments only, and made again within them
    stride = max(1, math.isqrt(length))
    kept: dict[int, Numbers] = {}
    future = np.full((k, 1), 0.5), np.ones((k, 1), dtype=np.int64)
    for record in range(length, 0, -1):
        if record % stride == 0 or record == length:
            kept[record] = future
        future = _prepend(matrix, moves, future)
    starts = starts_of(chain)
    past: list[Numbers] = []
    for start in starts:
        m, e = np.frexp(start[:, None])
        past.append((m, np.where(m > 0, e.astype(np.int64), NOTHING)))
    futures: dict[int, Numbers] = {}
    for node in range(1, length - window + 2):
        if node > 1:
            past = [_prepend(backward, moves, one) for one in past]
        end = node + window - 1
        if end not in futures:
            last = min(length, -(-end // stride) * stride)
            futures = {last: kept.pop(last)}
            for record in range(last, end, -1):
                futures[record - 1] = _prepend(matrix, moves, futures[record])
        sizes, given = np.empty((len(starts), k)), []
        for start, (m, e) in enumerate(past):
            top = e.max(axis=1)
            totals = np.ldexp(m, np.maximum(e - top[:, None], -2000)).sum(axis=1)
            possible = totals > 0
            with np.errstate(divide="ignore"):
                sizes[start] = np.where(possible, np.log2(totals) + top, -np.inf)
            given.append((m / np.where(possible, totals, 1.0)[:, None], e - top[:, None]))
        yield CountsAtRecord(node, sizes, given, futures.pop(end), length * int(moves.max()) + 1)


def _prepend(weights: Floats, moves: Ints, given: Numbers) -> Numbers:
    shape = len(weights), given[0].shape[1] + int(moves.max())
    m, e = np.empty(shape), np.empty(shape, dtype=np.int64)
    prepend_record(constant(weights), moves, (constant(given[0]), constant(given[1])), m, e)
    return m, e
