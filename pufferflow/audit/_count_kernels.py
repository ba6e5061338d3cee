"""Compiled loops over distributions of counts, and comparisons of two of them.

Probabilities are pairs (m, e) for m · 2^e, m about 1 or 0, so that far tails keep their digits
whatever their size. Everything added is positive: relative errors only add up, and nothing is ever
cut off.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.types import Floats, Ints

LOG_2 = math.log(2.0)
NOTHING = -(2**40)
"""Exponent of a sum without terms."""

SPREAD = 400
"""Bits that the numbers of a block may span: products of two blocks stay within floats."""

_HALVINGS = np.ldexp(1.0, -np.arange(1000))


@kernel
def shifted(m: float, e: Any) -> float:
    """Return m · 2^e, or 0 where that is below 2^-1000."""
    if -1000 < e <= 0:
        return float(m * _HALVINGS[-e])  # as ldexp, in a fifth of its time
    return math.ldexp(m, e) if e > -1000 else 0.0


@kernel
def taken_apart(value: float) -> tuple[Any, Any]:
    """As math.frexp, in a fifth of its time: from the bits of a normal number."""
    bits = np.float64(value).view(np.int64)
    power = (bits >> 52) & 0x7FF
    if power == 0 or power == 0x7FF:
        mantissa, small = math.frexp(value)
        return mantissa, np.int64(small)
    return np.int64((bits & ~(0x7FF << 52)) | (1022 << 52)).view(np.float64), power - 1022


@kernel
def _add(value: float, power: int, n: int, m: Floats, e: Ints) -> None:
    """Add value · 2^power to entry n of (m, e)."""
    mantissa, more = taken_apart(value)
    power += more
    if m[n] == 0 or power > e[n]:
        m[n] = shifted(m[n], e[n] - power) if m[n] > 0 else 0.0
        e[n] = power
    m[n] += shifted(mantissa, power - e[n])


@kernel
def prepend_record(
    weights: Floats, moves: Ints, given: tuple[Floats, Ints], m: Floats, e: Ints
) -> None:
    """Fill out(x, n) = Σ_y weights(x, y) given(y, n − moves(y)): a record more in a count.

    Exponents of zeros are ``NOTHING``, here and there.
    """
    m_in, e_in = given
    k, size = m_in.shape
    for x in range(k):
        row, tops = m[x], e[x]
        row[:], tops[:] = 0.0, NOTHING
        for y in range(k):
            if weights[x, y] > 0:
                own, powers = int(math.frexp(weights[x, y])[1]), tops[moves[y] : moves[y] + size]
                for n in range(size):
                    powers[n] = max(powers[n], e_in[y, n] + own)
        for y in range(k):
            if weights[x, y] > 0:
                factor, own = math.frexp(weights[x, y])
                sums, powers = row[moves[y] : moves[y] + size], tops[moves[y] : moves[y] + size]
                for n in range(size):
                    down = min(powers[n] - e_in[y, n] - own, 1000)  # 2^-down, from its bits
                    sums[n] += factor * m_in[y, n] * np.int64((1023 - down) << 52).view(np.float64)
        for n in range(len(row)):
            if row[n] > 0:
                row[n], power = taken_apart(row[n])
                tops[n] += power
            else:
                tops[n] = NOTHING


@kernel
def _blocks(m: Floats, e: Ints, values: Floats, starts: Ints, tops: Ints) -> int:
    """Split (m, e) into blocks of one exponent each, from ``starts`` on; how many there are."""
    count, low, high = 0, 0, 0
    starts[0] = 0
    for n in range(len(m)):
        if m[n] > 0:
            if count == 0:
                low, high, count = e[n], e[n], 1
            elif max(high, e[n]) - min(low, e[n]) > SPREAD:
                tops[count - 1], starts[count] = high, n
                low, high, count = e[n], e[n], count + 1
            else:
                low, high = min(low, e[n]), max(high, e[n])
    if count == 0:
        return 0
    tops[count - 1], starts[count] = high, len(m)
    for block in range(count):
        for n in range(starts[block], starts[block + 1]):
            values[n] = shifted(m[n], e[n] - tops[block]) if m[n] > 0 else 0.0
    return count


@kernel
def convolve(
    first: tuple[Floats, Ints], second: tuple[Floats, Ints], own: int, m: Floats, e: Ints
) -> None:
    """Fill (m, e) with the distribution of the sum of two independent numbers and ``own``."""
    a, b = len(first[0]), len(second[0])
    left, right, window = np.empty(a + 3), np.empty(b), np.zeros(b + 6)
    starts, tops = np.empty(a + 1, dtype=np.int64), np.empty(a, dtype=np.int64)
    others, heights = np.empty(b + 1, dtype=np.int64), np.empty(b, dtype=np.int64)
    blocks = _blocks(first[0], first[1], left, starts, tops)
    more = _blocks(second[0], second[1], right, others, heights)
    m[:], e[:] = 0.0, 0
    part = np.empty(a + b + 6)
    for j in range(more):
        begin, width = others[j], others[j + 1] - others[j]
        window[3 : 3 + width], window[3 + width : 6 + width] = right[begin : begin + width], 0.0
        for i in range(blocks):
            origin, count = starts[i], starts[i + 1] - starts[i]
            part[: count + width + 6] = 0.0
            for n in range(0, count, 4):  # four at a time: fewer passes over the sums
                p0 = left[origin + n]
                p1 = left[origin + n + 1] if n + 1 < count else 0.0
                p2 = left[origin + n + 2] if n + 2 < count else 0.0
                p3 = left[origin + n + 3] if n + 3 < count else 0.0
                if p0 + p1 + p2 + p3 > 0:
                    sums = part[n : n + width + 3]
                    for z in range(width + 3):
                        sums[z] += (p0 * window[z + 3] + p1 * window[z + 2]) + (
                            p2 * window[z + 1] + p3 * window[z]
                        )
            for n in range(count + width - 1):
                if part[n] > 0:
                    _add(part[n], tops[i] + heights[j], own + origin + begin + n, m, e)


@kernel
def _carried(value: float, base: Any, m: float, e: int) -> tuple[float, Any]:
    """Return value · 2^base + m · 2^e, the value kept from 2^(−332) to about 2^300."""
    if m > 0:
        if value == 0 or e > base + 300:
            value, base = shifted(value, base - e) if value > 0 else 0.0, e
        value += shifted(m, e - base)
    if value > 1e90 or 0 < value < 1e-100:
        value, power = taken_apart(value)
        base += power
    return value, base


@kernel
def log_density(m: Floats, e: Ints, c: float, out: Floats) -> None:
    """Fill out[w] = log Σ_n e^(−c |w − n|) P(n), the density of a noisy count up to a factor."""
    size, decay = len(out), math.exp(-c)
    below, bases = np.empty(size), np.empty(size, dtype=np.int64)
    value, base = 0.0, np.int64(0)
    for w in range(size):  # what lies at w or below
        value, base = _carried(value * decay, base, m[w], e[w])
        below[w], bases[w] = value, base
    value, base = 0.0, np.int64(0)
    for w in range(size - 1, -1, -1):  # and above
        high = (
            max(base, bases[w]) if value > 0 and below[w] > 0 else base if value > 0 else bases[w]
        )
        total = shifted(below[w], bases[w] - high) if below[w] > 0 else 0.0
        total += shifted(value, base - high) if value > 0 else 0.0
        mantissa, power = taken_apart(total)
        out[w] = math.log(mantissa) + (power + high) * LOG_2
        value, base = _carried(value, base, m[w], e[w])
        value *= decay


@kernel
def cumulate(m: Floats, e: Ints, below: Floats, above: Floats) -> None:
    """Fill log2 P(N ≤ n) and log2 P(N > n); −∞ where no value is possible."""
    size = len(m)
    for backward in range(2):
        value, base, seen, logged = 0.0, np.int64(0), 0.0, -np.inf
        for step in range(size):
            n = size - 1 - step if backward else step
            if backward:
                above[n] = logged
            value, more = _carried(value, base, m[n], e[n])
            if value != seen or more != base:  # else the term is negligible
                seen, base, logged = value, more, math.log2(value) + more
            if not backward:
                below[n] = logged


@kernel
def _add_logs(a: float, b: float) -> float:
    """Return log2(2^a + 2^b), up to a few roundings."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log2(1.0 + 2.0 ** max(low - high, -1074.0))


