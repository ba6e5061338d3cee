"""Compiled inner loops of the exact loss: pure functions of arrays.

Numbers that leave the range of floats are pairs (m, e) for m · 2^e, m in [½, 1) or 0: long chains have laws whose
far tails count. Everything added is positive, so relative errors only add up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pufferflow._jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOG_2 = math.log(2.0)
NEGLIGIBLE_BITS = 90
FARTHEST_FACTOR = 300.0


@kernel
def shifted(m: float, e: int) -> float:
    """Return m · 2^e, or 0 below the range of floats."""
    return math.ldexp(m, e) if e > -1000 else 0.0


@kernel
def prepend_node(
    weights: Floats, counted: Ints, decay: float, m_in: Floats, e_in: Ints, m_out: Floats, e_out: Ints
) -> None:
    """Fill out(x, j) = Σ_y weights(x, y) in(y, j − counted(y)), shapes (k, n + 1) and (k, n).

    ``decay`` times the nearest entry stands for what lies outside: 0 for the law of a count, e^(−c) for
    d ↦ E e^(−c|d − count|).
    """
    k, n = m_in.shape
    terms = np.zeros(k)
    powers = np.zeros(k, dtype=np.int64)
    for x in range(k):
        for j in range(n + 1):
            largest = -(2**62)
            for y in range(k):
                terms[y] = 0.0
                if weights[x, y] > 0:
                    d = j - counted[y]
                    near = min(max(d, 0), n - 1)
                    value, power = math.frexp(weights[x, y] * m_in[y, near])
                    if d != near:
                        value *= decay
                    if value > 0:
                        terms[y], powers[y] = value, e_in[y, near] + power
                        largest = max(largest, powers[y])
            total = 0.0
            for y in range(k):
                if terms[y] > 0:
                    total += shifted(terms[y], powers[y] - largest)
            mantissa, power = math.frexp(total)
            m_out[x, j] = mantissa
            e_out[x, j] = power + largest if mantissa > 0 else 0


@kernel
def log_densities(
    m_past: Floats, e_past: Ints, m_future: Floats, e_future: Ints, own: int, c: float, out: Floats
) -> None:
    """Fill out[w] = log Σ_n past(n) future(w − own − n), w = 0, …, T.

    ``past`` is a law, ``future(d)`` = E e^(−c|d − count|), which changes by at most e^c a step and decays by exactly
    that beyond its ends. An entry n for which past(n) ≤ 2^(−90) / T · past(n') e^(−c|n − n'|) for some n' adds less
    than 2^(−90) / T times what n' adds, whatever w: it is left out. The others are added in blocks of n and w so
    short that no number within a block leaves the range of floats.
    """
    a, b, size = len(m_past), len(m_future), len(out)
    slope = c / LOG_2
    level = np.empty(a)
    for n in range(a):
        level[n] = math.log2(m_past[n]) + e_past[n] if m_past[n] > 0 else -np.inf
    reach = level.copy()
    for n in range(1, a):
        reach[n] = max(reach[n], reach[n - 1] - slope)
    for n in range(a - 2, -1, -1):
        reach[n] = max(reach[n], reach[n + 1] - slope)
    least = NEGLIGIBLE_BITS + math.log2(size)
    # d from −a to T, with what lies outside [0, b)
    m_all, e_all = np.empty(a + size), np.empty(a + size, dtype=np.int64)
    decay = math.exp(-c)
    m_all[a : a + b], e_all[a : a + b] = m_future, e_future
    for d in range(a - 1, -1, -1):
        mantissa, power = math.frexp(m_all[d + 1] * decay)
        m_all[d], e_all[d] = mantissa, e_all[d + 1] + power
    for d in range(a + b, a + size):
        mantissa, power = math.frexp(m_all[d - 1] * decay)
        m_all[d], e_all[d] = mantissa, e_all[d - 1] + power

    block = min(512, max(1, int(FARTHEST_FACTOR / 2 / c)))
    law, sums, values = np.empty(block), np.empty(size), np.empty(2 * block)
    scales = np.full(size // block + 1, -(2**62))
    sums[:] = 0.0
    part = np.empty(block)
    for n0 in range(0, a, block):
        n1 = min(n0 + block, a)
        top = -(2**62)
        for n in range(n0, n1):
            if level[n] >= reach[n] - least:
                top = max(top, e_past[n])
        if top == -(2**62):
            continue
        for n in range(n0, n1):
            law[n - n0] = shifted(m_past[n], e_past[n] - top) if level[n] >= reach[n] - least else 0.0
        for w0 in range(0, size, block):
            w1 = min(w0 + block, size)
            width = w1 - w0
            first = w0 - own - (n1 - 1) + a  # place in m_all of the smallest d of this pair of blocks
            count = width + n1 - n0 - 1
            high = e_all[first]
            for j in range(1, count):
                high = max(high, e_all[first + j])
            for j in range(count):
                values[j] = shifted(m_all[first + j], e_all[first + j] - high)
            part[:width] = 0.0
            for n in range(n0, n1):
                weight = law[n - n0]
                if weight > 0:
                    window = values[n1 - 1 - n : n1 - 1 - n + width]
                    for w in range(width):
                        part[w] += weight * window[w]
            here = w0 // block
            power = top + high
            if power > scales[here]:
                for w in range(w0, w1):
                    sums[w] = shifted(sums[w], max(scales[here] - power, -2000))
                scales[here] = power
            for w in range(width):
                sums[w0 + w] += shifted(part[w], power - scales[here])
    for w in range(size):
        out[w] = math.log(sums[w]) + scales[w // block] * LOG_2


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
    found: Floats,
    place: Ints,
) -> bool:
    """Raise ``found`` = (attained, bound) to the largest log ratio over all mixtures of two starts and all outputs.

    ``first`` and ``second`` are the log densities given x from either start, ``…_other`` those given x'. With t the
    odds of the second start given x, the ratio is e^(first − first_other) (1 + Gt)(1 + κt) / ((1 + t)(1 + κHt)). The
    bound holds for all t by the sign of a quadratic; the attained value is that of its stationary point.
    ``place[0]`` is where it is attained, if it rose. False where the numbers would leave the range of floats.
    """
    root = math.exp(log_kappa / 2)
    slack = 1e-13
    for w in range(len(first)):
        high = max(first[w], second[w])
        low = min(first_other[w], second_other[w])
        if high - low <= found[1]:
            continue
        base = first[w] - first_other[w]
        a, b = second[w] - first[w], second_other[w] - first_other[w]
        if abs(log_kappa) > 300 or abs(a) > 150 or abs(b) > 150:
            return False
        best = max(base, second[w] - second_other[w])
        if best > found[0]:
            found[0], place[0] = best, w
            found[1] = max(found[1], best)
        if not _exceeds(found[1] + slack, base, a, b, root):
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
                    if value > found[0]:
                        found[0], place[0] = value, w
                        found[1] = max(found[1], value)
        step = slack
        while _exceeds(found[1] + slack, base, a, b, root):
            found[1] += step
            step *= 2
    return True
