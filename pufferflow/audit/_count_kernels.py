"""Compiled loops over distributions of counts, and over pairs of them.

Probabilities are pairs (m, e) for m · 2^e, m about 1 or 0, so that far tails keep their digits. All
terms are positive: relative errors only add up, and nothing is truncated.
"""

import math
from typing import Any, TypeAlias

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.types import Floats, Ints

Numbers: TypeAlias = tuple[Floats, Ints]
"""Numbers m · 2^e: the mantissas and the exponents, ``NOTHING`` for zeros."""

NOTHING = -(2**40)
"""Exponent of a sum without terms."""

SPREAD = 400
"""Largest range of a part in bits: products of two numbers do not overflow."""

ROUNDING = 2.0**-42
"""Relative error of computed products of densities, in their comparison."""

_ROUNDS = 2_000  # of a search whose steps double: floats end before


@kernel(inner=True)
def _carried(value: float, base: Any, m: float, e: Any) -> tuple[float, Any]:
    """Return value · 2^base + m · 2^e, the value kept from 2^(−332) to about 2^300."""
    if m > 0:
        if value == 0 or e > base + 300:
            value, base = math.ldexp(value, int(base - e)) if value > 0 else 0.0, e
        value += math.ldexp(m, int(e - base))
    if value > 1e90 or 0 < value < 1e-100:
        value, power = math.frexp(value)
        base += power
    return value, base


@kernel(inner=True)
def _log(value: float, base: Any) -> float:
    """Return the natural logarithm of value · 2^base."""
    if value == 0:
        return -np.inf
    mantissa, power = math.frexp(value)
    return float(math.log(mantissa) + (base + power) * math.log(2.0))


@kernel()
def prepend_record(rows: Numbers, moves: Ints, given: Numbers) -> Numbers:
    """Return out(s, x, n) = Σ_y rows(x, y) given(s, y, n − moves(y)): a record more in a count."""
    (factors, powers), (m, e) = rows, given
    shape = len(m), len(factors), m.shape[2] + moves.max()
    sums, bases = np.zeros(shape), np.full(shape, NOTHING)
    for s in range(len(m)):
        for x in range(len(factors)):
            row, tops = sums[s, x], bases[s, x]
            for y in range(m.shape[1]):
                factor, power, move = factors[x, y], powers[x, y], moves[y]
                if factor > 0:
                    for n in range(m.shape[2]):
                        row[n + move], tops[n + move] = _carried(
                            row[n + move], tops[n + move], factor * m[s, y, n], power + e[s, y, n]
                        )
            for n in range(len(row)):
                if row[n] > 0:
                    row[n], power = math.frexp(row[n])
                    tops[n] += power
    return sums, bases


@kernel(inner=True)
def _parts(m: Floats, e: Ints) -> list[tuple[int, Any, Floats]]:
    """Return parts of at most ``SPREAD`` bits: first index, exponent and floats of each."""
    parts = []
    begin, low, high = 0, np.int64(2**40), np.int64(NOTHING)
    for n in range(len(m) + 1):
        if n == len(m) or (m[n] > 0 and max(high, e[n]) - min(low, e[n]) > SPREAD):
            values = np.empty(n - begin)
            for i in range(begin, n):
                values[i - begin] = math.ldexp(m[i], int(e[i] - high))
            parts.append((begin, high, values))
            begin, low, high = n, np.int64(2**40), np.int64(NOTHING)
        if n < len(m) and m[n] > 0:
            low, high = min(low, e[n]), max(high, e[n])
    return parts


