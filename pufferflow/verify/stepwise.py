"""Scales that couplings prove node by node: leakage.

As in :mod:`pufferflow.verify.couplings`, but for every chain the certificate lists several bounds of either side:
A_1, A_2, … of what the values of a node tell through 1, 2, … nodes after it, and B_1, B_2, … through those before it.
There may be one for every node; otherwise the last is for all nodes with at least so many on that side. It is a proof
of the scale 1/c if ε ≥ c + A_j[x, x'] + B_i[x, x'] for all values x, x' of each node, where j and i nodes lie on its
sides, and, with A_0 = B_0 = 0,

* A_j is at least j·c or, by the flows, Φ_c(A_{j−1}); one for several nodes is at least A_{j−1} and, by the flows, its
  own Φ_c, or (T − 1)·c;
* likewise B_j, for the laws of the node before: of the reversed chain for a stationary start; for a given one those
  that follow from the law of that node. A pair that has no flows is bounded under every law the node before may have;
* a pair may instead be bounded through the node m steps before, under every law that may have: by (m − 1)·c and what
  P^m lets through of its bound B_{j−m}; where the last bound does so it is at least all others;
* for any start, and for all nodes after those listed, flows are those of the reversed chain: for laws within a factor
  e^ω of the stationary one, e^B exceeds what they prove by the factor min(e^(ω + ω'), (1 + (1 − e^−ω)(e^W − 1))²),
  ω' that of the node itself and W the largest cost (Lemma 7 of ``docs/leakage.md``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from pufferflow.verify.balls import ChainBalls, UndecidedError, Vector, ball, members
from pufferflow.verify.couplings import ClaimedSide, CouplingChecks, parse_side
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
)
from pufferflow.verify.proof import Bound, Proof, Work
from pufferflow.verify.sides import Matrix, check_reweighted, parse_cost

MOST_STEPS = 1_000
"""Bounds of a side at most."""

FARTHEST = 10**6
"""Steps of a block at most."""


@dataclass(frozen=True)
class ClaimedStep(ClaimedSide):
    """Bounds of pairs of values, and which of them are bounded through which earlier node."""

    blocks: dict[tuple[int, int], int]


class StepwiseProof(Proof):
    """Bounds of both sides of the nodes of all chains, one after the other."""

    keys = ("cost", "steps")
    quantity = "1/c"

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self.chains = finite(claim)
        self.cost = parse_cost(self.fields["cost"])
        lists = check_list(self.fields["steps"], "steps")
        if len(lists) != len(self.chains):
            raise CertificateError(f"steps has {len(lists)} entries for {len(self.chains)} chains")
        self.sides: list[list[list[ClaimedStep]]] = []
        for i, (entry, chain) in enumerate(zip(lists, self.chains, strict=True), 1):
            sides = check_object(entry, ("ahead", "past"), f"steps of chain {i}")
            self.sides.append([list(_entries(sides[name], chain, claim, f"chain {i}, {name}")) for name in sides])

    def work(self) -> Work:
        """Estimate the inequalities of every bound, as for couplings, and the laws of the nodes."""
        operations = products = kept = 0
        for chain, sides in zip(self.chains, self.sides, strict=True):
            k, number = len(chain.matrix), sum(map(len, sides))
            flows = sum(len(flow) for side in sides for entry in side for flow in entry.flows.values())
            operations += number * (36 * k**3 + 40 * k**2) + 6 * flows
            operations += 0 if chain.start == "stationary" else len(sides[1]) * k**4 * (3 + chain.bits // 1000)
            powers = {steps for entry in sides[1] for steps in entry.blocks.values()}
            products += 0 if chain.start == "stationary" else (len(sides[1]) + len(powers)) * k**3 * 20
            kept = max(kept, 8 * k**2 * (20 + len(sides[1]) + len(powers)))
        return Work(operations, products, kept)

    def bound(self) -> Bound:
        """Return 1/c if all inequalities hold; otherwise nothing is proved."""
        for i, (chain, (ahead, past)) in enumerate(zip(self.chains, self.sides, strict=True), 1):
            _Steps(chain, self.cost, self.claim, f"chain {i}").run(ahead, past)
        scale = 1 / self.cost
        return Bound(
            scale, scale, sum(len(side) for sides in self.sides for side in sides), None, Nodes(1, self.claim.length)
        )


class _Steps:
    """The inequalities for one chain."""

    def __init__(self, chain: Chain, cost: Fraction, claim: Claim, where: str) -> None:
        self.checks = CouplingChecks(chain, cost, claim, where)
        self.chain, self.cost, self.claim, self.where = chain, cost, claim, where
        self.length, self.k = claim.length, len(chain.matrix)
        self.zero = ClaimedStep([[Fraction(0)] * self.k for _ in range(self.k)], {}, {})
        self._stationary: Vector | None = None

    def run(self, ahead: list[ClaimedStep], past: list[ClaimedStep]) -> None:
        """Raise unless the bounds prove ε."""
        self._losses(ahead, past)
        rows = [[ball(p) for p in row] for row in self.chain.matrix]
        for j, (before, now, cap) in enumerate(self._steps(ahead), 1):
            growth, where = self.checks.growth(before), f"{self.where}, ahead, bound {j}"
            for pair in self._pairs(self.checks.states, now, cap):
                self.checks.pair(now, growth, pair, rows, self.chain.matrix, self.checks.states, arb(1), where)
        for j, (before, now, cap) in enumerate(self._steps(past), 1):
            far = set(self._blocks(past, j, before, now))
            self._past(j, before, now, cap, far)

    def _steps(self, entries: list[ClaimedStep]) -> Iterator[tuple[ClaimedStep, ClaimedStep, Fraction]]:
        """Every bound after that of the neighbour, with what so many nodes tell at most."""
        before = self.zero
        for j, now in enumerate(entries, 1):
            if j == len(entries) < self.length - 1:
                if _exceeds(before, now):
                    raise CertificateError(f"{self.where}: the last bound of a side is below the one before it")
                yield now, now, (self.length - 1) * self.cost
            else:
                yield before, now, j * self.cost
            before = now

    def _pairs(self, states: int, now: ClaimedStep, cap: Fraction) -> Iterator[tuple[int, int]]:
        """Pairs of values that need a proof."""
        return ((x, y) for x in members(states) for y in members(states) if x != y and now.leakages[x][y] < cap)

    def _past(self, j: int, before: ClaimedStep, now: ClaimedStep, cap: Fraction, far: set[tuple[int, int]]) -> None:
        """Check the bound of node j + 1, or of all from it on."""
        where, tail = f"{self.where}, past, bound {j}", before is now
        balls, stationary = self.checks.balls, self.chain.start == "stationary"
        later = self.checks.later if tail else self._values(j + 1, j + 1)
        pairs = [pair for pair in self._pairs(later, now, cap) if pair not in far]
        growth = self.checks.growth(before)
        planned = [pair for pair in pairs if stationary or pair in now.flows]
        self.checks.forgetting(now, growth, self.chain.matrix, sorted(set(pairs) - set(planned)), where)
        if not planned:
            return
        excess = arb(1)
        if not stationary and (tail or self.chain.start == "any"):
            law, states = self._stationary_law(), (1 << self.k) - 1
            excess = self._excess(j, before, tail)
        else:
            law, states = balls.law(j), balls.supports.reached(balls.supports.states, 0 if stationary else j - 1)
        rows, support = self._laws_before(law, states, later)
        for pair in planned:
            self.checks.pair(now, growth, pair, rows, support, states, excess, where)

    def _blocks(
        self, past: list[ClaimedStep], j: int, before: ClaimedStep, now: ClaimedStep
    ) -> Iterator[tuple[int, int]]:
        """Check the pairs that are bounded through an earlier node, and yield them."""
        where, tail = f"{self.where}, past, bound {j}", before is now
        if now.blocks and tail and any(_exceeds(entry, now) for entry in past):
            raise CertificateError(f"{where}: it serves all nodes, through earlier ones, and is below another one")
        for pair, steps in now.blocks.items():
            if steps > j and not tail:
                raise CertificateError(f"{where}: there is no node {steps} steps before")
            rest = now.leakages[pair[0]][pair[1]] - (steps - 1) * self.cost
            if rest < 0:
                raise CertificateError(f"{where}: the nodes between, less than {steps} steps, may tell more alone")
            earlier = now if tail else [self.zero, *past][j - steps]
            self._through(rest, self.checks.balls.power(steps), self.checks.growth(earlier), pair, where)
            yield pair

    def _through(
        self, rest: Fraction, power: list[Vector], growth: list[list[arb]], pair: tuple[int, int], where: str
    ) -> None:
        """Check that what P^m lets through under any law is at most ``rest``, as for one step."""
        x, z = pair
        more = f"{where}, values {x + 1} and {z + 1}: under some law of an earlier node they tell more"
        check_reweighted(_cross_ratios(power, growth, x, z), rest, more)

    def _laws_before(self, law: Vector, states: int, later: int) -> tuple[list[list[arb]], Matrix]:
        """Laws of a node given the value of the next one, up to no factor, and where they are positive."""
        rows = [[arb(0)] * self.k for _ in range(self.k)]
        support = [[Fraction(0)] * self.k for _ in range(self.k)]
        for x in members(later):
            total = arb(0)
            for y in members(states):
                if self.chain.matrix[y][x]:
                    weight = law[y]
                    assert weight is not None
                    rows[x][y] = weight * ball(self.chain.matrix[y][x])
                    support[x][y] = self.chain.matrix[y][x]
                    total += rows[x][y]
            if not total > 0:
                raise UndecidedError
            rows[x] = [p / total for p in rows[x]]
        return rows, support

    def _stationary_law(self) -> Vector:
        if self._stationary is None:
            chain = ChainBalls(Chain(self.chain.matrix, "stationary"))
            if chain.supports.states != (1 << self.k) - 1:
                raise CertificateError(f"{self.where}: it has transient states, so no law is near the stationary one")
            self._stationary = chain.law(1)
        return self._stationary

    def _excess(self, node: int, before: ClaimedStep, tail: bool) -> arb:
        """Bound of e^(what a law of this node not far from the stationary one adds)."""
        here = self._factor(node)
        after = here if tail else self._factor(node + 1)
        largest = self.cost + max(max(row) for row in before.leakages)
        through = 1 + (1 - 1 / here) * (ball(largest).exp() - 1)
        return (here * after).min(through * through)

    def _factor(self, node: int) -> arb:
        """e^ω: largest quotient of m(x)/π(x) over the laws m of a node."""
        stationary = self._stationary_law()
        balls = self.checks.balls
        laws = balls.power(node - 1) if self.chain.start == "any" else [balls.law(node)]
        factor = arb(1)
        for law in laws:
            ratios = []
            for p, q in zip(law, stationary, strict=True):
                assert q is not None
                if p is None:
                    raise CertificateError(f"{self.where}: the law of node {node} is not near the stationary one")
                ratios.append(p / q)
            most, least = ratios[0], ratios[0]
            for ratio in ratios[1:]:
                most, least = most.max(ratio), least.min(ratio)
            factor = factor.max(most / least)
        return factor

    def _losses(self, ahead: list[ClaimedStep], past: list[ClaimedStep]) -> None:
        """Check every node; those far from both ends are alike."""
        first = min(self.length, len(past) + 1)
        for node in [*range(1, first + 1), *range(max(first + 1, self.length - len(ahead) + 1), self.length + 1)]:
            after, before = self._at(ahead, self.length - node), self._at(past, node - 1)
            states = list(members(self._values(node, len(past))))
            for x in states:
                for y in states:
                    loss = self.cost + (after[x][y] + before[x][y] if x != y else 0)
                    if min(loss, self.length * self.cost) > self.claim.epsilon:
                        raise CertificateError(
                            f"{self.where}, node {node}, values {x + 1} and {y + 1}: "
                            f"a loss of {decimal(loss)} is not excluded"
                        )

    def _values(self, node: int, listed: int) -> int:
        """Values that a node can take; where the last of the ``listed`` bounds is for all later ones, that any can."""
        supports = self.checks.balls.supports
        if node == 1:
            return self.checks.first
        if self.chain.start == "stationary" or node > listed < self.length - 1:
            return self.checks.later
        return supports.reached(supports.states, node - 1)

    def _at(self, entries: list[ClaimedStep], beyond: int) -> Matrix:
        return entries[min(beyond, len(entries)) - 1].leakages if beyond else self.zero.leakages


def _cross_ratios(power: list[Vector], growth: list[list[arb]], x: int, z: int) -> Iterator[tuple[arb | None, arb]]:
    """Roots of the cross ratios of a power of P that may be above 1, and of e^w."""
    for y, row in enumerate(power):
        for other, column in enumerate(power):
            a, b, c, d = row[x], column[z], row[z], column[x]
            if a is None or b is None or y == other:
                continue
            root = None if c is None or d is None else (a * b / (c * d)).sqrt()
            if root is None or not root <= 1:
                yield root, growth[y][other].sqrt()


def _exceeds(one: ClaimedStep, other: ClaimedStep) -> bool:
    """Whether a bound is above that of the other for some pair."""
    rows = zip(one.leakages, other.leakages, strict=True)
    return any(a > b for row, others in rows for a, b in zip(row, others, strict=True))


def _entries(value: object, chain: Chain, claim: Claim, where: str) -> Iterator[ClaimedStep]:
    entries = check_list(value, where)
    most = min(claim.length - 1, MOST_STEPS)
    if not min(claim.length - 1, 1) <= len(entries) <= most:
        raise CertificateError(f"{where} has {len(entries)} bounds; there may be 1 to {most}")
    for j, entry in enumerate(entries, 1):
        at, k = f"{where}, bound {j}", len(chain.matrix)
        fields = check_object(entry, (), at, closed=False)
        blocks: dict[tuple[int, int], int] = {}
        for part in check_list(fields.get("blocks", []), f"{at}: blocks"):
            numbers = [check_integer(number, f"{at}: blocks") for number in check_list(part, f"{at}: blocks")]
            if len(numbers) != 3 or not (min(numbers) > 0 and max(numbers[:2]) <= k and numbers[2] <= FARTHEST):
                raise CertificateError(f"{at}: a block is two states and 1 to {FARTHEST} steps")
            blocks[numbers[0] - 1, numbers[1] - 1] = numbers[2]
        side = parse_side({key: value for key, value in fields.items() if key != "blocks"}, k, at)
        yield ClaimedStep(side.leakages, side.flows, blocks)
