"""Compiled inner loops: laws of a sum along a chain, and comparisons of two such laws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pufferflow._jit import kernel
from pufferflow._types import Bools, Floats, Ints

Table = tuple[Floats, Ints, Floats]
"""Rows, their exponents and errors, see :func:`advance`."""

Laws = tuple[Floats, Floats, Floats, Floats]
"""Two laws and their totals, see :func:`holds`; by index in the inner loop, where taking them apart costs a tenth."""

UNREACHED = -(2**40)
"""Exponent of a row of zeros."""

LARGE = 2.0**300
"""A sum beyond is brought back to the size of 1; from 1 to this its exponent is left alone."""

PLAN = 1 + 2.0**-30
"""Mass that a plan may make of one, see :func:`movable`."""

CLOSE = 2.0**-40
"""Relative difference of two bounds of an entry below which the sum of the one tells that of the other."""

FAR = 300
"""Terms whose exponents are farther from a sum's are aligned with it first: products by powers of 2 stay exact."""


@kernel
def reach_sums(
    edges: Bools, support: Bools, gains: Ints, forward: tuple[Ints, Ints], backward: tuple[Ints, Ints]
) -> None:
    """Fill least and largest sums of the gains of paths, for every number of steps.

    Those from each start up to a state go to ``forward``, of shape (length, starts, k): ``UNREACHED`` where there is
    none. Those from a state on, it left out, go to ``backward``, of shape (length, k).
    """
    (low, high), (least, most) = forward, backward
    starts, k = support.shape
    low[:], high[:], least[:], most[:] = UNREACHED, UNREACHED, 0, 0
    for u in range(starts):
        for x in range(k):
            if support[u, x]:
                low[0, u, x], high[0, u, x] = gains[x], gains[x]
    for i in range(1, len(low)):
        for u in range(starts):
            for x in range(k):
                for y in range(k):
                    if edges[x, y] and low[i - 1, u, x] != UNREACHED:
                        lowest, highest = low[i - 1, u, x] + gains[y], high[i - 1, u, x] + gains[y]
                        if low[i, u, y] == UNREACHED or lowest < low[i, u, y]:
                            low[i, u, y] = lowest
                        high[i, u, y] = max(high[i, u, y], highest)
        for x in range(k):
            first = True
            for y in range(k):
                if edges[x, y]:
                    lowest, highest = least[i - 1, y] + gains[y], most[i - 1, y] + gains[y]
                    least[i, x] = lowest if first else min(least[i, x], lowest)
                    most[i, x] = highest if first else max(most[i, x], highest)
                    first = False


@kernel
def advance(table: Table, matrix: tuple[Floats, Ints, Ints, Ints], cutoff: float, filled: Table) -> None:
    """One step of the dynamic program: out[u, y, n] = Σ_x M[x, y] rows[u, x, n − shift_in[x] − shift_out[y]].

    Tables are (rows, exponents, errors), a matrix is (mantissas, powers, shift_in, shift_out). Row (u, x) stands for
    ``rows[u, x] * 2**exponents[u, x]``, its largest entry lies in [½, 1), and each entry may be too small by
    ``errors[u, x]``; the matrix M is ``mantissas * 2**powers``. Entries below ``cutoff`` are dropped, and counted in
    the errors.
    """
    rows, exponents, errors = table
    mantissas, powers, shift_in, shift_out = matrix
    out, out_exponents, out_errors = filled
    starts, k, width = rows.shape
    for u in range(starts):
        for y in range(k):
            top = UNREACHED
            for x in range(k):
                if mantissas[x, y] > 0 and exponents[u, x] > UNREACHED:
                    top = max(top, exponents[u, x] + powers[x, y])
            row = out[u, y]
            row[:] = 0.0
            out_exponents[u, y], out_errors[u, y] = UNREACHED, 0.0
            if top == UNREACHED:
                continue
            error = 0.0
            for x in range(k):
                if mantissas[x, y] > 0 and exponents[u, x] > UNREACHED:
                    factor = math.ldexp(mantissas[x, y], int(max(exponents[u, x] + powers[x, y] - top, -2000)))
                    shift = shift_in[x] + shift_out[y]
                    source, part = rows[u, x], row[shift : shift + width]
                    for n in range(len(part)):
                        part[n] += factor * source[n]
                    error += factor * errors[u, x] + 2.0**-1000
            largest = row.view(np.int64).max()  # numbers of at least 0 are ordered as their bits, which compare faster
            _, exponent = math.frexp(np.int64(largest).view(np.float64))
            scale = math.ldexp(1.0, -exponent)
            for n in range(len(row)):
                value = row[n] * scale
                row[n] = value if value >= cutoff else 0.0
            out_exponents[u, y] = top + exponent
            out_errors[u, y] = error * scale * (1 + 2.0**-40) + cutoff


