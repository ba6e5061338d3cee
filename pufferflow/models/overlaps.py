"""How far the distributions given two states overlap some steps away: the mixing families of a chain.

The bounds and their proofs are in ``docs/leakage.md``, section 9, *Which families a chain lies in*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pufferflow._util.checks import check_confidence, check_positive, check_whole
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats
from pufferflow.errors import ParameterError
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, as_family
from pufferflow.models.intervals import IntervalFamily, confidence_family
from pufferflow.models.mixing import MixingFamily
from pufferflow.models.powers import matrix_power

MOST_STEPS = 100_000
"""Largest number of steps for which counts are looked at: each step costs a product of matrices."""


@dataclass(frozen=True)
class Overlaps:
    """How far the distributions given two values of a node overlap, some steps away from it; rounded down.

    Attributes
    ----------
    steps : int
        m.
    ahead, behind : float
        Least overlap of the distributions of X_{t+m} (forward), and of X_{t−m} (backward), between 0 and 1.
    coverage : float or None
        Probability with which both hold, where they come from counts; None where they come from a chain.
    """

    steps: int
    ahead: float
    behind: float
    coverage: float | None = None

    @property
    def overlap(self) -> float:
        """The smaller of the two: α of the mixing families that hold the chain."""
        return min(self.ahead, self.behind)

    def family(self, margin: float = 0.0) -> MixingFamily:
        """Return the mixing family of these steps, with an overlap that is smaller by ``margin``.

        Parameters
        ----------
        margin : float
            Taken off the overlap, because other records than these are going to be released.

        Raises
        ------
        ParameterError
            ``margin`` is negative, or nothing is left.
        """
        left = self.overlap - check_positive(margin, "margin", or_zero=True)
        if not left > 0:
            raise ParameterError(
                f"the overlap in {self.steps} steps is {self.overlap:.3g}, and less the margin nothing is left; take "
                "more steps, or merge rare states"
            )
        return MixingFamily(self.steps, left)


def mixing_of(family: AnyFamily, steps: int) -> Overlaps:
    """Overlaps of all chains of a family, a number of steps ahead and behind.

    Parameters
    ----------
    family : Family or MarkovChain
        Finitely many chains or a :class:`pufferflow.BinaryInterval`, whose dominating chain mixes most slowly.
    steps : int
        m.

    Returns
    -------
    Overlaps
        Rounded down. Exact for stationary starts but for rounding; behind, other starts get what holds for every
        initial distribution.

    Raises
    ------
    ChainError
        The family has no chains that stand for it: of counts :func:`pufferflow.models.mixing_from_counts` says more.
    ParameterError
        ``steps`` is out of range, or it is no family.
    """
    steps = check_whole(steps, "steps")
    overlaps = [_of_chain(chain, steps) for chain in as_family(family).chains]
    return Overlaps(steps, min(ahead for ahead, _ in overlaps), min(behind for _, behind in overlaps))


def mixing_from_counts(transition_counts: ArrayLike, steps: int, coverage: float = 0.95) -> Overlaps:
    """Overlaps that the chain behind some transition counts has with probability ``coverage`` at least.

    The chain, which must be stationary, may be any within simultaneous confidence intervals
    (:func:`pufferflow.models.confidence_family`, half of 1 − ``coverage`` for either direction). With few
    transitions, or with states that are rarely left, the overlap is 0, and rare states have to be merged. The counts
    must not be those of the records to protect.

    Parameters
    ----------
    transition_counts : int array, shape (k, k)
        Steps from state (row) to state (column).
    steps : int
        m, at most 100,000.
    coverage : float
        Between 0 and 1.

    Returns
    -------
    Overlaps

    Raises
    ------
    ParameterError
        ``steps`` or ``coverage`` is out of range.
    DataError
        The counts are not a square matrix of non-negative integers.
    """
    steps = check_whole(steps, "steps", most=MOST_STEPS)
    [overlaps] = overlaps_from_counts(transition_counts, [steps], coverage)
    return overlaps


def overlaps_from_counts(transition_counts: ArrayLike, steps: Sequence[int], coverage: float) -> list[Overlaps]:
    """Return :func:`mixing_from_counts` for several numbers of steps; with ``coverage`` they hold all together."""
    each = (1 + check_confidence(coverage, "coverage")) / 2
    counts = np.asarray(transition_counts)
    ahead, behind = (
        1 - _variations(confidence_family(side, each), _frequencies(side), steps) for side in (counts, counts.T)
    )
    return [Overlaps(m, float(ahead[m]), float(behind[m]), coverage) for m in steps]


def _of_chain(chain: MarkovChain, steps: int) -> tuple[float, float]:
    if chain.start == "stationary":
        chain = chain.restricted(chain.initial_support)
    with np.errstate(under="ignore"):
        power, support = matrix_power(chain.transition_matrix, steps)
    # an entry of a product of non-negative matrices has so many roundings at most, in any order
    error = (steps + 1) * (chain.states + 6) * UNIT_ROUNDOFF
    ahead = _overlap(power) * (1 - 2 * error)
    initial = chain.stationary_distribution if chain.start == "stationary" else None
    if initial is not None and initial.min() >= SAFE_MINIMUM:
        backwards = power.T * initial[None, :] / initial[:, None]
        behind = _overlap(backwards) * (1 - 2 * error - 2 * chain.stationary_error)
    else:
        behind = 2 / (1 + math.sqrt(_cross_ratio(power, support) * (1 + 8 * error))) * (1 - 4 * UNIT_ROUNDOFF)
    return min(max(ahead, 0.0), 1.0), min(max(behind, 0.0), 1.0)


def _overlap(rows: Floats) -> float:
    """Least Σ_z min(p(z), q(z)) over pairs of rows."""
    return min(float(np.minimum(row, rows).sum(axis=1).min()) for row in rows)


def _cross_ratio(matrix: Floats, support: Bools) -> float:
    """Largest P(y, x) P(y', x')/(P(y, x') P(y', x)) of values x, x' that a node can take; infinite where one is.

    ``support`` has the entries that are positive, also where floats have 0 for them.
    """
    possible = matrix[:, support.any(axis=0)]
    if len(matrix) == 1:
        return 1.0
    if possible.min() < SAFE_MINIMUM:
        return math.inf
    logs = np.log(possible)
    spreads = [np.ptp(logs - column[:, None], axis=0).max() for column in logs.T]
    largest = float(max(spreads)) * (1 + 1e-12) + 1e-14
    return math.exp(largest) if largest < 700 else math.inf


def _frequencies(counts: Floats) -> Floats:
    """Estimated rows; of a state that was never left, every state alike."""
    smoothed = np.asarray(counts, dtype=np.float64) + (counts.sum(axis=1, keepdims=True) == 0)
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def _variations(family: IntervalFamily, rows: Floats, steps: Sequence[int]) -> Floats:
    """Bounds of τ_0, τ_1, …, rounded up, up to the largest of ``steps``: see the module's text."""
    most, k = max(steps), len(rows)
    tolerance = 1e-9  # above all roundings of up to 100,000 products, each of a relative error of (k + 6) of them
    bounds, spreads, errors = np.ones(most + 1), np.empty(most), np.zeros((most, k))  # τ_n, max s_l − min s_l, e_n
    power, distances, drift = np.eye(k), 1 - np.eye(k), np.zeros(k)
    moves, others = _Moves(family, rows), ~np.eye(k, dtype=np.bool_)
    moved = moves.farthest(distances)
    for n in range(1, most + 1):
        spreads[n - 1] = np.ptp(moved)
        drift = rows @ drift + moved
        error = (drift + spreads[n - 1 :: -1] @ errors[:n]) * (1 + tolerance)
        if n < most:
            errors[n] = np.minimum(error, 1.0)
        power = power @ rows
        if n in steps or n % (1 << max(n.bit_length() - 4, 0)) == 0:  # at least eight between any n and 2n
            distances = _distances(power) + tolerance
            moved = moves.farthest(distances)
        products = bounds[1:n] * bounds[n - 1 : 0 : -1]
        direct = float((distances + error + error[:, None]).max(where=others, initial=0.0))
        bounds[n] = min(bounds[n - 1], products.min(initial=1.0) * (1 + tolerance), direct)
    return bounds


