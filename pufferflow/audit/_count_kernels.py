"""Compiled loops over distributions of counts.

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


@kernel()
def shifted(m: float, e: Any) -> float:
    """Return m · 2^e, or 0 where e ≤ −1000; as ldexp for e ≤ 1000, in a fifth of its time."""
    return float(m * np.int64((e + 1023) << 52).view(np.float64)) if e > -1000 else 0.0


@kernel()
def taken_apart(value: float) -> tuple[Any, Any]:
    """Return math.frexp of a normal number, from its bits, in a fifth of the time."""
    bits = np.float64(value).view(np.int64)
    mantissa = np.int64((bits & ~(0x7FF << 52)) | (1022 << 52)).view(np.float64)
    return mantissa, (bits >> 52) - 1022


@kernel()
def _carried(value: float, base: Any, m: float, e: Any) -> tuple[float, Any]:
    """Return value · 2^base + m · 2^e, the value kept from 2^(−332) to about 2^300."""
    if m > 0:
        if value == 0 or e > base + 300:
            value, base = shifted(value, base - e) if value > 0 else 0.0, e
        value += shifted(m, e - base)
    if value > 1e90 or 0 < value < 1e-100:
        value, power = taken_apart(value)
        base += power
    return value, base


@kernel()
def _log(value: float, base: Any) -> float:
    """Return the natural logarithm of value · 2^base."""
    if value == 0:
        return -np.inf
    mantissa, power = taken_apart(value)
    return float(math.log(mantissa) + (base + power) * math.log(2.0))


@kernel()
def prepend_record(rows: Numbers, moves: Ints, given: Numbers, out: Numbers) -> None:
    """Fill out(s, x, n) = Σ_y rows(x, y) given(s, y, n − moves(y)): a record more in a count."""
    (factors, powers), (m, e), (sums, bases) = rows, given, out
    for s in range(len(m)):
        for x in range(len(factors)):
            row, tops = sums[s, x], bases[s, x]
            row[:], tops[:] = 0.0, NOTHING
            for y in range(m.shape[1]):
                factor, power, move = factors[x, y], powers[x, y], moves[y]
                if factor > 0:
                    for n in range(m.shape[2]):
                        row[n + move], tops[n + move] = _carried(
                            row[n + move], tops[n + move], factor * m[s, y, n], power + e[s, y, n]
                        )
            for n in range(len(row)):
                if row[n] > 0:
                    row[n], power = taken_apart(row[n])
                    tops[n] += power


@kernel()
def _parts(m: Floats, e: Ints) -> list[tuple[int, Any, Floats]]:
    """Return parts of at most ``SPREAD`` bits: first index, exponent and floats of each."""
    parts = []
    begin, low, high = 0, np.int64(2**40), np.int64(NOTHING)
    for n in range(len(m) + 1):
        if n == len(m) or (m[n] > 0 and max(high, e[n]) - min(low, e[n]) > SPREAD):
            values = np.empty(n - begin)
            for i in range(begin, n):
                values[i - begin] = shifted(m[i], e[i] - high)
            parts.append((begin, high, values))
            begin, low, high = n, np.int64(2**40), np.int64(NOTHING)
        if n < len(m) and m[n] > 0:
            low, high = min(low, e[n]), max(high, e[n])
    return parts


@kernel()
def distributions(
    past: Numbers, future: Numbers, secrets: Ints, sizes: Floats, out: Numbers
) -> None:
    """Fill the distribution of past + own + future from each start, given each secret.

    A secret is (first, last, own): the past depends on its first state, the future on its last one,
    and its own count is ``own``. ``sizes`` are the logarithms of the sums, by which they are
    divided.
    """
    (before, powers), (after, tops), (m, e) = past, future, out
    m[:], e[:] = 0.0, NOTHING
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
                total, power = taken_apart(total)
                for n in range(len(row)):
                    if row[n] > 0:
                        row[n], more = taken_apart(row[n] / total)
                        exponents[n] += more - power - base


@kernel()
def fill_log_sums(given: Numbers, decay: float, below: Floats, above: Floats) -> None:
    """Fill log Σ_{j ≤ n} decay^(n − j) p(j) and log Σ_{j > n} decay^(j − n) p(j), row by row."""
    m, e = given
    for r in range(len(m)):
        value, base = 0.0, np.int64(NOTHING)
        for n in range(m.shape[1]):
            value, base = _carried(value * decay, base, m[r, n], e[r, n])
            below[r, n] = _log(value, base)
        value, base = 0.0, np.int64(NOTHING)
        for n in range(m.shape[1] - 1, -1, -1):
            above[r, n] = _log(value, base)
            value, base = _carried(value, base, m[r, n], e[r, n])
            value *= decay


@kernel()
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
            here = shifted(room[place], min(gap, 900))
            if here > rest:
                if gap < 900:  # otherwise the taken mass is negligible
                    room[place] = shifted(here - rest, -gap)
                rest = 0.0
            else:
                rest -= here
                room[place] = 0.0
                place += 1
    return True
