"""Scales that couplings prove for chains known by bounds of their rows.

As in ``couplings``, the certificate lists bounds A and B of what the values of a node tell through the nodes after and
before it, and ε ≥ c + A[x, x'] + B[x, x'] for all x ≠ x' proves the scale 1/c; for windows of w > 1 records
ε ≥ w c + max A + max B does. T is the number of windows. Every step may follow other rows, so

* A must be at least log max (p·h)/(q·h) over all p of the set of x, all q of that of x' and all h > 0 with
  h(z) ≤ h(y) e^w(z, y), w(z, y) = c + A[z, y] for z ≠ y, or at least (T − 1)·c;
* B likewise from the sets of the law of a record given the one after it, where they are known. Otherwise every law that
  the node before may have counts, and the cross ratios of the columns are bounded by those of the bounds. Where both
  are known the ``columns`` may be given, too: bounds of the same leakages, proved alone, of which the smaller count.
* For adversaries who know other records the laws of both neighbours may be reweighted, and cross ratios bound A, too.

A law is the sum of a base and of parts e, 0 ≤ e ≤ widths with a given sum. For flows g ≥ 0, for shares f(z, ·) ≥ 0 of
every part of p and r(v, ·) ≥ 0 of every part of q, each of sum 1,

    p·h ≤ Σ_y h(y) [base(y) − Σ_z g(y, z) + Σ_z g(z, y) e^w(z, y) + Σ over the parts Σ_z e(z) f(z, y) e^w(z, y)],
    q·h ≥ Σ_y h(y) [base'(y) + Σ over the parts Σ_v e'(v) r(v, y) e^−w(y, v)],

as h(z) ≤ h(y) e^w(z, y). So if at every y the largest first bracket over all e is at most e^A[x, x'] times the smallest
second one over all e', A[x, x'] is proved. For any number t, Σ e a ≤ t · sum + Σ widths (a − t)⁺, and
Σ e a ≥ t · sum − Σ widths (t − a)⁺. That such A and B bound the loss is shown in ``docs/leakage.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from pufferflow.verify.balls import UndecidedError, ball
from pufferflow.verify.parsing import (
    CertificateError,
    Claim,
    Intervals,
    Masses,
    Nodes,
    RowSet,
    check_list,
    check_object,
    decimal,
)
from pufferflow.verify.proof import Bound, Proof, Work
from pufferflow.verify.sides import (
    Matrix,
    check_reweighted,
    growth_of,
    parse_cost,
    parse_flow,
    parse_matrix,
    parse_state,
)

Table: TypeAlias = dict[tuple[int, int], Fraction]
"""Positive entries z, y."""

Ratios: TypeAlias = Callable[[int, int, int, int], tuple[Fraction, Fraction]]
"""Of x, x', y and y', numbers whose quotient bounds a cross ratio."""


@dataclass(frozen=True)
class ClaimedFlows:
    """Flows and shares for one pair of values; shares that stay where they are complete those listed."""

    flow: Table
    surplus: list[Table]
    reserve: list[Table]


@dataclass(frozen=True)
class ClaimedSide:
    """Bounds of what pairs of values tell through one side, and the flows that prove them."""

    leakages: Matrix
    flows: dict[tuple[int, int], ClaimedFlows]


class RobustCouplingProof(Proof):
    """Post-fixed points for both sides of the nodes of all chains between bounds."""

    keys = ("cost", "couplings")
    quantity = "1/c"
    hides_windows = from_informed = True

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        assert isinstance(claim.family, Intervals)
        self.family = claim.family
        self.cost = parse_cost(self.fields["cost"])
        entries = check_list(self.fields["couplings"], "couplings")
        if len(entries) != 1:
            raise CertificateError(f"couplings has {len(entries)} entries; a family between bounds has one")
        entry = check_object(entries[0], ("ahead", "past"), "couplings", closed=False)
        self.columns: ClaimedSide | None = None
        if "columns" in entry and self.family.backward is not None:
            self.columns = _side(entry.pop("columns"), self.family.rows, "columns")
        ahead, past = check_object(entry, ("ahead", "past"), "couplings").values()
        self.ahead = _side(ahead, self.family.rows, "ahead")
        self.past = _side(past, self.family.rows if self.family.backward is None else self.family.backward.rows, "past")

    def work(self) -> Work:
        """Estimate the inequalities of all pairs: k² operations for each part at every state."""
        k = len(self.family.low)
        parts = sum(len(rows[0].parts) for rows in self._known() if rows is not None) + (self.columns is not None)
        operations = k**2 * (40 + self.family.bits // 100) + 12 * k**4 * (parts + 1)
        return Work(operations, 0, 8 * k**2)

    def _known(self) -> tuple[list[RowSet], list[RowSet] | None]:
        """What is known of the laws of the next record, and of the one before."""
        backward = self.family.backward
        return self.family.rows, None if backward is None else backward.rows

    def bound(self) -> Bound:
        """Return 1/c if all inequalities hold; otherwise nothing is proved."""
        self._losses()
        for side, rows, where in zip((self.ahead, self.past), self._known(), ("ahead", "past"), strict=True):
            if rows is None:
                self._ratios(side, _column_ratios(self.family), where)
            elif self.claim.knows == "nothing":
                self._flows(side, rows, where)
            else:
                self._ratios(side, _row_ratios(self.family if where == "ahead" else self.family.backward), where)
        if self.columns is not None:
            self._ratios(self.columns, _column_ratios(self.family), "columns")
        scale = 1 / self.cost
        return Bound(scale, scale, 2, None, Nodes(1, self.claim.windows))

    def _losses(self) -> None:
        k, hidden = len(self.family.low), self.claim.hidden
        pairs = [(x, y) for x in range(k) for y in range(k) if x != y]
        ahead, past = ({(x, y): side.leakages[x][y] for x, y in pairs} for side in (self.ahead, self.past))
        if self.columns is not None:
            past = {(x, y): min(told, self.columns.leakages[x][y]) for (x, y), told in past.items()}
        if hidden == 1:
            worst = max((ahead[pair] + past[pair] for pair in pairs), default=Fraction())
        else:  # its first and its last record may have any two values each
            worst = max(ahead.values(), default=Fraction()) + max(past.values(), default=Fraction())
        loss = min(hidden * self.cost + worst, self.claim.length * self.cost)
        if loss > self.claim.epsilon:
            raise CertificateError(f"a loss of {decimal(loss)} is not excluded")

    def _asked(self, side: ClaimedSide) -> list[tuple[int, int]]:
        """The pairs whose bounds are not those that always hold."""
        cap, k = (self.claim.windows - 1) * self.cost, len(side.leakages)
        return [(x, y) for x in range(k) for y in range(k) if x != y and side.leakages[x][y] < cap]

    def _flows(self, side: ClaimedSide, rows: list[RowSet], where: str) -> None:
        growth = growth_of(side.leakages, self.cost)
        for x, y in self._asked(side):
            ratio = ball(side.leakages[x][y]).exp()
            flows = side.flows.get((x, y), ClaimedFlows({}, [{} for _ in rows[x].parts], [{} for _ in rows[y].parts]))
            if not _proves(rows[x], rows[y], flows, growth, ratio):
                raise CertificateError(f"{where}, values {x + 1} and {y + 1}: the flows do not prove the bound")

    def _ratios(self, side: ClaimedSide, ratios: Ratios, where: str) -> None:
        """Check a side whose laws may be reweighted in any way, from bounds of their ratios.

        The cross ratio R is at most the ratio of the weights of y and y' given x, over that given x'.
        """
        k = len(self.family.low)
        hs = [[value.sqrt() for value in row] for row in growth_of(side.leakages, self.cost)]
        for x, z in self._asked(side):
            bounds = ((hs[y][other], *ratios(x, z, y, other)) for y in range(k) for other in range(k) if y != other)
            roots = ((ball(above / below).sqrt() if below else None, h) for h, above, below in bounds if above > below)
            more = f"{where}, values {x + 1} and {z + 1}: under some law of the neighbour they tell more"
            check_reweighted(roots, side.leakages[x][z], more)


def _column_ratios(family: Intervals) -> Ratios:
    """Largest P(y, x) P(y', x') and smallest P(y, x') P(y', x), the last two of one row each."""
    low, high = family.low, family.high
    return lambda x, z, y, other: (high[y][x] * high[other][z], low[y][z] * low[other][x])


def _row_ratios(family: Intervals | None) -> Ratios:
    """Largest P(x, y) P(x', y') and smallest P(x', y) P(x, y')."""
    assert family is not None
    low, high = family.low, family.high
    return lambda x, z, y, other: (high[x][y] * high[z][other], low[z][y] * low[x][other])


def _proves(p: RowSet, q: RowSet, flows: ClaimedFlows, growth: list[list[arb]], ratio: arb) -> bool:
    """Whether p·h ≤ ratio · q·h for all laws of the two sets.

    What the rounding of flows leaves at a state goes to the one with most of q.
    """
    k = len(growth)
    left = [ball(value) for value in p.base]
    for (z, y), amount in flows.flow.items():
        flow = ball(amount)
        left[z] -= flow
        left[y] += flow * growth[z][y]
    right = [ball(value) for value in q.base]
    for part, shares in zip(p.parts, flows.surplus, strict=True):
        for y in range(k):
            left[y] += _greedy(part, [_share(shares, z, y, k) * growth[z][y] for z in range(k)], largest=True)
    for part, shares in zip(q.parts, flows.reserve, strict=True):
        for y in range(k):
            right[y] += _greedy(part, [_share(shares, v, y, k) / growth[y][v] for v in range(k)], largest=False)
    rest = [a - ratio * b for a, b in zip(left, right, strict=True)]
    store = max(range(k), key=lambda y: float(right[y].mid()))
    for y, beyond in enumerate(rest):
        if y != store and not beyond <= 0:
            rest[store] += beyond.upper() * growth[y][store]
    if rest[store] <= 0:
        return True
    if rest[store] > 0:
        return False
    raise UndecidedError


def _share(shares: Table, z: int, y: int, k: int) -> arb:
    if z != y:
        return ball(shares.get((z, y), Fraction()))
    return ball(1 - sum((shares.get((z, v), Fraction()) for v in range(k) if v != z), Fraction()))


def _greedy(part: Masses, values: list[arb], largest: bool) -> arb:
    """Bound of Σ e · values over the part, from above or from below; the threshold t is any number."""
    sign = 1 if largest else -1
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


def _side(value: object, rows: list[RowSet], where: str) -> ClaimedSide:
    k = len(rows)
    leakages, flows = check_object(value, ("leakages", "flows"), where).values()
    matrix = parse_matrix(leakages, k, f"{where}: leakages")
    claimed: dict[tuple[int, int], ClaimedFlows] = {}
    for entry in check_list(flows, f"{where}: flows"):
        keys = ("value", "other", "flow", "surplus", "reserve")
        x, y, flow, surplus, reserve = check_object(entry, keys, f"{where}: flows").values()
        pair = parse_state(x, k, where), parse_state(y, k, where)
        if pair in claimed:
            raise CertificateError(f"{where}: the flows of values {pair[0] + 1} and {pair[1] + 1} are given twice")
        claimed[pair] = ClaimedFlows(
            _table(flow, k, where), _shares(surplus, rows[pair[0]], where), _shares(reserve, rows[pair[1]], where)
        )
    return ClaimedSide(matrix, claimed)


def _shares(value: object, row: RowSet, where: str) -> list[Table]:
    k = len(row.base)
    tables = [_table(part, k, where) for part in check_list(value, f"{where}: shares")]
    if len(tables) != len(row.parts):
        raise CertificateError(f"{where}: shares of {len(tables)} parts are given for {len(row.parts)}")
    for table in tables:
        for z in range(k):
            if sum((share for (start, _), share in table.items() if start == z), Fraction()) > 1:
                raise CertificateError(f"{where}: the shares of state {z + 1} sum to more than 1")
    return tables


def _table(value: object, k: int, where: str) -> Table:
    table: Table = {}
    for entry in check_list(value, f"{where}: flow"):
        z, y, amount = parse_flow(entry, k, where)
        if (z, y) in table:
            raise CertificateError(f"{where}: the flow from state {z + 1} to {y + 1} is given twice")
        table[z, y] = amount
    return table
