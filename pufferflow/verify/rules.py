"""Bounds of the leakage of a node through a neighbour: one function for every kind of proof.

For distributions p, q of the neighbour given two values of the node, and growth e^w, w(z, y) =
c·d(z, y) + A[z, y], each returns an upper bound of max (p·h)/(q·h) over all h > 0 with h(z) ≤ h(y)
e^w(z, y). The proofs are in ``docs/leakage.md``.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from operator import mul

from flint import arb

from pufferflow.errors import CertificateError
from pufferflow.verify.balls import INFINITE, ONE, ZERO, Row, Table, ball, columns, largest
from pufferflow.verify.parse import Flows, Matrix, Mixing, Part, RowSet, Witness, require

# -- exact distributions: trees (Lemma 3) ----------------------------------------------------------


@lru_cache(2**14)  # the same trees may serve many nodes
def _tree(parents: tuple[int, ...], k: int, values: frozenset[int]) -> list[tuple[int, int, bool]]:
    """Return these values without the root, parents first, with their parent and arc direction.

    Children of other values become children of the next one above, or of the first one.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for v, a in enumerate(parents):
        children[abs(a) - 1].append(v)
    line = children[-1][:1]
    for v in line:
        line.extend(children[v])
    why = "a tree has the parent of every state: 0 of one, its root, to which all others lead"
    require(len(line) == len(parents) == k, why)
    root = next(v for v in line if v in values)
    above, arcs = {-1: root}, []
    for v in line:
        a = above[abs(parents[v]) - 1]
        above[v] = v if v in values else a
        if above[v] == v != root:
            arcs.append((v, a, parents[v] > 0))
    return arcs


def by_tree(p: Row, q: Row, parents: Witness, values: frozenset[int], growth: Table) -> arb:
    """Return a bound by the flows along any tree of the values that the neighbour can have.

    With u(z) = u(y) + w(z, y) along its arcs (z, y) and h = e^u let P = p·h/(p·h), Q likewise.
    Flows g ≥ 0 with P(y) − Σ_z g(y, z) + Σ_z g(z, y) e^(w(z, y) − u(z) + u(y)) ≤ ρ Q(y) at every y
    prove ρ (p·h)/(q·h). Excess of the tree's flows at a value moves to the one with the largest Q.
    """
    listed = tuple(parents) if isinstance(parents, list) else ()
    arcs, h = _tree(listed, len(p), values), [ONE] * len(p)
    for v, a, up in arcs:
        h[v] = h[a] * growth[v][a] if up else h[a] / growth[a][v]
    above, below = list(map(mul, p, h)), list(map(mul, q, h))
    ratio, clipped = sum(above, ZERO) / sum(below, ZERO), False
    net = [a - ratio * b for a, b in zip(above, below, strict=True)]
    for v, a, up in reversed(arcs):
        if net[v] >= 0 if up else net[v] <= 0:
            net[a] += net[v]
            net[v] = ZERO
        else:  # a flow is never negative
            clipped = True
    store = max(range(len(q)), key=lambda y: float(below[y].mid()))
    # with exact flows there is no excess
    for y, rest in enumerate(net if clipped else ()):
        if not rest <= 0:
            ratio += rest.upper() * growth[y][store] * h[store] / h[y] / below[store]
    return ratio


# -- any distribution (Lemma 6) --------------------------------------------------------------------


def reweighted(low: Table, high: Table, values: frozenset[int], growth: Table) -> Table:
    """Return bounds for distributions of the neighbour y reweighted in any way.

    Given x the weights lie in [low[y][x], high[y][x]]. Between x and z the cross ratio R of two
    values y, y' of the neighbour is at most above(y) / below(y'). The bound is the largest (1 +
    √(RH))² / (√R + √H)², H = e^w(y, y'), over R > 1; it is at most R, and at most H, and grows with
    both.
    """
    far = [[h.sqrt() for h in row] for row in growth]
    widest = {y: largest([ONE, *(far[y][z] for z in values if z != y)]) for y in values}

    def bound(cross: arb, most: arb) -> arb:
        both = (1 + cross * most) / (cross + most)
        return both.upper() if both.is_finite() else most.upper()

    def roots(x: int, z: int) -> list[tuple[arb, int]]:
        pairs = [(high[y][x], low[y][z], y) for y in values if not high[y][x].is_zero()]
        ratios = ((p / q if p > 0 and q > 0 else INFINITE, y) for p, q, y in pairs)
        # exact numbers have an order, and NaN has none
        return sorted(((ratio.sqrt().upper(), y) for ratio, y in ratios), reverse=True)

    def of_pair(x: int, z: int) -> arb:
        tops, ends = roots(x, z), roots(z, x)
        if not (tops and ends):  # impossible values
            return INFINITE
        found = ONE
        for top, y in tops:
            if bound(top * ends[0][0], widest[y]) <= found:
                continue
            for end, other in ends:
                cross, most = top * end, far[y][other]
                if cross <= found:  # and so are the following ones
                    break
                if y != other and not most <= found:
                    found = found.max(bound(cross, most))
        return found**2

    return [[ONE if x == z else of_pair(x, z) for z in range(len(low))] for x in range(len(low))]


