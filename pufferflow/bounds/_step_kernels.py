"""Kernels of successive nodes: the leakage of each from that of the node before.

Costs change little from one node to the next, so an optimal tree stays nearly optimal. The value of
*any* tree whose flows are not negative is an upper bound (Lemma 3: its flows are the proof), and
takes a few dozen multiplications. The pair is solved again only if a flow may be negative, or, at
some nodes, if the potentials leave the polytope.

Of distributions reweighted by any start or side information, the weights that the values y of the
neighbour have given x and given x' are known up to a common factor each y may have. The leakage is
the largest 2 log((1 + √(RH)) / (√R + √H)) over ordered pairs y, y', R the cross ratio of the
weights and H = e^{w(y, y')} (Lemma 6). With a = 1/√R and b = 1/√H that is 2 log(1 + (1 − a)(1 − b)
/ (a + b)), where nothing overflows.
"""

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import PATIENCE, kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow.bounds._pair_kernels import proved, read_tree, solve, spans, write_tree

FARTHEST = 1e250
"""Larger costs, and NaN, prove nothing: their sums along a tree may overflow."""

_FAR = 1e150
_LITTLE = 1e-9
"""Excess by Lemma 7, in units of c, below which Lemma 6 is not used."""
_UNWEIGHED = 1400.0
"""Larger costs, and NaN, count as ∞: half of them exceeds the exponents of floats."""


@kernel(inner=True)
def _value_of_tree(p: Any, q: Any, growth: Any, stored: Any, n: int, work: Any) -> float:
    """Return log (p·h)/(q·h) for a tree's potentials; −1 unless all flows are proved ≥ 0.

    Nothing is proved for numbers near the limits of floats.

    ``growth`` has e^w by the arcs of :func:`read_tree`, and e^−w. Rows of ``work``: h, flow, mass,
    in the tree's order.
    """
    nodes, above, arcs, _ = stored
    h, flow, mass = work[0], work[1], work[2]
    half = len(growth) // 2
    h[0] = 1.0
    for i in range(1, n):
        h[i] = h[above[i]] * growth[arcs[i]]
        if not 1 / _FAR < h[i] < _FAR:
            return -1.0
    sum_p, sum_q = 0.0, 0.0
    for i in range(n):
        flow[i] = p[nodes[i]] * h[i]
        mass[i] = q[nodes[i]] * h[i]
        sum_p += flow[i]
        sum_q += mass[i]
    share_p, share_q = 1 / sum_p, 1 / sum_q
    for i in range(n):
        from_p, from_q = flow[i] * share_p, mass[i] * share_q
        if from_p + from_q < 1 / _FAR and p[nodes[i]] + q[nodes[i]] > 0:
            return -1.0
        flow[i] = from_p - from_q
        mass[i] = (from_p + from_q) * (4.0 * (n + 8) * UNIT_ROUNDOFF)  # rounding of the flow
    sure = True
    for i in range(n - 1, 0, -1):
        carried, rounding, a = flow[i], mass[i], above[i]
        sure &= (carried if arcs[i] < half else -carried) > rounding or rounding == 0.0
        flow[a] += carried
        mass[a] += rounding
    if not sure:
        return -1.0
    # every arc has an error of a few roundings, and the bound at most their sum
    return math.log(sum_p * share_q) + 4.0 * (n + 8) * UNIT_ROUNDOFF


@kernel(inner=True)
def _leaves(growth: Any, stored: Any, n: int, work: Any, tolerance: float) -> bool:
    """Return whether h(z) > h(y) e^{w(z, y)} for some z, y of a tree, beyond the tolerance."""
    nodes, h, k = stored[0], work[2], len(stored[0])
    h[:] = np.inf
    for i in range(n):
        h[nodes[i]] = work[0, i]
    for i in range(n):
        violated = 0
        most, first = work[0, i] * (1 - tolerance), nodes[i] * k
        for y in range(k):
            violated += h[y] * growth[first + y] < most
        if violated:
            return True
    return False


