"""Kernels of optimal couplings of a pair of distributions.

One pair of rows p, q with costs w: the largest log (p·h)/(q·h) over h = e^u with u(z) − u(y) ≤ w(z,
y). A vertex of that polytope is a spanning tree of tight arcs; the arcs carry the flow that proves
optimality if it is ≥ 0. The solver walks from tree to tree. Flows are kept in tilted units, g(z, y)
e^{u(z)} / Σ p e^u, so that they sum to at most the mass that moves and nothing overflows.
"""

import math
from typing import Any

import numpy as np

from pufferflow._util.jit import kernel
from pufferflow._util.rounding import SAFE_MINIMUM, UNIT_ROUNDOFF

_NEGATIVE = -1e-14
_FAR = 4
"""A tree serves as a start if at most one in this number of its potentials changes."""
_LONG, _AFRESH = 30.0, 32
"""Length of an edge, and number of steps, after which distributions are recomputed."""
_STEPS = 30
"""Number of steps per state after which a search ends. Loops along a tree end after n states."""


@kernel(inner=True)
def climb(pair: Any, root: int, tree: Any, work: Any, order: Any) -> None:
    """Compute the potentials u of a tree, whose arcs are tight, and its states, parents first.

    A pair is (p, q, w, n), a tree (parent, up) without its root. Rows of ``work``: u, P, Q, flow
    and two for temporary values; of ``order``: states, and four for temporary values.
    """
    (_, _, w, n), (parent, up) = pair, tree
    u, line, child, sibling = work[0], order[0], order[1], order[2]
    for v in range(n):
        child[v] = -1
    for v in range(n):
        if v != root:
            sibling[v] = child[parent[v]]
            child[parent[v]] = v
    line[0] = root
    filled = 1
    at = 0
    u[root] = 0.0
    while at < filled:
        a = line[at]
        at += 1
        v = child[a]
        while v >= 0:
            u[v] = u[a] + w[v, a] if up[v] else u[a] - w[a, v]
            line[filled] = v
            filled += 1
            v = sibling[v]


@kernel(inner=True)
def _gather(n: int, tree: Any, work: Any, order: Any) -> None:
    """Compute the flows of a tree from the inflow and outflow of its states."""
    (parent, up), flow, line = tree, work[3], order[0]
    for i in range(n - 1, 0, -1):
        v = line[i]
        carried = flow[v]
        flow[parent[v]] += carried
        flow[v] = carried if up[v] else -carried


@kernel(inner=True)
def weigh(pair: Any, tree: Any, work: Any, order: Any) -> Any:
    """Compute tilted P, Q and flows of a tree with potentials; return the value log (p·h)/(q·h)."""
    p, q, _, n = pair
    u, P, Q, flow = work[0], work[1], work[2], work[3]
    high_p, high_q = -np.inf, -np.inf
    for v in range(n):
        if p[v] > 0:
            high_p = max(high_p, u[v])
        if q[v] > 0:
            high_q = max(high_q, u[v])
    sum_p, sum_q = 0.0, 0.0
    for v in range(n):
        P[v] = p[v] * math.exp(u[v] - high_p) if p[v] > 0 else 0.0
        Q[v] = q[v] * math.exp(u[v] - high_q) if q[v] > 0 else 0.0
        sum_p += P[v]
        sum_q += Q[v]
    value = math.log(sum_p) - math.log(sum_q) + (high_p - high_q)
    for v in range(n):
        P[v] /= sum_p
        Q[v] /= sum_q
        flow[v] = P[v] - Q[v]
    _gather(n, tree, work, order)
    return value


@kernel(inner=True)
def _attach(inner: int, outer: int, upward: bool, parent: Any, up: Any) -> None:
    """Attach the tree of ``inner`` below ``outer``, reversing the path from ``inner`` up."""
    current, above = inner, outer
    while current >= 0:
        old_parent, old_up = parent[current], up[current]
        parent[current], up[current] = above, upward
        above, upward, current = current, not old_up, old_parent


