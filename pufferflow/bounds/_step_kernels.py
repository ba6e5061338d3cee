"""Kernels of successive nodes: what each reveals of the one before it, from what that reveals.

Costs change little from one node to the next, so an optimal tree stays nearly optimal. The value of
*any* tree whose flows are not negative is an upper bound (Lemma 3: its flows are the proof), and
takes a few dozen multiplications. Only where a flow may be negative, and at some nodes where the
potentials of a tree leave the polytope, the pair is solved anew. Where a distribution may be
reweighted in any way, there is a closed form instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import PATIENCE, kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow.bounds._pair_kernels import (
    FARTHEST,
    at_least,
    proved,
    read_tree,
    room,
    solve,
    write_tree,
)
from pufferflow.bounds._reweighting_kernels import reweight, reweight_blocks


@kernel
def _value_of_tree(
    p: Any, q: Any, growth: Any, nodes: Any, above: Any, arcs: Any, work: Any
) -> float:
    """Log (p·h)/(q·h) for a tree's potentials; −1 unless all its flows are surely not negative.

    ``nodes`` has parents before children, ``above`` the place of the parent of each and ``arcs``
    the entry of ``growth`` that leads to it from its parent. Rows of ``work``: h, flow, mass, in
    that order.
    """
    h, flow, mass = work[0], work[1], work[2]
    n = len(nodes)
    half = n * n
    h[0] = 1.0
    for i in range(1, n):
        h[i] = h[above[i]] * growth[arcs[i]]
    sum_p, sum_q = 0.0, 0.0
    for i in range(n):
        flow[i] = p[nodes[i]] * h[i]
        mass[i] = q[nodes[i]] * h[i]
        sum_p += flow[i]
        sum_q += mass[i]
    share_p, share_q = 1 / sum_p, 1 / sum_q
    for i in range(n):
        from_p, from_q = flow[i] * share_p, mass[i] * share_q
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
    # every arc is off by a few roundings, and the bound by no more than their sum
    return math.log(sum_p * share_q) + 4.0 * (n + 8) * UNIT_ROUNDOFF


@kernel
def _leaves(growth: Any, nodes: Any, work: Any, tolerance: float) -> bool:
    """Whether h(z) > h(y) e^{w(z, y)} for some z, y, by more than the tolerance."""
    n = len(nodes)
    h = work[1]
    for i in range(n):
        h[nodes[i]] = work[0, i]
    for z in range(n):
        violated = 0
        most, first = h[z] * (1 - tolerance), z * n
        for y in range(n):
            violated += h[y] * growth[first + y] < most
        if violated:
            return True
    return False


@kernel
def costs_between(cost: Any, now: Any, there: Any, w: Any) -> float:
    """Fill in the costs w of pairs of values, and return the largest.

    ``there`` are the values that a node can have.

    It is ∞ where one of them is beyond :data:`FARTHEST`.

    Whoever has the others is as far from every value as two can be: where h is the largest, say,
    which leaves every h of the values there are. Anything less would be a short cut between these,
    and the bound too low.
    """
    k = len(w)
    farthest = 0.0
    for z in range(k):
        for y in range(k):
            if z != y and there[z] and there[y]:
                between = cost[z, y] + now[z, y]
                # also of what is no number
                farthest = max(farthest, between if between <= FARTHEST else np.inf)
    for z in range(k):
        for y in range(k):
            w[z, y] = cost[z, y] + now[z, y] if there[z] and there[y] else farthest
        w[z, z] = 0.0
    return farthest


@kernel
def beyond_stationary(spread: float, following: float, farthest: float) -> float:
    """How much more than under P* the past of a node can leak at most (Lemma 7).

    Under the stationary distribution this is 0.

    The distribution of the node before is π times e^r with r of the given spread, that of the node
    one with the following one; so the distributions of the node before given x are P*(x, ·) times
    e^r up to a factor, within the spread in total variation.
    """
    if spread == 0:
        return 0.0
    variation = -math.expm1(-spread) * (1 + 4 * UNIT_ROUNDOFF)
    growth = math.expm1(farthest) if farthest < 600 else math.inf
    return min(spread + following, 2 * math.log1p(variation * growth)) * (1 + 4 * UNIT_ROUNDOFF)


@kernel
def store(leakages: Any, out: Any) -> None:
    """Keep leakages as smaller floats, rounded up."""
    for x in range(len(leakages)):
        for z in range(len(leakages)):
            kept = np.float32(leakages[x, z])
            if kept < leakages[x, z]:
                kept = np.float32(leakages[x, z] * (1 + 1.2e-7)) + np.float32(1e-38)
            out[x, z] = kept


def _work_of(exact: Any, reweighted: Any, possible: Any, tables: Any, *others: Any) -> int:
    """Steps of a walk; of one that goes on, too many to interpret, as that may begin anew."""
    k, places = len(tables[0]), others[-1]
    return PATIENCE + 1 if places[0] else (len(possible) - 1) * k**2 * (k + 4) ** 3 // 2


@kernel(steps=_work_of)
def walk(
    exact: tuple[Any, float, Any, Any],
    reweighted: tuple[Any, Any, Any],
    possible: Any,
    tables: tuple[Any, Any, Any, Any],
    limits: tuple[Any, Any],
    trees: Any,
    checks: tuple[int, float],
    out: Any,
    places: tuple[int, int],
) -> int:
    """Leakages of n nodes one after another, each from those of its neighbour: of the one before.

    Places are pairs of values, one node after another: node · k² + x · k + x'. A call does so much
    of them as its work allows, so that signals arrive between calls.

    Parameters
    ----------
    exact : tuple of float array, float, bool array and float array
        ``rows``, shape (n, k, k) or (1, k, k): distributions of the neighbour given each value of
        the node; by how much at most one differs from the true one, in total variation; ``alike``,
        shape (k, k): pairs of values with surely the same distribution, at every node; ``spreads``,
        shape (n + 1,): how far the distribution of each node, from the neighbour of the first on,
        is from the one that rows are of (Lemma 7); ∞ where rows say nothing.
    reweighted : tuple
        ``which``, shape (n,): the table of each node whose neighbour's distribution may be
        reweighted, −1 for none; the tables, roots as ``reweight`` takes them; and blocks, as
        ``reweight_blocks`` takes them.
    possible : bool array, shape (n + 1, k)
        Values that the neighbour of the first node, and each node, can have; of others rows need
        not be distributions, and what is known of the leakages of values says nothing of them.
    tables : tuple of float arrays, shape (k, k)
        Leakages of the neighbour of the first node; filled with those of the last one, 0 of values
        that it cannot have; and room, left alone between calls.
    limits : tuple of float arrays
        ``cost``, shape (k, k): c where two values differ in what a mechanism sees, otherwise 0;
        ``caps``, shape (n, k, k) or (1, k, k): bounds of the leakages. What nothing is known of is
        as large as these.
    trees : tuple of int16, int16 and int32 arrays, shape (k, k, k)
        Nodes, places of parents and arcs of the trees of all pairs; −1 in place 0 where there is
        none. Replaced.
    checks : tuple of int and float
        After how many nodes all trees are checked, as after 1, 2, 4, …, since costs change most
        where another matrix comes; and how far, in c, a potential may leave the polytope then.
    out : float32 array, shape (n + 1, k, k)
        Filled with the leakages of the neighbour of the first node and of all nodes, rounded up.
    places : tuple of int
        The first place, and about how much work to do: that of some multiplications each.

    Returns
    -------
    int
        The next place, n · k² at the end.
    """
    (rows, error, alike, spreads), (which, roots, blocks) = exact, reweighted
    nodes, aboves, arcs = trees
    (start, now, before, through), (cost, caps) = tables, limits
    place, left = places
    n, k = len(out) - 1, len(start)
    w, growth = np.empty((k, k)), np.empty(2 * k * k)
    slopes = np.empty((k, k, 1), dtype=np.int32), np.empty((k, k, 1))
    quick = np.empty((3, k))
    (parent, up), work, order = room(k)
    p, q = np.empty(k), np.empty(k)
    pair = p, q, w, k
    largest = cost.max()
    if place == 0:
        now[:] = start
        store(now, out[0])
    while place < n * k * k and left > 0:
        step, first = place // (k * k), place % (k * k)
        there, cap = possible[step + 1], caps[min(step, len(caps) - 1)]
        if first == 0:
            before[:] = now
            through[:] = cap
            if which[step] >= 0:
                for z in range(k):
                    for y in range(k):
                        w[z, y] = cost[z, y] + now[z, y] if z != y else 0.0
                reweight(roots[which[step]], w, (through, slopes[0], slopes[1]), (0, k * k))
                reweight_blocks(blocks, out[: step + 1], cost, through, (0, k * k))
        rows_of, known = rows[min(step, len(rows) - 1)], spreads[step] < np.inf
        check = step % checks[0] == 0 or step & (step - 1) == 0
        more, sums = 0.0, bool(0)
        if known:
            farthest = costs_between(cost, before, possible[step], w)
            sums = farthest <= FARTHEST
            for z in range(k):
                for y in range(k):
                    growth[z * k + y] = math.exp(w[z, y]) if w[z, y] < 700 else np.inf
                    growth[k * k + z * k + y] = 1 / growth[z * k + y]
            more = (
                2 * math.log1p(error * math.expm1(min(farthest, 700.0))) * (1 + 8 * UNIT_ROUNDOFF)
            )
            more += beyond_stationary(spreads[step], spreads[step + 1], farthest)
        for at in range(first, k * k):
            if left <= 0:
                return place
            place += 1
            x, z = at // k, at % k
            now[x, z] = 0.0
            if x == z or not (there[x] and there[z]):
                continue
            bound, value = np.inf, -1.0
            if known and alike[x, z]:
                bound = 0.0
            elif known and sums:
                tree = nodes[x, z], aboves[x, z], arcs[x, z]
                for v in range(k):
                    p[v], q[v] = rows_of[x, v], rows_of[z, v]
                if tree[0][0] >= 0:
                    left -= 20 * k
                    value = _value_of_tree(p, q, growth, tree[0], tree[1], tree[2], quick)
                    if (
                        value >= 0
                        and check
                        and _leaves(growth, tree[0], quick, checks[1] * largest)
                    ):
                        value = -1.0
                if value >= 0:
                    bound = value + more
                else:
                    left -= (k + 4) ** 3 // 2
                    root = read_tree(tree, k, bool(0), (parent, up))
                    root, value = solve(pair, root, (parent, up), work, order)
                    bound = at_least(value, proved(pair, root, (parent, up), work, value)) + more
                    write_tree((parent, up), order, k, tree)
            bound = bound if bound <= through[x, z] else through[x, z]
            now[x, z] = bound if bound <= cap[x, z] else cap[x, z]
        store(now, out[step + 1])
        left -= 10 * k * k + (5 * k**4 * (1 + len(blocks[0])) if which[step] >= 0 else 0)
    return place
