"""The distribution of a count given one record of a chain, for every record, state and start.

X_i = x splits a chain: the records before i and those after it are independent given it. How likely
each count of the past is, together with X_i = x, follows by one pass forwards over P, and of the
future by one pass backwards. Nothing is subtracted or cut off, so relative errors only add up, in
far tails too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pufferflow._util.jit import constant
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats, Ints
from pufferflow.audit._count_kernels import (
    NOTHING,
    SPREAD,
    convolve,
    prepend_record,
    sum_from_both_ends,
)
from pufferflow.errors import ChainError
from pufferflow.models.chain import MarkovChain

Numbers = tuple[Floats, Ints]
"""Numbers m · 2^e: the mantissas and the exponents, ``NOTHING`` for zeros."""


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

    def distribution(
        self, start: int, first: int, last: int, own: int, spread: float = SPREAD
    ) -> Numbers:
        """Return that of the whole count, to which the window adds ``own``; see ``convolve``."""
        m, e = np.empty(self.width), np.empty(self.width, dtype=np.int64)
        before, after = (
            (m[x], e[x]) for (m, e), x in ((self.past[start], first), (self.future, last))
        )
        convolve(before, after, own, spread, m, e)
        return m, e


def counts_at_records(
    chain: MarkovChain,
    length: int,
    weights: Sequence[int],
    window: int = 1,
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
    k, moves = chain.states, np.array(weights, dtype=np.int64)
    width = length * int(moves.max()) + 1

    def step(matrix: Floats) -> Callable[[Numbers], Numbers]:
        rows = constant(matrix)

        def prepend(given: Numbers) -> Numbers:
            shape = k, given[0].shape[1] + int(moves.max())
            m, e = np.empty(shape), np.empty(shape, dtype=np.int64)
            prepend_record(rows, moves, (constant(given[0]), constant(given[1])), m, e)
            return m, e

        return prepend

    ahead, behind = step(chain.transition_matrix), step(chain.transition_matrix.T)
    past = [numbers(start[:, None]) for start in starts_of(chain)]
    futures = _last_first(numbers(np.ones((k, 1))), ahead, length - 1)
    for node, future in enumerate(islice(futures, window - 1, None), 1):
        sizes, given = np.full((len(past), k), -np.inf), []
        for start, (m, e) in enumerate(past):
            top = e.max(axis=1, keepdims=True)
            totals = (m * powers(e - top)).sum(axis=1, keepdims=True)
            possible = totals[:, 0] > 0
            sizes[start, possible] = (np.log2(totals[possible]) + top[possible])[:, 0]
            given.append((m / np.where(totals > 0, totals, 1.0), e - top))
        yield CountsAtRecord(node, sizes, given, future, width)
        past = [behind(one) for one in past]


def _last_first(
    first: Numbers, step: Callable[[Numbers], Numbers], count: int
) -> Iterator[Numbers]:
    """Yield what ``count``, …, 1 and 0 steps make of ``first``, some 2 √count of them kept."""
    stride, kept = math.isqrt(count) + 1, [first]
    for _start in range(stride, count + 1, stride):
        now = kept[-1]
        for _ in range(stride):
            now = step(now)
        kept.append(now)
    left = count + 1
    while kept:
        part = [kept.pop()]
        while len(part) < left - stride * len(kept):
            part.append(step(part[-1]))
        left -= len(part)
        yield from reversed(part)


def numbers(values: Floats) -> Numbers:
    """Return floats as mantissas and exponents."""
    m, e = np.frexp(values)
    return m, np.where(m > 0, e.astype(np.int64), NOTHING)


def powers(exponents: Ints) -> Floats:
    """Return 2^e for e ≤ 0, what is below 2^-1022 as that."""
    return np.asarray((np.maximum(exponents, -1022) + 1023 << 52).view(np.float64))


def add(first: Numbers, second: Numbers) -> Numbers:
    """Return the sums of numbers, of which none is far below its 2^e."""
    top = np.maximum(first[1], second[1])
    return first[0] * powers(first[1] - top) + second[0] * powers(second[1] - top), top


def log2(given: Numbers) -> Floats:
    """Return the logarithms to base 2; −∞ of zeros."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log2(given[0]) + given[1])


def sums(given: Numbers, decay: float = 1.0) -> tuple[Numbers, Numbers]:
    """Σ_{j ≤ n} decay^(n − j) p(j) and Σ_{j > n} decay^(j − n) p(j), each row of p by itself."""
    shape = given[0].shape
    below, above = ((np.empty(shape), np.empty(shape, dtype=np.int64)) for _ in range(2))
    sum_from_both_ends((constant(given[0]), constant(given[1])), decay, below, above)
    return below, above