class _Moves:
    """How far the rows of an unknown matrix can be from an estimate."""

    def __init__(self, family: IntervalFamily, rows: Floats) -> None:
        self._over, self._under = np.maximum(family.high - rows, 0.0), np.maximum(rows - family.low, 0.0)
        most = np.minimum(self._over.sum(axis=1), self._under.sum(axis=1)) * (1 + 1e-12)
        self._most = np.minimum(most, 1.0)  # total variation

    def farthest(self, distances: Floats) -> Floats:
        """s(z): how far a row can be where the distances d of the states count, for every z, shape (k,)."""
        order = np.argsort(-distances, axis=1)
        weights = np.take_along_axis(distances, order, axis=1)
        total = np.zeros(len(distances))
        for caps in (self._over, self._under):
            caps = np.take_along_axis(caps, order, axis=1)
            before = np.cumsum(caps, axis=1) - caps
            total += (np.clip(self._most[:, None] - before, 0.0, caps) * weights).sum(axis=1)
        return np.asarray(np.minimum(total * (1 + 1e-12), self._most * distances.max()))


def _distances(rows: Floats) -> Floats:
    """Total variation of every two rows, shape (k, k)."""
    return np.asarray(np.clip([1 - np.minimum(row, rows).sum(axis=1) for row in rows], 0.0, 1.0))