@kernel(inner=True)
def _nearest(w: Any, u: Any, n: int, inside: Any, away: Any, falling: bool) -> Any:
    """Return the ends of the first arc that becomes tight when u falls (rises) on ``inside``.

    ``w`` is transposed if u falls, so that the arcs of a state are a row. Rows are searched only
    if they have a smaller entry, as branches are slow.
    """
    for a in range(n):
        away[a] = np.inf if inside[a] else (-u[a] if falling else u[a])
    least, inner, outer = np.inf, -1, -1
    for b in range(n):
        if not inside[b]:
            continue
        here = u[b] if falling else -u[b]
        nearer = 0
        for a in range(n):
            nearer += w[b, a] + away[a] + here < least
        if nearer:
            for a in range(n):
                r = w[b, a] + away[a] + here
                if r < least:
                    least, inner, outer = r, b, a
    return least, inner, outer


@kernel(inner=True)
def _repaired(pair: Any, tree: Any, work: Any, order: Any) -> int:
    """Make the potentials of a tree feasible; return the number of changes.

    Arcs between states with unchanged potentials stay tight; the others are attached to the state
    of their binding constraint.
    """
    (_, _, w, n), (parent, up) = pair, tree
    u, better, binding = work[0], work[4], order[0]
    violated = 0
    for z in range(n):
        here = u[z]
        for y in range(n):
            violated += u[y] + w[z, y] < here
    if not violated:
        return 0
    changed = 0
    for z in range(n):
        lowest, at = u[z], z
        for y in range(n):
            if u[y] + w[z, y] < lowest:
                lowest, at = u[y] + w[z, y], y
        better[z] = lowest
        binding[z] = at
        changed += at != z
    for z in range(n):
        if binding[z] != z:
            parent[z], up[z] = binding[z], True
        elif parent[z] >= 0 and binding[parent[z]] != parent[z]:
            parent[z] = -1
    for z in range(n):
        u[z] = better[z]
    return changed


@kernel(inner=True)
def _restart(pair: Any, turned: Any, root: int, tree: Any, work: Any, order: Any) -> int:
    """Compute feasible potentials, from the given tree if ``root`` ≥ 0; return the tree's root."""
    (p, q, w, n), (parent, up) = pair, tree
    u, free, component, inside = work[0], work[4], order[1], order[3]
    changed = n
    if root >= 0:
        climb(pair, root, tree, work, order)
        changed = _repaired(pair, tree, work, order)
        if changed == 0:
            return root
    if changed > n // _FAR:  # none: the highest potentials where p is larger, 0 elsewhere
        high = 0
        for v in range(n):
            high += p[v] > q[v]
        for v in range(n):  # without a distribution for x' all may be larger
            u[v], parent[v] = np.inf if p[v] > q[v] and high < n else 0.0, -1
    for _ in range(n):  # no cost is negative, so shortest paths have fewer than n arcs
        if not _repaired(pair, tree, work, order):
            break
    largest = 0
    for v in range(n):
        component[v] = v
        while parent[component[v]] >= 0:
            component[v] = parent[component[v]]
        if p[v] + q[v] > p[largest] + q[largest]:
            largest = v
    home = component[largest]
    for v in range(n):
        if component[v] != v or v == home:
            continue
        # merge the component whose root is v in the direction in which the objective rises
        more = 0.0
        for a in range(n):
            inside[a] = component[a] == v
            if inside[a]:
                more += p[a] - q[a]
        falling = more < 0
        least, inner, outer = _nearest(turned if falling else w, u, n, inside, free, falling)
        _attach(inner, outer, not falling, parent, up)
        joined = component[outer]
        for a in range(n):
            if inside[a]:
                u[a] += -least if falling else least
                component[a] = joined
    while parent[largest] >= 0:
        largest = parent[largest]
    return largest


