"""The distribution of a count given one record of a chain, for every record, state and start.

X_i = x splits a chain: the records before i and those after it are independent given it. The joint
probabilities of X_i = x and the count of the past follow by one forward pass over P, those of the
future by one backward pass. Nothing is subtracted or truncated, so relative errors only add up, in
far tails too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np
from tqdm import tqdm

from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.audit._count_kernels import (
    NOTHING,
    Numbers,
    distributions,
    fill_log_sums,
    prepend_record,
)
from pufferflow.errors import ChainError
from pufferflow.models.chain import MarkovChain


def starts_of(chain: MarkovChain) -> Floats:
    """Return the initial distributions as rows: the chain's own, or every single state.

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
    """Return a bound of the relative error by ``count`` roundings and a stationary start."""
    start = 2 * chain.stationary_error if chain.start == "stationary" else 0.0
    return 1.1 * (UNIT_ROUNDOFF * count + start)


def relative_error(chain: MarkovChain, length: int, most: int) -> float:
    """Return a bound of the relative error of each probability, and of each sum of them.

    Each pass makes at most 2k + 8 roundings per record, the rows of P another k + 8, the
    convolution and the sums two for each of the ``most`` values of the count; so does their
    divisor.
    """
    return roundings(chain, length * (6.0 * chain.states + 40) + 6.0 * most + 64)


def counts_at_records(
    chain: MarkovChain,
    length: int,
    weights: Sequence[int],
    secrets: Sequence[tuple[int, int, int]],
    window: int = 1,
) -> Iterator[tuple[Floats, Numbers]]:
    """Yield the distributions of Σ_t weights[X_t] at every record i that begins a window.

    A secret is the first and the last state of a window, and its addend; each state adds its
    weight, at least 0. First come log P(X_i = first), of shape (starts, secrets), −∞ if impossible,
    then the distributions, of shape (starts, secrets, counts), zeros if impossible.
    """
    moves, most, matrix = np.array(weights, dtype=np.int64), max(weights), chain.transition_matrix

    def prepend(rows: Numbers, given: Numbers) -> Numbers:
        out = empty_numbers(*given[0].shape[:2], given[0].shape[2] + most)
        prepend_record(rows, moves, given, out)
        return out

    forward, backward = (partial(prepend, numbers(each)) for each in (matrix, matrix.T))
    past = numbers(starts_of(chain)[:, :, None])
    futures = _last_first(numbers(np.ones((1, chain.states, 1))), forward, length - 1)
    nodes = islice(futures, window - 1, None)
    total = length + 1 - window
    for m, e in tqdm(nodes, "exact counts", total, delay=1, disable=None, leave=False):
        sizes = np.empty((len(past[0]), len(secrets)))
        given = empty_numbers(*sizes.shape, length * most + 1)
        distributions(past, (m[0], e[0]), np.array(secrets, dtype=np.int64), sizes, given)
        yield sizes, given
        past = backward(past)


def _last_first(
    first: Numbers, step: Callable[[Numbers], Numbers], count: int
) -> Iterator[Numbers]:
    """Yield ``first`` after ``count``, …, 1 and 0 steps, keeping about 2 √count of them."""
    stride, kept, now = math.isqrt(count) + 1, [first], first
    for n in range(1, count + 1):
        now = step(now)
        if n % stride == 0:
            kept.append(now)
    for done in range(len(kept) - 1, -1, -1):
        part = [kept.pop()]
        while len(part) < stride and done * stride + len(part) <= count:
            part.append(step(part[-1]))
        yield from reversed(part)


def numbers(values: Floats) -> Numbers:
    """Return floats as mantissas and exponents."""
    m, e = np.frexp(np.ascontiguousarray(values))
    return m, np.where(m > 0, e.astype(np.int64), NOTHING)


def empty_numbers(*shape: int) -> Numbers:
    """Return empty arrays."""
    return np.empty(shape), np.empty(shape, dtype=np.int64)


def log_sums(given: Numbers, decay: float = 1.0) -> tuple[Floats, Floats]:
    """Return logs of Σ_{j ≤ n} decay^(n − j) p(j) and Σ_{j > n} decay^(j − n) p(j), per p."""
    size, (below, above) = given[0].shape[-1], (np.empty(given[0].shape) for _ in range(2))
    rows = given[0].reshape(-1, size), given[1].reshape(-1, size)
    fill_log_sums(rows, decay, below.reshape(-1, size), above.reshape(-1, size))
    return below, above