@kernel
def fill_laws(
    past: Table,
    future: Table,
    slope: tuple[int, int],
    reach: tuple[Ints, Ints],
    known: tuple[Ints, Ints],
    laws: tuple[Floats, Floats, Ints],
) -> tuple[bool, bool]:
    """Fill laws at one node by :func:`fill_law`, for every state and start.

    Parameters
    ----------
    past, future : tuple of arrays
        Tables as in :func:`advance`, of all starts and of one.
    slope : tuple of int
        The tilt and its unit: without tilt the laws are filled anew, with one below 0 (above 0) the lower (upper)
        places that are left.
    reach, known : tuple of arrays, shape (starts, states)
        First and last place of positive probability, the last one −1 where there is none, and of those that are known
        well. Where the tilt 0 finds none the bounds say so, and nothing is left.
    laws : tuple of arrays, shape (states, starts, width)

    Returns
    -------
    below, above : bool
        Whether places are left below or above those that are known well.
    """
    (least, most), (first, last) = reach, known
    lower, upper, exponents = laws
    tilt = slope[0]
    if tilt == 0:
        lower[:], upper[:] = 0.0, 0.0
    below = above = False
    for u in range(least.shape[0]):
        for x in range(least.shape[1]):
            start, stop = least[u, x], most[u, x] + 1
            if tilt == 0:
                first[u, x], last[u, x] = stop, -1
            elif tilt < 0:
                stop = first[u, x]
            else:
                start = last[u, x] + 1
            if start < stop and (tilt == 0 or last[u, x] >= 0):
                left, right = fill_law(
                    (past[0][u, x], past[1][u, x], past[2][u, x]),
                    (future[0][0, x], future[1][0, x], future[2][0, x]),
                    slope,
                    (start, stop),
                    (lower[x, u], upper[x, u], exponents[x, u]),
                )
                if tilt <= 0:
                    first[u, x] = min(first[u, x], left)
                if tilt >= 0:
                    last[u, x] = max(last[u, x], right)
            if last[u, x] >= 0:
                below, above = below or first[u, x] > least[u, x], above or last[u, x] < most[u, x]
    return below, above