@kernel(inner=True)
def _tilt(n: int, change: float, tree: Any, work: Any, order: Any) -> None:
    """Update P, Q and flows of :func:`weigh` after a change of the potentials ``inside``."""
    P, Q, flow, inside = work[1], work[2], work[3], order[3]
    growth = math.exp(change)
    sum_p, sum_q = 0.0, 0.0
    for v in range(n):
        factor = growth if inside[v] else 1.0
        P[v] *= factor
        Q[v] *= factor
        sum_p += P[v]
        sum_q += Q[v]
    share_p, share_q = 1 / sum_p, 1 / sum_q
    for v in range(n):
        P[v] *= share_p
        Q[v] *= share_q
        flow[v] = P[v] - Q[v]
    _gather(n, tree, work, order)


@kernel(inner=True)
def _move(leaving: int, inner: int, n: int, tree: Any, order: Any) -> None:
    """Restore the order, parents first, after ``inside`` moved from ``leaving`` to ``inner``."""
    parent, line, rest, inside = tree[0], order[0], order[1], order[3]
    filled, kept = 0, 0
    for i in range(n):
        v = line[i]
        if inside[v]:
            rest[kept] = v
            kept += 1
        else:
            line[filled] = v
            filled += 1
    v, length = leaving, 1  # the path from ``inner`` to it was reversed
    while v != inner:
        v = parent[v]
        length += 1
    v = leaving
    for i in range(length):
        line[filled + length - 1 - i] = v
        inside[v] = 2
        v = parent[v]
    filled += length
    for i in range(kept):
        v = rest[i]
        if inside[v] == 1:
            line[filled] = v
            filled += 1


@kernel(inner=True)
def solve(pair: Any, root: int, tree: Any, work: Any, order: Any) -> Any:
    """Compute the optimal tree, from the given one if ``root`` ≥ 0; return its root and value.

    Along an edge of the polytope the objective is a quotient of two linear functions of e^t, hence
    monotone: each step follows a whole edge, which raises it, until no flow is negative. Most steps
    only rescale; the flows are recomputed before they are found non-negative. All costs must be
    numbers whose sums along a tree are finite.
    """
    (_, _, w, n), (parent, up) = pair, tree
    u, flow, line, inside = work[0], work[3], order[0], order[3]
    turned, value, afresh = np.empty((n, n)), 0.0, True
    for z in range(n):
        for y in range(n):
            turned[y, z] = w[z, y]
    root = _restart(pair, turned, root, tree, work, order)
    last = _STEPS * n + 100
    for step in range(last + 1):
        afresh |= step == last
        if afresh:
            climb(pair, root, tree, work, order)
            value = weigh(pair, tree, work, order)
        lowest, leaving = _NEGATIVE, -1
        for v in range(n):
            if v != root and flow[v] < lowest:
                lowest, leaving = flow[v], v
        if (leaving < 0 and afresh) or step == last:
            break
        if leaving < 0:
            afresh = True
            continue
        for v in range(n):
            inside[v] = 0
        inside[leaving] = 1
        for i in range(1, n):
            v = line[i]
            if inside[parent[v]]:
                inside[v] = 1
        falling = up[leaving]
        least, inner, outer = _nearest(turned if falling else w, u, n, inside, work[4], falling)
        parent[leaving] = -1
        _attach(inner, outer, not falling, parent, up)
        afresh = least > _LONG or step % _AFRESH == _AFRESH - 1
        if not afresh:
            change = -least if falling else least
            for v in range(n):
                u[v] += change if inside[v] else 0.0
            _move(leaving, inner, n, tree, order)
            _tilt(n, change, tree, work, order)
    return root, value