def largest_ratios(weights: Iterable[Row]) -> Table:
    """Return table[x][z] = max of row[x] / row[z] over rows of weights; 0/0 does not count."""
    given = columns(weights)

    def most(above: Row, below: Row) -> arb:
        pairs = zip(above, below, strict=True)
        return largest([ZERO, *(p / q if q > 0 else INFINITE for p, q in pairs if not p.is_zero())])

    return [[ONE if p is q else most(p, q) for q in given] for p in given]


# -- sets of distributions (Lemma I2) --------------------------------------------------------------


def by_flows(p: RowSet, q: RowSet, flows: Witness, growth: Table) -> arb:
    """Return a bound for all distributions of two sets by flows that are affine in them.

    They bound p·h from above and q·h from below by sums of h(y) times ``left`` and ``right``, the
    largest and the smallest values of the two sides of Lemma I2. Excess of the left over its share
    of the right moves to the value with the largest q.
    """
    k, parts = len(growth), len(p.parts)
    why = f"between sets of rows flows are between all {k} states, with shares for each of {parts}"
    if not isinstance(flows, Flows):
        raise CertificateError(f"{why} parts")
    every = flows.flow, *flows.surplus, *flows.reserve
    fits = len(flows.surplus) == len(flows.reserve) == parts and {k} == set(map(len, every))
    require(fits, f"{why} parts")
    left, right = _spread(p, flows.surplus, growth, 1), _spread(q, flows.reserve, growth, -1)
    for z, row in enumerate(flows.flow):
        for y, amount in enumerate(map(ball, row)):
            left[z] -= amount
            left[y] += amount * growth[z][y]
    store = max(range(k), key=lambda y: float(right[y].mid()))
    if not right[store] > 0:
        return INFINITE
    least = (left[store] / right[store]).max(ONE).lower()
    # the requirement falls with the ratio elsewhere, so that of a smaller ratio suffices
    excess = ((left[y] - least * right[y]).max(ZERO) * growth[y][store] for y in range(k))
    return (sum(excess, left[store]) / right[store]).max(ONE)


def _spread(rows: RowSet, given: list[Matrix], growth: Table, sign: int) -> Row:
    """Return bounds, upper (1) or lower (−1), of the mass of base and parts at each value."""
    found, k = [ball(p) for p in rows.base], range(len(rows.base))
    for part, shares in zip(rows.parts, given, strict=True):
        for y in k:
            here = [growth[z][y] if sign > 0 else 1 / growth[y][z] for z in k]
            found[y] += greedy(part, [ball(shares[z][y]) * here[z] for z in k], sign)
    return found


def greedy(part: Part, values: Row, sign: int) -> arb:
    """Return a bound of Σ e · values over the part, upper (1) or lower (−1).

    It is t · sum ± Σ widths (± (value − t))⁺, for any t.
    """
    filled, threshold = ZERO, ZERO
    for z in sorted(range(len(values)), key=lambda z: -sign * float(values[z].mid())):
        filled, threshold = filled + ball(part.widths[z]), arb(values[z].mid())
        if filled >= ball(part.total):
            break
    beyond = (
        ball(width) * (sign * (value - threshold)).max(ZERO)
        for width, value in zip(part.widths, values, strict=True)
        if width
    )
    return threshold * ball(part.total) + sign * sum(beyond, ZERO)


def entry_bounds(rows: list[RowSet], steps: int) -> tuple[Table, Table]:
    """Return lower and upper bounds of the entries of products of ``steps`` matrices."""

    def extreme(row: RowSet, values: Row, sign: int) -> arb:
        base = sum((ball(p) * value for p, value in zip(row.base, values, strict=True)), ZERO)
        return sum((greedy(part, values, sign) for part in row.parts), base)

    k, found = len(rows), []
    for sign in (-1, 1):
        entries = [[arb(int(x == z)) for x in range(k)] for z in range(k)]
        for _ in range(steps):
            entries = [[extreme(row, column, sign) for row in rows] for column in entries]
        found.append(columns(entries))
    return found[0], found[1]


# -- overlaps --------------------------------------------------------------------------------------


def overlapping(family: Mixing, cost: arb, around: int) -> arb:
    """Return the largest E(j) E(around − j), the leakage by j records before and the others after.

    With ρ = (1 − α) e^(mc), E(r) = e^(rc) for r < m and E(n) = α e^((m−1)c) + ρ E(n − m), that is
    E(km + r) = a + ρ^k (e^(rc) − a), a = α e^((m−1)c) / (1 − ρ). For given numbers of whole blocks
    log E is convex in r, so one of the two r is 0 or both end a block; and for given ends E E' is
    concave in the number of blocks before the node, largest next to the half.
    """
    m = family.steps
    ratio = ball(1 - family.overlap) * (m * cost).exp()
    fixed = ball(family.overlap) * ((m - 1) * cost).exp() / (1 - ratio)

    def factor(records: int) -> arb:
        blocks, rest = divmod(records, m)
        start = (rest * cost).exp()
        return fixed + ratio**blocks * (start - fixed) if blocks else start

    blocks, rest = divmod(around, m)
    ends = (0, blocks), (rest + 1, blocks - 1)  # a block shared by both sides counts once
    near = ((n // 2 + i, start, n) for start, n in ends for i in (-1, 0, 1))
    places = [block * m + start for block, start, n in near if 0 <= block <= n]
    return largest([factor(j) * factor(around - j) for j in places])
