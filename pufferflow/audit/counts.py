"""Counts along a chain: queries, and the distribution of a count given one record.

X_i = x splits a chain: the records before i and those after it are independent given it. The joint
probabilities of X_i = x and the count of the past follow by one forward pass over P, those of the
future by one backward pass. Nothing is subtracted or truncated, so relative errors only add up, in
far tails too.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeAlias

import numpy as np
from tqdm import tqdm

from pufferflow._util.checks import check_list, check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Floats
from pufferflow.audit import _count_kernels as kernels
from pufferflow.audit._count_kernels import NOTHING, Numbers
from pufferflow.errors import ChainError, ParameterError
from pufferflow.models.chain import MarkovChain


@dataclass(frozen=True)
class CountQuery:
    """Number of records in a set of states, plus Laplace noise.

    Parameters
    ----------
    states : iterable of int
        The counted states: rows of the transition matrix, from 0.

    Raises
    ------
    ParameterError
        It is empty or has an element that is not a state.
    """

    states: frozenset[int]
    lipschitz = 1
    """Largest change of the count when one record changes."""

    def __init__(self, states: Iterable[int]) -> None:
        object.__setattr__(self, "states", _states(states, "states"))
        if not self.states:
            raise ParameterError(
                "a count needs at least one state; give, for example, CountQuery({1})"
            )

    def bin_of_states(self, chain: MarkovChain) -> list[int]:
        """Return 0 for the counted states and 1 for all others of ``chain``."""
        return _bins(chain, [self.states, {*range(chain.states)} - self.states])

    def __str__(self) -> str:
        return f"count of {_listed(self.states)}"


@dataclass(frozen=True)
class HistogramQuery:
    """Histogram of counts, plus independent Laplace noise of twice the scale on every bin.

    Parameters
    ----------
    bins : sequence of iterables of int, optional
        The states of every bin, rows of the transition matrix from 0; every state is in exactly one
        bin. By default every state is a bin.

    Raises
    ------
    ParameterError
        A bin is empty, or a state is in two bins.
    """

    bins: tuple[frozenset[int], ...] | None = None
    lipschitz = 2
    """Largest change of the histogram in L1 norm when one record changes."""

    def __init__(self, bins: Sequence[Iterable[int]] | None = None) -> None:
        parts = None
        if bins is not None:
            parts = tuple(_states(part, "the states of a bin") for part in check_list(bins, "bins"))
            if not parts or not all(parts):
                raise ParameterError(
                    "a histogram needs at least one bin, and every bin at least one state"
                )
            if len(frozenset().union(*parts)) < sum(map(len, parts)):
                raise ParameterError(
                    "a state is in two bins of the histogram; put every state in exactly one"
                )
        object.__setattr__(self, "bins", parts)

    def bin_of_states(self, chain: MarkovChain) -> list[int]:
        """Return the bin of every state of ``chain``, from 0."""
        return _bins(chain, self.bins or [{x} for x in range(chain.states)])

    def __str__(self) -> str:
        return f"histogram{' of ' * bool(self.bins)}{', '.join(map(_listed, self.bins or ()))}"


Query: TypeAlias = CountQuery | HistogramQuery


def _states(states: Iterable[int], name: str) -> frozenset[int]:
    with suppress(ParameterError, TypeError):  # messages show no entry, as it may be a record
        return frozenset(check_whole(state, name, 0) for state in states)
    raise ParameterError(f"{name} must be integers from 0; give a set of them, for example {{1}}")


def _bins(chain: MarkovChain, parts: Sequence[Iterable[int]]) -> list[int]:
    """Return the bin of every state of a chain; raises ParameterError."""
    bin_of = {state: j for j, part in enumerate(parts) for state in part}
    k = chain.states
    if beyond := [state for state in bin_of if state >= k]:
        raise ParameterError(
            f"state {min(beyond)} is requested, but the chain has the states 0 to {k - 1}"
        )
    if lacking := {*range(k)} - bin_of.keys():
        raise ParameterError(
            f"state {min(lacking)} is in no bin of the histogram; put every one in exactly one"
        )
    return [bin_of[state] for state in range(k)]


def _listed(states: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, sorted(states)))}}}"


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
        kernels.prepend_record(rows, moves, given, out)
        return out

    forward, backward = (partial(prepend, numbers(each)) for each in (matrix, matrix.T))
    past = numbers(starts_of(chain)[:, :, None])
    futures = _last_first(numbers(np.ones((1, chain.states, 1))), forward, length - 1)
    nodes = islice(futures, window - 1, None)
    total = length + 1 - window
    for m, e in tqdm(nodes, "exact counts", total, delay=1, disable=None, leave=False):
        sizes = np.empty((len(past[0]), len(secrets)))
        given = empty_numbers(*sizes.shape, length * most + 1)
        kernels.distributions(past, (m[0], e[0]), np.array(secrets, dtype=np.int64), sizes, given)
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
    kernels.fill_log_sums(rows, decay, below.reshape(-1, size), above.reshape(-1, size))
    return below, above
