"""Compiled loops over distributions of counts.

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

NOTHING = -(2**40)
"""Exponent of a sum without terms."""

SPREAD = 400.0
"""Bits that the numbers of a part may span: products of two stay within floats."""

_HALVINGS = np.ldexp(1.0, -np.arange(1000))


@kernel
def shifted(m: float, e: Any) -> float:
    """Return m · 2^e, or 0 where that is below 2^-1000."""
    if -1000 < e <= 0:
        return float(m * _HALVINGS[-e])  # as ldexp, in a fifth of its time
    return math.ldexp(m, e) if e > -1000 else 0.0


@kernel
def taken_apart(value: float) -> tuple[Any, Any]:
    """As math.frexp of a normal number, in a fifth of its time: from its bits."""
    bits = np.float64(value).view(np.int64)
    mantissa = np.int64((bits & ~(0x7FF << 52)) | (1022 << 52)).view(np.float64)
    return mantissa, (bits >> 52) - 1022


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
def _scaled(m: Floats, e: Ints, spread: float) -> list[tuple[int, Any, Floats]]:
    """Parts that span at most so many bits: where each begins, its exponent, and its floats."""
    parts = []
    begin, low, high = 0, np.int64(2**40), np.int64(NOTHING)
    for n in range(len(m) + 1):
        if n == len(m) or (m[n] > 0 and max(high, e[n]) - min(low, e[n]) > spread):
            values = np.empty(n - begin)
            for i in range(begin, n):
                values[i - begin] = shifted(m[i], e[i] - high) if m[i] > 0 else 0.0
            parts.append((begin, high, values))
            begin, low, high = n, np.int64(2**40), np.int64(NOTHING)
        if n < len(m) and m[n] > 0:
            low, high = min(low, e[n]), max(high, e[n])
    return parts


@kernel
def convolve(
    first: tuple[Floats, Ints],
    second: tuple[Floats, Ints],
    own: int,
    spread: float,
    m: Floats,
    e: Ints,
) -> None:
    """Fill (m, e) with the distribution of the sum of two independent numbers and ``own``.

    Products of parts that span at most ``SPREAD`` bits stay within floats; with a larger
    ``spread`` probabilities below 1e-290 times the largest may be lost.
    """
    m[:], e[:] = 0.0, NOTHING
    others = _scaled(second[0], second[1], spread)
    for i, power, left in _scaled(first[0], first[1], spread):
        for j, more, right in others:
            part = np.zeros(len(left) + len(right) - 1)
            for a in range(len(left)):
                if left[a] > 0:
                    for b in range(len(right)):
                        part[a + b] += left[a] * right[b]
            for n in range(len(part)):
                if part[n] > 1e-290:
                    at = own + i + j + n
                    mantissa, exponent = taken_apart(part[n])
                    m[at], e[at] = _carried(m[at], e[at], mantissa, power + more + exponent)


@kernel
def sum_from_both_ends(
    numbers: tuple[Floats, Ints],
    decay: float,
    below: tuple[Floats, Ints],
    above: tuple[Floats, Ints],
) -> None:
    """Fill Σ_{j ≤ n} decay^(n − j) p(j) and Σ_{j > n} decay^(j − n) p(j), row by row."""
    (m, e), (low, low_powers), (high, high_powers) = numbers, below, above
    rows, size = m.shape
    for r in range(rows):
        value, base = 0.0, np.int64(NOTHING)
        for n in range(size):
            value, base = _carried(value * decay, base, m[r, n], e[r, n])
            low[r, n], low_powers[r, n] = value, base
        value, base = 0.0, np.int64(NOTHING)
        for n in range(size - 1, -1, -1):
            high[r, n], high_powers[r, n] = value, base
            value, base = _carried(value, base, m[r, n], e[r, n])
            value *= decay


@kernel
def smooth(values: Floats, decay: float) -> None:
    """Replace values[a, w, b] by Σ_n decay^|w − n| values[a, n, b], in place."""
    before, size, after = values.shape
    falling = np.zeros((size, after))
    for a in range(before):
        block = values[a]
        for w in range(size - 2, -1, -1):
            for b in range(after):
                falling[w, b] = decay * (falling[w + 1, b] + block[w + 1, b])
        for w in range(1, size):
            for b in range(after):
                block[w, b] += decay * block[w - 1, b]
        for w in range(size):
            for b in range(after):
                block[w, b] += falling[w, b]


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
