"""Densities of a noisy count or histogram given one record, for every record, state and start.

X_i = x splits a chain: the records before i and those after i are independent given it. The law of the past counts
follows by one pass forwards over the time-reversed steps R_i(x, y) = P(X_{i−1} = y | X_i = x), that of the future
counts by one pass backwards over P. Nothing is subtracted, so relative errors only add up.

Secrets may be the values of w consecutive records. The past depends on the first of them alone, the future on the
last, and the count on how many of them it counts: so those that share these three share their densities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pufferflow._jit import constant
from pufferflow._rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._types import Bools, Floats, Ints
from pufferflow.audit._kernels import convolve, log_densities, prepend_node, smooth
from pufferflow.audit.queries import CountQuery, HistogramQuery
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov.chain import MarkovChain

LARGEST_DECAY = 150.0
"""Smallest scale of a count is one over this."""

LONGEST_COUNT = 20_000
"""Records of a count: the steps grow like their cube."""

LARGEST_EXPONENT = 500.0
"""Largest T · bins / (2 · scale) of a histogram: its densities stay above e^(−500)."""

LARGEST_MEMORY = 2**31
"""Bytes for the densities of a histogram."""

MOST_KEPT = 2**18
"""Numbers in the laws of a histogram that are kept from one scale to the next."""

LARGEST_WORK = 3e12
"""Multiplications for one loss beyond which it is not tried: half an hour or more where no count is unlikely."""


def check_size(chain: MarkovChain, length: int, query: CountQuery | HistogramQuery) -> None:
    """Raise :class:`ParameterError` where the query does not fit the chain, or its laws neither time nor memory."""
    if isinstance(query, CountQuery):
        query.check(chain)
        if length > LONGEST_COUNT:
            raise ParameterError(
                f"length is {length}; the exact loss of a count is computed for up to {LONGEST_COUNT} records, "
                "loss_at_any_length bounds it for every length"
            )
        return
    bins = max(query.bin_of_states(chain)) + 1
    starts = chain.states if chain.start == "any" else 1
    memory = 8 * (starts * chain.states + 2) * (length + 1) ** bins
    if memory > LARGEST_MEMORY:
        raise ParameterError(
            f"a histogram of {bins} bins and {length} records has (T + 1)^{bins} outputs, "
            f"{Decimal(memory) / 2**30:.3g} GiB of densities; use a shorter length or fewer bins "
            "(HistogramQuery(bins=…))"
        )


def work(chain: MarkovChain, length: int, query: CountQuery | HistogramQuery, window: int = 1) -> float:
    """Estimate the multiplications of one loss, other steps counted as so many; rather too many than too few.

    The laws of past and future, their convolution and its smoothing for every record, start and state, then the
    search over pairs of states, with any start also over pairs of starts.
    """
    k, n = chain.states, float(length)
    starts = k if chain.start == "any" else 1
    if isinstance(query, CountQuery):
        outputs, places, passes, convolution = n + 1, n / 2, 25, n**3 / 6
    else:
        free = max(query.bin_of_states(chain))
        outputs, places, passes = (n + 1) ** (free + 1), (n + 1) ** free, 2
        convolution = n ** (2 * free + 1) / math.factorial(2 * free + 1)
    laws = passes * (1 + starts) * k**2 * places * n
    secrets = k if window == 1 else k**2 * (min(window, length) + 1)
    pairs = secrets**2 * (100 * outputs + 50_000) * n * (starts**2 if starts > 1 else 0.1) / 2
    return laws + starts * secrets * (convolution + 150 * outputs * n) + pairs


class NodeDensities(NamedTuple):
    """Log densities of the noisy output given X_node = x, or a window from X_node on, up to one common factor.

    Attributes
    ----------
    node : int
        1-based.
    values : ndarray, shape (scales, starts, secrets, outputs)
        At the outputs with whole coordinates from 0 to T, flattened.
    possible : ndarray of bool, shape (starts, secrets)
        Whether the state (the first one of a window) has positive probability; where not, the values mean nothing.
    masses : ndarray, shape (starts, secrets)
        P(X_node = x) from each start.
    """

    node: int
    values: Floats
    possible: Bools
    masses: Floats


class _Marginals:
    """Laws of X_i and time-reversed steps from each start: the initial law, or every state where any is meant."""

    def __init__(self, chain: MarkovChain) -> None:
        self._matrix = chain.transition_matrix
        given = chain.initial_distribution
        self.masses: Floats = np.eye(chain.states) if given is None else given[None, :].copy()
        self.possible: Bools = np.eye(chain.states, dtype=np.bool_) if given is None else chain.initial_support[None, :]
        self._check(self.masses, self.possible)

    def step(self) -> Floats:
        """Go one record on and return R(start, x, y) = P(X_{i−1} = y | X_i = x)."""
        flow = self.masses[:, None, :] * self._matrix.T
        support = self.possible[:, None, :] & (self._matrix.T > 0)
        flow[~support] = 0.0
        self._check(flow, support)
        self.masses, self.possible = flow.sum(axis=2), np.asarray(support.any(axis=2))
        return flow / np.where(self.possible, self.masses, 1.0)[:, :, None]

    @staticmethod
    def _check(probabilities: Floats, support: Bools) -> None:
        if probabilities[support].min() < SAFE_MINIMUM:
            raise ChainError(
                f"a state has a positive probability below {SAFE_MINIMUM}, beyond the range of floats; "
                "use a shorter length or a chain without such rare states"
            )


class _Secret(NamedTuple):
    """Values of a window that share their densities: the first and the last state, how many count, and one of them."""

    first: int
    last: int
    own: int
    window: tuple[int, ...]


def _secrets(matrix: Floats, counted: Ints, window: int) -> list[_Secret]:
    """One for all windows that can occur and share their densities; of one record, the states."""
    paths: dict[tuple[int, int, int], tuple[int, ...]] = {(x, x, int(counted[x])): (x,) for x in range(len(matrix))}
    for _ in range(window - 1):
        longer: dict[tuple[int, int, int], tuple[int, ...]] = {}
        for (x, z, own), states in paths.items():
            for y in np.flatnonzero(matrix[z] > 0).tolist():
                longer.setdefault((x, y, own + int(counted[y])), (*states, y))
        paths = longer
    return [_Secret(*key, states) for key, states in paths.items()]


class CountDensities:
    """Densities of a noisy count under noise of several scales, whose laws without noise are the same.

    Raises ParameterError: a scale is below 1/150; ChainError: a probability leaves the range of floats.
    """

    def __init__(
        self, chain: MarkovChain, length: int, scales: Sequence[float], query: CountQuery, window: int = 1
    ) -> None:
        self.decays = [1.0 / scale for scale in scales]
        if max(self.decays) > LARGEST_DECAY:
            raise ParameterError(
                f"scale is {min(scales)}; the exact loss of a count is computed for scales of at least "
                f"1/{LARGEST_DECAY:g}"
            )
        self.chain, self.length = chain, length
        self.counted: Ints = np.array([int(x in query.states) for x in range(chain.states)])
        self.tails: Ints = np.unique([0, length])
        self._window = min(window, length)
        self._secrets = _secrets(chain.transition_matrix, self.counted, self._window)

    def secret(self, index: int) -> int | tuple[int, ...]:
        """Return a state, or the states of a window."""
        states = self._secrets[index].window
        return states if len(states) > 1 else states[0]

    def output(self, place: int) -> int:
        """Return the output at a flat place."""
        return place

    def error(self, decay: float) -> float:
        """Bound on the error of every log density at 1 / scale.

        Either pass makes at most 2k + 8 roundings a record (weights, products, sum), the rows of P and the masses
        another k + 8; the convolution 2T; e^(−c), of relative error (c + 2)u, is used at most T times with 3
        roundings each; a logarithm of size at most cT + log(T + 1) has 4 relative ones.
        """
        k, length, c = self.chain.states, self.length, decay
        return roundings(self.chain, length * (5 * k + 40 + 8 * (c + 3)) + 4 * math.log(length + 1) + 64)

    def __iter__(self) -> Iterator[NodeDensities]:
        k, length = self.chain.states, self.length
        matrix = self.chain.transition_matrix
        # the future of every record is kept at the ends of segments only, and made again within them
        stride = max(1, math.isqrt(length))
        kept: dict[int, tuple[Floats, Ints]] = {}
        future = (np.full((k, 1), 0.5), np.ones((k, 1), dtype=np.int64))
        for node in range(length, 0, -1):
            if node % stride == 0 or node == length:
                kept[node] = future
            future = _prepend(matrix, self.counted, future)
        marginals = _Marginals(self.chain)
        starts = len(marginals.masses)
        past = [(np.full((k, 1), 0.5), np.ones((k, 1), dtype=np.int64)) for _ in range(starts)]
        futures: dict[int, tuple[Floats, Ints]] = {}
        first = np.array([secret.first for secret in self._secrets])
        decays = np.array(self.decays)
        for node in range(1, length - self._window + 2):
            if node > 1:
                backwards = marginals.step()
                past = [_prepend(backwards[r], self.counted, past[r]) for r in range(starts)]
            end = node + self._window - 1
            if end not in futures:
                last = min(length, -(-end // stride) * stride)
                futures = {last: kept.pop(last)}
                for n in range(last, end, -1):
                    futures[n - 1] = _prepend(matrix, self.counted, futures[n])
            m_future, e_future = futures.pop(end)
            values = np.zeros((len(decays), starts, len(first), length + 1))
            possible = marginals.possible[:, first]
            for r, index in np.argwhere(possible).tolist():
                x, z, own, _ = self._secrets[index]
                (m_past, e_past), ahead = past[r], (m_future[z], e_future[z])
                log_densities(m_past[x], e_past[x], *ahead, own, decays, values[:, r, index])
            yield NodeDensities(node, values, possible, marginals.masses[:, first])


def _prepend(weights: Floats, counted: Ints, values: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
    m_in, e_in = values
    shape = (len(m_in), m_in.shape[1] + 1)
    m_out, e_out = np.empty(shape), np.empty(shape, dtype=np.int64)
    prepend_node(constant(weights), counted, m_in, e_in, m_out, e_out)
    return m_out, e_out


class HistogramDensities:
    """Densities of a noisy histogram under noise of several scales.

    Laws of counts of T records in j bins live on (T + 1)^(j − 1) places (the last count follows from the others), the
    densities on the (T + 1)^j outputs; smoothing by independent noise is one pass along every axis.

    Raises ParameterError: a scale is too small for floats; ChainError: a probability leaves the range of floats.
    """

    def __init__(self, chain: MarkovChain, length: int, scales: Sequence[float], query: HistogramQuery) -> None:
        bins = query.bin_of_states(chain)
        self.chain, self.length, self.bins = chain, length, max(bins) + 1
        self.decays = [1.0 / (query.lipschitz * scale) for scale in scales]
        if max(self.decays) * length * self.bins > LARGEST_EXPONENT:
            raise ParameterError(
                f"scale is {min(scales)}; the exact loss of a histogram of {self.bins} bins and {length} records is "
                f"computed for scales of at least {length * self.bins / (query.lipschitz * LARGEST_EXPONENT):.3g}"
            )
        free = self.bins - 1
        self._strides: Ints = np.array([(length + 1) ** (free - 1 - bin_) if bin_ < free else 0 for bin_ in bins])
        self._full: Ints = np.zeros((length + 1) ** free, dtype=np.int64)
        counts = np.indices((length + 1,) * free).reshape(free, (length + 1) ** free)
        last = length - counts.sum(axis=0)
        for row in counts:
            self._full = (self._full + row) * (length + 1)
        self._full += last
        corners = np.indices((2,) * self.bins).reshape(self.bins, -1) * length
        self.tails: Ints = np.unique(np.ravel_multi_index(tuple(corners), (length + 1,) * self.bins))

    def secret(self, index: int) -> int:
        """Return a state."""
        return index

    def output(self, place: int) -> tuple[int, ...]:
        """Return the output at a flat place."""
        return tuple(int(w) for w in np.unravel_index(place, (self.length + 1,) * self.bins))

    def error(self, decay: float) -> float:
        """Bound on the error of every log density at 1 / scale: as for a count, with one smoothing an axis.

        The convolution adds at most (T + 1)^(bins − 1) terms.
        """
        k, length, c = self.chain.states, self.length, decay
        smoothing = self.bins * length * (2 * c + 8)
        terms = (length + 1) ** (self.bins - 1)
        return roundings(self.chain, length * (5 * k + 40) + smoothing + 4 * c * length * self.bins + 2 * terms + 64)

    def __iter__(self) -> Iterator[NodeDensities]:
        length, outsides = self.length, [math.exp(-decay) for decay in self.decays]
        for here in _laws_of(self.chain, length, self.bins, tuple(self._strides.tolist())):
            values = np.zeros((len(outsides), *here.possible.shape, (length + 1) ** self.bins))
            for r, x, support, law in here.laws:
                for own, outside in zip(values[:, r, x], outsides, strict=True):
                    own[self._full[support]] = law
                    for axis in range(self.bins):
                        smooth(own.reshape((length + 1) ** axis, length + 1, -1), outside)
                    np.log(own, out=own)
            yield NodeDensities(here.node, values, here.possible, here.masses)


class _NodeLaws(NamedTuple):
    """Laws of a histogram without noise: (start, state, flat places, their probabilities) of those possible."""

    node: int
    laws: list[tuple[int, int, Ints, Floats]]
    possible: Bools
    masses: Floats


def _laws_of(chain: MarkovChain, length: int, bins: int, strides: tuple[int, ...]) -> Iterable[_NodeLaws]:
    """Laws at every node; few numbers are kept, since the search for a scale asks for them again and again."""
    starts = chain.states if chain.start == "any" else 1
    few = starts * chain.states * length * (length + 1) ** (bins - 1) <= MOST_KEPT
    return _kept_laws(chain, length, bins, strides) if few else _histogram_laws(chain, length, bins, strides)


@lru_cache(maxsize=4)
def _kept_laws(chain: MarkovChain, length: int, bins: int, strides: tuple[int, ...]) -> tuple[_NodeLaws, ...]:
    return tuple(_histogram_laws(chain, length, bins, strides))


def _histogram_laws(chain: MarkovChain, length: int, bins: int, strides: tuple[int, ...]) -> Iterator[_NodeLaws]:
    places = (length + 1) ** (bins - 1)
    alone = np.zeros((chain.states, places))
    alone[:, 0] = 1.0

    def prepend(weights: Floats, laws: Floats) -> Floats:
        shifted = np.zeros_like(laws)
        for y, stride in enumerate(strides):
            shifted[y, stride:] = laws[y, : laws.shape[1] - stride]
        return np.asarray(weights @ shifted)

    futures = [alone]
    for _ in range(length - 1):
        futures.append(prepend(chain.transition_matrix, futures[-1]))
    marginals = _Marginals(chain)
    past = [alone] * len(marginals.masses)
    for node in range(1, length + 1):
        if node > 1:
            past = [prepend(weights, laws) for weights, laws in zip(marginals.step(), past, strict=True)]
        future, of_rows = futures.pop(), []
        for r, x in np.argwhere(marginals.possible).tolist():
            before, after = np.flatnonzero(past[r][x]), np.flatnonzero(future[x])
            law = np.zeros(places)
            convolve(before + strides[x], past[r][x][before], after, future[x][after], law)
            support = np.flatnonzero(law)
            of_rows.append((r, x, support, law[support]))
        yield _NodeLaws(node, of_rows, marginals.possible, marginals.masses)


def roundings(chain: MarkovChain, count: float) -> float:
    """Bound on the relative error after ``count`` roundings, the error of a stationary start included."""
    start = 2 * chain.stationary_error if chain.start == "stationary" else 0.0
    return 1.1 * (UNIT_ROUNDOFF * count + start)
