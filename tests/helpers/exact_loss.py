"""The exact loss straight from its definition, in exact fractions.

Every one of the k^T sequences, every whole output.

A density is a sum of r^|w − n| over the sequences, r = e^(−1/noise) a rational; nothing here uses
the Markov property.
"""

import math
from fractions import Fraction
from itertools import product

from enumeration import counted


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