@kernel(inner=True)
def add_costs(leakages: Any, cost: Any, w: Any) -> float:
    """Fill in the costs w; return the largest, ∞ if one exceeds :data:`FARTHEST` or is NaN."""
    farthest = 0.0
    for z in range(len(w)):
        for y in range(len(w)):
            w[z, y] = leakages[z, y] + cost[z, y] if z != y else 0.0
            farthest = max(farthest, w[z, y] if w[z, y] <= FARTHEST else np.inf)
    return farthest


@kernel(inner=True)
def _states(one: Any, other: Any, names: Any, local: Any) -> int:
    """Number the states in either of two distributions, the others −1; return their number."""
    n = 0
    for v in range(len(local)):
        local[v] = -1
        if one[v] > 0 or other[v] > 0:
            local[v], names[n] = n, v
            n += 1
    return n


@kernel(steps=lambda rows, *others: (others[-1][1] - others[-1][0]) * (len(rows) + 4) ** 3)
def couple(
    rows: Any,
    distinct: Any,
    w: Any,
    trees: Any,
    upper: Any,
    tolerance: float,
    places: tuple[int, int],
) -> int:
    """Bound the pairs of values x · k + x' in ``places`` by optimal trees.

    A pair's last tree serves if its flows are not negative and its potentials feasible up to the
    ``tolerance`` (not checked if that is negative). Otherwise the search starts from it.

    Parameters
    ----------
    rows : float array, shape (k, k)
        Distribution of the neighbour given each value.
    distinct : bool array, shape (k, k)
        Pairs of values that may have different distributions; others get 0.
    w : float array, shape (k, k)
        Costs, zero on the diagonal.
    trees : tuple of int16, int16, int32 and float arrays, shape (k, k, k)
        The trees of all pairs, in the format of :func:`read_tree`. Replaced; without flows if the
        arrays have no entries for these.
    upper : float array, shape (k, k)
        Filled with bounds that flows prove.

    Returns
    -------
    int
        Number of multiplications.
    """
    k, taken = len(w), 0
    names, local = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    tree = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.bool_)
    work, order = np.empty((6, k)), np.empty((5, k), dtype=np.int64)
    p, q, flows = np.empty(k), np.empty(k), np.zeros(k)
    costs, growth, quick = np.empty((k, k)), np.empty(2 * k * k), np.empty((3, k))
    known = add_costs(w, np.zeros((k, k)), costs) <= FARTHEST
    for arc in range(k * k):
        cost = w[arc // k, arc % k]
        growth[arc], growth[k * k + arc] = math.exp(cost), math.exp(-cost)
    for place in range(places[0], places[1]):
        x, y = place // k, place % k
        upper[x, y] = 0.0 if known or not distinct[x, y] else np.inf
        if len(trees[3]):
            flows = trees[3][x, y]
            flows[:] = 0.0
        if not (known and distinct[x, y]):
            continue
        n, root = _states(rows[x], rows[y], names, local), -1
        stored = trees[0][x, y], trees[1][x, y], trees[2][x, y], flows
        taken += 20 * n
        if spans(stored, local, n):
            root = 0
            bound = _value_of_tree(rows[x], rows[y], growth, stored, n, quick)
            serves = bound >= 0
            if serves and tolerance >= 0:
                serves = not _leaves(growth, stored, n, quick, tolerance)
            if serves:
                upper[x, y] = bound
                for i in range(1, n):
                    flows[i] = abs(quick[1, i])
                continue
        taken += (n + 4) ** 3 // 2
        for a in range(n):
            p[a], q[a] = rows[x, names[a]], rows[y, names[a]]
            for b in range(n):
                costs[a, b] = w[names[a], names[b]]
        if root >= 0:
            root = read_tree(stored, local, n, tree)
        pair = p, q, costs, n
        root, value = solve(pair, root, tree, work, order)
        write_tree(tree, work, order, names, n, stored)
        upper[x, y] = proved(pair, root, tree, work, value)
    return taken


@kernel(inner=True)
def _largest(above: Any, below: Any, falls: Any) -> tuple[float, int, float]:
    """Return the leakage of a pair x, x', rounded up, the binding arc y · k + y', its derivative.

    ``above[y]`` bounds the root of the weight of y given x over that given x', ``below[y]`` the
    reverse; −1 if y has no weight given the first. ``falls`` are b and 1 − b.
    """
    k = len(above)
    most, arc, at = 0.0, -1, 1.0
    for y in range(k):
        if above[y] < 0:
            continue
        for other in range(k):
            root = above[y] * below[other]
            if root > 1 and other != y and below[other] >= 0:
                a = 1 / root
                grows = (1 - a) * falls[1, y, other] / (a + falls[0, y, other])
                if grows > most:
                    most, arc, at = grows, y * k + other, a
    if arc < 0:
        return 0.0, -1, 0.0
    b = falls[0, arc // k, arc % k]
    value = 2 * math.log1p(most) * (1 + 80 * UNIT_ROUNDOFF) + 8 * UNIT_ROUNDOFF
    return value, arc, 1 / (1 + at * b) - at / (at + b)


@kernel(steps=lambda roots, w, *_: 5 * len(w) ** 4)
def reweight(roots: Any, w: Any, extra: float, filled: Any) -> None:
    """Replace the bounds of pairs of values by smaller ones.

    Parameters
    ----------
    roots : float array, shape (k, k, k)
        By x, x' and y bounds of the root of the weight of y given x over that given x'; −1 if it
        has none given x.
    w : float array, shape (k, k)
        Costs, zero on the diagonal.
    extra : float
        Addend: the leakage of the records between.
    filled : tuple of arrays, shape (k, k)
        Bounds, rounded up; for replaced ones the binding arc, −1 for none, and its derivative.
    """
    upper, arcs, slopes = filled
    k = len(w)
    falls = np.empty((2, k, k))
    for y in range(k):
        for other in range(k):
            half = w[y, other] / 2 if w[y, other] <= _UNWEIGHED else np.inf
            falls[0, y, other], falls[1, y, other] = math.exp(-half), -math.expm1(-half)
    for x in range(k):
        for z in range(k):
            if x != z:
                value, arc, slope = _largest(roots[x, z], roots[z, x], falls)
                if value + extra < upper[x, z]:
                    upper[x, z], arcs[x, z], slopes[x, z] = value + extra, arc, slope


@kernel()
def beyond_stationary(spread: float, following: float, farthest: float) -> float:
    """Return an upper bound of the past's leakage beyond that under P* (Lemma 7); ∞ for spread ∞.

    Under the stationary distribution it is 0. The distribution of the node before is π times e^r, r
    with the given ``spread``, that of the node similarly with the ``following`` one; so the
    distributions of the node before given x are P*(x, ·) times e^r up to a factor, within
    the spread in total variation.
    """
    if spread == 0 or spread == np.inf:
        return spread
    variation = -math.expm1(-spread) * (1 + 4 * UNIT_ROUNDOFF)
    growth = math.expm1(farthest) if farthest < 600 else math.inf
    return min(spread + following, 2 * math.log1p(variation * growth)) * (1 + 4 * UNIT_ROUNDOFF)


@kernel(inner=True)
def store(leakages: Any, out: Any) -> None:
    """Store leakages as float32, rounded up."""
    for x in range(len(leakages)):
        for z in range(len(leakages)):
            kept = np.float32(leakages[x, z])
            if kept < leakages[x, z]:
                kept = np.float32(leakages[x, z] * (1 + 1.2e-7)) + np.float32(1e-38)
            out[x, z] = kept


def _work_of(exact: Any, reweighted: Any, possible: Any, tables: Any, *others: Any) -> int:
    """Return the steps of a walk; too many to interpret if it continues, as that may restart."""
    k, places = len(tables[0]), others[-1]
    return PATIENCE + 1 if places[0] else (len(possible) - 1) * k**2 * (k + 4) ** 3 // 2


@kernel(steps=_work_of)
def walk(
    exact: tuple[Any, float, Any],
    reweighted: tuple[Any, Any, Any],
    possible: Any,
    tables: tuple[Any, Any],
    limits: tuple[Any, Any],
    trees: Any,
    checks: tuple[int, float],
    out: Any,
    places: tuple[int, int],
) -> int:
    """Compute the leakages of n successive nodes, each from those of the node before.

    A call ends after its work, so that signals arrive between calls.

    Parameters
    ----------
    exact : tuple of float array, float and float array
        ``rows``, shape (n, k, k) or (1, k, k): distributions of the neighbour given each value of
        the node; the largest relative error of an entry; and ``spreads``, shape (n + 1,): distance
        of the distribution of each node, from the neighbour of the first on, from the one of the
        rows (Lemma 7), ∞ if the rows do not apply.
    reweighted : tuple
        ``which``, shape (n,): the table of each node whose neighbour's distribution may be
        reweighted, −1 for none; the tables, roots as for ``reweight``; and blocks of several steps
        to such distributions: steps, roots, and addends.
    possible : bool array, shape (n + 1, k)
        Values that the neighbour of the first node, and each node, can have.
    tables : tuple of float arrays, shape (k, k)
        Leakages of the neighbour of the first node; filled with those of the last one, 0 for values
        that it cannot have.
    limits : tuple of float arrays
        ``cost``, shape (k, k): c if a mechanism's input differs between two values, otherwise 0;
        ``caps``, shape (n, k, k) or (1, k, k): bounds of the leakages, 0 for equal distributions.
    trees : tuple of arrays
        As for :func:`couple`.
    checks : tuple of int and float
        Number of nodes between checks of all trees, in addition to 1, 2, 4, …, since costs change
        most after a change of the matrix; and the tolerance, in c, for potentials.
    out : float32 array, shape (n + 1, k, k)
        Filled with the leakages of the neighbour of the first node and of all nodes, rounded up.
    places : tuple of int
        The number of nodes before the call, and its approximate work.

    Returns
    -------
    int
        The number of nodes after the call.
    """
    (rows, error, spreads), (which, roots, blocks) = exact, reweighted
    (start, now), (cost, caps) = tables, limits
    (steps, block_roots, extra), (step, left) = blocks, places
    n, k = len(out) - 1, len(now)
    w, through = np.empty((k, k)), np.empty((k, k))
    filled = through, np.empty((k, k), dtype=np.int64), np.empty((k, k))
    distinct, zeros = np.empty((k, k), dtype=np.bool_), np.zeros((k, k))
    largest = add_costs(zeros, cost, w)
    if step == 0:
        add_costs(start, zeros, now)
        store(now, out[0])
    while step < n and left > 0:
        there, cap = possible[step + 1], caps[min(step, len(caps) - 1)]
        for x in range(k):  # compiling an assignment of arrays takes seconds
            for z in range(k):
                through[x, z] = cap[x, z]
                distinct[x, z] = x != z and there[x] and there[z] and cap[x, z] > 0
        farthest = add_costs(now, cost, w)
        more = 2.1 * min(error, math.log1p(error * math.expm1(min(farthest, 700.0))))
        more += beyond_stationary(spreads[step], spreads[step + 1], farthest)
        if spreads[step] < np.inf:
            check = step % checks[0] == 0 or step & (step - 1) == 0
            rows_of = rows[min(step, len(rows) - 1)]
            tolerance = checks[1] * largest if check else -1.0
            left -= couple(rows_of, distinct, w, trees, now, tolerance, (0, k * k))
        # the bound for any distribution is at least that of a given one
        if which[step] >= 0 and not more <= _LITTLE * largest:
            reweight(roots[which[step]], w, 0.0, filled)
            left -= 5 * k**4
            for b in range(len(steps)):
                if steps[b] <= step + 1:
                    add_costs(out[step + 1 - steps[b]], cost, w)
                    reweight(block_roots[b], w, extra[b], filled)
                    left -= 5 * k**4
        for x in range(k):
            for z in range(k):
                bound = now[x, z] + more
                bound = bound if bound <= through[x, z] else through[x, z]
                now[x, z] = bound if distinct[x, z] else 0.0
        step += 1
        store(now, out[step])
        left -= 10 * k * k
    return step