@kernel
def fill_law(
    past: tuple[Floats, int, float],
    future: tuple[Floats, int, float],
    slope: tuple[int, int],
    places: tuple[int, int],
    law: tuple[Floats, Floats, Ints],
) -> tuple[int, int]:
    """Bounds of the convolution of ``past`` and ``future`` at the places start ≤ n < stop, with the tilt taken off.

    Both are (row, exponent, error), the entries of a row too small by at most its error. The law at n is the
    convolution times 2**(both exponents − tilt n / unit), with the ``slope`` (tilt, unit); its lower and upper bounds
    and their exponents are filled.

    Returns
    -------
    first, last : int
        First and last place where the error is negligible (2^-45); ``stop`` and -1 where there is none.
    """
    (a, exponent_a, error_a), (b, exponent_b, error_b) = past, future
    (tilt, unit), (start, stop) = slope, places
    lower, upper, exponents = law
    first, last = 0, len(b)
    while first < last and b[first] == 0:
        first += 1
    while last > first and b[last - 1] == 0:
        last -= 1
    out = np.zeros(stop - start)
    inner = np.zeros(last - first + 6)
    inner[3 : 3 + last - first] = b[first:last]
    for j in range(0, len(a), 4):  # four entries at a time: fewer passes over the sums, which add up in the same order
        w0 = a[j]
        w1, w2 = a[j + 1] if j + 1 < len(a) else 0.0, a[j + 2] if j + 2 < len(a) else 0.0
        w3 = a[j + 3] if j + 3 < len(a) else 0.0
        origin = j + first - start
        low, high = max(origin, 0), min(origin + last - first + 3, stop - start)
        if low < high and w0 + w1 + w2 + w3 > 0:
            part, window = out[low:high], inner[low - origin : high - origin + 3]
            for n in range(len(part)):
                part[n] = part[n] + w0 * window[n + 3] + w1 * window[n + 2] + w2 * window[n + 1] + w3 * window[n]
    terms = min(len(a), len(b))
    error = (error_a * b.sum() + error_b * a.sum() + terms * error_a * error_b) * (1 + 2.0**-30)
    left, right = stop, -1
    for n in range(start, stop):
        value = out[n - start]
        whole = tilt * n if unit == 1 else tilt * n // unit
        rest = tilt * n - whole * unit
        factor = 2.0 ** (-rest / unit) if rest else 1.0
        exponents[n] = exponent_a + exponent_b - whole
        lower[n], upper[n] = max(value - error, 0.0) * factor, (value + error) * factor
        if error <= 2.0**-45 * value:
            left, right = min(left, n), n
    return left, right


@kernel
def cumulate(
    lower: Floats, upper: Floats, exponents: Ints, first: int, last: int, slack: float, below: Floats, above: Floats
) -> None:
    """Fill rows (0, 1) of ``below`` and ``above`` with bounds of log2 P(N ≤ n) and log2 P(N > n).

    Entry n lies between ``lower[n]`` and ``upper[n]`` times ``2**exponents[n]``, up to a factor 2^±slack in all;
    the least and the largest value of N are ``first`` and ``last``. Where each lower bound is at least 1 − r times the
    upper one, so are their sums: log2(1 − r) > −2 r for r < ½.
    """
    below[:], above[:] = -np.inf, -np.inf
    apart = 0.0
    for n in range(first, last + 1):
        if upper[n] > 0:
            apart = max(apart, (upper[n] - lower[n]) / upper[n])
    close = apart < CLOSE
    for side in range(1 if close else 0, 2):
        values = lower if side == 0 else upper
        sign = -1.0 if side == 0 else 1.0
        for backward in range(2):
            sums = above if backward else below
            total, base = 0.0, 0
            shift, factor = 0, 1.0  # 2**shift, kept as long as it is needed again
            logged, size, edge = 0.0, 0.0, 0.0  # the sum and its logarithm, kept as long as terms are negligible
            for step in range(last - first + 1):
                n = last - step if backward else first + step
                if values[n] > 0:
                    gap = exponents[n] - base
                    if total == 0.0 or total > LARGE or gap > FAR or gap < -FAR:
                        logged = 0.0
                        value, power = math.frexp(values[n])
                        power += int(exponents[n])
                        if total == 0.0:
                            total, base = value, power
                        else:
                            mantissa, own = math.frexp(total)
                            top = max(own + base, power)
                            total = math.ldexp(mantissa, max(own + base - top, -2000))
                            total += math.ldexp(value, max(power - top, -2000))
                            base = top
                    else:
                        if gap != shift:
                            shift, factor = gap, math.ldexp(1.0, gap)
                        total += values[n] * factor
                place = n - 1 if backward else n
                if total > 0 and place >= 0:
                    if total != logged:
                        logged, significant = total, math.log2(total)
                        size = significant + base
                        edge = slack + (abs(size) + abs(significant) + 4) * 2.0**-50
                    sums[side, place] = size + sign * edge
                    if close:
                        sums[0, place] = size - edge - 2 * apart
    for side in range(2):
        below[side, last + 1 :] = below[side, last]
        above[side, :first] = below[side, last]


