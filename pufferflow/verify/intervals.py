"""Quilts for all chains of an interval family at once, from bounds of φ and ψ.

φ_n is the supremum of log P^n(x, z) / P^n(x', z) over the family, ψ_n that of log P^n(x, z) P^n(x', z') / (P^n(x', z)
P^n(x, z')). A quilt at distances a and b has max-influence at most ψ_a + φ_b, at every node and for every initial law.
Both fall with the distance. The inequalities, with their proofs, are those of ``pufferflow/influence/intervals.py``
(sets, forward, backward, total variation, one centre); their evaluation here shares nothing with that file.

The certificate lists distances n in increasing order, each with a number of steps m: ``[n, 0]`` bounds φ_n and ψ_n
directly, from bounds of the entries of P^n and of their differences; ``[n, m]`` from the bounds at the largest
distance listed up to n − m, followed by m steps. Every number is rounded to the safe side: upper bounds to the upper
ends of their balls, lower ones to the lower ends. So balls never need to be narrow, only to be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from flint import arb, arb_mat

from pufferflow.verify.balls import ball
from pufferflow.verify.parsing import CertificateError, Claim, Intervals, check_integer, check_list
from pufferflow.verify.proof import Work
from pufferflow.verify.quilts import NodeRange, QuiltProof, Scores

MOST_SETS = 10
"""Most states of a family whose sets of states are all looked at; beyond, total variation takes their place."""

STEPWISE = 64
"""Sets are followed step by step so far, farther in halves."""

LONGEST_DIRECT = 2048
"""Largest distance bounded directly: the work grows with its square."""

Column: TypeAlias = list[arb]  # one number a state


class ReachBalls(NamedTuple):
    """Bounds of P^m(x, S), one column a set S."""

    lower: list[Column]
    upper: list[Column]


class Ratios(NamedTuple):
    """Upper bounds of e^φ and e^ψ; None: infinite."""

    forward: arb | None
    backward: arb | None


class IntervalQuiltProof(QuiltProof):
    """Quilts that serve every chain of an interval family, under either convention."""

    keys = (*QuiltProof.keys, "bounds")
    quantity = "card/(epsilon - bound of e)"

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self.listed = parse_bounds(self.fields["bounds"], claim.length)

    def work(self) -> Work:
        """Estimate the bounds, and the scores of all ranges."""
        assert isinstance(self.claim.family, Intervals)
        bounds = bounds_work(self.claim.family, self.listed)
        return bounds._replace(operations=bounds.operations + 10 * len(self.nodes[0]))

    def scores(self) -> list[Scores]:
        """Scores for the whole family."""
        assert isinstance(self.claim.family, Intervals)
        scores = IntervalScores(self.claim)
        for n, m in self.listed:
            scores.add(n, m)
        return [scores]


def parse_bounds(value: object, length: int) -> list[tuple[int, int]]:
    """Return the distances that are listed, each with its steps.

    Raises CertificateError: they are out of order or out of range.
    """
    listed: list[tuple[int, int]] = []
    for entry in check_list(value, "bounds"):
        pair = [check_integer(number, "bounds") for number in check_list(entry, "bounds")]
        if len(pair) != 2:
            raise CertificateError("bounds must hold pairs: a distance, and steps or 0")
        n, m = pair
        last = listed[-1][0] if listed else 1
        if not (last <= n <= length and 0 <= m < n) or (m == 0 and n > LONGEST_DIRECT):
            raise CertificateError(f"bounds: [{n}, {m}] is out of order or out of range")
        if m and not (listed and listed[0][0] <= n - m):
            raise CertificateError(f"bounds: nothing is listed at distance {n - m} or less, before [{n}, {m}]")
        listed.append((n, m))
    return listed


def bounds_work(family: Intervals, listed: list[tuple[int, int]]) -> Work:
    """What the bounds of φ and ψ at the listed distances take."""
    k = len(family.low)
    sets = 2**k - 2 if 2 <= k <= MOST_SETS else k
    hops: set[int] = set()
    asked = {m for _, m in listed if m}
    while asked:  # bounds after m steps take those after the halves of m
        hops |= asked
        asked = {half for m in asked if m > 1 for half in (m // 2, m - m // 2)} - hops
    direct = [n for n, m in listed if not m]
    followed = max([n for n in (*direct, *hops) if n <= LONGEST_DIRECT], default=0)
    steps = k * (6 + k // 8)  # one column a step farther back, from below and from above
    operations = max(direct, default=0) * k * steps + (min(STEPWISE, max(hops, default=0)) + len(hops)) * sets * steps
    operations += followed * (2 * k**3 + k * followed) + 6 * k**3 * (len(direct) + len(hops))
    operations += len(hops) * 4 * sets * k**2 + sum(m > 0 for _, m in listed) * 4 * sets * k
    operations += k * k * (20 + family.bits // 30)
    return Work(operations, followed * k**3, 3 * followed * k**2 + (STEPWISE + len(hops)) * 3 * sets * k)


class IntervalScores(Scores):
    """Scores of quilts with ψ_a + φ_b in the place of the max-influence."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim.windows, claim.epsilon, claim.hidden)
        assert isinstance(claim.family, Intervals)
        self._influence = InfluenceBalls(claim.family)
        self.distances: list[int] = []
        self.ratios: list[Ratios] = []

    def add(self, n: int, m: int) -> Ratios:
        """Bound φ and ψ at distance n, m steps after the largest distance up to n − m (m = 0: directly)."""
        ratios = self._influence.direct(n) if m == 0 else self._influence.after(m, self.at(n - m))
        if self.distances:
            ratios = Ratios(*(_least(pair) for pair in zip(ratios, self.ratios[-1], strict=True)))
        if ratios.forward is not None:  # ψ ≤ 2φ
            ratios = ratios._replace(backward=_least(((ratios.forward**2).upper(), ratios.backward)))
        self.distances.append(n)
        self.ratios.append(ratios)
        return ratios

    def influence_ratio(self, nodes: NodeRange) -> arb | None:
        """Bound of the exponential of the max-influence."""
        behind = arb(1) if nodes.left is None else self.at(nodes.left).backward
        ahead = arb(1) if nodes.right is None else self.at(nodes.right).forward
        return None if behind is None or ahead is None else behind * ahead

    def at(self, n: int) -> Ratios:
        """Bounds at distance n: those at the largest one listed up to there."""
        index = bisect_right(self.distances, n)
        return self.ratios[index - 1] if index else Ratios(None, None)


