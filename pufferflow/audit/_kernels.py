"""Compiled inner loops of the exact loss: pure functions of arrays.

Numbers that leave the range of floats are pairs (m, e) for m · 2^e, m in [½, 1) or 0: long chains have laws whose
far tails count. Everything added is positive, so relative errors only add up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._jit import kernel
from pufferflow._types import Bools, Floats, Ints

LOG_2 = math.log(2.0)
NEGLIGIBLE_BITS = 90
FARTHEST_FACTOR = 300.0
LARGEST_GAP = 150.0
WITHIN_FLOATS = 480
"""Bits that a law may span, and its smoothing add, for all sums of products of both to be floats."""

_HALVINGS = np.ldexp(1.0, -np.arange(1000))


@kernel
def shifted(m: float, e: int) -> float:
    """Return m · 2^e, or 0 below the range of floats."""
    if -1000 < e <= 0:
        return float(m * _HALVINGS[-e])  # rounds as ldexp does, in a fifth of its time
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
def prepend_node(weights: Floats, counted: Ints, m_in: Floats, e_in: Ints, m_out: Floats, e_out: Ints) -> None:
    """Fill out(x, j) = Σ_y weights(x, y) in(y, j − counted(y)), shapes (k, n + 1) and (k, n): laws of a count."""
    k, n = m_in.shape
    terms = np.zeros(k)
    powers = np.zeros(k, dtype=np.int64)
    for x in range(k):
        for j in range(n + 1):
            largest = -(2**62)
            for y in range(k):
                terms[y] = 0.0
                d = j - counted[y]
                if weights[x, y] > 0 and 0 <= d < n:
                    value, power = taken_apart(weights[x, y] * m_in[y, d])
                    if value > 0:
                        terms[y], powers[y] = value, e_in[y, d] + power
                        largest = max(largest, powers[y])
            total = 0.0
            for y in range(k):
                if terms[y] > 0:
                    total += shifted(terms[y], powers[y] - largest)
            mantissa, power = taken_apart(total)
            m_out[x, j] = mantissa
            e_out[x, j] = power + largest if mantissa > 0 else 0


@kernel
def _blocks(m: Floats, e: Ints, slope: float, least: float, block: int, values: Floats, tops: Ints) -> None:
    """Fill ``values`` with the entries of a law that count, over 2^top of their block of entries.

    An entry n with law(n) ≤ 2^(−least) law(n') 2^(−slope |n − n'|) for some n' does not: it becomes 0. The top of a
    block without any that counts is −2^62. ``slope`` times ``block`` is so small that the others stay floats.
    """
    n = len(m)
    reach = np.empty(n)
    for i in range(n):
        reach[i] = math.log2(m[i]) + e[i] if m[i] > 0 else -np.inf
        values[i] = reach[i]
    for i in range(1, n):
        reach[i] = max(reach[i], reach[i - 1] - slope)
    for i in range(n - 2, -1, -1):
        reach[i] = max(reach[i], reach[i + 1] - slope)
    tops[:] = -(2**62)
    for i in range(n):
        if m[i] > 0 and values[i] >= reach[i] - least:
            tops[i // block] = max(tops[i // block], e[i])
    for i in range(n):
        counts = m[i] > 0 and values[i] >= reach[i] - least
        values[i] = shifted(m[i], e[i] - tops[i // block]) if counts else 0.0


@kernel
def _add(value: float, power: int, w: int, m: Floats, e: Ints) -> None:
    """Add value · 2^power to entry w of the numbers (m, e); mantissas may grow above 1."""
    mantissa, more = taken_apart(value)
    power += more
    if m[w] == 0 or power > e[w]:
        m[w] = shifted(m[w], e[w] - power) if m[w] > 0 else 0.0
        e[w] = power
    m[w] += shifted(mantissa, power - e[w])


@kernel
def _block_of(c: float) -> int:
    """Entries whose densities stay so close together, at 1 / scale = c, that their products stay floats."""
    return min(512, max(1, int(FARTHEST_FACTOR / 2 / c)))


@kernel
def _law_of_sum(
    m_past: Floats, e_past: Ints, m_future: Floats, e_future: Ints, own: int, c: float, m: Floats, e: Ints
) -> None:
    """Fill (m, e) with the law of past + own + future, but for what is negligible once it is smoothed.

    An entry n of either law for which law(n) ≤ 2^(−90) / T · law(n') e^(−c|n − n'|) for some n' adds less than
    2^(−90) / T times what n' adds to the density, whatever the output: it is left out. The others are added in blocks
    so short that no number within a pair of blocks leaves the range of floats.
    """
    a, b, slope = len(m_past), len(m_future), c / LOG_2
    least = NEGLIGIBLE_BITS + math.log2(len(m))
    block = _block_of(c)
    past, future = np.empty(a), np.empty(b)
    tops, tops_future = np.empty(a // block + 1, dtype=np.int64), np.empty(b // block + 1, dtype=np.int64)
    _blocks(m_past, e_past, slope, least, block, past, tops)
    _blocks(m_future, e_future, slope, least, block, future, tops_future)
    m[:], e[:] = 0.0, 0
    law, window, part = np.empty(block + 3), np.zeros(block + 6), np.empty(2 * block + 6)
    for n0 in range(0, a, block):
        if tops[n0 // block] == -(2**62):
            continue
        count = min(block, a - n0)
        law[:count], law[count:] = past[n0 : n0 + count], 0.0
        for j0 in range(0, b, block):
            if tops_future[j0 // block] == -(2**62):
                continue
            width = min(block, b - j0)
            window[3 : 3 + width] = future[j0 : j0 + width]
            window[3 + width :] = 0.0
            part[:] = 0.0
            for n in range(0, count, 4):  # four entries at a time: fewer passes over the sums
                sums = part[n : n + width + 3]
                p0, p1, p2, p3 = law[n], law[n + 1], law[n + 2], law[n + 3]
                if p0 + p1 + p2 + p3 > 0:
                    for j in range(width + 3):
                        sums[j] += (p0 * window[j + 3] + p1 * window[j + 2]) + (p2 * window[j + 1] + p3 * window[j])
            power = tops[n0 // block] + tops_future[j0 // block]
            for j in range(count + width - 1):
                if part[j] > 0:
                    _add(part[j], power, own + n0 + j0 + j, m, e)


@kernel
def _carried(value: float, base: Any, m: float, e: int) -> tuple[float, Any]:
    """Return value · 2^base + m · 2^e, the value kept from 2^(−332) to about 2^300; 0 stays 0."""
    if m > 0:
        if value == 0 or e > base + 300:
            value, base = shifted(value, base - e) if value > 0 else 0.0, e
        value += shifted(m, e - base)
    if 0 < value < 1e-100:
        value, power = taken_apart(value)
        base += power
    return value, base


@kernel
def log_densities(
    m_past: Floats, e_past: Ints, m_future: Floats, e_future: Ints, own: int, decays: Floats, out: Floats
) -> None:
    """Fill out[s, w] = log E e^(−c|w − past − own − future|), w = 0, …, T, c = decays[s], from both laws.

    The law of the sum for the largest of several decays with blocks of one length serves them all: it leaves out least.
    """
    size, block = out.shape[1], 0
    m, e = np.empty(size), np.empty(size, dtype=np.int64)
    for s in range(len(decays)):
        if block != _block_of(decays[s]):
            block, steepest = _block_of(decays[s]), decays[s]
            for c in decays[s:]:
                if _block_of(c) == block:
                    steepest = max(steepest, c)
            _law_of_sum(m_past, e_past, m_future, e_future, own, steepest, m, e)
        _log_density(m, e, decays[s], out[s])


@kernel
def _log_density(m: Floats, e: Ints, c: float, out: Floats) -> None:
    """Fill out[w] = log Σ_n e^(−c|w − n|) law(n) for the law (m, e)."""
    size = len(out)
    decay = math.exp(-c)
    top, bottom = -(2**62), 2**62
    for n in range(size):
        if m[n] > 0:
            top, bottom = max(top, e[n]), min(bottom, e[n])
    if top - bottom < WITHIN_FLOATS and c * size < WITHIN_FLOATS * LOG_2:
        _plain_log_density(m, e, top, decay, out)
        return
    below, base_below = np.empty(size), np.empty(size, dtype=np.int64)
    value, base = 0.0, np.int64(0)
    for w in range(size):  # what lies at w or below
        value, base = _carried(value * decay, base, m[w], e[w])
        below[w], base_below[w] = value, base
    value, base = 0.0, np.int64(0)
    for w in range(size - 1, -1, -1):  # and above
        if below[w] > 0 and value > 0:
            high = max(base, base_below[w])
            total = shifted(below[w], base_below[w] - high) + shifted(value, base - high)
        elif value > 0:
            total, high = value, base
        else:
            total, high = below[w], base_below[w]
        mantissa, power = taken_apart(total)
        out[w] = math.log(mantissa) + (power + high) * LOG_2
        value, base = _carried(value, base, m[w], e[w])
        value *= decay


@kernel
def _plain_log_density(m: Floats, e: Ints, top: Any, decay: float, out: Floats) -> None:
    """As :func:`_log_density`, digit for digit, where no sum over 2^top leaves the range of floats."""
    size = len(out)
    law, below = np.empty(size), np.empty(size)
    value = 0.0
    for w in range(size):
        law[w] = shifted(m[w], e[w] - top) if m[w] > 0 else 0.0
        value = value * decay + law[w]
        below[w] = value
    value = 0.0
    for w in range(size - 1, -1, -1):
        mantissa, power = taken_apart(below[w] + value)
        out[w] = math.log(mantissa) + (power + top) * LOG_2
        value = (value + law[w]) * decay


@kernel
def raise_gap(values: Floats, possible: Bools, tolerance: float, gaps: Floats, where: Ints) -> bool:
    """Raise ``gaps`` = (attained, placed) to the largest difference of two rows that are ``possible``.

    Of those that exceed the placed one by more than ``tolerance``, in turn, the last is: ``where`` becomes its rows,
    the larger one first, and its place. Returns whether it did.
    """
    rows, size = values.shape
    raised = False
    for x in range(rows):
        for y in range(x):
            if not (possible[x] and possible[y]):
                continue
            most, least = 0, 0
            for w in range(size):
                if values[x, w] - values[y, w] > values[x, most] - values[y, most]:
                    most = w
                if values[x, w] - values[y, w] < values[x, least] - values[y, least]:
                    least = w
            for place in (most, least):
                gap = values[x, place] - values[y, place]
                first, second = (x, y) if gap > 0 else (y, x)
                gap = abs(gap)
                gaps[0] = max(gaps[0], gap)
                if gap > gaps[1] + tolerance:
                    gaps[1], raised = gap, True
                    where[0], where[1], where[2] = first, second, place
    return raised


@kernel
def convolve(where: Ints, law: Floats, where_other: Ints, other: Floats, out: Floats) -> None:
    """Add the convolution of two laws, given at the flat places of their support, to ``out``."""
    for i in range(len(law)):
        for j in range(len(other)):
            out[where[i] + where_other[j]] += law[i] * other[j]


@kernel
def smooth(values: Floats, decay: float) -> None:
    """Replace values[a, w, b] by Σ_n decay^|w − n| values[a, n, b], in place."""
    before, size, after = values.shape
    falling = np.empty((size, after))
    for a in range(before):
        block = values[a]
        falling[size - 1] = 0.0
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
def _exceeds(bound: float, base: float, a: float, b: float, root: float) -> bool:
    """Whether (1 + Gt)(1 + κt) ≤ e^(bound − base) (1 + t)(1 + κHt) may fail for some t ≥ 0.

    ``a``, ``b`` and ``root`` are log G, log H and √κ.
    """
    m, g, h = math.exp(bound - base), math.exp(a), math.exp(b)
    d1, n1 = 1 / root + h * root, g / root + root
    margin = 2.0**-49
    c0 = m - 1 - margin * (m + 1)
    c1 = m * d1 - n1 - margin * (m * d1 + n1)
    c2 = m * h - g - margin * (m * h + g)
    return c0 < 0 or c2 < 0 or c1 < -2 * math.sqrt(c0) * math.sqrt(c2) * (1 - margin)


@kernel
def mixed_start_gap(
    first: Floats,
    second: Floats,
    first_other: Floats,
    second_other: Floats,
    log_kappa: float,
    gaps: Floats,
    place: Ints,
) -> bool:
    """Raise ``gaps`` = (attained, bound) to the largest log ratio over all mixtures of two starts and all outputs.

    ``first`` and ``second`` are the log densities given x from either start, ``…_other`` those given x'. With t the
    odds of the second start given x, the ratio is e^(first − first_other) (1 + Gt)(1 + κt) / ((1 + t)(1 + κHt)). The
    bound holds for all t by the sign of a quadratic; the attained value is that of its stationary point.
    ``place[0]`` is where it is attained, if it rose. False where the numbers would leave the range of floats: where
    the densities from the two starts are too far apart.
    """
    root = math.exp(log_kappa / 2)
    slack = 1e-13
    for w in range(len(first)):
        high = max(first[w], second[w])
        low = min(first_other[w], second_other[w])
        if high - low <= gaps[1]:
            continue
        base = first[w] - first_other[w]
        a, b = second[w] - first[w], second_other[w] - first_other[w]
        if abs(log_kappa) > 300 or abs(a) > LARGEST_GAP or abs(b) > LARGEST_GAP:
            return False
        best = max(base, second[w] - second_other[w])
        if best > gaps[0]:
            gaps[0], place[0] = best, w
            gaps[1] = max(gaps[1], best)
        if not _exceeds(gaps[1] + slack, base, a, b, root):
            continue
        # stationary points in v = t √κ: quadratic q2 v² + 2 q1 v + q0
        g, h, kappa = math.exp(a), math.exp(b), root * root
        q2 = math.expm1(a) * kappa * h - math.expm1(b) * g
        q1 = root * (g - h)
        q0 = math.expm1(a) - kappa * math.expm1(b)
        size = max(abs(q2), abs(q1), abs(q0))
        q2, q1, q0 = q2 / size, q1 / size, q0 / size
        inside = q1 * q1 - q2 * q0
        if inside >= 0:
            q = -(q1 + math.copysign(math.sqrt(inside), q1))
            for sign in range(2):
                numerator, denominator = (q, q2) if sign == 0 else (q0, q)
                if denominator != 0 and numerator / denominator > 0:
                    v = numerator / denominator
                    t, kt = v / root, v * root
                    value = base + math.log1p(g * t) + math.log1p(kt) - math.log1p(t) - math.log1p(h * kt)
                    if value > gaps[0]:
                        gaps[0], place[0] = value, w
                        gaps[1] = max(gaps[1], value)
        step = slack
        while _exceeds(gaps[1] + slack, base, a, b, root):
            gaps[1] += step
            step *= 2
    return True
