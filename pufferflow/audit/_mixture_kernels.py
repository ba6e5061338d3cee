"""Two conditional probabilities compared under every initial distribution of a chain.

Given one secret an event has probability F = Σ r_u p_u f_u / Σ r_u p_u, where r is the distribution
of X_1, p_u = P(secret | X_1 = u) and f_u the probability given both; another event given another
secret has G = Σ r_u q_u g_u / Σ r_u q_u. F ≤ G if and only if Σ_uv r_u r_v c_uv ≥ 0, with
c_uv = p_u q_v (g_v − f_u). This holds for all r if it holds for all mixtures of two starts (proved
in docs/histograms.md): if and only if s_uu ≥ 0 and s_uv ≥ −√(s_uu s_vv) for all u and v, where s is
the symmetric part of c. All arrays hold logarithms.
"""

import math
from typing import Any, TypeAlias

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.types import Floats, Ints

Pair: TypeAlias = tuple[Any, Any]
"""Logarithms, of two starts."""

ROUNDING = 2.0**-42
"""Relative error of computed products of densities, in their comparison."""


@kernel()
def _add(a: float, b: float) -> float:
    """Return log(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(math.exp(low - high))


@kernel()
def _margin(a: float, tolerance: float) -> float:
    """Return the margin by which a logarithm must exceed ``a`` to be proved no smaller."""
    return tolerance * (1 + 2.0**-8 * abs(a)) if a > -np.inf else 0.0


@kernel()
def _own(p: float, q: float, f: float, g: float, tolerance: float) -> float:
    """Return log p q (g − f), rounded down; −∞ if that is not proved positive."""
    over = f + _margin(f, tolerance) - g
    return p + q + g + math.log(-math.expm1(over)) if over < 0 and p + q > -np.inf else -np.inf


@kernel()
def exceeds(p: Pair, q: Pair, f: Pair, g: Pair, tolerance: float) -> tuple[bool, float]:
    """Return whether F ≤ G is unproved for mixtures of two starts, with this ``tolerance``.

    The second result is the weight of the other start at the minimum of the form, as log odds.
    """
    one, other = p[0] + q[1], p[1] + q[0]
    near = max(one, other)
    if near == -np.inf or (
        f[0] + _margin(f[0], tolerance) <= g[1] and f[1] + _margin(f[1], tolerance) <= g[0]
    ):
        return False, 0.0
    more = _add(one - near + g[1], other - near + g[0])
    less = _add(one - near + f[0], other - near + f[1])
    less += _margin(less, tolerance)
    if more >= less:
        return False, 0.0
    left, right = _own(p[0], q[0], f[0], g[0], tolerance), _own(p[1], q[1], f[1], g[1], tolerance)
    root = math.log(2.0) + (left + right) / 2 - near
    return _add(more, root) < less, (max(left, -1e6) - max(right, -1e6)) / 2


@kernel()
def never_above(p: Floats, q: Floats, f: Floats, g: Floats, tolerance: float) -> bool:
    """Return whether F ≤ G is proved for all initial distributions, with this ``tolerance``."""
    for u in range(len(p)):
        if p[u] + q[u] > -np.inf and not f[u] + _margin(f[u], tolerance) <= g[u]:
            return False
        for v in range(u):
            pairs = (p[u], p[v]), (q[u], q[v]), (f[u], f[v]), (g[u], g[v])
            if exceeds(*pairs, tolerance)[0]:
                return False
    return True


@kernel()
def raise_shift(
    sizes: Floats, below: Floats, above: Floats, shift: int, tolerance: float, pair: Ints
) -> int:
    """Return the smallest w ≥ ``shift`` with P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n, s and s'.

    ``sizes`` are log P(state | start), shape (starts, states); ``below`` and ``above``
    log P(N ≤ n | start, state) and log P(N > n | start, state), either of which is a proof, shape
    (starts, states, counts). ``pair`` is filled with the last two states that raised the value.
    """
    for x in range(sizes.shape[1]):
        for y in range(sizes.shape[1]):
            if x == y or sizes[:, x].max() == -np.inf or sizes[:, y].max() == -np.inf:
                continue
            first, other = sizes[:, x], sizes[:, y]
            n = 0
            while n + shift < below.shape[2] - 1:
                m = n + shift
                if never_above(first, other, below[:, x, n], below[:, y, m], tolerance) or (
                    never_above(other, first, above[:, y, m], above[:, x, n], tolerance)
                ):
                    n += 1
                else:
                    shift += 1
                    pair[0], pair[1] = x, y
    return shift


@kernel()
def _mixed(p: Pair, f: Pair, odds: float) -> float:
    """Return log F of a mixture of two starts."""
    (first, other), weight = f, p[1] - p[0] + odds
    if weight > 0:
        first, other, weight = other, first, -weight
    return float(first + _add(0.0, other - first + weight) - _add(0.0, weight))


@kernel()
def raise_gap(
    node: int,
    sizes: Floats,
    values: Floats,
    outputs: Ints,
    tolerance: float,
    gaps: Floats,
    place: Ints,
) -> None:
    """Raise the first two ``gaps``, attained and bound, to the largest log ratio of densities.

    The maximum is over mixtures of starts, pairs of secrets, and outputs: while a mixture exceeds
    the bound, it is raised to the value of the worst one (Dinkelbach).

    ``sizes`` are log P(secret | start), shape (starts, secrets), ``values`` the log densities, of
    shape (starts, secrets, outputs), of which some ``outputs`` are compared. ``place`` has the
    node, secrets and output of the third gap, replaced only by larger ones beyond the
    ``tolerance``.
    """
    starts, secrets = sizes.shape
    for x, y, u, v in np.ndindex(secrets, secrets, starts, starts):
        if x == y or u < v:
            continue
        p, q = (sizes[u, x], sizes[v, x]), (sizes[u, y], sizes[v, y])
        for w in outputs:
            f = values[u, x, w], values[v, x, w]
            low = values[u, y, w], values[v, y, w]
            step = 2 * ROUNDING
            while True:
                level = gaps[1]
                more, odds = exceeds(p, q, f, (low[0] + level, low[1] + level), ROUNDING)
                if not more:
                    break
                gap = _mixed(p, f, odds) - _mixed(q, low, odds)
                if gap > gaps[2] + tolerance:
                    gaps[2], place[:] = gap, (node, x, y, w)
                gaps[0] = max(gaps[0], gap)
                if gap > level:
                    gaps[1] = gap + 2 * ROUNDING
                else:  # unproved inequalities may hold
                    gaps[1] += step
                    step *= 2