@kernel
def cumulate_laws(
    laws: tuple[Floats, Floats, Ints],
    reach: tuple[Ints, Ints],
    slack: float,
    below: Floats,
    above: Floats,
    totals: Floats,
) -> None:
    """:func:`cumulate` for every state and start, and the bounds of log2 P(secret | start)."""
    lower, upper, exponents = laws
    least, most = reach
    for u in range(least.shape[0]):
        for x in range(least.shape[1]):
            row = below[x, u]
            if most[u, x] < 0:
                row[:], above[x, u], totals[x, u] = -np.inf, -np.inf, -np.inf
                continue
            law = lower[x, u], upper[x, u], exponents[x, u]
            cumulate(*law, least[u, x], most[u, x], slack, row, above[x, u])
            totals[x, u] = row[:, most[u, x]]


@kernel
def add_logs(a: float, b: float) -> float:
    """log2(2^a + 2^b), up to a few roundings."""
    high, low = max(a, b), min(a, b)
    if low == -np.inf:
        return high
    return high + math.log2(1.0 + 2.0 ** max(low - high, -1074.0))


@kernel
def entry(laws: Laws, n: int, m: int, tails: bool, strict: bool, u: int, v: int) -> tuple[float, float]:
    """Positive and negative part, as log2, of a bound of c_uv (see :func:`holds`), lower if ``strict``, else upper."""
    low, high = (0, 1) if strict else (1, 0)
    if tails:
        return laws[0][u, low, n] + laws[3][v, low], laws[1][v, high, m] + laws[2][u, high]
    return laws[1][v, low, m] + laws[2][u, low], laws[0][u, high, n] + laws[3][v, high]


@kernel
def is_negative(laws: Laws, n: int, m: int, tails: bool, strict: bool, u: int, v: int) -> bool:
    """Whether the bound of c_uv + c_vu is negative."""
    plus, minus = entry(laws, n, m, tails, strict, u, v)
    more, less = entry(laws, n, m, tails, strict, v, u)
    negative = add_logs(minus, less)
    return negative > -np.inf and add_logs(plus, more) < negative + margin(negative, strict)


@kernel
def margin(size: float, strict: bool) -> float:
    """Rounding of a few operations on logarithms of this size, with its sign."""
    bound = 2.0**-40 + 2.0**-48 * abs(size)
    return bound if strict else -bound


