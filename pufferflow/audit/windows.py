"""The exact loss of noise on stationary chains of every length, enclosed by looking at a window around a record.

Let X_i = x and fix the ends of a window, X_{i−a} = y and X_{i+b} = z. What lies beyond is independent of x given y and
z, and the noisy output is that of the window plus what the rest adds. So with D(w | x, y, z) the density of the noisy
counts within the window, for every length T,

    loss at i ≤ max over y, z and sup over w of log [P(y, z | x) D(w | x, y, z) / P(y, z | x') D(w | x', y, z)].

Where the chain begins or ends within the window, that side is free and its records are l < a or r < b in number; all
these cases are taken. With both sides free the expression is the exact loss at record l + 1 of l + 1 + r, so the
largest of those bounds the supremum over all lengths from below. As the window grows, y and z forget x, and the upper
and the lower bound meet. For fixed y and z a larger scale is post-processing, so the bound falls as the scale grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pufferflow._checks import POSITIVE_FLOATS, check_epsilon, check_scale, check_whole
from pufferflow._types import Bools, Floats, Ints
from pufferflow.audit._kernels import convolve, smooth
from pufferflow.audit.densities import roundings
from pufferflow.audit.loss import check_query
from pufferflow.audit.queries import CountQuery, Query
from pufferflow.errors import ChainError, ParameterError
from pufferflow.markov.chain import MarkovChain
from pufferflow.markov.families import AnyFamily, finite_chains

SMALLEST_DENSITY = 1e-280
"""Densities below are not trusted; nothing that is flushed to zero counts against them."""

LARGEST_WORK = 5e8
"""Numbers smoothed for one scale, about two seconds."""


@dataclass(frozen=True)
class AnyLengthLoss:
    """Bounds of the largest loss over all lengths, for one scale.

    Attributes
    ----------
    query : CountQuery or HistogramQuery
    scale : float
        Laplace scale for a 1-Lipschitz query.
    window : int
        Records from the one attacked to either end of the window.
    loss : float
        Never below the exact loss at any length, in nats; infinite where an end of the window rules out a secret.
    lower : float
        Never above the largest exact loss over the lengths up to twice the window less one.
    """

    query: Query
    scale: float
    window: int
    loss: float
    lower: float


def loss_at_any_length(family: AnyFamily, scale: float, query: Query, *, window: int) -> AnyLengthLoss:
    """Enclose the largest loss of independent Laplace noise on ``query`` over all lengths of a stationary chain.

    It also bounds that of sums over independent segments: what other segments add is post-processing.

    Parameters
    ----------
    family : MarkovChain or ChainFamily
        Irreducible chains with their stationary start.
    scale : float
        Laplace scale for a 1-Lipschitz query.
    query : CountQuery or HistogramQuery
    window : int
        Distance of the ends of the window, at least 1. The larger, the tighter and the slower: k (k + window)² laws on
        (2 window)^j places for j bins.

    Returns
    -------
    AnyLengthLoss

    Raises
    ------
    ParameterError
        A start is not stationary, the window is too large, the scale too small for
        floats, or the query does not fit.
    ChainError
        The family is not a finite one, or a chain is reducible.
    """
    chains = finite_chains(family, "the exact loss")
    noise, window = check_scale(scale, POSITIVE_FLOATS), check_whole(window, "window")
    enclosures = [_enclose(chain, noise, query, window) for chain in chains]
    return AnyLengthLoss(query, noise, window, max(f[1] for f in enclosures), max(f[0] for f in enclosures))


def scale_for_any_length(family: AnyFamily, epsilon: float, query: Query, *, window: int) -> AnyLengthLoss:
    """Find a Laplace scale whose loss is at most ε at every length, up to 1e-6 the smallest this window can prove.

    Parameters
    ----------
    family, query, window
        As :func:`loss_at_any_length`.
    epsilon : float
        ε > 0.

    Returns
    -------
    AnyLengthLoss
        With that ``scale``; ``lower`` says how much of ε is needed.

    Raises
    ------
    ParameterError
        As :func:`loss_at_any_length`, or no scale suffices: the ends of the window alone tell more than ε.
    ChainError
        A chain is reducible.
    """
    epsilon, window = check_epsilon(epsilon), check_whole(window, "window")
    check_query(query)
    bins = max(_strides(chain, query, window)[0] for chain in finite_chains(family, "the exact loss"))
    finest = math.log(_least_scale(query, window, bins)) + 1e-9

    def at(log_scale: float) -> AnyLengthLoss:
        return loss_at_any_length(family, math.exp(log_scale), query, window=window)

    # an entry changes at most the whole window
    high = max(math.log(2 * window / epsilon) + 1.0, finest)
    best = at(high)
    while best.loss > epsilon:
        high += 3.0
        best = at(high)
        if best.loss > epsilon and high > math.log(2e6 * window / epsilon):
            raise ParameterError(
                f"the ends of a window of {window} tell more than epsilon, {epsilon:g}, whatever the scale "
                f"(the bound is {best.loss:.4g}); use a larger window, or privacy_loss for one length"
            )
    low = high
    while True:
        low -= 1.0
        try:
            below = at(low)
        except ParameterError:  # finer scales are beyond floats
            return best
        if below.loss > epsilon:
            break
        best, high = below, low
    while high - low > 1e-6:
        middle = (low + high) / 2
        here = at(middle)
        if here.loss <= epsilon:
            best, high = here, middle
        else:
            low = middle
    return best


@dataclass(frozen=True)
class _WindowSide:
    """Laws of the counts on one side of X_i given each state of it, with its support.

    One column a number of records of a free side, and one a state at the end of the window, jointly with it.
    """

    columns: list[tuple[list[tuple[Ints, Floats]], Bools]]
    free: list[bool]


def _enclose(chain: MarkovChain, scale: float, query: Query, window: int) -> tuple[float, float]:
    check_query(query)
    if chain.start != "stationary":
        raise ParameterError("a loss at any length is bounded for chains with stationary start; leave the start out")
    reversal = chain.time_reversal  # needs an irreducible chain
    k, size = chain.states, 2 * window
    bins, strides = _strides(chain, query, window)
    work = k * (k + window) ** 2 * size**bins * bins
    if work > LARGEST_WORK:
        raise ParameterError(
            f"a window of {window} needs {Decimal(work):.2g} numbers for {bins} bins and {k} states, above "
            f"{LARGEST_WORK:.0g}; use a smaller window or fewer bins"
        )
    decay = 1.0 / (query.lipschitz * scale)
    least = _least_scale(query, window, bins)
    if scale < least:
        raise ParameterError(f"scale is {scale}; with a window of {window} it must be at least {least:.3g}")
    outside = math.exp(-decay)
    left = _side(reversal, strides, window, size**bins)
    right = _side(chain.transition_matrix, strides, window, size**bins)
    terms = size**bins + 2 * bins * size * (2 * decay + 8) + 4 * decay * size * bins + 64
    # the reversed probabilities carry the error of π twice, once for each density
    error = 2 * roundings(chain, size * (3 * k + 30) + terms) + 4 * window * 2 * chain.stationary_error + 1e-12
    lower = upper = 0.0
    for l_column, l_free in zip(left.columns, left.free, strict=True):
        for r_column, r_free in zip(right.columns, right.free, strict=True):
            possible = l_column[1] & r_column[1]
            if not possible.any():
                continue
            if not possible.all():  # the ends are impossible under one secret, not under another
                return 0.0, math.inf
            values = np.zeros((k, size**bins))
            for x in range(k):
                (where, law), (where_other, other) = l_column[0][x], r_column[0][x]
                convolve(where + strides[x], law, where_other, other, values[x])
            for axis in range(bins):
                smooth(values.reshape(k * size**axis, size, -1), outside)
            if values.min() < SMALLEST_DENSITY:
                raise ParameterError(
                    f"scale is {scale}; densities leave the range of floats with a window of {window}, "
                    "use a larger scale or a smaller window"
                )
            logs = np.log(values)
            gap = max((float(np.abs(logs[x] - logs[y]).max()) for x in range(k) for y in range(x)), default=0.0)
            upper = max(upper, gap)
            if l_free and r_free:
                lower = max(lower, gap)
    if k == 1:
        return 0.0, 0.0
    return max(0.0, lower - error), upper + error


def _strides(chain: MarkovChain, query: Query, window: int) -> tuple[int, Ints]:
    """Number of bins, and how far a record in each state moves the flat place of the counts."""
    if isinstance(query, CountQuery):
        query.check(chain)
        return 1, np.array([int(x in query.states) for x in range(chain.states)])
    of_states = query.bin_of_states(chain)
    return max(of_states) + 1, np.array([(2 * window) ** j for j in of_states])


def _least_scale(query: Query, window: int, bins: int) -> float:
    """Smallest scale whose densities stay above e^(−600)."""
    return 2 * window * bins / (600 * query.lipschitz)


def _side(matrix: Floats, strides: Ints, window: int, places: int) -> _WindowSide:
    k = len(matrix)

    def prepend(laws: Floats) -> Floats:
        shifted = np.zeros_like(laws)
        for y, stride in enumerate(strides.tolist()):
            shifted[y, stride:] = laws[y, : places - stride]
        return np.asarray(matrix @ shifted)

    def column(laws: Floats, possible: Bools) -> tuple[list[tuple[Ints, Floats]], Bools]:
        supports = [np.flatnonzero(law) for law in laws]
        for x in range(k):
            if possible[x] and laws[x].sum() < SMALLEST_DENSITY:
                raise ChainError("a probability within the window is beyond the range of floats; use a smaller window")
        return [(where, law[where]) for where, law in zip(supports, laws, strict=True)], possible

    columns, free = [], []
    alone = np.zeros((k, places))
    alone[:, 0] = 1.0
    for _ in range(window):
        columns.append(column(alone, np.ones(k, dtype=np.bool_)))
        free.append(True)
        alone = prepend(alone)
    reach = np.linalg.matrix_power((matrix > 0).astype(object), window) > 0
    for y in range(k):
        laws = np.zeros((k, places))
        laws[:, 0] = matrix[:, y]
        for _ in range(window - 1):
            laws = prepend(laws)
        columns.append(column(laws, np.asarray(reach[:, y], dtype=np.bool_)))
        free.append(False)
    return _WindowSide(columns, free)