@kernel
def _at_least(a: float, b: float, tolerance: float) -> bool:
    """Whether 2^a ≥ 2^b: proved where the tolerance is positive, else not refuted."""
    return bool(b == -np.inf or a >= b + tolerance * (1 + 2.0**-8 * abs(b)))


@kernel
def _parts(p: Floats, q: Floats, f: Floats, g: Floats, u: int, v: int) -> tuple[float, float]:
    """log2 of the positive and of the negative part of c_uv + c_vu, see :func:`never_above`."""
    one, other = p[u] + q[v], p[v] + q[u]
    return _add_logs(one + g[v], other + g[u]), _add_logs(one + f[u], other + f[v])


@kernel
def never_above(p: Floats, q: Floats, f: Floats, g: Floats, tolerance: float) -> bool:
    """Whether F ≤ G for all mixtures of starts, F a probability given a secret, G given another.

    Parameters
    ----------
    p, q : float arrays, shape (starts,)
        log2 P(secret | start), of the first and of the second secret.
    f, g : float arrays, shape (starts,)
        log2 of the two probabilities given secret and start.
    tolerance : float
        As for :func:`_at_least`.

    Notes
    -----
    With weights r of the starts this is Σ r_u r_v c_uv ≥ 0, c_uv = 2^(p_u + q_v) (2^g_v − 2^f_u),
    that is copositivity of the symmetric part s. Necessary: s_uu ≥ 0 and s_uv ≥ −√(s_uu s_vv) for
    all u, v. Sufficient: the same with the root divided by √(d_u d_v), d_u the number of negative
    s_uv, v ≠ u: then the form is at least the sum of (r_u √(s_uu/d_u) − r_v √(s_vv/d_v))² over the
    negative pairs.
    """
    starts = len(p)
    for u in range(starts):
        if p[u] > -np.inf and q[u] > -np.inf and not _at_least(g[u], f[u], tolerance):
            return False
    for u in range(starts):
        for v in range(u + 1, starts):
            more, less = _parts(p, q, f, g, u, v)
            if _at_least(more, less, tolerance):
                continue
            product = 0.0  # log2 of s_uu s_vv / (d_u d_v)
            for w in (u, v):
                own, rest, degree = p[w] + q[w] + g[w], 0.0, 0
                if own > -np.inf:
                    near = tolerance * (1 + 2.0**-8 * abs(f[w])) if f[w] > -np.inf else 0.0
                    rest = 1.0 - 2.0 ** min(max(f[w] - g[w] + near, -1074.0), 1.0) - near
                product += own + math.log2(rest) if rest > 0 else -np.inf
                for z in range(starts if tolerance > 0 and starts > 2 else 0):
                    if z != w:
                        gain, loss = _parts(p, q, f, g, w, z)
                        degree += not _at_least(gain, loss, tolerance)
                product -= math.log2(float(max(degree, 1)))
            if product > -np.inf:
                more = _add_logs(more, 1.0 + product / 2)
            if not _at_least(more, less, tolerance):
                return False
    return True


