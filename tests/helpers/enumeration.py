"""Markov quilts straight from the definitions, by listing all k^T sequences with exact numbers.

Nothing here uses the Markov property, eq. 5 or the library's search: the joint law of (X_1, …, X_T)
is an array with one axis a node, of whole numbers (probabilities times a common denominator, which
cancels in every ratio).
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat, fmpz
from sequence_programs import sequence_law

DIGITS = 60


class ExactChain(NamedTuple):
    """A chain with rational entries; ``start`` is a law, "stationary" or "any".

    The supremum over all initial laws is taken at point masses with the uniform law mixed in at
    weight 10^-zeros; a ratio above 10^(2 zeros / 3) stands for one that grows without bound as that
    weight vanishes.
    """

    matrix: list
    start: list | str
    zeros: int = 30

    @property
    def initial_laws(self):
        """The initial laws over which a supremum is to be taken."""
        k = len(self.matrix)
        if self.start == "stationary":
            law = stationary_law(self.matrix)
            assert law is not None
            return [law]
        if self.start != "any":
            return [self.start]
        little = Fraction(1, 10**self.zeros)
        return [[(1 - little) * (x == y) + little / k for x in range(k)] for y in range(k)]

    def floats(self):
        """Arguments of MarkovChain."""
        start = self.start if isinstance(self.start, str) else [float(p) for p in self.start]
        return [[float(p) for p in row] for row in self.matrix], start


def stationary_law(matrix):
    """Solve πP = π, Σπ = 1; None where the solution is not unique."""
    k = len(matrix)
    rows = [[*(matrix[y][x] - (x == y) for y in range(k)), Fraction(0)] for x in range(k)]
    rows = [
        [fmpq(p.numerator, p.denominator) for p in row] for row in (*rows, [Fraction(1)] * (k + 1))
    ]
    reduced, rank = fmpq_mat(rows).rref()
    found = [reduced[x, k] for x in range(k)]
    return [Fraction(int(p.p), int(p.q)) for p in found] if rank == k else None


def whole(numbers):
    """The same up to a factor, which cancels, in whole numbers, which are faster."""
    exact = np.array(numbers, dtype=object)
    return exact * math.lcm(*(p.denominator for p in exact.flat)) // 1


def joint_law(matrix, initial_law, length):
    """Weights of all sequences, shape (k,) * length, dtype object."""
    return sequence_law(whole(matrix), whole(initial_law), length)


def counted(matrix, law, length, count, window=1):
    """Weights {(node, value): {count(sequence): weight}} of all sequences; values of windows."""
    joint, found = joint_law(matrix, law, length), {}
    for path in product(range(len(matrix)), repeat=length):
        if weight := joint[path]:
            n = count(path)
            for node in range(length - window + 1):
                secret = path[node : node + window] if window > 1 else path[node]
                table = found.setdefault((node + 1, secret), {})
                table[n] = table.get(n, 0) + weight
    return found


def chain_quilts(length, node, window=1):
    """All quilts of Lemma 4.6 as (left node, right node, card(X_N)), nodes 0-based; of the window
    that begins there.
    """
    return [
        (left, right, (length if right is None else right) - (-1 if left is None else left) - 1)
        for left in [None, *range(node)]
        for right in [None, *range(node + window, length)]
    ]


def influence_ratio(joint, nodes, quilt):
    """e^max-influence of ``quilt`` on ``nodes`` (Definition 4.1) as a fraction; (1, 0) is ∞."""
    kept = sorted([*nodes, *quilt])
    table = joint.sum(axis=tuple(t for t in range(joint.ndim) if t not in kept))
    table = np.moveaxis(table, [kept.index(node) for node in nodes], range(len(nodes)))
    table = table.reshape(math.prod(joint.shape[node] for node in nodes), -1).tolist()
    # exact as Python's own integers, and fast where they are long
    rows = [[fmpz(p) for p in row] for row in table]
    secrets = [(row, total) for row in rows if (total := sum(row))]
    best = (fmpz(1), fmpz(1))
    for (p, p_total), (q, q_total) in product(secrets, repeat=2):
        for p_event, q_event in zip(p, q, strict=True):
            if p_event and not q_event:
                return (1, 0)
            if p_event * q_total * best[1] > best[0] * q_event * p_total:
                best = (p_event * q_total, q_event * p_total)
    return int(best[0]), int(best[1])


def log_influence(joint, nodes, quilt, enormous=None):
    """The max-influence to ``DIGITS`` digits; a ratio above ``enormous`` stands for ∞."""
    numerator, denominator = influence_ratio(joint, nodes, quilt)
    if not denominator or (enormous and numerator > enormous * denominator):
        return Decimal("Infinity")
    # of very long numbers the first digits are enough, far more than are kept
    spare = max(0, min(numerator.bit_length(), denominator.bit_length()) - 8 * DIGITS)
    with localcontext(prec=DIGITS):
        return (Decimal(numerator >> spare) / Decimal(denominator >> spare)).ln()


def quilt_influences(chain, length, window=1):
    """card(X_N) and max-influence, to ``DIGITS`` digits, of all quilts of every window of nodes."""
    window = min(window, length)
    enormous = 10 ** (2 * chain.zeros // 3) if chain.start == "any" else None
    joints = [joint_law(chain.matrix, law, length) for law in chain.initial_laws]

    def influence(node, quilt):
        nodes = range(node, node + window)
        return max(log_influence(joint, nodes, quilt, enormous) for joint in joints)

    return [
        [
            (card, influence(node, [t for t in (left, right) if t is not None]))
            for left, right, card in chain_quilts(length, node, window)
        ]
        for node in range(length - window + 1)
    ]


def exact_scale(influences, epsilon):
    """σ_max of Algorithm 2 with the chain quilts, by Definition 4.1."""
    exact = Decimal(epsilon)
    with localcontext(prec=DIGITS):
        return max(
            min(card / (exact - e) for card, e in quilts if e < exact) for quilts in influences
        )


def random_matrix(rng, k):
    """Matrix in multiples of 1/64: dense, sparse, periodic, reducible or nearly deterministic."""
    kind = rng.choice(["dense", "sparse", "permutation", "blocks", "sticky"])
    if kind == "permutation":
        image = rng.permutation(k)
        return [[Fraction(int(image[x] == y)) for y in range(k)] for x in range(k)]
    rows = []
    for x in range(k):
        weights = rng.exponential(size=k) + 0.02
        if kind == "sparse":
            weights *= rng.random(k) < 0.5
        elif kind == "blocks":
            weights *= (np.arange(k) % 2 == x % 2) | (rng.random() < 0.3)
        elif kind == "sticky":
            weights[rng.integers(k)] += 40
        if not weights.any():
            weights[rng.integers(k)] = 1
        rows.append(_sixty_fourths(weights))
    return rows


def random_chain(rng, k):
    """A chain as :func:`random_matrix` with one of the three kinds of start."""
    matrix = random_matrix(rng, k)
    kind = rng.choice(["given", "stationary", "any"])
    if kind == "stationary" and stationary_law(matrix) is not None:
        return ExactChain(matrix, "stationary")
    if kind == "any":
        return ExactChain(matrix, "any")
    weights = rng.exponential(size=k) * (rng.random(k) < 0.7)
    return ExactChain(matrix, _sixty_fourths(weights if weights.any() else np.eye(k)[0]))


def _sixty_fourths(weights):
    parts = np.floor(weights / weights.sum() * 64).astype(int)
    parts[weights.argmax()] += 64 - parts.sum()
    return [Fraction(int(n), 64) for n in parts]
