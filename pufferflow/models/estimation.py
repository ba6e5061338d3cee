"""Estimates of a chain from the counts of a sample: fits, and confidence intervals."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_confidence, check_numbers, check_positive, check_whole
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError, DataError
from pufferflow.models.bounded import IntervalFamily
from pufferflow.models.chain import STATIONARY, MarkovChain
from pufferflow.models.processes import HiddenChain, PeriodicChain

States = NDArray[np.intp]


def fit_chain(
    transition_counts: ArrayLike,
    *,
    order: int = 1,
    repeat: int | None = None,
    smoothing: float = 0.0,
    initial_distribution: Literal["stationary", "any"] = STATIONARY,
) -> tuple[Any, States]:
    """Return the maximum-likelihood chain of the states that occur (Song et al., section 5).

    Parameters
    ----------
    transition_counts : int array, shape (n, n), (n,) · (m + 1) for order m, (p, n, n) with repeat
        Steps from state (row) to state (column); for order m counts of sequences of m + 1 records;
        for a periodic chain the steps of each of p parts of the period, that of the first record.
    order : int
        m, the number of records on which the next one depends.
    repeat : int, optional
        Consecutive steps of each part, for a :class:`PeriodicChain`.
    smoothing : float
        Added to every count between states that occur; 0 is maximum likelihood. Of a periodic chain
        every row gets so many more steps, distributed as those from its state in the whole period.
    initial_distribution : {"stationary", "any"}
        Passed to the chain.

    Returns
    -------
    chain : MarkovChain, or HiddenChain for an order above 1, or PeriodicChain
        On the states with at least one transition in or out.
    states : int array, shape (k,)
        The states, as indices into the counts.
    """
    smoothing = check_positive(smoothing, "smoothing", or_zero=True)
    if repeat is not None:
        check_whole(order, "order", most=1)  # of other orders there is no periodic chain
        counts = _checked(transition_counts, 3, first=1)
        whole, states = _occurring(counts.sum(axis=0))
        pooled = _fractions(whole, states)
        parts = counts[:, states][:, :, states] + smoothing * pooled
        totals = parts.sum(axis=2, keepdims=True)
        rows = np.divide(parts, totals, out=np.zeros_like(parts) + pooled, where=totals > 0)
        return PeriodicChain(rows, repeat=repeat, initial_distribution=initial_distribution), states
    order = check_whole(order, "order", most=8)
    counts, states = _occurring(_checked(transition_counts, order + 1))
    rows = _fractions(counts + smoothing, states)
    if order == 1:
        return MarkovChain(rows, initial_distribution), states
    try:
        return HiddenChain.of_order(rows, initial_distribution), states
    except ChainError as error:
        raise DataError(f"{error}; set smoothing > 0 or merge states") from error


def _checked(counts: ArrayLike, axes: int, first: int = 0) -> Floats:
    """Return counts with one entry per state on the axes from ``first`` on; raises DataError."""
    numbers = check_numbers(counts, "transition_counts")
    is_square = numbers.ndim == axes and len(set(numbers.shape[first:])) == 1
    if not (is_square and numbers.size and np.all((numbers >= 0) & (numbers < np.inf))):
        wanted = f"numbers of at least 0 on {axes} axes, with one entry per state"
        raise DataError(f"the transition counts must be {wanted}")
    return numbers


def _occurring(counts: Floats) -> tuple[Floats, States]:
    """Return the counts of the states that occur in a transition, and these."""
    states = np.unique(np.nonzero(counts))
    if states.size == 0:
        advice = "so no chain can be fitted; give at least two observations"
        raise DataError(f"the sample has no transition, {advice}")
    return counts[np.ix_(*[states] * counts.ndim)], states


def _fractions(counts: Floats, states: States) -> Floats:
    """Return the shares of the next records after each history; of order 1 all must occur."""
    with np.errstate(over="ignore"):
        totals = counts.sum(axis=-1, keepdims=True)
    if np.isinf(totals).any():
        advice = "give counts of records, and a smaller smoothing"
        raise DataError(f"counts and smoothing have a sum beyond the range of floats; {advice}")
    stuck = np.flatnonzero(totals == 0)
    if stuck.size and counts.ndim == 2:
        fault = f"state {states[stuck[0]] + 1} is entered but never left in the sample"
        advice = "set smoothing > 0 or merge it with another state"
        raise DataError(f"{fault}, so its row cannot be fitted; {advice}")
    shares: Floats = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return shares


def confidence_family(
    transition_counts: ArrayLike, coverage: float = 0.95, *, backward: bool = False
) -> IntervalFamily:
    """Return a family that contains the true transition matrix with this ``coverage``.

    The intervals hold for records of any length, also if their end depends on the records
    (``docs/leakage.md``, section 15). A state that was never left gets the full simplex; all
    transitions stay possible. The counts, steps from state (row) to state (column) of one or more
    sequences, must be public or from other records than the ones to protect. ``backward`` adds
    bounds given the next record, for stationary chains.
    """
    coverage = check_confidence(coverage, "coverage")
    counts = _checked(transition_counts, 2)
    if (counts != np.floor(counts)).any():
        raise DataError("the transition counts must be integers; give counts, not frequencies")
    ways = 2 if backward else 1
    past = IntervalFamily(*noisy_confidence_bounds(counts.T, coverage, ways)) if backward else None
    return IntervalFamily(*noisy_confidence_bounds(counts, coverage, ways), backward=past)


def noisy_confidence_bounds(
    noisy: NDArray[Any], coverage: float, ways: int = 1, *, margin: int = 0, others: int = 0
) -> tuple[Floats, Floats]:
    """Return confidence bounds for all counts within the margins of noisy ones, rounded outwards.

    ``docs/leakage.md``, section 15, proves that they are monotone in the counts. All intervals have
    this ``coverage`` together, for 2 ``ways`` with those of transposed counts, if each true count
    is within ``margin`` of the noisy one, shape (…, k, k), and the sum of the others of its row
    within ``others``.
    """
    k = noisy.shape[-1]
    intervals = k if k == 2 else k * k  # of two states one interval is the other's mirror image
    alpha = (1 - coverage) / (ways * intervals)
    few, many = (np.maximum(noisy + h, 0).astype(np.float64) for h in (-margin, margin))
    rest = noisy.sum(axis=-1, keepdims=True) - noisy
    fewer, more = (np.maximum(rest + h, 0).astype(np.float64) for h in (-others, others))
    fewer = np.maximum(fewer, few.sum(axis=-1, keepdims=True) - few)
    more = np.minimum(more, many.sum(axis=-1, keepdims=True) - many)
    least = 1 - _upper_confidence(more, more + few, alpha)
    return least, _upper_confidence(many, many + fewer, alpha)


def _upper_confidence(successes: Floats, visits: Floats, alpha: float) -> Floats:
    """Return upper ends of the confidence intervals, rounded up."""
    # loading it takes longer than most noise scales
    from scipy.special import betaln, xlog1py, xlogy

    failures = visits - successes
    threshold = betaln(successes + 0.5, failures + 0.5) - math.log(math.pi) + math.log(alpha)
    threshold -= 1e-9 + 1e-14 * visits  # rounding of the logarithms of Beta functions
    inside = np.divide(successes, visits, out=np.ones_like(visits), where=visits > 0)
    outside = np.ones_like(visits)
    for _ in range(60):  # the likelihood falls beyond its maximum at s / n
        middle = (inside + outside) / 2
        above = xlogy(successes, middle) + xlog1py(failures, -middle) > threshold
        inside, outside = np.where(above, middle, inside), np.where(above, outside, middle)
    return np.asarray(np.minimum(outside + 1e-15, 1.0))
