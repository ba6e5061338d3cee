"""Counts along chains in fractions, as audit/counts.py and verify/counts.py have them: random
chains, distributions of a count from all sequences, W and the loss of noise.
"""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
from enumeration import counted, stationary_law

from pufferflow.general import wasserstein_infinity

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
    outputs = np.arange(-1, max(*first, *second) + 2)
    one, other = (
        sum(float(p) * np.exp(-np.abs(outputs - n) / scale) for n, p in divided(law).items())
        for law in (first, second)
    )
    return float(np.abs(np.log(one / other)).max())


def laws_given_secrets(matrix, initial, length, weights):
    """P(N = n, X_node = x) by all sequences: of every node, by states of positive probability."""
    nodes = [{} for _ in range(length)]
    sums = counted(matrix, initial, length, lambda path: sum(weights[x] for x in path))
    total = sum(sum(law.values()) for (node, _), law in sums.items() if node == 1)
    for (node, x), law in sums.items():
        nodes[node - 1][x] = {n: Fraction(weight, total) for n, weight in law.items()}
    return nodes


def divided(law):
    """By its sum."""
    return {n: Fraction(law[n]) / sum(law.values()) for n in sorted(law)}


def chain_wasserstein(matrix, initial, length, weights):
    """W of Σ_t weights[X_t] over all nodes and pairs of secrets."""
    largest = 0
    for laws in laws_given_secrets(matrix, initial, length, weights):
        pairs = combinations(map(divided, laws.values()), 2)
        largest = max([largest, *(wasserstein_infinity(*pair) for pair in pairs)])
    return largest


# -- noisy counts at every whole output ------------------------------------------------------------


def log_fraction(value):
    """Logarithm of a positive fraction of any size, to a few roundings."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    near = value / Fraction(2) ** power  # in (1/2, 2)
    return power * math.log(2) + math.log1p(float(near - 1))


def conditional_densities(matrix, law, length, bins, coordinates, ratio, window=1):
    """Densities {(node, values): {output: value}} up to a common factor; of values in a window.

    ``ratio`` is e^(−1/noise) of a coordinate, ``bins[x]`` the one that state x adds to, or None.
    """

    def count(path):
        return tuple(sum(bins[x] == j for x in path) for j in range(coordinates))

    powers = [Fraction(ratio) ** d for d in range(length + 1)]
    return {
        secret: {
            w: sum(
                Fraction(weight, sum(table.values()))
                * math.prod(powers[abs(a - b)] for a, b in zip(w, n, strict=True))
                for n, weight in table.items()
            )
            for w in product(range(length + 1), repeat=coordinates)
        }
        for secret, table in counted(matrix, law, length, count, window).items()
    }


def largest_ratios(densities, length):
    """Largest density ratios over all whole outputs, and over the corners alone: (ratio, node,
    pair, output) each.
    """
    inside = corner = (Fraction(1), None, None, None)
    for (node, x), first in densities.items():
        for (other, y), second in densities.items():
            if node == other and x != y:
                for w, value in first.items():
                    ratio = value / second[w]
                    if ratio > inside[0]:
                        inside = (ratio, node, (x, y), w)
                    if ratio > corner[0] and set(w) <= {0, length}:
                        corner = (ratio, node, (x, y), w)
    return inside, corner
