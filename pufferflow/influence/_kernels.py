"""Compiled inner loops: pure functions of arrays."""

import math

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF
from pufferflow._util.types import Bools, Floats, Ints

INFINITE = 1e100
"""Represents +∞ in the tables (finite, so sums never give NaN)."""


@kernel(steps=lambda power, support, events, *_: len(events) * len(power) ** 2)
def max_ratios(
    power: Floats, support: Bools, events: Bools, backward: bool, margin: float, out: Floats,
    rows: tuple[int, int],
) -> None:  # fmt: skip
    """Fill rows of out[x, x'] with the maximum over z of log P^n(x, z) / P^n(x', z), rounded up.

    With ``backward`` it is P^n(z, x) / P^n(z, x'). Only the z marked in ``events`` count.
    ``margin`` is added for the relative errors of P^n. Entries below the safe minimum count as 0
    in the denominator and, if positive by ``support``, as that minimum in the numerator. 0/0 does
    not count: such an event is impossible under both secrets. (It yields 0 · ∞, which is NaN, and
    comparisons with NaN are false.)
    """
    start, stop = rows
    k, width = len(power), len(events)
    four = (width + 3) // 4 * 4
    numerator = np.zeros((k, four))
    inverse = np.full((four, k), np.inf)
    for x in range(k):
        for z in range(width):
            if events[z]:
                value = power[z, x] if backward else power[x, z]
                if value >= SAFE_MINIMUM:
                    numerator[x, z] = value
                    inverse[z, x] = 1.0 / value
                elif support[z, x] if backward else support[x, z]:
                    numerator[x, z] = SAFE_MINIMUM
    out[start:stop] = 0.0
    # a block of ``inverse`` serves all x while it is cached; four ratios per load of ``out``
    for block in range(0, four, 32):
        for x in range(start, stop):
            largest = out[x]
            for z in range(block, min(block + 32, four), 4):
                n0, n1 = numerator[x, z], numerator[x, z + 1]
                n2, n3 = numerator[x, z + 2], numerator[x, z + 3]
                i0, i1, i2, i3 = inverse[z], inverse[z + 1], inverse[z + 2], inverse[z + 3]
                for y in range(k):
                    most = max(largest[y], n0 * i0[y])
                    most = max(most, n1 * i1[y])
                    most = max(most, n2 * i2[y])
                    largest[y] = max(most, n3 * i3[y])
    for x in range(start, stop):
        for y in range(k):
            logarithm = math.log(out[x, y]) if out[x, y] > 0 else -INFINITE
            logarithm = min(logarithm, INFINITE)
            out[x, y] = logarithm + margin + 8 * UNIT_ROUNDOFF * abs(logarithm)


@kernel(steps=lambda initial, *_: 2 * initial.size)
def max_influence(initial: Floats, left: Floats, right: Floats) -> tuple[float, int, int]:
    """Largest entry of initial + left + right (eq. 5), at least 0, and its indices."""
    k = initial.shape[0]
    columns = np.zeros(k)
    for x in range(k):
        for y in range(k):
            value = initial[x, y] + left[x, y] + right[x, y]
            if value > columns[y]:
                columns[y] = value
    y = 0
    for other in range(1, k):  # compiling numpy's argmax takes longer
        y = other if columns[other] > columns[y] else y
    for x in range(k):
        if initial[x, y] + left[x, y] + right[x, y] == columns[y]:
            return float(columns[y]), x, y
    return 0.0, 0, 0


@kernel(steps=lambda *_: 64)
def middle_of(low: int, high: int) -> int:
    """Return where to cut [low, high], low < high: the roundest number, for few powers of P."""
    differing, step = (low - 1) ^ (high - 1), 1
    while step <= differing // 2:  # at most 62 times
        step *= 2
    return (high - 1) // step * step


