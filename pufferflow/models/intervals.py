"""Chains known by intervals: every transition probability between two bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pufferflow._util.checks import check_confidence
from pufferflow._util.types import Floats
from pufferflow.errors import DataError
from pufferflow.models.bounded import BoundedFamily
from pufferflow.models.row_sets import between


class IntervalFamily(BoundedFamily):
    """All chains with low ≤ P ≤ high entrywise, and every initial distribution; immutable.

    Unlike ``BinaryInterval`` no single chain is known to dominate it: :func:`pufferflow.leakage`
    bounds the loss of all of them (``docs/leakage.md``), also of chains that change with time.

    Parameters
    ----------
    low, high : array_like, shape (k, k)
        Bounds of the transition probabilities. Both are kept as tight as the row sums allow: an
        upper bound is at most 1 minus the other lower bounds of its row, and the other way round.
    backward : IntervalFamily, optional
        Bounds of the distribution of a record given the one *after* it: then the family is
        smaller, the chains between the bounds read either way, and :func:`pufferflow.leakage`
        needs less noise.
    """

    kind, parameters = "interval", ("low", "high")

    def __init__(self, low: ArrayLike, high: ArrayLike, *, backward: IntervalFamily | None = None) -> None:
        super().__init__(low, high, backward)
        self.rows = between(self.low, self.high)


def confidence_family(
    transition_counts: ArrayLike, coverage: float = 0.95, *, backward: bool = False
) -> IntervalFamily:
    """Family that holds the unknown transition matrix with probability at least ``coverage``.

    The intervals hold for records of any length, also where looking at them decided when they
    ended; they and their proof are in ``docs/leakage.md``, section 15. They depend on the counts,
    which must be public or from other records than the ones to protect.

    Parameters
    ----------
    transition_counts : int array, shape (k, k)
        Steps from state (row) to state (column), of one or more independent sequences. A state
        that was never left gets the full simplex. No transition is taken for impossible.
    coverage : float
        Between 0 and 1.
    backward : bool
        Whether to bound the distribution of a record given the one after it, too, for chains that
        are stationary.
    """
    coverage = check_confidence(coverage, "coverage")
    counts = np.asarray(transition_counts)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not counts.size:
        wrong = f"have shape {counts.shape}; give one row and one column per state"
        raise DataError(f"the transition counts {wrong}")
    if counts.dtype.kind not in "iu" or counts.min() < 0:
        what = "the transition counts must be integers of at least 0"
        raise DataError(f"{what}; give counts, not frequencies")
    if len(counts) == 1:
        return IntervalFamily([[1.0]], [[1.0]])
    ways = 2 if backward else 1
    past = IntervalFamily(*noisy_confidence_bounds(counts.T, coverage, ways)) if backward else None
    return IntervalFamily(*noisy_confidence_bounds(counts, coverage, ways), backward=past)


def noisy_confidence_bounds(
    noisy: NDArray[np.integer[Any]], coverage: float, ways: int = 1, *, margin: int = 0, others: int = 0
) -> tuple[Floats, Floats]:
    """Ends of the intervals of :func:`confidence_family`, for every count that noisy ones may stand for.

    That their ends move with the counts as taken here is proved in ``docs/leakage.md``, section 15.

    Parameters
    ----------
    noisy : int array, shape (…, k, k)
    coverage : float
        That all intervals are to have, where each true count is within its margin.
    ways : int
        2 where the transposed counts are used as well, under the same coverage.
    margin : int
        Each true count is at most this far from the noisy one.
    others : int
        The sum of the other counts of a row is at most this far from that of the noisy ones.

    Returns
    -------
    low, high : float array, shape (…, k, k)
        Rounded outwards.
    """
    k = noisy.shape[-1]
    intervals = k if k == 2 else k * k  # of two states one interval is the other's mirror image
    alpha = (1 - coverage) / (ways * intervals)
    few, many = (np.maximum(noisy + h, 0).astype(np.float64) for h in (-margin, margin))
    rest = noisy.sum(axis=-1, keepdims=True) - noisy
    fewer, more = (np.maximum(rest + h, 0).astype(np.float64) for h in (-others, others))
    fewer = np.maximum(fewer, few.sum(axis=-1, keepdims=True) - few)
    more = np.minimum(more, many.sum(axis=-1, keepdims=True) - many)
    return 1 - _upper_confidence(more, more + few, alpha), _upper_confidence(many, many + fewer, alpha)


def _upper_confidence(successes: Floats, visits: Floats, alpha: float) -> Floats:
    """Upper ends of the confidence intervals, rounded up."""
    from scipy.special import betaln, xlog1py, xlogy  # loading it takes longer than most noise scales

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
