"""Plain twins of fast searches: every node, quilt and block by the formulas. Slow, obviously right.

They take Python numbers; with ``fractions.Fraction`` entries all influences are exact.
"""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
from flint import arb, fmpq


def powers(P, count):
    """P^0 … P^count."""
    found = [[[P[0][0] * 0 + (i == j) for j in range(len(P))] for i in range(len(P))]]
    for _ in range(count):
        found.append(multiply(found[-1], P))
    return found


def multiply(a, b):
    return (np.array(a, dtype=object) @ np.array(b, dtype=object)).tolist()


def ratio(numerator, denominator):
    """Quotient of probabilities: 0 where the event happens under neither secret, ∞ for x/0."""
    if numerator == 0:
        return 0
    return numerator / denominator if denominator else math.inf


def quilts(P, start, length, convention="exact"):
    """All chain quilts (Lemma 4.6) of each node, with eq. 5 (C.4 for the start "any"): by the
    distances of the quilt nodes (0: none on that side) the card and e^max-influence.
    """
    k, power = len(P), powers(P, length)
    distributions = power if isinstance(start, str) else [multiply([start], one) for one in power]
    pairs = list(permutations(range(k), 2))
    rights = [
        {(x, y): max(ratio(p[x][z], p[y][z]) for z in range(k)) for x, y in pairs} for p in power
    ]
    found = []
    for node in range(1, length + 1):
        secrets = [x for x in range(k) if any(m[x] for m in distributions[node - 1])]
        of_node = {}
        for a in range(node):
            sources = [
                z
                for z in range(k)
                if convention == "published" or any(m[z] for m in distributions[node - 1 - a])
            ]
            left = dict.fromkeys(permutations(secrets, 2), 1)
            for x, y in left if a else ():
                left[x, y] = max(ratio(m[y], m[x]) for m in distributions[node - 1])
                left[x, y] *= max(ratio(power[a][z][x], power[a][z][y]) for z in sources)
            for b in range(length - node + 1):
                card = (a or node) + (b or length - node + 1) - 1
                of_node[a, b] = (
                    card,
                    max([1, *(left[pair] * (rights[b][pair] if b else 1) for pair in left)]),
                )
        found.append(of_node)
    return found


def score(card, influence_ratio, epsilon):
    """Card / (ε − e), ∞ unless e < ε."""
    e = math.log(influence_ratio) if influence_ratio != math.inf else math.inf
    return card / (epsilon - e) if e < epsilon else math.inf


def noise_scale(quilts, epsilon):
    """σ_max of Algorithm 3 for one chain."""
    return max(min(score(*quilt, epsilon) for quilt in of_node.values()) for of_node in quilts)


def approximate_noise_scale(length, epsilon, smallest_probability, gap):
    """σ_max of Algorithm 4."""

    def term(distance):
        delta = math.exp(-gap * distance / 2) / smallest_probability
        return math.log1p(delta) - math.log1p(-delta) if delta < 1 else math.inf

    worst, terms = 0.0, [0.0, *map(term, range(1, length))]
    for node in range(1, length + 1):
        best = length / epsilon
        for a, b in product(range(node), range(length - node + 1)):
            e = 2 * terms[a] + terms[b]
            if e < epsilon:
                best = min(best, ((a or node) + (b or length - node + 1) - 1) / (epsilon - e))
        worst = max(worst, best)
    return worst


def ball(number):
    exact = Fraction(number)
    return arb(fmpq(exact.numerator, exact.denominator))


def mixing_loss(steps, overlap, length, cost, window=1):
    """What a mixing family loses at its worst window (Theorem F1), as a ball."""
    window, c, share = min(window, length), ball(cost), ball(overlap)
    factors = []  # e to the leakage of so many records on a side
    for n in range(length - window + 1):
        grown = (n * c).exp()
        if n >= steps:
            grown = share * ((steps - 1) * c).exp()
            grown += (1 - share) * (steps * c).exp() * factors[n - steps]
        factors.append(grown)
    products = (one * other for one, other in zip(factors, factors[::-1], strict=True))
    return window * c + max(products, key=arb.upper).log()