@kernel
def raise_shift(
    below: Floats, above: Floats, sizes: Floats, shift: int, tolerance: float, pair: Ints
) -> int:
    """Return the smallest w ≥ ``shift`` with P(N ≤ n | s) ≤ P(N ≤ n + w | s') for all n, s and s'.

    Parameters
    ----------
    below, above : float arrays, shape (states, width, starts)
        log2 P(N ≤ n | state, start) and log2 P(N > n | state, start).
    sizes : float array, shape (states, starts)
        log2 P(state | start).
    tolerance : float
        As for :func:`_at_least`: how far off the logarithms may be together.
    pair : int array, shape (2,)
        Filled with the two states that raised the value last.
    """
    k, width, starts = below.shape
    for x in range(k):
        for y in range(k):
            if x == y or sizes[x].max() == -np.inf or sizes[y].max() == -np.inf:
                continue
            for n in range(width):
                while n + shift < width - 1:
                    m = n + shift
                    if starts == 1:
                        enough = _at_least(above[x, n, 0], above[y, m, 0], tolerance)
                    else:
                        enough = never_above(
                            sizes[y], sizes[x], above[y, m], above[x, n], tolerance
                        )
                    if enough != (tolerance > 0):  # one of the two proves, and either refutes
                        if starts == 1:
                            enough = _at_least(below[y, m, 0], below[x, n, 0], tolerance)
                        else:
                            enough = never_above(
                                sizes[x], sizes[y], below[x, n], below[y, m], tolerance
                            )
                    if enough:
                        break
                    shift += 1
                    pair[0], pair[1] = x, y
    return shift


@kernel
def movable(
    first: tuple[Floats, Ints], second: tuple[Floats, Ints], slack: float, reach: int
) -> bool:
    """Whether the first can be moved by at most ``reach`` places into slack times the second.

    Leftmost place first: all sources reach equally far, so this finds a plan wherever there is one,
    up to (2 reach + 4) roundings relative to each mass.
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
            here = math.ldexp(room[place], int(min(max(gap, -2000), 900)))
            if here > rest:
                if gap < 900:  # beyond, what is taken is negligible
                    room[place] = math.ldexp(here - rest, int(-gap))
                rest = 0.0
            else:
                rest -= here
                room[place] = 0.0
                place += 1
    return True