@kernel(steps=lambda stack, work, *_: work)
def search_quilts(
    stack: tuple[Ints, Floats, Ints],
    work: int,
    nodes: tuple[int, int, int],
    scores: tuple[float, float],
    terms: tuple[Floats, Floats, Floats],
    sides: tuple[Ints, Ints, Ints],
    found: tuple[Ints, Floats, Ints],
) -> None:
    """Search rectangles of quilts (branch and bound) until a table is missing or ``work`` is done.

    ``stack`` and ``found`` are updated in place: Python code runs when a kernel returns arrays, and
    an exception by a signal would be lost there.

    Parameters
    ----------
    stack : rectangles, lowest, counts
        Rectangles i1..i2 × j1..j2 of positions among the distances, the next one last; lower bounds
        of the max-influence in each; their number, shape (1,).
    work : int
        Approximate number of table entries to read before returning, so that signals arrive.
    nodes : before, after, window
        Of a range of nodes the number up to its last one, the number from its first one on, and the
        records of each; cards are the largest over the range (Lemma 4.6).
    scores : epsilon, enough
        ε, and the score at or below which the search may stop.
    terms : initial, mask, tables
        First term of eq. 5 with and without a left quilt node, and all other tables.
    sides : distances, lefts, rights
        Distances, 0 for no quilt node, and by their positions the tables, −1 for missing ones.
    found : pairs, best, quilt
        Their number and the last deciding pairs of secrets: these alone bound the influence from
        below, which discards most rectangles. The smallest score so far with its influence, and the
        positions of its quilt.
    """
    rectangles, lowest, counts = stack
    before, after, window = nodes
    epsilon, enough = scores
    initial, mask, tables = terms
    distances, lefts, rights = sides
    pairs, best, quilt = found
    slack = 1.0 + 2.0**-51
    while counts[0] > 0 and work > 0 and best[0] > enough:
        top = int(counts[0]) - 1
        i1, i2, j1, j2 = rectangles[top]
        # the cards of the smallest and the largest quilt; of no quilt nodes i1 = i2 = 0
        near = (distances[i1] if i2 else before) + (distances[j1] if j2 else after) + window - 2
        far = (distances[i2] if i2 else before) + (distances[j2] if j2 else after) + window - 2
        work -= len(pairs)
        if near / (epsilon - lowest[top]) < best[0] and (lefts[i2] < 0 or rights[j2] < 0):
            return
        counts[0] = top
        if near / (epsilon - lowest[top]) >= best[0]:
            continue
        term = initial if i2 else mask
        left, right = tables[lefts[i2]], tables[rights[j2]]
        influence = 0.0
        for p in range(1, min(pairs[0, 0] + 1, len(pairs))):
            x, y = pairs[p]
            influence = max(influence, term[x, y] + left[x, y] + right[x, y])
        if influence < epsilon and far / (epsilon - influence) * slack < best[0]:
            exact, x, y = max_influence(term, left, right)
            work -= initial.size
            if exact > influence:  # decided by a new pair, which replaces the oldest
                oldest = 1 + pairs[0, 0] % (len(pairs) - 1)
                pairs[oldest, 0], pairs[oldest, 1] = x, y
                pairs[0, 0] += 1
                influence = exact
            if influence < epsilon and far / (epsilon - influence) * slack < best[0]:
                best[0], best[1] = far / (epsilon - influence) * slack, influence
                quilt[0], quilt[1] = i2, j2
        if influence >= epsilon or near / (epsilon - influence) >= best[0]:
            continue
        i, j = middle_of(i1, i2) if i1 < i2 else i2, middle_of(j1, j2) if j1 < j2 else j2
        # the quarter nearest to the node is searched first, as it has good quilts
        for farther, later in ((1, 1), (1, 0), (0, 1), (0, 0)):
            if (farther and i == i2) or (later and j == j2) or (i == i2 and j == j2):
                continue
            top = int(counts[0])
            rectangles[top, 0], rectangles[top, 1] = (i + 1, i2) if farther else (i1, i)
            rectangles[top, 2], rectangles[top, 3] = (j + 1, j2) if later else (j1, j)
            lowest[top] = influence
            counts[0] = top + 1
