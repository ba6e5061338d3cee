"""Baselines: GK16, group differential privacy, entry-level privacy that ignores correlation."""

from dataclasses import replace

import numpy as np

from pufferflow._util.checks import Lengths
from pufferflow._util.grids import of_epsilons
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF, divide_up
from pufferflow._util.types import Floats
from pufferflow.mechanisms.base import NoiseScale, requested
from pufferflow.models.chain import MarkovChain
from pufferflow.models.families import PROTECTION, AnyFamily, SideInformation, finite_chains


@of_epsilons
def group_dp(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the scale M/ε, M the length of the longest independent chain (Song et al., section 5).

    It protects all records of a chain together under any correlation, so it holds for windows of
    any length and with side information. ``family`` is not used; the other parameters are those of
    :func:`pufferflow.mqm_exact`.
    """
    request = requested("group-dp", length, epsilon, window, side_information)
    return replace(request, scale=divide_up(request.length, request.epsilon))


@of_epsilons
def entry_dp(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the scale w/ε, which protects w records if all records are independent.

    **Not private for correlated data**: neighbouring records reveal the protected ones. It is a
    baseline. ``family`` is not used; the other parameters are those of
    :func:`pufferflow.mqm_exact`, w is ``window``.
    """
    request = requested("entry-dp", length, epsilon, window, side_information)
    return replace(request, scale=divide_up(min(request.window, request.length), request.epsilon))


@of_epsilons
def gk16(
    family: AnyFamily,
    length: Lengths,
    epsilon: float,
    *,
    window: int = 1,
    side_information: SideInformation = "none",
) -> NoiseScale:
    """Return the scale of the mechanism of Ghosh and Kleinberg (2016), rounded up.

    Γ is tridiagonal with γ_ij = ½ sup log P(x_i | x_j, rest) / P(x_i | x_j', rest). If its spectral
    norm is below 1, σ = 2 max_i Σ_j Φ_ij / ε with Φ = (I − Γ)^-1. All interior nodes share
    their entries; the two ends have their own (the first depends on the initial distribution). Over
    a family entries are suprema, and Φ grows with the length, so the longest segment determines
    the scale. It is not applicable to windows and side information, nor if a transition has
    probability 0 or the norm is 1 or more. Parameters are those of :func:`pufferflow.mqm_exact`.
    """
    request = requested("gk16", length, epsilon, window, side_information, PROTECTION)
    chains = finite_chains(family)
    if request.reason:
        return request
    if request.length == 1:  # nothing to influence
        return replace(request, scale=divide_up(2, request.epsilon))
    if any((chain.transition_matrix < SAFE_MINIMUM).any() for chain in chains):
        why = f"a transition has probability 0, or one below {SAFE_MINIMUM}"
        why = f"{why}, so the local influence is infinite, or beyond floats"
        return replace(request, reason=why)
    solved = min(request.length, 100_000)  # longer chains use the limit T → ∞, which is larger
    lower, upper = np.max([local_influence(chain, solved) for chain in chains], axis=0)
    total = _largest_row_sum(lower, upper, request.length)
    if total is None:
        left, right = np.max([local_influence(chain, 9) for chain in chains], axis=0)[:, 4]
        inner = f"interior entries {left:.4g} and {right:.4g}"
        why = f"the spectral norm of the influence matrix is not below 1 ({inner})"
        return replace(request, reason=why)
    return replace(request, scale=2 * total / request.epsilon * (1 + 4 * UNIT_ROUNDOFF))


def local_influence(chain: MarkovChain, length: int) -> tuple[Floats, Floats]:
    """Return γ_{i+1,i} and γ_{i,i+1} of a chain with positive probabilities, rounded up.

    X_i given both neighbours has the distribution P(u, x) P(x, w) / P²(u, w) for interior i.
    """
    logs = np.log(chain.transition_matrix)
    two = np.log(chain.transition_matrix @ chain.transition_matrix)

    # every value below is a sum of at most three logarithms of sums of k products
    roundings = 8 * (chain.states + 4 - 2 * float(logs.min())) * UNIT_ROUNDOFF
    error = roundings + 2 * chain.stationary_error

    def entry(values: Floats, others: Floats) -> float:
        """Return half the largest difference within a row of ``values`` minus one of ``others``."""
        spreads = (np.ptp(values - other, axis=-1).max() for other in others)
        return (float(max(spreads)) + error) / 2

    possible, nothing = chain.initial_support, np.zeros((1, 1))  # values of X_1
    # left, over u: log P(u, x) − log P²(u, w); right, over w: log P(x, w) − log P²(u, w)
    lower = np.full(length - 1, entry(logs.T, two.T))
    upper = np.full(length - 1, entry(logs, two))
    lower[0] = entry(logs[possible].T, two[possible].T)
    lower[-1] = entry((logs if length > 2 else logs[possible]).T, nothing)
    upper[1:2] = entry(logs, two[possible])
    if chain.initial_distribution is None:
        # any start: sup over q of the ratio of mixtures is attained at single states x, y
        upper[0] = entry(logs, logs)
    else:
        second = np.log(chain.initial_distribution @ chain.transition_matrix)
        upper[0] = entry(logs[possible], second[None])
    return lower, upper


def _largest_row_sum(lower: Floats, upper: Floats, length: int) -> float | None:
    """Return max_i Σ_j Φ_ij rounded up, or None if ‖Γ‖₂ ≥ 1."""
    from scipy.linalg import LinAlgError, cholesky_banded, solve_banded  # takes long to load

    # ‖Γ‖₂ < 1 if I − ΓᵀΓ is positive definite
    n = len(lower) + 1
    bands = np.zeros((3, n))
    bands[0] = 1.0
    bands[0, :-1] -= lower**2
    bands[0, 1:] -= upper**2
    bands[2, : n - 2] = -lower[:-1] * upper[1:]
    try:
        if not np.isfinite(cholesky_banded(bands, lower=True)).all():
            return None
    except LinAlgError:
        return None
    if length > n:
        widest = float(max(lower[n // 2] + upper[n // 2], lower.max(), upper.max()))
        return 1 / (1 - widest) * (1 + 16 * UNIT_ROUNDOFF) if widest < 1 else None
    bands = np.ones((3, n))
    bands[0, 1:], bands[2, :-1] = -upper, -lower
    sums = solve_banded((1, 1), bands, np.ones(n))
    # (I − Γ)^-1 is non-negative, so (I − Γ) s ≥ r entrywise proves that s / r bounds the row sums
    residual = sums.copy()
    residual[1:] -= lower * sums[:-1]
    residual[:-1] -= upper * sums[1:]
    proved = float(residual.min()) - 8 * UNIT_ROUNDOFF * float(sums.max())
    return float(sums.max()) / proved if proved > 0 else None
