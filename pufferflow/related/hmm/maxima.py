"""Noisy Max without states: laws of the released index or value for independent noisy values.

The largest of independent values is at most v when each is, so its law comes from products of their distribution
functions: O(n) products a value, whatever the number of joint states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations_with_replacement
from math import inf, lcm, prod
from typing import Literal, TypeAlias, get_args

from pufferflow._checks import check_choice, check_whole
from pufferflow._display import displayed
from pufferflow.related.hmm.builders import Ties, count_laws, noise
from pufferflow.related.hmm.model import Exact, Matrix, Vector, step

Relation: TypeAlias = Literal["one-by-one", "all-by-one", "one-anywhere"]
"""Neighbouring counts: one may change by one; every one may change by one; one may take any other value."""


def noisy_laws(laws: Sequence[Sequence[Exact]], mechanism: Sequence[Sequence[Exact]] | None = None) -> Matrix:
    """Return the law of each noisy count.

    Parameters
    ----------
    laws : sequence of sequences, shape (n, m + 1)
        Laws of the independent counts.
    mechanism : sequence of sequences, optional
        P(noisy value | count) (default: the truncated geometric mechanism, ratio 1/2).

    Raises
    ------
    ModelError
        A law is impossible.
    """
    counts = count_laws(laws)
    rows = noise(mechanism, len(counts[0]))
    return tuple(step(law, rows) for law in counts)


def value_law(noisy: Sequence[Sequence[Exact]]) -> Vector:
    """Return the law of the largest of independent values, from the law of each (shape (n, values))."""
    levels = [tuple(accumulate(law)) for law in count_laws(noisy)]
    at_most = [prod(column, start=Fraction(1)) for column in zip(*levels, strict=True)]
    return tuple(p - q for p, q in zip(at_most, [Fraction(0), *at_most], strict=False))


def index_law(noisy: Sequence[Sequence[Exact]], ties: Ties = "first") -> Vector:
    """Return the law of the index of the largest of independent values, from the law of each (shape (n, values)).

    Raises
    ------
    ModelError, ParameterError
        A law is impossible or ``ties`` unknown.
    """
    check_choice(ties, "ties", get_args(Ties))
    laws = count_laws(noisy)
    zero = Fraction(0)
    total = [zero] * len(laws)
    for v in range(len(laws[0])):
        below = [sum(law[:v], Fraction(0)) for law in laws]
        for i, law in enumerate(laws):
            if not law[v]:
                continue
            others = [(below[j], laws[j][v], j < i) for j in range(len(laws)) if j != i]
            if ties == "uniform":
                # chances that 0, 1, … others are equal, all the rest below
                equal = [Fraction(1)]
                for less, same, _ in others:
                    equal = [
                        (equal[t] * less if t < len(equal) else zero) + (equal[t - 1] * same if t else zero)
                        for t in range(len(equal) + 1)
                    ]
                wins = sum((p / (t + 1) for t, p in enumerate(equal)), Fraction(0))
            else:
                wins = Fraction(1)
                for less, same, earlier in others:
                    wins *= less if earlier == (ties == "first") else less + same
            total[i] += law[v] * wins
    return tuple(total)


@dataclass(frozen=True)
@displayed("counts", "neighbour", "value", "probability", "neighbour_probability")
class NeighbourRatio:
    """Two neighbouring lists of counts and the released value they tell apart best."""

    counts: tuple[int, ...]
    neighbour: tuple[int, ...]
    value: int
    probability: Fraction
    """P(value | counts)."""
    neighbour_probability: Fraction
    """P(value | neighbour)."""

    @property
    def ratio(self) -> Fraction | float:
        """Exact ratio of the two, ``math.inf`` where the second is 0."""
        return self.probability / self.neighbour_probability if self.neighbour_probability else inf


def largest_value_ratio(
    queries: int,
    relation: Relation,
    *,
    largest: int = 2,
    mechanism: Sequence[Sequence[Exact]] | None = None,
) -> NeighbourRatio:
    """Return the largest ratio P(maximum | counts) / P(maximum | neighbour) over all neighbouring counts.

    The law of the maximum does not depend on the order of the counts, so only their frequencies are gone through:
    pairs of frequencies that some matching makes neighbours.

    Parameters
    ----------
    queries : int
        n ≥ 1 counts.
    relation : {"one-by-one", "all-by-one", "one-anywhere"}
        Which counts are neighbours; symmetric.
    largest : int
        Counts are 0, …, m.
    mechanism : sequence of sequences, optional
        P(noisy value | count) (default: the truncated geometric mechanism, ratio 1/2).

    Raises
    ------
    ModelError, ParameterError
        A number is out of range, the relation unknown, or the mechanism no matrix for these counts.
    """
    n, m = check_whole(queries, "number of queries"), check_whole(largest, "largest value")
    check_choice(relation, "relation", get_args(Relation))
    rows = noise(mechanism, m + 1)
    denominator = lcm(*(p.denominator for row in rows for p in row))
    levels = [tuple(accumulate(int(p * denominator) for p in row)) for row in rows]

    @cache
    def law(counts: tuple[int, ...]) -> tuple[int, ...]:
        """P(maximum = v) times denominator^n."""
        at_most = [prod(levels[x][v] for x in counts) for v in range(len(rows[0]))]
        return tuple(p - q for p, q in zip(at_most, [0, *at_most], strict=False))

    best: tuple[int, int, tuple[int, ...], tuple[int, ...], int] | None = None
    for counts in combinations_with_replacement(range(m + 1), n):
        p = law(counts)
        for neighbour in dict.fromkeys(_neighbours(counts, relation, m)):
            q = law(tuple(sorted(neighbour)))
            for v in range(len(p)):
                if p[v] and (best is None or p[v] * best[1] > best[0] * q[v]):
                    best = p[v], q[v], counts, neighbour, v
    assert best is not None
    over = denominator**n
    return NeighbourRatio(*best[2:], Fraction(best[0], over), Fraction(best[1], over))


def _neighbours(counts: tuple[int, ...], relation: Relation, largest: int) -> Iterator[tuple[int, ...]]:
    """Neighbours of sorted counts, up to the order of those that are equal."""
    if relation == "all-by-one":
        moves = [[y for y in (x - 1, x, x + 1) if 0 <= y <= largest] for x in range(largest + 1)]
        partial: list[tuple[int, ...]] = [()]
        for x in range(largest + 1):
            partial = [
                before + chosen
                for before in partial
                for chosen in combinations_with_replacement(moves[x], counts.count(x))
            ]
        yield from partial
        return
    for i, x in enumerate(counts):
        if i and counts[i - 1] == x:
            continue
        targets = (x - 1, x + 1) if relation == "one-by-one" else range(largest + 1)
        for y in targets:
            if y != x and 0 <= y <= largest:
                yield (*counts[:i], y, *counts[i + 1 :])
