"""Mixing: families given by a mixing condition alone, and the overlaps of a chain.

``docs/leakage.md``, section 9, *Which families a chain lies in*, has the bounds and their proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_confidence, check_positive, check_whole, shown
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ChainError
from pufferflow.models.bounded import IntervalFamily, greedy
from pufferflow.models.chain import MarkovChain
from pufferflow.models.estimation import confidence_family
from pufferflow.models.families import AnyFamily, Family, finite_chains
from pufferflow.models.powers import matrix_power
from pufferflow.records.units import exact_seconds, steps_of

SMALLEST_OVERLAP = 1e-30
"""Smaller overlaps count as 0: probabilities outside the range of floats matter for them alone."""


@dataclass(frozen=True)
class MixingFamily(Family):
    """All Markov chains, homogeneous or not and on any states, that mix (a Doeblin-type condition).

    For every time t and any two possible values of X_t, the distributions p, q of X_{t+m} given
    either overlap by at least α, Σ_z min(p(z), q(z)) ≥ α, and so do those of X_{t−m}. There is no
    other assumption, and none on the states.
    """

    kind, fields = "mixing", ("steps", "overlap")

    steps: int = 60
    """m, at least 1."""
    overlap: float = 0.4
    """α in (0, 1], as its shortest decimal; at 1 records m steps apart are independent."""
    time: str | None = None
    """m as a time, such as "1h", which :meth:`in_steps` converts."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", check_whole(self.steps, "steps"))
        overlap = self.overlap
        if isinstance(overlap, bool) or not (isinstance(overlap, Real) and 0 < overlap <= 1):
            raise ChainError(f"overlap is {shown(overlap)}; it must be above 0 and at most 1")
        object.__setattr__(self, "overlap", float(overlap))

    def in_steps(self, step_seconds: int | None) -> MixingFamily:
        """Return the family with its time in steps, rounded up, which is a weaker assumption.

        Raises ParameterError: it has a time and there is no step.
        """
        if self.time is None:
            return self
        return MixingFamily(steps_of(self.time, step_seconds, "the time of mixing"), self.overlap)

    def description(self) -> str:
        """Return a description of these chains, with numbers, which do not depend on records."""
        return (
            "some Markov chain, homogeneous or not, that mixes: given any two values of a reading, "
            f"the distributions of the readings {self.steps} steps later (and earlier) overlap by "
            f"at least {self.overlap!r}"
        )


def mixing(time: str | int, overlap: float) -> MixingFamily:
    """Return the family with overlap of the distributions ``time`` later and earlier.

    ``time`` is a time such as "1h" or a number of steps, ``overlap`` above 0 and at most 1.

    Examples
    --------
    >>> import pufferflow as pf
    >>> pf.mixing("1h", 0.4).in_steps(1800).steps
    2
    """
    if exact_seconds(time, "time") is None:
        return MixingFamily(steps_of(time, None, "time"), overlap)
    return MixingFamily(1, overlap, str(time).strip())


@dataclass(frozen=True)
class Overlaps:
    """Smallest overlaps of X_{t+m} and of X_{t−m} given any two values of X_t, rounded down."""

    steps: int
    forward: float
    backward: float

    @property
    def overlap(self) -> float:
        """The smaller of the two: α of a mixing family that contains the chain."""
        return min(self.forward, self.backward)

    def family(self, margin: float = 0.0) -> MixingFamily:
        """Return the mixing family of these steps, with an overlap that is smaller by ``margin``.

        Use a margin if other records than these are going to be released. Raises ChainError:
        nothing is left; take more steps, or merge rare states.
        """
        left = self.overlap - check_positive(margin, "margin", or_zero=True)
        return MixingFamily(self.steps, left)


def mixing_of(family: AnyFamily, steps: int) -> Overlaps:
    """Return the overlaps of all chains of a family (finite, or binary interval) in ``steps``.

    For stationary starts they are exact up to rounding, below 1e-30 they are 0; for other starts
    the backward overlap is a bound for every initial distribution.
    """
    steps = check_whole(steps, "steps")
    forward, backward = zip(*(_of_chain(c, steps) for c in finite_chains(family)), strict=True)
    return Overlaps(steps, min(forward), min(backward))


def mixing_from_counts(
    transition_counts: ArrayLike, steps: int | Sequence[int], coverage: float = 0.95
) -> Any:
    """Return lower bounds of the overlaps of the chain of some counts, with this ``coverage``.

    The chain, which must be stationary, may be any within simultaneous confidence intervals
    (:func:`pufferflow.models.confidence_family`). With few transitions, or with states that are
    rarely left, the overlap is 0, and rare states have to be merged. The counts must not be those
    of the records to protect. Of several ``steps``, with one coverage, the result is a list.
    """
    several = steps if isinstance(steps, list | tuple) else None
    # each takes a matrix product
    asked = [check_whole(m, "steps", most=100_000) for m in several or [steps]]
    each = (1 + check_confidence(coverage, "coverage")) / 2
    counts, ways = np.asarray(transition_counts), []
    for side in (counts, counts.T):
        family = confidence_family(side, each)
        smoothed = side + (side.sum(axis=1, keepdims=True) == 0)  # never left: any row
        rows = smoothed / smoothed.sum(axis=1, keepdims=True)
        ways.append(np.nextafter(1 - _variations(family, rows, asked), 0.0))  # rounded down
    found = [Overlaps(m, *(float(way[m]) for way in ways)) for m in asked]
    return found if several else found[0]