@kernel
def holds(laws: Laws, n: int, m: int, tails: bool, strict: bool) -> bool:
    """Whether F(n) ≤ F'(m) for every mixture of starts, F the law given a secret and F' given the other.

    Parameters
    ----------
    laws : tuple of arrays
        Of both, shape (starts, 2, width): bounds of log2 P(N ≤ n, secret | start), or of P(N > n, ...) with ``tails``;
        then of both, shape (starts, 2): bounds of log2 P(secret | start).
    strict : bool
        Whether ``True`` is proved; otherwise ``False`` is.

    Notes
    -----
    With weights r of the starts the inequality is Σ r_u r_v c_uv ≥ 0, c_uv = F'_v(m) P_u(s) − F_u(n) P_v(s'), that is
    copositivity of the symmetric part S. Necessary: s_uu ≥ 0 and s_uv ≥ −√(s_uu s_vv) for all u, v. Sufficient: the
    same with the root divided by √(d_u d_v), d_u the number of negative s_uv, v ≠ u. For then the form is at least
    the sum of (r_u √(s_uu/d_u) − r_v √(s_vv/d_v))² over the negative pairs. For up to two starts the two are the same.
    """
    starts = len(laws[0])
    for u in range(starts):
        plus, minus = entry(laws, n, m, tails, strict, u, u)
        if plus < minus:
            return False
    for u in range(starts):
        for v in range(u + 1, starts):
            if not is_negative(laws, n, m, tails, strict, u, v):
                continue
            product = 0.0  # log2 of s_uu s_vv / (d_u d_v)
            for w in (u, v):
                gain, loss = entry(laws, n, m, tails, strict, w, w)
                rest = 0.0
                if gain > loss:
                    rest = 1.0 - 2.0 ** max(loss - gain, -1074.0) - (1.0 if strict else -1.0) * 2.0**-50
                product += gain + math.log2(rest) if rest > 0 else -np.inf
                if strict and starts > 2:
                    degree = 0
                    for z in range(starts):
                        if z != w and is_negative(laws, n, m, tails, strict, w, z):
                            degree += 1
                    product -= math.log2(float(max(degree, 1)))
            plus, minus = entry(laws, n, m, tails, strict, u, v)
            more, less = entry(laws, n, m, tails, strict, v, u)
            positive, negative = add_logs(plus, more), add_logs(minus, less)
            if product > -np.inf:
                positive = add_logs(positive, 1.0 + product / 2)
            if positive < negative + margin(negative, strict):
                return False
    return True


@kernel
def raise_shift(
    below: Floats, above: Floats, totals: Floats, supported: NDArray[np.bool_], shift: int, strict: bool, pair: Ints
) -> int:
    """Return the smallest w ≥ ``shift`` with F_s(n) ≤ F_s'(n + w) for all n and all pairs of secrets (s, s').

    ``below`` and ``above`` have shape (states, starts, 2, width), ``totals`` (states, starts, 2). The pair that
    raised the value last goes to ``pair``.
    """
    k = len(below)
    for x in range(k):
        for y in range(k):
            if x == y or not (supported[x] and supported[y]):
                continue
            if below.shape[1] == 1:
                laws = (below[x, 0], below[y, 0]), (above[x, 0], above[y, 0]), (totals[x, 0], totals[y, 0])
                raised = one_start(*laws, shift, strict)
            else:
                raised = every_start((below[x], below[y]), (above[x], above[y]), (totals[x], totals[y]), shift, strict)
            if raised > shift:
                shift = raised
                pair[0], pair[1] = x, y
    return shift


@kernel
def one_start(
    below: tuple[Floats, Floats],
    above: tuple[Floats, Floats],
    totals: tuple[Floats, Floats],
    shift: int,
    strict: bool,
) -> int:
    """:func:`every_start` for one start, where the form of :func:`holds` is one number; rows have shape (2, width)."""
    low, high = (0, 1) if strict else (1, 0)
    below_x, below_y = below[0][high], below[1][low]
    above_x, above_y = above[0][low], above[1][high]
    heads_x, heads_y = totals[1][high], totals[0][low]
    tails_x, tails_y = totals[1][low], totals[0][high]
    last = len(below_x) - 1
    for n in range(len(below_x)):
        while n + shift < last:
            m = n + shift
            by_tails = above_x[n] + tails_x >= above_y[m] + tails_y
            if strict and by_tails:
                break
            by_heads = below_y[m] + heads_y >= below_x[n] + heads_x
            if by_heads and (strict or by_tails):
                break
            shift += 1
    return shift


@kernel
def every_start(
    below: tuple[Floats, Floats],
    above: tuple[Floats, Floats],
    totals: tuple[Floats, Floats],
    shift: int,
    strict: bool,
) -> int:
    """Return the smallest w ≥ ``shift`` with F_s(n) ≤ F_s'(n + w) for all n and every mixture of starts.

    Bounds of the laws given s and s', as :func:`holds` takes them. At the last place both are 1.
    """
    last = below[0].shape[2] - 1
    for n in range(last + 1):
        while n + shift < last:
            m = n + shift
            by_tails = holds((*above, *totals), n, m, True, strict)
            if strict and by_tails:
                break
            if (strict or by_tails) and holds((*below, *totals), n, m, False, strict):
                break
            shift += 1
    return shift


