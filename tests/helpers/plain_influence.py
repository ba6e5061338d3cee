"""Plain twins of the fast search: every node, every quilt, straight from the formulas. Slow, obviously right.

They take Python numbers; with ``fractions.Fraction`` entries all influences are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import TypeAlias

Number: TypeAlias = Fraction | float
Matrix: TypeAlias = Sequence[Sequence[Number]]


def multiply(a: Matrix, b: Matrix) -> list[list[Number]]:
    """Matrix product."""
    columns = list(zip(*b, strict=True))
    return [[sum((x * y for x, y in zip(row, column, strict=True)), 0 * row[0]) for column in columns] for row in a]


def powers(P: Matrix, count: int) -> list[list[list[Number]]]:
    """P^0 … P^count."""
    one = [[P[0][0] * 0 + (i == j) for j in range(len(P))] for i in range(len(P))]
    result: list[list[list[Number]]] = [one]
    for _ in range(count):
        result.append(multiply(result[-1], P))
    return result


def ratio(numerator: Number, denominator: Number) -> Number:
    """Quotient of probabilities: 0 where the event happens under neither secret, ∞ for x/0."""
    if numerator == 0:
        return 0
    return numerator / denominator if denominator else math.inf


def left_ratios(
    P: Matrix, start: Sequence[Number] | str, node: int, a: int | None, convention: str = "exact"
) -> dict[tuple[int, int], Number]:
    """What the quilt node ``a`` to the left of ``node`` contributes for each pair of secrets (eq. 5; C.4 for "any")."""
    k = len(P)
    power = powers(P, node - 1)
    if isinstance(start, str):
        assert start == "any"
        rows = [power[node - 1][z] for z in range(k)]
        before = [power[node - 1 - a][z] for z in range(k)] if a is not None else rows
    else:
        rows = [multiply([start], power[node - 1])[0]]
        before = [multiply([start], power[node - 1 - a])[0]] if a is not None else rows
    secrets = [x for x in range(k) if any(row[x] for row in rows)]
    sources = [z for z in range(k) if convention == "published" or any(row[z] for row in before)]
    found: dict[tuple[int, int], Number] = {}
    for x, y in permutations(secrets, 2):
        found[x, y] = 1
        if a is not None:
            found[x, y] *= max(ratio(row[y], row[x]) for row in rows)
            found[x, y] *= max(ratio(power[a][z][x], power[a][z][y]) for z in sources)
    return found


def right_ratios(P: Matrix, b: int | None) -> dict[tuple[int, int], Number]:
    """What the quilt node ``b`` to the right contributes for each pair of states."""
    states = range(len(P))
    if b is None:
        return dict.fromkeys(permutations(states, 2), 1)
    power = powers(P, b)[b]
    return {(x, y): max(ratio(power[x][z], power[y][z]) for z in states) for x, y in permutations(states, 2)}


def max_influence_ratio(
    P: Matrix, start: Sequence[Number] | str, node: int, a: int | None, b: int | None, convention: str = "exact"
) -> Number:
    """e^max-influence of the quilt at distances a and b of ``node``."""
    return largest(left_ratios(P, start, node, a, convention), right_ratios(P, b))


def largest(left: dict[tuple[int, int], Number], right: dict[tuple[int, int], Number]) -> Number:
    """The largest product over all pairs of secrets, at least 1."""
    return max([1, *(value * right[pair] for pair, value in left.items())])


def score(card: int, influence_ratio: Number, epsilon: float) -> float:
    """Card / (ε − e), ∞ unless e < ε."""
    e = math.log(influence_ratio) if influence_ratio != math.inf else math.inf
    return card / (epsilon - e) if e < epsilon else math.inf


def best_quilt(
    P: Matrix,
    start: Sequence[Number] | str,
    length: int,
    node: int,
    epsilon: float,
    convention: str = "exact",
    rights: Mapping[int | None, dict[tuple[int, int], Number]] | None = None,
) -> tuple[float, int | None, int | None]:
    """Smallest score of ``node`` over all chain quilts (Lemma 4.6), with its distances."""
    rights = rights or all_rights(P, length - node)
    best: tuple[float, int | None, int | None] = (length / epsilon, None, None)
    for a in [None, *range(1, node)]:
        left = left_ratios(P, start, node, a, convention)
        for b in [None, *range(1, length - node + 1)]:
            if a is None and b is None:
                continue
            card = length - node + a if b is None else node + b - 1 if a is None else a + b - 1
            value = score(card, largest(left, rights[b]), epsilon)
            if value < best[0]:
                best = (value, a, b)
    return best


def all_rights(P: Matrix, distance: int) -> dict[int | None, dict[tuple[int, int], Number]]:
    """:func:`right_ratios` up to a distance."""
    return {b: right_ratios(P, b) for b in [None, *range(1, distance + 1)]}


def noise_scale(
    P: Matrix, start: Sequence[Number] | str, length: int, epsilon: float, convention: str = "exact"
) -> float:
    """σ_max of Algorithm 3 for one chain."""
    rights = all_rights(P, length - 1)
    return max(best_quilt(P, start, length, i, epsilon, convention, rights)[0] for i in range(1, length + 1))


def approximate_noise_scale(length: int, epsilon: float, smallest_probability: float, gap: float) -> float:
    """σ_max of Algorithm 4."""

    def term(distance: int) -> float:
        delta = math.exp(-gap * distance / 2) / smallest_probability
        return math.log1p(delta) - math.log1p(-delta) if delta < 1 else math.inf

    def value(card: int, e: float) -> float:
        return card / (epsilon - e) if e < epsilon else math.inf

    worst = 0.0
    for i in range(1, length + 1):
        best = length / epsilon
        for a in range(1, i):
            best = min(best, value(length - i + a, 2 * term(a)))
            for b in range(1, length - i + 1):
                best = min(best, value(a + b - 1, 2 * term(a) + term(b)))
        for b in range(1, length - i + 1):
            best = min(best, value(i + b - 1, term(b)))
        worst = max(worst, best)
    return worst