@kernel()
def distributions(past: Any, future: Any, secrets: Ints, size: int) -> tuple[Floats, Numbers]:
    """Return the distribution of past + own + future from each start, given each secret.

    A secret is (first, last, own): the past depends on its first state, the future on its last one,
    and its own count is ``own``. First come the logarithms of the sums, by which distributions of
    this ``size`` are divided.
    """
    (before, powers), (after, tops), shape = past, future, (len(past[0]), len(secrets), size)
    sizes, m, e = np.empty(shape[:2]), np.zeros(shape), np.full(shape, NOTHING)
    for s in range(len(before)):
        for number in range(len(secrets)):
            first, last, own = secrets[number]
            row, exponents = m[s, number], e[s, number]
            others = _parts(after[last], tops[last])
            for i, power, left in _parts(before[s, first], powers[s, first]):
                for j, more, right in others:
                    part = np.zeros(len(left) + len(right) - 1)
                    for a in range(len(left)):
                        if left[a] > 0:
                            for b in range(len(right)):
                                part[a + b] += left[a] * right[b]
                    for n in range(len(part)):
                        at = own + i + j + n
                        row[at], exponents[at] = _carried(
                            row[at], exponents[at], part[n], power + more
                        )
            total, base = 0.0, np.int64(NOTHING)
            for n in range(len(row)):
                total, base = _carried(total, base, row[n], exponents[n])
            sizes[s, number] = _log(total, base)
            if total > 0:
                total, power = math.frexp(total)
                for n in range(len(row)):
                    if row[n] > 0:
                        row[n], more = math.frexp(row[n] / total)
                        exponents[n] += more - power - base
    return sizes, (m, e)


@kernel()
def log_sums(given: Numbers, decay: float) -> tuple[Floats, Floats]:
    """Return logs of Σ_{j ≤ n} decay^(n − j) p(j) and Σ_{j > n} decay^(j − n) p(j), per p."""
    m, e = given
    below, above = np.empty(m.shape), np.empty(m.shape)
    for s, x in np.ndindex(m.shape[:2]):
        value, base = 0.0, np.int64(NOTHING)
        for n in range(m.shape[2]):
            value, base = _carried(value * decay, base, m[s, x, n], e[s, x, n])
            below[s, x, n] = _log(value, base)
        value, base = 0.0, np.int64(NOTHING)
        for n in range(m.shape[2] - 1, -1, -1):
            above[s, x, n] = _log(value, base)
            value, base = _carried(value, base, m[s, x, n], e[s, x, n])
            value *= decay
    return below, above


@kernel()
def smooth(values: Floats, decay: float) -> None:
    """Replace values[a, w, b] by S(w) = Σ_n decay^|w − n| values[a, n, b], in place.

    With F(w) = values(w) + decay F(w − 1) it is S(w) = (1 − decay²) F(w) + decay S(w + 1).
    """
    before, size, after = values.shape
    rest = (1 - decay) * (1 + decay)
    for a in range(before):
        for w in range(1, size):
            for b in range(after):
                values[a, w, b] += decay * values[a, w - 1, b]
        for w in range(size - 2, -1, -1):
            for b in range(after):
                values[a, w, b] = rest * values[a, w, b] + decay * values[a, w + 1, b]


@kernel()
def movable(first: Numbers, second: Numbers, slack: float, reach: int) -> bool:
    """Return whether mass of the first, moved by at most ``reach``, fits into slack · the second.

    Mass is moved from left to right, which finds a plan if there is one, as all sources reach
    equally far, up to (2 reach + 4) roundings relative to each mass.
    """
    (p, p_exponents), (q, q_exponents) = first, second
    room, place = q * slack, 0
    for n in range(len(p)):
        rest = p[n]
        place = max(place, n - reach)
        while rest > 0:
            if place >= len(q) or place > n + reach:
                return False
            gap = q_exponents[place] - p_exponents[n]
            here = math.ldexp(room[place], int(min(gap, 900)))
            if here > rest:
                if gap < 900:  # otherwise the taken mass is negligible
                    room[place] = math.ldexp(here - rest, int(-gap))
                rest = 0.0
            else:
                rest -= here
                room[place] = 0.0
                place += 1
    return True


# -- Two conditional probabilities compared under every initial distribution r of X_1 -------------
# F = Σ r_u p_u f_u / Σ r_u p_u, where p_u = P(secret | X_1 = u) and f_u is the probability of an
# event given both; G likewise, of other ones, with q_u and g_u. F ≤ G if and only if
# Σ_uv r_u r_v c_uv ≥ 0, c_uv = p_u q_v (g_v − f_u). Mixtures of two starts decide this
# (docs/histograms.md): with the symmetric part s of c, it holds for all r if and only if s_uu ≥ 0
# and s_uv ≥ −√(s_uu s_vv) for all u and v. All arrays hold logarithms.