class InfluenceBalls:
    """How φ and ψ of a family are bounded, at the present precision."""

    def __init__(self, family: Intervals) -> None:
        self.k = k = len(family.low)
        self._one = _Rows(
            ReachBalls(
                _transposed([[ball(p).lower() for p in row] for row in family.low]),
                _transposed([[ball(p).upper() for p in row] for row in family.high]),
            )
        )
        singles = [1 << z for z in range(k)]
        self._all_sets = 2 <= k <= MOST_SETS
        sets = singles + [s for s in range(1, 2**k - 1) if s not in singles] if self._all_sets else singles
        indicators = [[arb(s >> x & 1) for x in range(k)] for s in sets]
        self._reached = {0: ReachBalls(indicators, indicators)}
        self._entries = [ReachBalls(indicators[:k], indicators[:k])]
        self._hops: dict[int, tuple[list[tuple[arb, arb]], arb]] = {}
        self._centre = _CentreBalls(family)

    def direct(self, n: int) -> Ratios:
        """Bound φ_n and ψ_n from bounds of the entries of P^n and of their differences."""
        while len(self._entries) <= n:
            self._entries.append(self._one.before(self._entries[-1]))
        lower, upper = self._entries[n]
        apart = self._centre.differences(n)
        states = range(self.k)
        table: dict[tuple[int, int], arb] = {}
        for x in states:
            for y in states:
                largest = arb(0)
                for z in states:
                    excess = (upper[z][x] - lower[z][y]).min(apart[x][y][z]).upper() if x != y else arb(0)
                    if excess > 0:
                        if lower[z][y] == 0:
                            return Ratios(None, None)
                        largest = largest.max(excess / lower[z][y])
                table[x, y] = (1 + largest).upper()
        return Ratios(
            _most(table.values()), _most((table[x, y] * table[y, x]).upper() for x in states for y in range(x + 1))
        )

    def after(self, m: int, ratios: Ratios) -> Ratios:
        """Bound φ and ψ after m steps more."""
        if ratios.forward is None:
            return ratios
        front, variation = self._hop(m)
        c = ratios.forward - 1
        forward = (1 + c * variation).upper()
        if front:
            forward = forward.min(_most(((1 + c * u) / (1 + c * l)).upper() for u, l in front))
        backward = None
        if front and ratios.backward is not None:
            d = ratios.backward - 1
            tilted = ((u * ratios.forward / (1 + c * u), l / (l + (1 - l) * ratios.forward)) for u, l in front)
            backward = _most(((1 + d * u) / (1 + d * l)).upper() for u, l in tilted)
        return Ratios(forward, backward)

    def _sets(self, m: int) -> ReachBalls:
        """Bounds of P^m(x, S) for all sets, single states first."""
        if m not in self._reached:
            if m > STEPWISE:
                self._reached[m] = _Rows(self._single(self._sets(m // 2))).before(self._sets(m - m // 2))
            else:
                before = max(n for n in self._reached if n < m)
                reach = self._reached[before]
                for _ in range(before, m):
                    reach = self._one.before(reach)
                self._reached[m] = reach
        return self._reached[m]

    def _single(self, reach: ReachBalls) -> ReachBalls:
        return ReachBalls(reach.lower[: self.k], reach.upper[: self.k])

    def _hop(self, m: int) -> tuple[list[tuple[arb, arb]], arb]:
        """Sets after m steps, as far as they matter, and a bound of the total variation between two rows of P^m."""
        if m not in self._hops:
            reach = self._sets(m)
            front = _front(reach) if self._all_sets else []
            bounds = [_variation(self._single(reach))]
            bounds += [_most((u - l).upper() for u, l in front)] if front else []
            bounds += [self._centre.variation(m)] if m <= LONGEST_DIRECT else []
            bounds += [(self._hop(m // 2)[1] * self._hop(m - m // 2)[1]).upper()] if m > 1 else []
            self._hops[m] = front, min(bounds)
        return self._hops[m]


class _CentreBalls:
    """Differences between the rows of P^n by way of C^n, C = low + a share of the intervals (any C would do)."""

    def __init__(self, family: Intervals) -> None:
        matrix, away = [], []
        for low, high in zip(family.low, family.high, strict=True):
            width = sum(high, Fraction()) - sum(low)
            share = (1 - sum(low)) / width if width else width
            row = [p + share * (q - p) for p, q in zip(low, high, strict=True)]
            above = [q - c for q, c in zip(high, row, strict=True)]
            below = [c - p for p, c in zip(low, row, strict=True)]
            half = sum(map(max, above, below), Fraction()) / 2
            matrix.append([ball(c) for c in row])
            away.append(ball(min(half, sum(above, Fraction()), sum(below, Fraction()))))
        k = len(matrix)
        self._matrix, self._away = arb_mat(matrix), away  # C and η
        self._powers = [arb_mat([[int(x == y) for y in range(k)] for x in range(k)])]
        self._weights: list[arb] = []  # K_j
        self._oscillations = [[arb(1)] * k]
        self._variations = [arb(1)]

    def variation(self, n: int) -> arb:
        """Bound of the total variation between two rows of P^n."""
        self._follow(n)
        return self._variations[n]

    def differences(self, n: int) -> list[list[list[arb]]]:
        """Bounds of P^n(x, z) − P^n(x', z), by x, x' and z."""
        self._follow(n)
        rows = self._powers[n].tolist()
        drift = self._drift(n)
        return [[[p - q + d for p, q, d in zip(row, other, drift, strict=True)] for other in rows] for row in rows]

    def _drift(self, n: int) -> list[arb]:
        """Σ_j K_j osc_{n−1−j}, by z."""
        return [_dot(self._weights[:n], column[n - 1 :: -1]) for column in _transposed(self._oscillations[:n])]

    def _follow(self, n: int) -> None:
        while len(self._variations) <= n:
            before = self._powers[-1].tolist()
            self._weights.append(
                _most(
                    sum((abs(p - q) * eta for p, q, eta in zip(row, other, self._away, strict=True)), arb(0)).upper()
                    for i, row in enumerate(before)
                    for other in before[: i + 1]
                )
            )
            self._powers.append(self._powers[-1] * self._matrix)
            rows = self._powers[-1].tolist()
            wide = [
                _most(column) + _most(-p for p in column) + drift
                for column, drift in zip(_transposed(rows), self._drift(len(self._weights)), strict=True)
            ]
            self._oscillations.append([p.min(q).upper() for p, q in zip(wide, self._oscillations[-1], strict=True)])
            apart = _most(
                sum((abs(p - q) for p, q in zip(row, other, strict=True)), arb(0)) / 2
                for i, row in enumerate(rows)
                for other in rows[: i + 1]
            )
            bound = (apart + _dot(self._weights, self._variations[::-1])).min(self._variations[-1])
            if len(self._variations) > 1:
                bound = bound.min(self._variations[1] * self._variations[-1])
            self._variations.append(bound.upper())


class _Rows:
    """Bounds of every row of a transition matrix, and what follows for p·h over the distributions p between them."""

    def __init__(self, bounds: ReachBalls) -> None:
        self._low, self._high = _transposed(bounds.lower), _transposed(bounds.upper)
        self._possible = [sum(1 << z for z, p in enumerate(row) if p != 0) for row in self._high]
        self._room = [1 - sum(map(float, row)) for row in self._low]
        self._width = [
            [float(p - q) for p, q in zip(*rows, strict=True)] for rows in zip(self._high, self._low, strict=True)
        ]
        self._weights: dict[tuple[int, int, int], arb_mat] = {}

    def before(self, reach: ReachBalls) -> ReachBalls:
        """Bounds after one such row and then the steps of ``reach``."""
        return ReachBalls(
            [[p.lower().max(arb(0)) for p in self._extremes(column, False)] for column in reach.lower],
            [[p.upper().min(arb(1)) for p in self._extremes(column, True)] for column in reach.upper],
        )

    def _extremes(self, values: Column, largest: bool) -> Iterator[arb]:
        """Bound p·h, h ≥ 0 being ``values``, from above or from below.

        For any number t, p·h = t + p·(h − t) is at most t plus the positive h(z) − t times their upper and the
        negative ones times their lower bounds; likewise at least. Here t is the h(z) of a state z, best the one at
        which the mass runs out when the best states are filled first. Which state that is, is guessed in floats.
        """
        order = sorted(range(len(values)), key=values.__getitem__, reverse=largest)
        support = sum(1 << z for z, h in enumerate(values) if h != 0)
        column = arb_mat([[h] for h in values])
        for x, room in enumerate(self._room):
            if not self._possible[x] & support:
                yield arb(0)
                continue
            filled = 0
            for z in order[:-1]:
                room -= self._width[x][z]
                if room <= 0:
                    break
                filled |= 1 << z
            else:
                z = order[-1]
            yield (self._weight(x, z, filled) * column)[0, 0]

    def _weight(self, x: int, marginal: int, filled: int) -> arb_mat:
        """Upper bounds of row x for the ``filled`` states, lower ones for others, the rest for the ``marginal`` one."""
        key = x, marginal, filled
        if key not in self._weights:
            pairs = zip(self._high[x], self._low[x], strict=True)
            row = [high if filled >> z & 1 else low for z, (high, low) in enumerate(pairs)]
            row[marginal] = 1 - sum(row[:marginal] + row[marginal + 1 :], arb(0))
            self._weights[key] = arb_mat([row])
        return self._weights[key]


def _variation(reach: ReachBalls) -> arb:
    """Bound of the total variation between two rows, from bounds of their entries."""
    above, below = _transposed(reach.upper), _transposed(reach.lower)
    return _most(
        sum(((p - q).max(arb(0)) for p, q in zip(row, other, strict=True)), arb(0)).upper() if x != y else arb(0)
        for x, row in enumerate(above)
        for y, other in enumerate(below)
    )


def _front(reach: ReachBalls) -> list[tuple[arb, arb]]:
    """Bounds u(x, S), l(x', S) with x ≠ x' of which no others are at least as far apart on both sides."""
    pairs = []
    for lower, upper in zip(*reach, strict=True):
        for x, above in enumerate(upper):
            others = [below for y, below in enumerate(lower) if y != x]
            if others:
                pairs.append((above, min(others)))
    pairs.sort(key=lambda pair: pair[0], reverse=True)
    front: list[tuple[arb, arb]] = []
    for above, below in pairs:
        if not front or below < front[-1][1]:
            front.append((above, below))
    return front


def _least(values: tuple[arb | None, arb | None]) -> arb | None:
    one, other = values
    return other if one is None else one if other is None else one.min(other)


def _most(values: Iterable[arb]) -> arb:
    first, *others = values
    for value in others:
        first = first.max(value)
    return first


def _dot(weights: list[arb], values: list[arb]) -> arb:
    return sum((p * q for p, q in zip(weights, values, strict=True)), arb(0))


def _transposed(rows: list[list[arb]]) -> list[list[arb]]:
    return [list(column) for column in zip(*rows, strict=True)]
