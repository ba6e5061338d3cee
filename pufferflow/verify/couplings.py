"""Scales that couplings prove: leakage.

For every chain the certificate lists bounds A and B of what the values of a node tell through the nodes after and
before it, and flows that prove them. It is a proof of the scale 1/c if ε ≥ c + A[x, x'] + B[x, x'] for all values
x, x' of a node, and

* Φ_c(A) ≤ A for the laws of the next node, where A is below (T − 1)·c, which always bounds it;
* for a stationary start Φ_c(B) ≤ B for the laws of the node before, those of the reversed chain; otherwise the same
  for every law that the node before may have.

Φ_c(A)[x, x'] is the largest log (p·h)/(q·h) over h > 0 with h(z) ≤ h(y) e^w(z, y), w(z, y) = c + A[z, y] for z ≠ y.
It is at most log Λ if flows g ≥ 0 leave p(y) − Σ_z g(y, z) + Σ_z g(z, y) e^w(z, y) ≤ Λ q(y) at every state y: multiply
by h(y) and add up. The proof that such A and B bound the loss is in ``docs/leakage.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from flint import arb

from pufferflow.verify.balls import ChainBalls, UndecidedError, ball, members
from pufferflow.verify.parsing import (
    CertificateError,
    Chain,
    Claim,
    Nodes,
    check_integer,
    check_list,
    check_object,
    decimal,
    finite,
    numerators,
    parse_number,
)
from pufferflow.verify.proof import Bound, Proof, Work

Matrix: TypeAlias = list[list[Fraction]]
Flow: TypeAlias = tuple[int, int, Fraction]


@dataclass(frozen=True)
class ClaimedSide:
    """Bounds of what pairs of values tell through one side, and the flows that prove each of them."""

    leakages: Matrix
    flows: dict[tuple[int, int], list[Flow]]


class CouplingProof(Proof):
    """Post-fixed points of Φ_c for both sides of the nodes of all chains."""

    keys = ("cost", "couplings")
    quantity = "1/c"

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self.chains = finite(claim)
        self.cost = parse_number(self.fields["cost"], "cost")
        if not self.cost:
            raise CertificateError("cost is 0; it must be positive")
        lists = check_list(self.fields["couplings"], "couplings")
        if len(lists) != len(self.chains):
            raise CertificateError(f"couplings has {len(lists)} entries for {len(self.chains)} chains")
        self.sides = []
        for i, (entry, chain) in enumerate(zip(lists, self.chains, strict=True), 1):
            ahead, past = check_object(entry, ("ahead", "past"), f"couplings of chain {i}").values()
            k = len(chain.matrix)
            self.sides.append((_side(ahead, k, f"chain {i}, ahead"), _side(past, k, f"chain {i}, past")))

    def work(self) -> Work:
        """Estimate the inequalities: k³ operations and the flows a side, k⁴ comparisons for a past of any law."""
        operations = kept = 0
        for chain, sides in zip(self.chains, self.sides, strict=True):
            k = len(chain.matrix)
            operations += 36 * k**3 + 20 * k**2 + 6 * sum(len(flow) for side in sides for flow in side.flows.values())
            operations += 0 if chain.start == "stationary" else k**4 * (3 + chain.bits // 1000)
            kept = max(kept, 4 * k**2)
        return Work(operations, 0, kept)

    def bound(self) -> Bound:
        """Return 1/c if all inequalities hold; otherwise nothing is proved."""
        for i, (chain, (ahead, past)) in enumerate(zip(self.chains, self.sides, strict=True), 1):
            _Checks(chain, self.cost, self.claim.length, f"chain {i}").run(ahead, past, self.claim.epsilon)
        scale = 1 / self.cost
        return Bound(scale, scale, len(self.sides), None, Nodes(1, self.claim.length))


class _Checks:
    """The inequalities for one chain."""

    def __init__(self, chain: Chain, cost: Fraction, length: int, where: str) -> None:
        self.balls = ChainBalls(chain)
        self.matrix, self.cost, self.length, self.where = chain.matrix, cost, length, where
        self.stationary = chain.start == "stationary"
        self.first = self.balls.supports.states
        everything = (1 << self.balls.k) - 1
        later = sum(1 << y for y in range(self.balls.k) if any(row[y] for row in chain.matrix))
        self.states = self.first if self.stationary else everything
        self.later = self.first if self.stationary else later

    def run(self, ahead: ClaimedSide, past: ClaimedSide, epsilon: Fraction) -> None:
        """Raise unless the sides prove ε."""
        self._losses(ahead, past, epsilon)
        rows = [[ball(p) for p in row] for row in self.matrix]
        self._side(ahead, rows, self.matrix, f"{self.where}, ahead")
        if not self.stationary:
            self._forgetting(past)
            return
        law = self.balls.law(1)
        reversal = [[arb(0)] * self.balls.k for _ in rows]
        support = [[Fraction(0)] * self.balls.k for _ in rows]
        for x in members(self.states):
            for y in members(self.states):
                above, below = law[y], law[x]
                assert above is not None  # they are states of the closed class
                assert below is not None
                reversal[x][y] = above * rows[y][x] / below
                support[x][y] = self.matrix[y][x]
        self._side(past, reversal, support, f"{self.where}, past")

    def _losses(self, ahead: ClaimedSide, past: ClaimedSide, epsilon: Fraction) -> None:
        for x in range(self.balls.k):
            for y in range(self.balls.k):
                loss = self.cost
                if x != y and self.first >> x & self.first >> y & 1:  # the first node has no past
                    loss = self.cost + ahead.leakages[x][y]
                if x != y and self.later >> x & self.later >> y & 1 and self.length > 1:
                    loss = max(loss, self.cost + ahead.leakages[x][y] + past.leakages[x][y])
                if min(loss, self.length * self.cost) > epsilon:
                    raise CertificateError(
                        f"{self.where}, values {x + 1} and {y + 1}: a loss of {decimal(loss)} is not excluded"
                    )

    def _side(self, side: ClaimedSide, rows: list[list[arb]], support: Matrix, where: str) -> None:
        """Check Φ_c(A) ≤ A from the flows."""
        growth = self._growth(side)
        cap = (self.length - 1) * self.cost
        for x in members(self.states):
            for y in members(self.states):
                if x == y or side.leakages[x][y] >= cap:
                    continue
                flows = side.flows.get((x, y), [])
                if any(not self.states >> z & self.states >> to & 1 for z, to, _ in flows):
                    raise CertificateError(f"{where}: a flow passes through a state that no node can have")
                ratio = ball(side.leakages[x][y]).exp()
                if not self._pair(rows[x], rows[y], support[y], growth, ratio, flows):
                    raise CertificateError(f"{where}, values {x + 1} and {y + 1}: the flows do not prove the bound")

    def _pair(
        self,
        p: list[arb],
        q: list[arb],
        support: list[Fraction],
        growth: list[list[arb]],
        ratio: arb,
        flows: list[Flow],
    ) -> bool:
        """Whether p·h ≤ ratio · q·h; what the rounding of flows leaves at a state goes to the one with most of q."""
        left = [a - ratio * b for a, b in zip(p, q, strict=True)]
        for z, y, amount in flows:
            flow = ball(amount)
            left[z] -= flow
            left[y] += flow * growth[z][y]
        store = max((y for y in range(len(q)) if support[y]), key=lambda y: float(q[y].mid()))
        for y, rest in enumerate(left):
            if y != store and not rest <= 0:
                left[store] += rest.upper() * growth[y][store]
        if left[store] <= 0:
            return True
        if left[store] > 0:
            return False
        raise UndecidedError

    def _growth(self, side: ClaimedSide) -> list[list[arb]]:
        """e^w(z, y)."""
        return [
            [ball(self.cost + a if z != y else Fraction(0)).exp() for y, a in enumerate(row)]
            for z, row in enumerate(side.leakages)
        ]

    def _forgetting(self, side: ClaimedSide) -> None:
        """Check that B bounds the past whatever the law of the node before is.

        For two values x, x' and two states y, y' of the node before, with the cross ratio R of P(y, x) P(y', x') to
        P(y, x') P(y', x) and H = e^w(y, y'), the leakage is at most log (1 + √(RH))² / (√R + √H)².
        """
        cap = (self.length - 1) * self.cost
        growth = self._growth(side)
        roots = [[value.sqrt() for value in row] for row in growth]
        later = list(members(self.later))
        matrix = [numerators(row, self.where)[0] for row in self.matrix]  # R does not depend on the denominators
        for x in later:
            for z in later:
                if x == z or side.leakages[x][z] >= cap:
                    continue
                most = ball(side.leakages[x][z] / 2).exp()
                ratios = [ball(row[x] / row[z]).sqrt() if row[x] and row[z] else arb(0) for row in self.matrix]
                inverses = [1 / ratio if ratio > 0 else ratio for ratio in ratios]
                for y in range(self.balls.k):
                    for other in range(self.balls.k):
                        above = matrix[y][x] * matrix[other][z]
                        below = matrix[y][z] * matrix[other][x]
                        if above <= below:  # R ≤ 1: the same two states the other way round tell more
                            continue
                        h = roots[y][other]
                        root = ratios[y] * inverses[other] if below else None  # √R
                        over, under = (h, arb(1)) if root is None else (1 + root * h, root + h)
                        if over <= most * under:
                            continue
                        if over > most * under:
                            raise CertificateError(
                                f"{self.where}, past, values {x + 1} and {z + 1}: "
                                "under some law of the node before they tell more"
                            )
                        raise UndecidedError


def _side(value: object, k: int, where: str) -> ClaimedSide:
    leakages, flows = check_object(value, ("leakages", "flows"), where).values()
    rows = check_list(leakages, f"{where}: leakages")
    matrix = [[parse_number(a, f"{where}: leakages") for a in check_list(row, f"{where}: leakages")] for row in rows]
    if len(matrix) != k or any(len(row) != k for row in matrix):
        raise CertificateError(f"{where}: leakages is not a matrix with one row and one column a state")
    claimed: dict[tuple[int, int], list[Flow]] = {}
    for entry in check_list(flows, f"{where}: flows"):
        x, y, parts = check_object(entry, ("value", "other", "flow"), f"{where}: flows").values()
        pair = _state(x, k, where), _state(y, k, where)
        if pair in claimed:
            raise CertificateError(f"{where}: the flows of values {pair[0] + 1} and {pair[1] + 1} are given twice")
        claimed[pair] = [_flow(part, k, where) for part in check_list(parts, f"{where}: flow")]
    return ClaimedSide(matrix, claimed)


def _flow(value: object, k: int, where: str) -> Flow:
    parts: list[Any] = check_list(value, f"{where}: flow")
    if len(parts) != 3:
        raise CertificateError(f"{where}: a flow has {len(parts)} parts; it is [from, to, amount]")
    z, y = _state(parts[0], k, where), _state(parts[1], k, where)
    if z == y:
        raise CertificateError(f"{where}: a flow leads from state {z + 1} to itself")
    return z, y, parse_number(parts[2], f"{where}: flow")


def _state(value: object, k: int, where: str) -> int:
    state = check_integer(value, where)
    if not 1 <= state <= k:
        raise CertificateError(f"{where}: state {state} is not between 1 and {k}")
    return state - 1
