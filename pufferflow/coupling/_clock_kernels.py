"""Kernels along a clock: one application of Φ a step, of couplings or for any law, while a matrix serves.

Costs change little from one step to the next, so an optimal tree stays nearly optimal. The value of *any* tree whose
flows are not negative is an upper bound (Lemma 3: its flows are the proof), and takes a few dozen multiplications.
Only where a flow may be negative, and at some steps where the potentials of a tree leave the polytope, the pair is
solved anew.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import UNIT_ROUNDOFF
from pufferflow.coupling._pair_kernels import (
    FARTHEST,
    at_least,
    climb,
    proved,
    read_tree,
    room,
    solve,
    weigh,
    write_tree,
)
from pufferflow.coupling._reweighting_kernels import reweighed, reweight

PASSED = 500.0
"""Leakages above it are not passed through a product of matrices."""


@kernel
def _value_of_tree(p: Any, q: Any, growth: Any, nodes: Any, above: Any, arcs: Any, work: Any) -> float:
    """Log (p·h)/(q·h) for the potentials of a tree, −1 unless all its flows are surely not negative.

    ``nodes`` has parents before children, ``above`` the place of the parent of each and ``arcs`` the entry of
    ``growth`` that leads to it from its parent. Rows of ``work``: h, flow, mass, in that order.
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
def _cut(tree: Any, there: Any, parent: Any, up: Any, stands: Any) -> Any:
    """Fill in the tree of the states ``there``, and return its root: others stand for the state above them.

    What hangs on one of those hangs on that state; where there is none, on the first there is.
    """
    nodes, above, arcs = tree
    n = len(nodes)
    root = np.int64(-1)
    for i in range(n):
        if root < 0 and there[nodes[i]]:
            root = np.int64(nodes[i])
    for i in range(n):
        v = nodes[i]
        stands[i] = v if there[v] else (root if i == 0 else stands[above[i]])
        parent[v] = stands[above[i]] if there[v] else root
        up[v] = arcs[i] < n * n
    parent[root] = -1
    return root


@kernel
def costs_between(cost: Any, now: Any, there: Any, w: Any) -> float:
    """Fill in the costs w of pairs of values, of which ``there`` are those that a node can have; the largest of them.

    It is ∞ where one of them is beyond :data:`FARTHEST`.

    Whoever has the others is as far from every value as two can be: where h is the largest, say, which leaves every h
    of the values there are. Anything less would be a short cut between these, and the bound too low.
    """
    k = len(w)
    farthest = 0.0
    for z in range(k):
        for y in range(k):
            if z != y and there[z] and there[y]:
                between = cost[z, y] + now[z, y]
                farthest = max(farthest, between if between <= FARTHEST else np.inf)  # also of what is no number
    for z in range(k):
        for y in range(k):
            w[z, y] = cost[z, y] + now[z, y] if there[z] and there[y] else farthest
        w[z, z] = 0.0
    return farthest