@kernel(inner=True)
def proved(pair: Any, root: int, tree: Any, work: Any, value: float) -> Any:
    """Return an upper bound of the pair's value from any flow of a tree, rounding included.

    It is ∞ if that is not a number.

    For g ≥ 0 with p(y) − out(y) + Σ g(z, y) e^{w(z, y)} ≤ Λ q(y) at every state y, p·h ≤ Λ q·h. In
    tilted units the inequality reads P(y) − out + Σ in · e^{w − u(z) + u(y)} ≤ ρ Q(y), and Λ = ρ
    e^value.
    """
    (p, _, w, n), (parent, up) = pair, tree
    u, P, Q, flow, net, size = work[0], work[1], work[2], work[3], work[4], work[5]
    reach = 0.0
    for v in range(n):
        net[v] = P[v]
        size[v] = P[v]
        reach = max(reach, abs(u[v]))
    for v in range(n):
        if v == root:
            continue
        g = max(flow[v], 0.0)
        if up[v]:
            tail, head = v, parent[v]
        else:
            tail, head = parent[v], v
        shift = w[tail, head] - u[tail] + u[head]
        gain = (
            math.exp(shift + 4 * UNIT_ROUNDOFF * (w[tail, head] + abs(u[tail]) + abs(u[head])))
            if g > 0
            else 1.0
        )
        net[tail] -= g
        net[head] += g * gain
        size[tail] += g
        size[head] += g * gain
    rounding = 4.0 * (n + 8) * UNIT_ROUNDOFF
    rounding += 8 * UNIT_ROUNDOFF * min(2 * reach, 1500.0)
    store = 0
    for v in range(n):
        if Q[v] > Q[store]:
            store = v
    moved = 0.0
    # excess mass by rounding moves to the state with the largest q
    for v in range(n):
        above = net[v] + rounding * size[v] + (SAFE_MINIMUM if p[v] > 0 else 0.0)
        share = Q[v] if Q[v] >= SAFE_MINIMUM else 0.0
        net[v] = above
        if v != store and above > share * (1 + 8 * rounding):
            shift = w[v, store] - u[v] + u[store]
            moved += (
                (above - share) * (1 + rounding) * math.exp(shift + rounding * (1 + abs(shift)))
            )
            net[v] = share
    net[store] += moved * (1 + rounding)
    ratio = 1.0
    for v in range(n):
        share = Q[v] * (1 - rounding)
        if Q[v] >= SAFE_MINIMUM and net[v] > share:
            ratio = max(ratio, net[v] / share)
    bound = value + math.log(ratio) + rounding + 4 * UNIT_ROUNDOFF * abs(value)
    return bound if bound == bound else np.inf


@kernel(inner=True)
def spans(stored: Any, local: Any, n: int) -> bool:
    """Return whether a stored tree has exactly the n states with a number ≥ 0 in ``local``."""
    nodes, found = stored[0], 0
    while found < n and nodes[found] >= 0 and local[nodes[found]] >= 0:
        found += 1
    return found == n and (n == len(nodes) or nodes[n] < 0)


@kernel(inner=True)
def read_tree(stored: Any, local: Any, n: int, tree: Any) -> Any:
    """Fill ``tree`` with a stored one of n states, by their numbers in ``local``; return its root.

    A stored tree has its states, parents first, then −1; the position of each one's parent; the arc
    between them, as v · k + parent if it leads up, otherwise k² + parent · k + v; and its flow in
    tilted units.
    """
    (nodes, above, arcs, _), (parent, up) = stored, tree
    parent[local[nodes[0]]] = -1
    for i in range(1, n):
        v = local[nodes[i]]
        parent[v], up[v] = local[nodes[above[i]]], arcs[i] < len(nodes) ** 2
    return local[nodes[0]]


@kernel(inner=True)
def write_tree(tree: Any, work: Any, order: Any, names: Any, n: int, stored: Any) -> None:
    """Store a tree of n states, in their ``names``, with the current potentials and flows."""
    (parent, up), (nodes, above, arcs, flows), line, place = tree, stored, order[0], order[1]
    k = len(nodes)
    nodes[n:], flows[:] = -1, 0.0
    for i in range(n):
        v = line[i]
        nodes[i], place[v] = names[v], i
        if i:
            a = parent[v]
            above[i], flows[i] = place[a], max(work[3, v], 0.0)
            arcs[i] = names[v] * k + names[a] if up[v] else k * k + names[a] * k + names[v]