def _of_chain(chain: MarkovChain, steps: int) -> tuple[float, ...]:
    """Return the overlaps of one chain, forward and backward."""
    chain = chain.recurrent
    power, support = matrix_power(chain.transition_matrix, steps)
    # largest number of roundings of an entry of a product of non-negative matrices
    error = (steps + 1) * (chain.states + 6) * UNIT_ROUNDOFF
    forward = _overlaps(power).min() * (1 - 2 * error)
    initial = chain.stationary_distribution if chain.start == "stationary" else None
    if initial is not None and initial.min() >= SAFE_MINIMUM:
        reversed_rows = power.T * initial[None, :] / initial[:, None]
        backward = _overlaps(reversed_rows).min() * (1 - 2 * error - 2 * chain.stationary_error)
    else:
        root = math.exp(-_log_cross_ratio(power, support) / 2) * (1 - 8 * error)
        backward = 2 * root / (1 + root) * (1 - 4 * UNIT_ROUNDOFF)
    bounds = min(float(forward), 1.0), min(float(backward), 1.0)
    return tuple(bound if bound >= SMALLEST_OVERLAP else 0.0 for bound in bounds)


def _overlaps(rows: Floats) -> Floats:
    """Return Σ_z min(p(z), q(z)) for all pairs of rows."""
    return np.array([np.minimum(row, rows).sum(axis=1) for row in rows])


def _log_cross_ratio(matrix: Floats, support: Bools) -> float:
    """Return the largest log P(y, x) P(y', x')/(P(y, x') P(y', x)) of possible values x, x'.

    ``support`` marks the positive entries; if one underflows to 0 the result is ∞.
    """
    possible = matrix[:, support.any(axis=0)]
    if possible.min() < SAFE_MINIMUM:
        return math.inf
    logs = np.log(possible)
    spreads = [np.ptp(logs - column[:, None], axis=0).max() for column in logs.T]
    return float(max(spreads)) * (1 + 1e-12) + 1e-14


def _variations(family: IntervalFamily, rows: Floats, steps: Sequence[int]) -> Floats:
    """Return bounds of τ_0, τ_1, …, rounded up, up to the largest of ``steps``."""
    most, k = max(steps), len(rows)
    tolerance = 1e-9  # above all roundings of up to 100,000 products, each of k + 6 of them
    # τ_n; max s_l − min s_l; e_n
    bounds, spreads, errors = np.ones(most + 1), np.empty(most), np.zeros((most + 1, k))
    power, distances, drift = np.eye(k), 1 - np.eye(k), np.zeros(k)
    moved, others = _farthest(family, rows, distances), ~np.eye(k, dtype=np.bool_)
    for n in range(1, most + 1):
        spreads[n - 1] = np.ptp(moved)
        drift = rows @ drift + moved
        error = (drift + spreads[n - 1 :: -1] @ errors[:n]) * (1 + tolerance)
        errors[n] = np.minimum(error, 1.0)
        power = power @ rows
        if n in steps or n % (1 << max(n.bit_length() - 4, 0)) == 0:  # at least 8 from n to 2n
            distances = np.clip(1 - _overlaps(power), 0.0, 1.0) + tolerance  # total variation
            moved = _farthest(family, rows, distances)
        products = bounds[1:n] * bounds[n - 1 : 0 : -1]
        direct = float((distances + error + error[:, None]).max(where=others, initial=0.0))
        bounds[n] = min(bounds[n - 1], products.min(initial=1.0) * (1 + tolerance), direct)
    return bounds


def _farthest(family: IntervalFamily, rows: Floats, distances: Floats) -> Floats:
    """Return s(z), the largest distance of a row of the family from that in ``rows``, shape (k,).

    Moved mass is weighted by the ``distances`` of the states.
    """
    over, under = np.maximum(family.high - rows, 0.0), np.maximum(rows - family.low, 0.0)
    most = np.minimum(over.sum(axis=1), under.sum(axis=1)) * (1 + 1e-12)
    most = np.minimum(most, 1.0)  # total variation
    gained, lost = (
        greedy(w, most, distances[..., None], largest=True)[:, 0] for w in (over, under)
    )
    return np.asarray(np.minimum((gained + lost) * (1 + 1e-12), most * distances.max()))