@kernel
def flows(p: Floats, p_exponents: Ints, q: Floats, q_exponents: Ints, slack: float, reach: int) -> bool:
    """Whether mass p can be moved by at most ``reach`` places into slack times q, leftmost place first.

    Masses are ``p * 2**p_exponents``, likewise q. All sources reach equally far, so this finds a plan
    wherever there is one, up to (2 reach + 4) roundings relative to each mass.
    """
    width = len(p)
    room = q * slack
    place = 0
    for n in range(width):
        rest = p[n]
        place = max(place, n - reach)
        while rest > 0:
            if place >= width or place > n + reach:
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


@kernel
def add_scaled(
    values: Floats, exponents: Ints, size: float, sign: float, out: Floats, out_exponents: Ints, first: bool
) -> None:
    """Add ``values * 2**exponents * 2**size``, bounded from above or below by the ``sign``, to ``out`` likewise.

    With ``first`` whatever is in ``out`` is forgotten.
    """
    if first:
        out[:], out_exponents[:] = 0.0, 0
    if size == -np.inf:
        return
    whole = math.floor(size)
    factor = 2.0 ** (size - whole + sign * (abs(size) + 4) * 2.0**-50)
    for n in range(len(values)):
        more, power = math.frexp(values[n] * factor)
        if more > 0:
            power += int(exponents[n] + whole)
            if out[n] == 0:
                out[n], out_exponents[n] = more, power
            else:  # what becomes too small is negligible beside the term it is added to
                top = max(out_exponents[n], power)
                total = math.ldexp(out[n], int(max(out_exponents[n] - top, -1500)))
                out[n], out_exponents[n] = total + math.ldexp(more, int(max(power - top, -1500))), top


@kernel
def movable(
    laws: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    totals: NDArray[np.float64],
    supported: NDArray[np.bool_],
    reach: int,
) -> bool:
    """Whether plans move every law by at most ``reach`` into (1 + 2^-30) times every law given another secret.

    Parameters
    ----------
    laws : tuple of arrays, shape (states, starts, width)
        Bounds of P(N = n, secret | start), the lower and the upper ones, times 2^ the last, their exponents.
    totals : ndarray, shape (states, starts, 2)
        Bounds of log2 P(secret | start).

    Notes
    -----
    For all mixtures of starts at once: with weights q the law given s times P(s) P(s') is Σ q_u q_v P_u(·, s) P_v(s'),
    so it is enough to move, for each pair of starts, P_u(·, s) P_v(s') + P_v(·, s) P_u(s') into
    P_u(s) P_v(·, s') + P_v(s) P_u(·, s').
    """
    lower, upper, exponents = laws
    states, starts, width = lower.shape
    mass, room = np.empty(width), np.empty(width)
    mass_exponents, room_exponents = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    for x in range(states):
        for y in range(states):
            if x == y or not (supported[x] and supported[y]):
                continue
            for u in range(starts):
                for v in range(u, starts):
                    # the mass to move bounded from above, the room from below
                    add_scaled(upper[x, u], exponents[x, u], totals[y, v, 1], 1.0, mass, mass_exponents, True)
                    add_scaled(upper[x, v], exponents[x, v], totals[y, u, 1], 1.0, mass, mass_exponents, False)
                    add_scaled(lower[y, v], exponents[y, v], totals[x, u, 0], -1.0, room, room_exponents, True)
                    add_scaled(lower[y, u], exponents[y, u], totals[x, v, 0], -1.0, room, room_exponents, False)
                    if not flows(mass, mass_exponents, room, room_exponents, PLAN, reach):
                        return False
    return True
