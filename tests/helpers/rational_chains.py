"""Random chains of fractions with a count, and the exact loss of two laws of a count."""

from fractions import Fraction

import numpy as np
from enumeration import stationary_law

TINY = (0, 0, Fraction(1, 10**80), Fraction(1, 10**20), Fraction(1, 10**7), Fraction(1, 9), 1, 1, 3)


def random_row(rng, k, kind):
    if kind == "tiny":
        row = [Fraction(TINY[i]) for i in rng.integers(0, len(TINY), k)]
    else:  # few values, so that exact ties are frequent
        row = [
            Fraction(int(n)) for n in rng.multinomial(4 if kind == "ties" else 97, np.ones(k) / k)
        ]
    if not any(row):
        row[rng.integers(k)] = Fraction(1)
    return [p / sum(row) for p in row]


def random_case(rng, states=4):
    k = int(rng.integers(1, states + 1))
    kind = ("ties", "general", "tiny")[rng.integers(3)]
    matrix = [random_row(rng, k, kind) for _ in range(k)]
    if rng.integers(6) == 0:
        matrix = [matrix[0]] * k  # independent records
    start = random_row(rng, k, kind)
    if rng.integers(3) == 0:
        start = stationary_law(matrix) or start
    weights = rng.integers(0, 4, k) if rng.integers(2) else rng.integers(0, 2, k)
    return matrix, start, int(rng.integers(1, 8)), [int(w) for w in weights]


def some_starts(rng, k, many):
    """Certain ones, and mixtures with parts of all sizes."""
    mixed = [
        [Fraction(int(n), 10 ** int(m)) for n, m in rng.integers((0, 0), (4, 9), (k, 2))]
        for _ in range(many)
    ]
    certain = [[Fraction(int(x == y)) for x in range(k)] for y in range(k)]
    return [[p / sum(law) for p in law] for law in (*certain, *mixed) if any(law)]


def loss(first, second, scale):
    """Largest log-ratio of the densities of two counts plus Laplace noise.

    Between two integers both densities are sums of e^z and e^-z terms, whose ratio is monotone:
    integers suffice.
    """
    top = max(*first, *second)
    outputs = np.arange(-1, top + 2)
    densities = [
        sum(
            float(p / sum(law.values())) * np.exp(-np.abs(outputs - n) / scale)
            for n, p in law.items()
        )
        for law in (first, second)
    ]
    return float(np.abs(np.log(densities[0] / densities[1])).max())
