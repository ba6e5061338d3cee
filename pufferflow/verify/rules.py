"""What a node's values reveal through a neighbour: one function for every kind of witness.

For distributions p, q of the neighbour given two values of the node, and growth e^w, w(z, y) = c·d(z, y) + A[z, y],
each returns an upper bound of max (p·h)/(q·h) over all h > 0 with h(z) ≤ h(y) e^w(z, y). The proofs are in
``docs/leakage.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from operator import mul
from typing import Any

from flint import arb, fmpq

from pufferflow.verify.model import Row, Table, ball, largest
from pufferflow.verify.parse import Flows, Matrix, Mixing, Pair, Part, RowSet, Tree

_ONE = arb(1)


# -- exact distributions: trees (Lemma 3) ------------------------------------------------------------


def cut(tree: Tree, values: int) -> Tree:
    """Return the tree of these values: what hangs on others hangs on the value above, or on the first there is."""
    root, arcs = tree
    first = next(v for v in (root, *(v for v, _, _ in arcs)) if values >> v & 1)
    above = {root: first}
    for v, a, _ in arcs:
        above[v] = v if values >> v & 1 else above[a]
    return Tree(first, [(v, above[a], up) for v, a, up in arcs if values >> v & 1 and v != first])


def by_tree(p: Row, q: Row, tree: Tree, growth: Table) -> arb:
    """Bound by the flows along a tree, whatever it is.

    With u(z) = u(y) + w(z, y) along its arcs (z, y) and h = e^u let P = p·h/(p·h), Q likewise. Flows g ≥ 0 with
    P(y) − Σ_z g(y, z) + Σ_z g(z, y) e^(w(z, y) − u(z) + u(y)) ≤ ρ Q(y) at every y prove ρ (p·h)/(q·h). What the flows
    of the tree leave over at a value goes to the one with most of Q.
    """
    h: Row = [_ONE] * len(p)
    for v, a, up in tree.arcs:
        h[v] = h[a] * growth[v][a] if up else h[a] / growth[a][v]
    above, below = list(map(mul, p, h)), list(map(mul, q, h))
    ratio, balanced = _balanced(above.copy(), below.copy(), tree)
    if not balanced:
        ratio *= 1 + _left_over(above, below, tree, h, growth)
    return ratio.upper() if ratio.is_finite() else arb.pos_inf()


def _balanced(above: Row, below: Row, tree: Tree) -> tuple[arb, bool]:
    """(p·h)/(q·h), and whether flows along the arcs of the tree surely move P to Q: then nothing is left over.

    ``above`` and ``below`` are p·h and q·h of each value; they become the sums of what hangs on it.
    """
    for v, a, _ in reversed(tree.arcs):
        above[a] += above[v]
        below[a] += below[v]
    ratio = above[tree.root] / below[tree.root]
    for v, _, up in tree.arcs:  # each carries what P has more than Q in all that hangs on its value
        share = ratio * below[v]
        if not (above[v] >= share if up else above[v] <= share):
            return ratio, False
    return ratio, True


def _left_over(above: Row, below: Row, tree: Tree, h: Row, growth: Table) -> arb:
    """What goes to the value with most of Q where the flows of the tree fall short, by ρ."""
    sum_p, sum_q = sum(above[1:], above[0]), sum(below[1:], below[0])
    net = [a / sum_p - b / sum_q for a, b in zip(above, below, strict=True)]
    for v, a, up in reversed(tree.arcs):
        carried = net[v].mid() if up else -net[v].mid()
        if carried > 0:  # a flow is never negative
            flow = carried if up else -carried
            net[v] -= flow
            net[a] += flow
    store = max(range(len(below)), key=lambda y: float(below[y].mid()))
    moved = arb(0)
    for y, rest in enumerate(net):
        if not rest <= 0:
            far = growth[y][store] * h[store] / h[y] if y != store else _ONE
            moved += rest.upper() * far
    return moved * sum_q / below[store]


# -- any distribution (Lemma 6) ----------------------------------------------------------------------


def reweighted(bounds: Iterable[tuple[Any, Any, int]], growth: Table) -> arb:
    """Bound where the distribution of the neighbour may be multiplied by any h ≥ 0.

    For values y, y' of the neighbour the cross ratio R of their probabilities is at most above(y) / below(y'). The
    bound is the largest (1 + √(RH))² / (√R + √H)², H = e^w(y, y'), over R > 1; it is at most R, and at most H.

    Parameters
    ----------
    bounds : iterable of (above, below, y)
        Numbers that can be compared and divided exactly or outward; None is infinite.
    """
    bounds = list(bounds)
    rising = sorted((entry for entry in bounds if entry[1] is not None), key=lambda entry: entry[1])
    most = _ONE
    for above, _, y in bounds:
        for _, below, other in rising:
            if above is not None and below > 0:
                if not above > below:
                    break
                ratio = ball(above / below)
                if ratio <= most:  # and so are those that follow
                    break
            else:
                ratio = arb.pos_inf() if above is None or above > 0 else _ONE
            h = growth[y][other]
            if y == other or h <= most:
                continue
            told = h
            if ratio.is_finite():
                root, far = ratio.sqrt(), h.sqrt()
                told = ((1 + root * far) / (root + far)) ** 2
            if not told.is_finite():
                return arb.pos_inf()
            most = most.max(told.upper())
    return most


def quotients(pairs: Iterable[tuple[Any, Any, int]]) -> Iterator[tuple[Any, Any, int]]:
    """Bounds for :func:`reweighted` from the weights of each y given two values, exact or balls."""
    for p, q, y in pairs:
        if isinstance(p, fmpq):
            if p or q:
                ratio = p / q if q else None
                yield ratio, ratio, y
        elif not (p.is_zero() and q.is_zero()):
            share = None if q.is_zero() else p / q
            yield (None, None, y) if share is None else (share.upper(), share.lower(), y)


def extremes(low: Matrix, high: Matrix, x: int, z: int) -> Iterator[tuple[Any, Any, int]]:
    """The same of all weights of y in [low[y], high[y]]."""
    for y, (below, above) in enumerate(zip(low, high, strict=True)):
        if above[x] or above[z]:
            yield above[x] / below[z] if below[z] else None, below[x] / above[z] if above[z] else None, y


# -- sets of distributions (Lemma I3) ----------------------------------------------------------------


def by_flows(p: RowSet, q: RowSet, flows: Flows, growth: Table) -> arb:
    """Bound for all distributions of two sets by flows that are affine in them.

    A distribution is the sum of a base and of parts e, 0 ≤ e ≤ widths with a given sum. For flows g ≥ 0 and shares
    f(z, ·) ≥ 0 of every part of p and r(v, ·) ≥ 0 of every part of q, each of sum 1,

        p·h ≤ Σ_y h(y) [base(y) − Σ_z g(y, z) + Σ_z g(z, y) e^w(z, y) + Σ over the parts Σ_z e(z) f(z, y) e^w(z, y)],
        q·h ≥ Σ_y h(y) [base'(y) + Σ over the parts Σ_v e'(v) r(v, y) e^−w(y, v)].

    What the largest first bracket has beyond its share of the smallest second one goes to the value with most of q.
    """
    k = len(growth)
    left, right = [ball(value) for value in p.base], [ball(value) for value in q.base]
    for (z, y), amount in flows.flow.items():
        flow = ball(amount)
        left[z] -= flow
        left[y] += flow * growth[z][y]
    for part, shares in zip(p.parts, flows.surplus, strict=True):
        for y in range(k):
            left[y] += _greedy(part, [_share(shares, z, y, k) * growth[z][y] for z in range(k)], 1)
    for part, shares in zip(q.parts, flows.reserve, strict=True):
        for y in range(k):
            right[y] += _greedy(part, [_share(shares, v, y, k) / growth[y][v] for v in range(k)], -1)
    store = max(range(k), key=lambda y: float(right[y].mid()))
    if not right[store] > 0:
        return arb.pos_inf()
    least = (left[store] / right[store]).max(_ONE).lower()
    # what is needed falls with the ratio allowed elsewhere, so what a smaller one needs suffices
    needed = left[store]
    for y in range(k):
        if y != store:
            needed += (left[y] - least * right[y]).max(arb(0)) * growth[y][store]
    bound = (needed / right[store]).max(_ONE)
    return bound.upper() if bound.is_finite() else arb.pos_inf()


def _share(shares: dict[Pair, Fraction], z: int, y: int, k: int) -> arb:
    """What goes from z to y; what is left over stays."""
    if z != y:
        return ball(shares.get((z, y), Fraction()))
    return ball(1 - sum((shares.get((z, v), Fraction()) for v in range(k) if v != z), Fraction()))


def _greedy(part: Part, values: Row, sign: int) -> arb:
    """Bound of Σ e · values over the part, from above (1) or below (−1): t · sum ± Σ widths (± (value − t))⁺, any t."""
    order = sorted(range(len(values)), key=lambda z: -sign * float(values[z].mid()))
    filled, threshold = Fraction(), arb(0)
    for z in order:
        filled += part.widths[z]
        threshold = arb(values[z].mid())
        if filled >= part.total:
            break
    total = threshold * ball(part.total)
    for width, value in zip(part.widths, values, strict=True):
        if width:
            total += sign * ball(width) * (sign * (value - threshold)).max(arb(0))
    return total


# -- Markov quilts and overlaps ----------------------------------------------------------------------


def largest_ratios(vectors: Table) -> list[list[arb | None]]:
    """table[x][y] = max over z of vectors[x][z] / vectors[y][z]; 0/0 does not count, None: infinite."""
    inverses = [[None if q.is_zero() else 1 / q for q in vector] for vector in vectors]

    def ratio(above: Row, below: list[arb | None]) -> arb | None:
        most = arb(0)
        for p, q in zip(above, below, strict=True):
            if not p.is_zero():
                if q is None:
                    return None
                most = most.max(p * q)
        return most

    return [[ratio(above, below) for below in inverses] for above in vectors]


def overlapping(family: Mixing, cost: arb, around: int) -> arb:
    """Largest E(j) E(around − j): what values reveal through j records before them and all others after.

    With ρ = (1 − α) e^(mc), E(r) = e^(rc) for r < m and E(n) = α e^((m−1)c) + ρ E(n − m), that is
    E(km + r) = a + ρ^k (e^(rc) − a), a = α e^((m−1)c) / (1 − ρ). For given numbers of whole blocks log E is convex in
    r, so one of the two r is 0 or both end a block; and for given ends E E' is concave in the number of blocks before
    the node, largest next to the half.
    """
    m = family.steps
    ratio = ball(1 - family.overlap) * (m * cost).exp()
    fixed = ball(family.overlap) * ((m - 1) * cost).exp() / (1 - ratio)

    def factor(records: int) -> arb:
        blocks, rest = divmod(records, m)
        start = (rest * cost).exp()
        return fixed + ratio**blocks * (start - fixed) if blocks else start

    blocks, rest = divmod(around, m)
    middle = {max(blocks // 2 - 1, 0), blocks // 2, min(blocks // 2 + 1, blocks)}
    places = [k * m for k in middle]
    if blocks and rest + 1 < m:  # a block is shared by both sides, so there is one less
        half = (blocks - 1) // 2
        places += [k * m + rest + 1 for k in {max(half - 1, 0), half, min(half + 1, blocks - 1)}]
    return largest([factor(j) * factor(around - j) for j in places])
