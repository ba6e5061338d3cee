"""Compiled inner loops: pure functions of arrays."""

from __future__ import annotations

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.types import Bools, Floats, Ints


@kernel(steps=lambda power, support, events, *_: len(events) * len(power) ** 2)
def max_ratios(
    power: Floats, support: Bools, events: Bools, backward: bool, smallest: float, start: int, stop: int, out: Floats
) -> None:
    """Fill out[x, x'], x from start to stop, with max over z of P^n(x, z) / P^n(x', z), up to a few roundings.

    With ``backward`` it is P^n(z, x) / P^n(z, x'). Only the z marked in ``events`` count. Entries below
    ``smallest`` count as 0 in the denominator and, where ``support`` says that they are not zero, as
    ``smallest`` in the numerator. 0/0 does not count: such an event happens under neither secret. (It
    comes out as 0 · ∞, which is NaN, and no comparison lets NaN through.)
    """
    k, width = len(power), len(events)
    four = (width + 3) // 4 * 4
    numerator = np.zeros((k, four))
    inverse = np.full((four, k), np.inf)
    for x in range(k):
        for z in range(width):
            if events[z]:
                value = power[z, x] if backward else power[x, z]
                if value >= smallest:
                    numerator[x, z] = value
                    inverse[z, x] = 1.0 / value
                elif support[z, x] if backward else support[x, z]:
                    numerator[x, z] = smallest
    out[start:stop] = 0.0
    # a block of ``inverse`` is used for all x while it is in the cache; four ratios a load of ``out``
    for block in range(0, four, 32):
        for x in range(start, stop):
            largest = out[x]
            for z in range(block, min(block + 32, four), 4):
                n0, n1, n2, n3 = numerator[x, z], numerator[x, z + 1], numerator[x, z + 2], numerator[x, z + 3]
                i0, i1, i2, i3 = inverse[z], inverse[z + 1], inverse[z + 2], inverse[z + 3]
                for y in range(k):
                    most = largest[y]
                    ratio = n0 * i0[y]
                    if ratio > most:
                        most = ratio
                    ratio = n1 * i1[y]
                    if ratio > most:
                        most = ratio
                    ratio = n2 * i2[y]
                    if ratio > most:
                        most = ratio
                    ratio = n3 * i3[y]
                    if ratio > most:
                        most = ratio
                    largest[y] = most


@kernel(steps=lambda table, *_: 3 * table.size)
def round_up(table: Floats, constant: float, relative: float, infinite: float) -> None:
    """Clip ``table`` to ± ``infinite`` and add ``constant`` and ``relative`` times the size of each entry."""
    for x in range(table.shape[0]):
        for y in range(table.shape[1]):
            value = min(max(table[x, y], -infinite), infinite)
            table[x, y] = value + constant + relative * abs(value)


@kernel(steps=lambda law, *_: 2 * law.size)
def max_influence(law: Floats, left: Floats, right: Floats, pair: Ints) -> float:
    """Largest entry of law + left + right (eq. 5), at least 0; its place goes to ``pair``.

    The tables have shape (k, k) and hold large finite numbers in place of infinities, so no NaN arises.
    """
    k = law.shape[0]
    columns = np.zeros(k)
    for x in range(k):
        for y in range(k):
            value = law[x, y] + left[x, y] + right[x, y]
            if value > columns[y]:
                columns[y] = value
    y = int(columns.argmax())
    for x in range(k):
        if law[x, y] + left[x, y] + right[x, y] == columns[y]:
            pair[0], pair[1] = x, y
            break
    return float(columns[y])


@kernel
def find_slot(distances: Ints, slots: Ints, distance: int) -> int:
    """Slot of ``distance`` in a sorted list, or -1."""
    low, high = 0, len(distances)
    while low < high:
        middle = (low + high) // 2
        if distances[middle] < distance:
            low = middle + 1
        else:
            high = middle
    if low < len(distances) and distances[low] == distance:
        return int(slots[low])
    return -1


@kernel(steps=lambda distances, slots, used, *_: used)
def insert_sorted(distances: Ints, slots: Ints, used: int, distance: int, slot: int) -> None:
    """Insert a distance and its slot into the first ``used`` places of a sorted list that has room."""
    place = used
    while place > 0 and distances[place - 1] > distance:
        distances[place], slots[place] = distances[place - 1], slots[place - 1]
        place -= 1
    distances[place], slots[place] = distance, slot


@kernel
def middle_of(low: int, high: int) -> int:
    """Where to cut [low, high]: near the geometric mean if wide, else at the roundest number below high.

    Round distances need few powers of P.
    """
    if high >= 4 * low:
        power = 1
        while float(power) * power < float(low) * high:  # of integers the products leave their range
            power *= 2
        if low <= power < high:
            return power
    top = high - 1
    differing = (low - 1) ^ top
    step = 1
    while step <= differing // 2:
        step *= 2
    return top // step * step


@kernel
def cut(low: int, high: int, spaces: int) -> int:
    """Where to cut [low, high], ``high`` where it holds no other distance that is looked at.

    These are ``spaces`` an octave, the multiples of so large a power of two, or all.
    """
    if low == high:
        return high
    middle = middle_of(low, high)  # a power of two, or of all below high the one with the largest as its factor
    return middle if middle & -middle > middle // (2 * spaces) else high


@kernel
def put(rectangles: Ints, lowest: Floats, place: int, a1: int, a2: int, b1: int, b2: int, least: float) -> None:
    """Write a rectangle with its lower bound."""
    rectangles[place, 0], rectangles[place, 1] = a1, a2
    rectangles[place, 2], rectangles[place, 3] = b1, b2
    lowest[place] = least