@kernel(inner=True)
def _margin(a: float, tolerance: float) -> float:
    """Return the margin by which a logarithm must exceed ``a`` to be proved no smaller."""
    return tolerance * (1 + 2.0**-8 * abs(a)) if a > -np.inf else 0.0


@kernel(inner=True)
def _own(p: float, q: float, f: float, g: float, tolerance: float) -> float:
    """Return log p q (g − f), rounded down; −∞ if that is not proved positive."""
    over = f + _margin(f, tolerance) - g
    return p + q + g + math.log(-math.expm1(over)) if over < 0 and p + q > -np.inf else -np.inf


@kernel(inner=True)
def exceeds(p: Any, q: Any, f: Any, g: Any, tolerance: float) -> tuple[bool, float]:
    """Return whether F ≤ G is unproved for mixtures of two starts, with this ``tolerance``.

    The second result is the weight of the other start at the minimum of the form, as log odds.
    """
    one, other = p[0] + q[1], p[1] + q[0]
    near = max(one, other)
    if near == -np.inf or (
        f[0] + _margin(f[0], tolerance) <= g[1] and f[1] + _margin(f[1], tolerance) <= g[0]
    ):
        return False, 0.0
    more = np.logaddexp(one - near + g[1], other - near + g[0])
    less = np.logaddexp(one - near + f[0], other - near + f[1])
    less += _margin(less, tolerance)
    if more >= less:
        return False, 0.0
    left, right = _own(p[0], q[0], f[0], g[0], tolerance), _own(p[1], q[1], f[1], g[1], tolerance)
    root = math.log(2.0) + (left + right) / 2 - near
    return np.logaddexp(more, root) < less, (max(left, -1e6) - max(right, -1e6)) / 2


@kernel(inner=True)
def never_above(p: Floats, q: Floats, f: Floats, g: Floats, tolerance: float) -> bool:
    """Return whether F ≤ G is proved for all initial distributions, with this ``tolerance``."""
    for u in range(len(p)):
        for v in range(u + 1):  # also mixtures of one start with itself
            pairs = (p[u], p[v]), (q[u], q[v]), (f[u], f[v]), (g[u], g[v])
            if exceeds(*pairs, tolerance)[0]:
                return False
    return True


@kernel()
def raise_shift(sizes: Floats, sums: Any, shift: int, tolerance: float) -> int:
    """Return the smallest w ≥ ``shift`` with P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n, s and s'.

    ``sizes`` are log P(state | start), shape (starts, states); ``sums`` log P(N ≤ n | start, state)
    and log P(N > n | start, state), either of which is a proof, shape (starts, states, counts).
    """
    below, above = sums
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
    return shift


@kernel(inner=True)
def _mixed(p: Any, f: Any, odds: float) -> float:
    """Return log F of a mixture of two starts."""
    (first, other), weight = f, p[1] - p[0] + odds
    if weight > 0:
        first, other, weight = other, first, -weight
    return float(first + np.logaddexp(0.0, other - first + weight) - np.logaddexp(0.0, weight))


@kernel()
def raise_gap(node: int, given: Any, tolerance: float, gaps: Floats, place: Ints) -> None:
    """Raise the first two ``gaps``, attained and bound, to the largest log ratio of densities.

    The maximum is over mixtures of starts, pairs of secrets, and outputs: while a mixture exceeds
    the bound, it is raised to the value of the worst one (Dinkelbach).

    ``given`` are log P(secret | start), shape (starts, secrets), the log densities, of shape
    (starts, secrets, outputs), and the indices of the outputs that are compared. ``place`` has the
    node, secrets and output of the third gap, replaced only by larger ones beyond the
    ``tolerance``.
    """
    sizes, values, outputs = given
    starts, secrets = sizes.shape
    for x, y, u, v in np.ndindex(secrets, secrets, starts, starts):
        if x == y or u < v:
            continue
        p, q = (sizes[u, x], sizes[v, x]), (sizes[u, y], sizes[v, y])
        for w in outputs:
            f = values[u, x, w], values[v, x, w]
            low = values[u, y, w], values[v, y, w]
            step = 2 * ROUNDING
            for _ in range(_ROUNDS):
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
            else:  # nothing is proved
                gaps[1] = np.inf
