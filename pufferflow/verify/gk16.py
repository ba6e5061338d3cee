"""The scale of gk16: 2 max_i Σ_j Φ_ij / ε with Φ = (I − Γ)^-1, where ‖Γ‖₂ < 1 (Ghosh and Kleinberg, 2016).

Γ ≥ 0 holds the local influences; it is tridiagonal, and its rows are alike but for the first two and the last. For
every node the certificate gives three positive numbers, the same for all nodes of a range: s (``row_sum``), u and v
(``weights``). They prove the scale as follows.

* If u > Γv and v > Γᵀu then ‖Γ‖₂ < 1: it is the spectral radius of the matrix [[0, Γ], [Γᵀ, 0]] ≥ 0, which a positive
  vector that decreases bounds below 1 (Collatz and Wielandt).
* Then Φ = Σ Γ^n ≥ 0, so r ≤ (I − Γ)s ≤ R entrywise gives s / R ≤ Φ1 ≤ s / r.

Within a range these inequalities are the same for all nodes whose neighbours lie in it too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

from flint import arb

from pufferflow.verify.balls import ChainBalls, UndecidedError, Vector, ball, exact, members
from pufferflow.verify.parsing import (
    CertificateError,
    Chain,
    Claim,
    check_list,
    finite,
    parse_number,
    parse_ranges,
)
from pufferflow.verify.proof import Bound, Proof, Work

Row: TypeAlias = tuple[arb, arb]  # influence of the node to the left, of the one to the right


class LocalInfluenceBalls:
    """The entries of Γ, suprema over the chains of a family, as balls of the present precision."""

    def __init__(self, chains: tuple[Chain, ...], length: int) -> None:
        self.length = length
        rows = [_rows(chain, length) for chain in chains] if length > 1 else [[(arb(0), arb(0))] * 4]
        self._first, self._second, self._inner, self._last = (
            (_largest(row[0] for row in alike), _largest(row[1] for row in alike)) for alike in zip(*rows, strict=True)
        )

    def row(self, node: int) -> Row:
        """Influence of the nodes before and after ``node`` on it."""
        if node < 1 or node > self.length:
            return arb(0), arb(0)
        if node == 1:
            return self._first
        if node == self.length:
            return self._last
        return self._second if node == 2 else self._inner


class LocalInfluenceProof(Proof):
    """The three numbers s, u and v of every node."""

    keys = ("nodes",)
    quantity = "2 * row sum of the inverse/epsilon"

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self.chains = finite(claim)
        self.nodes, self.values = [], []
        for nodes, (row_sum, weights) in parse_ranges(
            self.fields["nodes"], ("row_sum", "weights"), claim.length, "nodes"
        ):
            pair = check_list(weights, f"{nodes}: weights")
            values = [parse_number(value, str(nodes)) for value in (row_sum, *pair)]
            if len(values) != 3 or not all(values):
                raise CertificateError(f"{nodes} need a row_sum and two weights, all of them positive")
            self.nodes.append(nodes)
            self.values.append(values)

    def work(self) -> Work:
        """Estimate k³ ratios a kind of node and chain, and the inequalities of every range."""
        sizes = [len(chain.matrix) for chain in self.chains]
        operations = sum(18 * k**3 + 10 * k**2 for k in sizes) + 150 * len(self.nodes)
        return Work(operations, 0, 5 * max(sizes) ** 3 + 10 * len(self.nodes))

    def bound(self) -> Bound:
        """Return the enclosure of 2 max_i Σ_j Φ_ij / ε."""
        gamma = LocalInfluenceBalls(self.chains, self.claim.length)
        firsts = [nodes.first for nodes in self.nodes]
        values = [[ball(value) for value in entry] for entry in self.values]
        least, most = arb("inf"), arb(0)
        for nodes in self.nodes:
            # all others of the range have the same entries, neighbours and columns as the second one or node 4
            for node in {nodes.first, nodes.first + 1, nodes.last, 2, 3, 4, self.claim.length - 1}:
                if not nodes.first <= node <= nodes.last:
                    continue
                before, (s, u, v), after = (
                    values[max(0, bisect_right(firsts, i) - 1)] for i in (node - 1, node, node + 1)
                )
                left, right = gamma.row(node)
                residual = s - left * before[0] - right * after[0]
                least, most = least.min(residual), most.max(residual)
                row = u - left * before[2] - right * after[2]
                column = v - gamma.row(node - 1)[1] * before[1] - gamma.row(node + 1)[0] * after[1]
                for rest in (residual, row, column):
                    if rest <= 0:
                        raise CertificateError(f"node {node}: the numbers given prove no norm below 1 and no row sum")
                    if not rest > 0:
                        raise UndecidedError
        index = max(range(len(self.nodes)), key=lambda i: self.values[i][0])
        largest = 2 * values[index][0] / ball(self.claim.epsilon)
        lower, upper = exact((largest / most).lower()), exact((largest / least).upper())
        return Bound(lower, upper, len(self.nodes), None, self.nodes[index])


def _rows(chain: Chain, length: int) -> list[Row]:
    """Entries for the first node, the second, those in the middle and the last one."""
    if any(not p for row in chain.matrix for p in row):
        raise CertificateError("a transition has probability 0, so the local influence is infinite")
    balls = ChainBalls(chain)
    one, two = _numbers(balls.power(1)), _numbers(balls.power(2))
    states = range(balls.k)
    start = list(members(balls.supports.states))
    # the middle one of three nodes has the law P(u, x) P(x, w) / P²(u, w)
    over_u = [[one[u][x] / two[u][w] for u in states] for x in states for w in states]
    over_w = {u: [[one[x][w] / two[u][w] for w in states] for x in states] for u in states}
    if chain.start == "any":
        # the supremum over q of a ratio of mixtures is attained at single states
        first = [[p / q for p, q in zip(one[x], one[y], strict=True)] for x in states for y in states]
    else:
        [second] = _numbers([balls.law(2)])
        first = [[p / q for p, q in zip(one[x], second, strict=True)] for x in start]
    columns = [[one[u][x] for u in (start if length == 2 else states)] for x in states]
    return [
        (arb(0), _influence(first)),
        (
            _influence([[values[u] for u in start] for values in over_u]),
            _influence([r for u in start for r in over_w[u]]),
        ),
        (_influence(over_u), _influence([r for u in states for r in over_w[u]])),
        (_influence(columns), arb(0)),
    ]


def _influence(lists: list[list[arb]]) -> arb:
    """Half the logarithm of the largest ratio of two values of one list."""
    largest = arb(1)
    for values in lists:
        high = low = values[0]
        for value in values:
            high, low = high.max(value), low.min(value)
        largest = largest.max(high / low)
    return largest.log() / 2


def _numbers(vectors: list[Vector]) -> list[list[arb]]:
    return [[p for p in vector if p is not None] for vector in vectors]


def _largest(values: Iterable[arb]) -> arb:
    result = arb(0)
    for value in values:
        result = result.max(value)
    return result
