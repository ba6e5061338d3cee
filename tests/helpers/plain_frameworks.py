"""As pufferflow/general, plainly: couplings by linear programs or Hall's condition, sums."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from scipy.optimize import linprog

Law = Mapping[Fraction, Fraction]


def w_infinity(p: Law, q: Law) -> Fraction:
    """Smallest d of a coupling within d; by Strassen p(S) ≤ q(all within d of S) for all sets S."""
    points = [value for value, mass in p.items() if mass]
    others = [value for value, mass in q.items() if mass]
    sets = list(chain.from_iterable(combinations(points, n) for n in range(1, len(points) + 1)))
    for distance in sorted({abs(x - y) for x in points for y in others}):
        reached = (
            sum(q[y] for y in others if any(abs(x - y) <= distance for x in s)) for s in sets
        )
        if all(sum(p[x] for x in s) <= near for s, near in zip(sets, reached, strict=True)):
            return distance
    raise AssertionError("the largest distance always suffices")


def coupling_exists(p: Law, q: Law, distance: float) -> bool:
    """Whether a joint law of p and q puts no mass on pairs further apart, by a linear program."""
    pairs = [(x, y) for x in p for y in q if abs(x - y) <= distance]
    if not pairs:
        return False
    rows = [[float(x == a) for x, _ in pairs] for a in p] + [
        [float(y == b) for _, y in pairs] for b in q
    ]
    totals = [float(mass) for mass in (*p.values(), *q.values())]
    return bool(linprog(np.zeros(len(pairs)), A_eq=rows, b_eq=totals).status == 0)


def conditional(
    database_law: Mapping[tuple, Fraction], query, secret
) -> dict[Fraction, Fraction] | None:
    """Law of the query given a secret; None where it has probability 0."""
    total = sum(mass for database, mass in database_law.items() if secret(database))
    law: dict[Fraction, Fraction] = {}
    for database, mass in database_law.items():
        if secret(database) and mass:
            law[Fraction(query(database))] = (
                law.get(Fraction(query(database)), Fraction(0)) + mass / total
            )
    return law or None


def divergence(p: Law, q: Law) -> float:
    """D∞ of two laws."""
    return max(
        (math.log(mass / q[x]) if q.get(x) else math.inf for x, mass in p.items() if mass),
        default=0.0,
    )


def density(law: Law, w: float, scale: float) -> float:
    """Of F + Lap(scale) at w."""
    return sum(
        float(mass) * math.exp(-abs(w - float(x)) / scale) / (2 * scale) for x, mass in law.items()
    )


def largest_change(query, databases, group) -> Fraction:
    """Over all pairs of databases that agree outside the group."""
    return max(
        abs(Fraction(query(x)) - Fraction(query(y)))
        for x in databases
        for y in databases
        if all(a == b for place, (a, b) in enumerate(zip(x, y, strict=True)) if place not in group)
    )
