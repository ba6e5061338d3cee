"""GK16: the mechanism of Ghosh and Kleinberg, the paper's baseline for weak correlation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pufferflow._util.checks import Lengths, check_epsilon, longest
from pufferflow._util.rounding import UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Floats
from pufferflow.errors import ChainError
from pufferflow.mechanisms.base import Mechanism, NoiseScale, not_applicable
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import AnyFamily, as_family

SOLVED_NODES = 100_000
"""Longest chain whose linear system is solved; longer ones take the limit for T → ∞, which is larger."""


class LocalInfluence(NamedTuple):
    """Off-diagonal entries γ of Γ for one chain, rounded up; the interior is the same for all nodes (Toeplitz)."""

    interior_left: float  # of X_{i-1} on X_i
    interior_right: float  # of X_{i+1} on X_i
    second_left: float  # of X_1 on X_2: only values X_1 can take
    second_right: float  # of X_3 on X_2, likewise
    first: float  # of X_2 on X_1, which depends on the initial distribution
    last: float  # of X_{T-1} on X_T
    last_of_two: float  # of X_1 on X_2 where T = 2


def gk16(family: AnyFamily, length: Lengths, epsilon: float) -> NoiseScale:
    """Scale of the mechanism of Ghosh and Kleinberg (2016), rounded up.

    Γ is tridiagonal with γ_ij = ½ sup log P(x_i | x_j, rest) / P(x_i | x_j', rest). Where its spectral
    norm is below 1, σ = 2 max_i Σ_j Φ_ij / ε with Φ = (I − Γ)^-1. All interior nodes share their
    entries; the two ends have their own (the first depends on the initial distribution).

    Parameters
    ----------
    family : Family or MarkovChain
        Θ; entries are suprema over its chains.
    length : int or sequence of int
        Segment lengths; Φ grows with the length, so the longest decides.
    epsilon : float
        ε > 0.

    Returns
    -------
    NoiseScale
        "not applicable", with the reason, where a transition has probability 0 or the norm reaches 1.

    Raises
    ------
    ParameterError
        ε or a length is out of range.
    """
    epsilon = check_epsilon(epsilon)
    records = longest(length)
    total, reason = _row_sum(as_family(family).chains, records)
    if reason:
        return not_applicable("gk16", epsilon, records, reason)
    if records == 1:
        return NoiseScale("gk16", epsilon, records, divide_up(2, epsilon))
    return NoiseScale("gk16", epsilon, records, 2 * total / epsilon * (1 + 4 * UNIT_ROUNDOFF))


def _unfit(family: AnyFamily, length: Lengths) -> str:
    """Why the mechanism cannot work: the family is not finite, a local influence infinite or the norm too large."""
    try:
        return _row_sum(as_family(family).chains, longest(length))[1]
    except ChainError as error:
        return str(error)


def _row_sum(chains: tuple[MarkovChain, ...], records: int) -> tuple[float, str]:
    """max_i Σ_j Φ_ij rounded up, or the reason why there is none."""
    if records == 1:  # nothing to influence
        return 1.0, ""
    if any((c.transition_matrix == 0).any() for c in chains):
        return math.inf, "a transition has probability 0, so the local influence is infinite"
    entries = LocalInfluence(*map(max, zip(*(local_influence(c) for c in chains), strict=True)))
    total = _largest_row_sum(entries, records)
    if total is None:
        return math.inf, (
            f"the spectral norm of the influence matrix is not below 1 "
            f"(interior entries {entries.interior_left:.4g} and {entries.interior_right:.4g})"
        )
    return total, ""


def local_influence(chain: MarkovChain) -> LocalInfluence:
    """Entries of Γ for one chain with positive transition probabilities.

    Interior: X_i given both neighbours has the law P(u, x) P(x, w) / P²(u, w).
    """
    logs = np.log(chain.transition_matrix)
    two = np.log(chain.transition_matrix @ chain.transition_matrix)

    # every value below is a sum of at most three logarithms of sums of k products
    error = 8 * (chain.states + 4 - 2 * float(logs.min())) * UNIT_ROUNDOFF + 2 * chain.stationary_error

    def entry(values: Floats, others: Floats) -> float:
        """Half the largest difference within a row of ``values`` less one of ``others``: k² numbers at a time."""
        spreads = (np.ptp(values - other, axis=-1).max() for other in others)
        return (float(max(spreads)) + error) / 2

    reachable = chain.initial_support
    nothing = np.zeros((1, 1))
    if chain.initial_distribution is None:
        # any start: sup over q of the ratio of mixtures is attained at single states x, y
        first = entry(logs, logs)
    else:
        second_law = np.log(chain.initial_distribution @ chain.transition_matrix)
        first = entry(logs[reachable], second_law[None])
    # left, over u: log P(u, x) − log P²(u, w), for every x and w; right, over w: log P(x, w) − log P²(u, w)
    return LocalInfluence(
        interior_left=entry(logs.T, two.T),
        interior_right=entry(logs, two),
        second_left=entry(logs[reachable].T, two[reachable].T),
        second_right=entry(logs, two[reachable]),
        first=first,
        last=entry(logs.T, nothing),
        last_of_two=entry(logs[reachable].T, nothing),
    )


def _largest_row_sum(entries: LocalInfluence, length: int) -> float | None:
    """max_i Σ_j Φ_ij rounded up, or None where ‖Γ‖₂ ≥ 1."""
    n = min(length, SOLVED_NODES)
    lower = np.full(n - 1, entries.interior_left)  # row i, column i − 1
    upper = np.full(n - 1, entries.interior_right)  # row i, column i + 1
    lower[0] = entries.second_left
    upper[1:2] = entries.second_right
    lower[-1] = entries.last if n > 2 else entries.last_of_two
    upper[0] = entries.first
    if not _norm_below_one(lower, upper):
        return None
    if length > n:
        widest = max(entries.interior_left + entries.interior_right, *entries)
        return 1 / (1 - widest) * (1 + 16 * UNIT_ROUNDOFF) if widest < 1 else None
    from scipy.linalg import solve_banded  # loading it takes longer than most noise scales

    bands = np.ones((3, n))
    bands[0, 1:], bands[2, :-1] = -upper, -lower
    sums = solve_banded((1, 1), bands, np.ones(n))
    # (I − Γ)^-1 is non-negative, so (I − Γ) s ≥ r entrywise proves that s / r bounds the row sums
    residual = sums.copy()
    residual[1:] -= lower * sums[:-1]
    residual[:-1] -= upper * sums[1:]
    proved = float(residual.min()) - 8 * UNIT_ROUNDOFF * float(sums.max())
    return float(sums.max()) / proved if proved > 0 else None


def _norm_below_one(lower: Floats, upper: Floats) -> bool:
    """Whether ‖Γ‖₂ < 1, that is whether I − ΓᵀΓ is positive definite (Cholesky)."""
    n = len(lower) + 1
    bands = np.zeros((3, n))
    bands[0] = 1.0
    bands[0, :-1] -= lower**2
    bands[0, 1:] -= upper**2
    bands[2, : n - 2] = -lower[:-1] * upper[1:]
    from scipy.linalg import LinAlgError, cholesky_banded

    try:
        factor = cholesky_banded(bands, lower=True)
    except LinAlgError:
        return False
    return bool(np.isfinite(factor).all())


GK16 = Mechanism("gk16", gk16, _unfit)