@kernel(steps=lambda stack, limits, *_: limits[0])
def search_quilts(
    stack: tuple[Ints, Floats, Ints],
    limits: tuple[int, int],
    nodes: tuple[int, int, int, int],
    scores: tuple[float, float],
    terms: tuple[Floats, Floats],
    left_tables: tuple[Floats, Ints, Ints],
    right_tables: tuple[Floats, Ints, Ints],
    best_quilt: tuple[Ints, Floats, Ints],
) -> None:
    """Branch and bound over rectangles of quilts, as far as the tables at hand, the room and ``work`` allow.

    It returns nothing: Python code runs where arrays are returned, and an exception from a signal would be lost there.

    Parameters
    ----------
    stack : tuple of arrays, shapes (n, 4), (n,) and (2,)
        Updated in place. Rectangles a1..a2 × b1..b2; 0, 0 stands for no quilt node on that side. Those to be searched
        come first, as a stack; those whose far corner needs a table that is missing are put at the end, the last one
        first. Then lower bounds of the max-influence in each, from the rectangle it was cut from, and how many
        rectangles are to be searched and how many need a table.
    limits : tuple of int
        About how many entries of tables to look at before returning, so that signals arrive; and which distances are
        looked at (see ``cut``), besides the far corners of the first rectangles.
    nodes : tuple of int
        The last node there is, the first and the last of the range of nodes, and the records that each stands for;
        cards are the largest over the range (Lemma 4.6).
    scores : tuple of float
        ε, and the score at or below which the search may stop.
    terms : tuple of float arrays, shape (k, k)
        First term of eq. 5 with and without a left quilt node.
    left_tables, right_tables : tuple of arrays
        A stack of tables (the first one is zero: no quilt node), the distances, sorted, and their slots in the stack.
    best_quilt : tuple of arrays, shapes (m + 1, 2), (2,) and (2,)
        Updated in place. In row 0 the number of pairs, then pairs of secrets that decided before: they alone bound the
        influence from below, which discards most rectangles. The smallest score so far with its influence; its quilt.
    """
    rectangles, lowest, counts = stack
    work, spaces = limits
    length, first, last, window = nodes
    epsilon, floor = scores
    law, mask = terms
    lefts, left_distances, left_slots = left_tables
    rights, right_distances, right_slots = right_tables
    pairs, best, quilt = best_quilt
    pair = np.zeros(2, dtype=np.int64)
    slack = 1.0 + 2.0**-51
    top, missing = int(counts[0]), int(counts[1])
    while top > 0 and top + missing + 3 <= len(rectangles) and work > 0 and best[0] > floor:
        top -= 1
        work -= len(pairs)
        a1, a2, b1, b2 = rectangles[top]
        least = lowest[top]
        if b2 == 0:
            near, far = length - first + a1, length - first + a2
        elif a2 == 0:
            near, far = last + b1 - 1, last + b2 - 1
        else:
            near, far = a1 + b1 - 1, a2 + b2 - 1
        near, far = near + window - 1, far + window - 1
        if near / (epsilon - least) >= best[0]:
            continue
        i = find_slot(left_distances, left_slots, a2)
        j = find_slot(right_distances, right_slots, b2)
        if i < 0 or j < 0:
            missing += 1
            put(rectangles, lowest, len(rectangles) - missing, a1, a2, b1, b2, least)
            continue
        term = law if a2 > 0 else mask
        left, right = lefts[i], rights[j]
        influence = 0.0
        for p in range(1, pairs[0, 0] + 1):
            x, y = pairs[p]
            influence = max(influence, term[x, y] + left[x, y] + right[x, y])
        if influence >= epsilon or near / (epsilon - influence) >= best[0]:
            continue
        if far / (epsilon - influence) * slack < best[0]:
            influence = max_influence(term, left, right, pair)
            work -= law.size
            if influence < epsilon:
                score = far / (epsilon - influence) * slack
                if score < best[0]:
                    best[0], best[1] = score, influence
                    quilt[0], quilt[1] = a2, b2
            known = False
            for p in range(1, pairs[0, 0] + 1):
                known = known or (pairs[p, 0] == pair[0] and pairs[p, 1] == pair[1])
            if not known:
                # a full list forgets its oldest pair
                count = pairs[0, 0]
                if count == len(pairs) - 1:
                    for p in range(1, count):
                        pairs[p, 0], pairs[p, 1] = pairs[p + 1, 0], pairs[p + 1, 1]
                    count -= 1
                pairs[count + 1, 0], pairs[count + 1, 1] = pair[0], pair[1]
                pairs[0, 0] = count + 1
            if influence >= epsilon or near / (epsilon - influence) >= best[0]:
                continue
        am, bm = cut(a1, a2, spaces), cut(b1, b2, spaces)
        if am == a2 and bm == b2:
            continue
        # the last one, nearest, is looked at first: good quilts are found early
        if am < a2 and bm < b2:
            put(rectangles, lowest, top, am + 1, a2, bm + 1, b2, influence)
            top += 1
        if am < a2:
            put(rectangles, lowest, top, am + 1, a2, b1, bm, influence)
            top += 1
        if bm < b2:
            put(rectangles, lowest, top, a1, am, bm + 1, b2, influence)
            top += 1
        put(rectangles, lowest, top, a1, am, b1, bm, influence)
        top += 1
    counts[0], counts[1] = top, missing