@kernel
def walk(
    laws: tuple[Any, float, Any],
    possible: Any,
    tables: tuple[Any, Any],
    limits: tuple[Any, Any],
    trees: Any,
    checks: tuple[int, float],
    out: Any,
    places: tuple[int, int],
) -> int:
    """Apply Φ once for every table of rows; a table serves one step, or a single one all of them.

    Places are pairs of values, one step after another: step · k² + x · k + x'. A call does so much of them as its work
    allows, so that signals arrive between calls.

    Parameters
    ----------
    laws : tuple of float array, float and bool array
        ``rows``, shape (n, k, k) or (1, k, k): laws of the neighbour given each value of the node; by how much at most
        a law differs from the true one, in total variation; ``alike``, shape (k, k): pairs of values with surely the
        same law, at every step.
    possible : bool array, shape (n + 1, k)
        Values that a node can have before the first and after each step; of others rows need not be laws, and what is
        known of the leakages of values says nothing of them.
    tables : tuple of float arrays, shape (k, k)
        Leakages before the first step, replaced by those after the last, 0 of values that the node cannot have; and
        room for those before the present step, left alone between calls.
    limits : tuple of float arrays
        ``cost``, shape (k, k): c where two values differ in what a mechanism sees, otherwise 0; ``caps``, shape
        (n, k, k) or (1, k, k): bounds of the leakages after each step. What nothing is known of is as large as these.
    trees : tuple of int16, int16 and int32 arrays, shape (k, k, k)
        Nodes, places of parents and arcs of the trees of all pairs; −1 in place 0 where there is none. Replaced.
    checks : tuple of int and float
        After how many steps all trees are checked, as after 1, 2, 4, …, since costs change most where another matrix
        comes; and how far, in c, a potential may leave the polytope then. 0 steps: no pair is solved, and what the
        given trees prove is taken.
    out : float32 array, shape (n, k, k)
        Filled with the leakages after each step, rounded up.
    places : tuple of int
        The first place, and about how much work to do: that of some multiplications each.

    Returns
    -------
    int
        The next place, n · k² at the end.
    """
    rows, error, alike = laws
    nodes, aboves, arcs = trees
    (now, before), (cost, caps) = tables, limits
    place, left = places
    n, k = out.shape[0], out.shape[1]
    w, growth = np.empty((k, k)), np.empty(2 * k * k)
    quick = np.empty((3, k))
    (parent, up), work, order = room(k)
    p, q = np.empty(k), np.empty(k)
    pair = p, q, w, k
    largest = cost.max()
    while place < n * k * k and left > 0:
        step, first = place // (k * k), place % (k * k)
        if first == 0:
            before[:] = now
        table, there, cap = rows[min(step, len(rows) - 1)], possible[step + 1], caps[min(step, len(caps) - 1)]
        farthest = costs_between(cost, before, possible[step], w)
        known = farthest <= FARTHEST
        for z in range(k):
            for y in range(k):
                growth[z * k + y] = math.exp(w[z, y])
                growth[k * k + z * k + y] = 1 / growth[z * k + y]
        more = 2 * math.log1p(error * math.expm1(min(farthest, 700.0))) * (1 + 8 * UNIT_ROUNDOFF)
        cut = checks[0] == 0 and not possible[step].all()
        check = checks[0] > 0 and (step % checks[0] == 0 or step & (step - 1) == 0)
        for at in range(first, k * k):
            if left <= 0:
                return place
            place += 1
            x, z = at // k, at % k
            now[x, z] = 0.0
            if x == z or not (there[x] and there[z]):
                continue
            if alike[x, z]:
                continue
            for v in range(k):
                p[v], q[v] = table[x, v], table[z, v]
            tree = nodes[x, z], aboves[x, z], arcs[x, z]
            told, value = np.inf, -1.0
            if known and tree[0][0] >= 0 and not cut:
                left -= 20 * k
                value = _value_of_tree(p, q, growth, tree[0], tree[1], tree[2], quick)
                if value >= 0 and check and _leaves(growth, tree[0], quick, checks[1] * largest):
                    value = -1.0
            if value >= 0:
                told = value + more
            elif known and (checks[0] > 0 or tree[0][0] >= 0):
                left -= (k + 4) ** 3 // 2
                root = (
                    _cut(tree, possible[step], parent, up, order[0])
                    if cut
                    else read_tree(tree, k, bool(0), (parent, up))
                )
                if checks[0]:
                    root, value = solve(pair, root, (parent, up), work, order)
                else:
                    climb(pair, root, (parent, up), work, order)
                    value = weigh(pair, (parent, up), work, order)
                told = at_least(value, proved(pair, root, (parent, up), work, value)) + more
                if checks[0]:
                    write_tree((parent, up), order, k, tree)
            now[x, z] = told if told <= cap[x, z] else cap[x, z]
        for x in range(k):
            for z in range(k):
                stored = np.float32(now[x, z])
                if stored < now[x, z]:
                    stored = np.float32(now[x, z] * (1 + 1.2e-7)) + np.float32(1e-38)
                out[step, x, z] = stored
        left -= 10 * k * k
    return place


@kernel
def forget_walk(
    roots: Any,
    possible: Any,
    now: Any,
    bounds: tuple[float, float],
    blocks: tuple[Any, Any],
    filled: Any,
    out: tuple[Any, Any],
    steps: tuple[int, int],
) -> None:
    """Apply Φ of a node whose neighbour has any law, for steps from the first to before the second of ``steps``.

    Parameters
    ----------
    roots : float array, shape (k, k, k)
        As :func:`reweight` takes them.
    possible : bool array, shape (n, k)
        Values that the node can have after each step.
    now : float array, shape (k, k)
        Leakages before the first of these steps; replaced by those after the last.
    bounds : tuple of float
        c, and the bound of all leakages.
    blocks : tuple of int array, shape (m,), and float array, shape (m, k, k)
        Numbers of steps, and the most that so many tell of a pair: after each multiple of the number the leakages are
        at most what passes through them.
    filled : tuple of arrays
        Room for what :func:`reweight` fills.
    out : tuple of float32 array, shape (n, k, k), and float array, shape (n + 1,)
        Filled with the leakages after each step, rounded up, and the largest of them; its place 0 has that before the
        first step.
    steps : tuple of int
    """
    cost, cap = bounds
    sizes, limits = blocks
    stored, largest = out
    k = len(now)
    w = np.empty((k, k))
    for step in range(steps[0], steps[1]):
        for z in range(k):
            for y in range(k):
                w[z, y] = 0.0 if z == y else now[z, y] + cost
        reweight(roots, w, filled, (0, k * k))
        there = possible[step]
        for x in range(k):
            for z in range(k):
                known = x == z or not (there[x] and there[z])
                now[x, z] = 0.0 if known else min(filled[0][x, z], cap)
        for block in range(len(sizes)):
            size = sizes[block]
            if (step + 1) % size:
                continue
            alpha = cost + largest[step + 1 - size]
            between = (size - 1) * cost * (1 + 4 * UNIT_ROUNDOFF)
            for x in range(k):
                for z in range(k):
                    if x == z or now[x, z] <= between:
                        continue
                    limit, told = limits[block, x, z], alpha
                    if alpha <= PASSED and limit < 600:
                        told = reweighed(math.exp(limit / 2), alpha)[0] * (1 + 16 * UNIT_ROUNDOFF)
                    now[x, z] = min(now[x, z], min(told, limit) + between)
        most = 0.0
        for x in range(k):
            for z in range(k):
                most = max(most, now[x, z])
                stored[step, x, z] = np.nextafter(np.float32(now[x, z]), np.float32(np.inf))
        largest[step + 1] = most
