"""The same as audit/wasserstein.py, plainly, with fractions: a distribution carried along the
chain, once a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from pufferflow.general import wasserstein_infinity

Law = dict[int, Fraction]


def laws_given_secrets(
    matrix: Sequence[Sequence[Fraction]],
    initial: Sequence[Fraction],
    length: int,
    weights: Sequence[int],
    node: int,
) -> dict[int, Law]:
    """P(N = n, X_node = x) for every state x of positive probability."""
    k = len(matrix)
    # (state now, secret or None, sum so far) -> probability
    paths = {(x, x if node == 1 else None, weights[x]): initial[x] for x in range(k) if initial[x]}
    for step in range(2, length + 1):
        longer: dict[tuple[int, int | None, int], Fraction] = {}
        for (x, secret, n), probability in paths.items():
            for y in range(k):
                if matrix[x][y]:
                    key = y, y if step == node else secret, n + weights[y]
                    longer[key] = longer.get(key, Fraction(0)) + probability * matrix[x][y]
        paths = longer
    laws: dict[int, Law] = {}
    for (_, secret, n), probability in paths.items():
        assert secret is not None
        law = laws.setdefault(secret, {})
        law[n] = law.get(n, Fraction(0)) + probability
    return laws


def chain_wasserstein(
    matrix: Sequence[Sequence[Fraction]],
    initial: Sequence[Fraction],
    length: int,
    weights: Sequence[int],
) -> int:
    """W of Σ_t weights[X_t] over all nodes and pairs of secrets."""
    largest = 0
    for node in range(1, length + 1):
        laws = laws_given_secrets(matrix, initial, length, weights, node).values()
        for first, second in combinations(laws, 2):
            largest = max(largest, int(infinity_distance(first, second)))
    return largest


def infinity_distance(first: Law, second: Law) -> Fraction:
    """W∞ of two laws, each divided by its sum."""
    p, q = (
        {Fraction(n): law[n] / sum(law.values()) for n in sorted(law)} for law in (first, second)
    )
    return wasserstein_infinity(p, q)
