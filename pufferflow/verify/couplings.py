"""Scales that couplings prove: leakage.

For every chain the certificate lists bounds A and B of what the values of a node tell through the nodes after and
before it, and flows that prove them. It is a proof of the scale 1/c if ε ≥ c + A[x, x'] + B[x, x'] for all values
x, x' of a node, and

* Φ_c(A) ≤ A for the laws of the next node, where A is below (T − 1)·c, which always bounds it;
* for a stationary start Φ_c(B) ≤ B for the laws of the node before, those of the reversed chain; otherwise the same
  for every law that the node before may have.

A window of w records costs w·c, A is that of its last and B that of its first values; T is the number of windows there.
Where other records may be known, A and B both hold for every law that the next node may have on their side.

Φ_c(A)[x, x'] is the largest log (p·h)/(q·h) over h > 0 with h(z) ≤ h(y) e^w(z, y), w(z, y) = c + A[z, y] for z ≠ y.
It is at most log Λ if flows g ≥ 0 leave p(y) − Σ_z g(y, z) + Σ_z g(z, y) e^w(z, y) ≤ Λ q(y) at every state y: multiply
by h(y) and add up. The proof that such A and B bound the loss is in ``docs/leakage.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from pufferflow.verify.balls import ChainBalls, UndecidedError, ball, members
from pufferflow.verify.parsing import (
    CertificateError,
    Chain,
    Claim,
    Nodes,
    check_list,
    check_object,
    decimal,
    finite,
    numerators,
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
    hides_windows = from_informed = True

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self.chains = finite(claim)
        self.cost = parse_cost(self.fields["cost"])
        lists = check_list(self.fields["couplings"], "couplings")
        if len(lists) != len(self.chains):
            raise CertificateError(f"couplings has {len(lists)} entries for {len(self.chains)} chains")
        self.sides = []
        for i, (entry, chain) in enumerate(zip(lists, self.chains, strict=True), 1):
            ahead, past = check_object(entry, ("ahead", "past"), f"couplings of chain {i}").values()
            k = len(chain.matrix)
            self.sides.append((parse_side(ahead, k, f"chain {i}, ahead"), parse_side(past, k, f"chain {i}, past")))

    def work(self) -> Work:
        """Estimate the inequalities: k³ operations and the flows a side, k⁴ comparisons for a past of any law."""
        operations = kept = 0
        for chain, sides in zip(self.chains, self.sides, strict=True):
            k = len(chain.matrix)
            operations += 36 * k**3 + 20 * k**2 + 6 * sum(len(flow) for side in sides for flow in side.flows.values())
            any_laws = 2 if self.claim.knows != "nothing" else int(chain.start != "stationary")
            operations += any_laws * k**4 * (3 + chain.bits // 1000) + (2 * k**3 if self.claim.window > 1 else 0)
            kept = max(kept, 4 * k**2)
        return Work(operations, 0, kept)

    def bound(self) -> Bound:
        """Return 1/c if all inequalities hold; otherwise nothing is proved."""
        for i, (chain, (ahead, past)) in enumerate(zip(self.chains, self.sides, strict=True), 1):
            CouplingChecks(chain, self.cost, self.claim, f"chain {i}").run(ahead, past)
        scale = 1 / self.cost
        return Bound(scale, scale, len(self.sides), None, Nodes(1, self.claim.windows))


class CouplingChecks:
    """The inequalities for one chain."""

    def __init__(self, chain: Chain, cost: Fraction, claim: Claim, where: str) -> None:
        self.balls = ChainBalls(chain)
        self.matrix, self.cost, self.claim, self.where = chain.matrix, cost, claim, where
        self.cap = (claim.windows - 1) * cost  # what all nodes of a side tell at most
        self.stationary = chain.start == "stationary"
        self.first = self.balls.supports.states
        everything = (1 << self.balls.k) - 1
        later = sum(1 << y for y in range(self.balls.k) if any(row[y] for row in chain.matrix))
        self.states = self.first if self.stationary else everything
        self.later = self.first if self.stationary else later

    def run(self, ahead: ClaimedSide, past: ClaimedSide) -> None:
        """Raise unless the sides prove ε."""
        self._losses(ahead, past)
        if self.claim.knows != "nothing":
            every = (1 << self.balls.k) - 1
            self._forgetting(ahead, [list(column) for column in zip(*self.matrix, strict=True)], every, "ahead")
            self._forgetting(past, self.matrix, self.later, "past")
            return
        rows = [[ball(p) for p in row] for row in self.matrix]
        self._side(ahead, rows, self.matrix, f"{self.where}, ahead")
        if not self.stationary:
            self._forgetting(past, self.matrix, self.later, "past")
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

    def _losses(self, ahead: ClaimedSide, past: ClaimedSide) -> None:
        hidden, k, most = self.claim.hidden, self.balls.k, self.claim.length * self.cost
        last = [list(members(self.balls.supports.reached(1 << x, hidden - 1))) for x in range(k)]
        ends = [[max(ahead.leakages[z][y] for z in last[x]) for y in range(k)] for x in range(k)]
        for x in range(k):
            for y in range(k):
                if x == y and hidden == 1:
                    continue
                after, loss = max(ends[x][z] for z in last[y]), Fraction(0)
                if self.first >> x & self.first >> y & 1:  # the first window has no past
                    loss = hidden * self.cost + after
                if self.later >> x & self.later >> y & 1 and self.claim.windows > 1:
                    loss = max(loss, hidden * self.cost + after + (past.leakages[x][y] if x != y else 0))
                if min(loss, most) > self.claim.epsilon:
                    raise CertificateError(
                        f"{self.where}, values {x + 1} and {y + 1}: a loss of {decimal(loss)} is not excluded"
                    )
        if min(hidden * self.cost, most) > self.claim.epsilon:
            raise CertificateError(f"{self.where}: a loss of {decimal(hidden * self.cost)} is not excluded")

    def _side(self, side: ClaimedSide, rows: list[list[arb]], support: Matrix, where: str) -> None:
        """Check Φ_c(A) ≤ A from the flows."""
        growth = self.growth(side)
        for x in members(self.states):
            for y in members(self.states):
                if x != y and side.leakages[x][y] < self.cap:
                    self.pair(side, growth, (x, y), rows, support, self.states, arb(1), where)

    def pair(
        self,
        side: ClaimedSide,
        growth: list[list[arb]],
        pair: tuple[int, int],
        rows: list[list[arb]],
        support: Matrix,
        neighbours: int,
        excess: arb,
        where: str,
    ) -> None:
        """Check that e^A[x, y] is at least ``excess`` times what the flows of the pair prove.

        They pass through ``neighbours`` alone, states that the node beside it can have: of others nothing is checked.
        """
        x, y = pair
        flows = side.flows.get(pair, [])
        if any(not neighbours >> z & neighbours >> to & 1 for z, to, _ in flows):
            raise CertificateError(f"{where}: a flow passes through a state that the node cannot have")
        ratio = ball(side.leakages[x][y]).exp() / excess
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

    def growth(self, side: ClaimedSide) -> list[list[arb]]:
        """e^w(z, y)."""
        return growth_of(side.leakages, self.cost)

    def _forgetting(self, side: ClaimedSide, transitions: Matrix, values: int, name: str) -> None:
        """Check that B bounds the past of some ``values`` whatever the law of the node before is.

        What lies ahead, if later records may be known, is the past under the transposed matrix: the law of the next
        node is P(x, y) times anything.
        """
        known = list(members(values & self.states))
        pairs = [(x, z) for x in known for z in known if x != z and side.leakages[x][z] < self.cap]
        self.forgetting(side, self.growth(side), transitions, pairs, f"{self.where}, {name}")

    def forgetting(
        self,
        side: ClaimedSide,
        growth: list[list[arb]],
        transitions: Matrix,
        pairs: list[tuple[int, int]],
        where: str,
    ) -> None:
        """Check B for these ``pairs`` of values whatever the law of the node before is.

        What lies ahead, if later records may be known, is the past under the transposed matrix: the law of the next
        node is P(x, y) times anything. The cross ratio R of states y, y' is that of P(y, x) P(y', x') to
        P(y, x') P(y', x).
        """
        states, hs = list(members(self.states)), [[value.sqrt() for value in row] for row in growth]
        matrix = [numerators(row, self.where)[0] for row in transitions]  # R does not depend on the denominators
        for x, z in pairs:
            ratios = [ball(row[x] / row[z]).sqrt() if row[x] and row[z] else arb(0) for row in transitions]
            inverses = [1 / ratio if ratio > 0 else ratio for ratio in ratios]
            pairs_of_states = ((y, other) for y in states for other in states)
            roots = (
                (ratios[y] * inverses[other] if below else None, hs[y][other])
                for y, other in pairs_of_states
                # R ≤ 1: the same two states the other way round tell more
                if matrix[y][x] * matrix[other][z] > (below := matrix[y][z] * matrix[other][x])
            )
            more = f"{where}, values {x + 1} and {z + 1}: under some law of the node beside them they tell more"
            check_reweighted(roots, side.leakages[x][z], more)


def parse_side(value: object, k: int, where: str) -> ClaimedSide:
    """Return the leakages of pairs of k values and their flows; raises CertificateError: they are malformed."""
    leakages, flows = check_object(value, ("leakages", "flows"), where).values()
    matrix = parse_matrix(leakages, k, f"{where}: leakages")
    claimed: dict[tuple[int, int], list[Flow]] = {}
    for entry in check_list(flows, f"{where}: flows"):
        x, y, parts = check_object(entry, ("value", "other", "flow"), f"{where}: flows").values()
        pair = parse_state(x, k, where), parse_state(y, k, where)
        if pair in claimed:
            raise CertificateError(f"{where}: the flows of values {pair[0] + 1} and {pair[1] + 1} are given twice")
        claimed[pair] = [parse_flow(part, k, where) for part in check_list(parts, f"{where}: flow")]
    return ClaimedSide(matrix, claimed)
