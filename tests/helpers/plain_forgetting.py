"""What forgetting families lose, node by node and block by block, and which of them a chain lies in, by definition."""

import math

import numpy as np


def leakages(steps, overlap, records, cost):
    """What 0, 1, …, ``records`` records on one side of a node tell at most: Theorem F1 one block after another."""
    found = []
    for n in range(records + 1):
        if n < steps:
            found.append(n * cost)
        else:
            rest = cost + found[n - steps]
            if rest < 700:
                forgotten = math.log1p((1 - overlap) * math.expm1(rest))
            else:  # beyond the exponentials of floats
                forgotten = np.logaddexp(0.0, math.log1p(-overlap) + rest) if overlap < 1 else 0.0
            found.append((steps - 1) * cost + forgotten)
    return found


def loss(steps, overlap, length, cost, window=1):
    """The worst window of all."""
    window = min(window, length)
    side = leakages(steps, overlap, length - window, cost)
    return window * cost + max(side[j] + side[length - window - j] for j in range(length - window + 1))


def joint_law(law, matrices):
    """Probability of every sequence, one axis a record."""
    joint = np.array(law, dtype=float)
    for matrix in matrices:
        joint = joint[..., None] * matrix
    return joint


def overlap(joint, steps):
    """Least overlap of the laws of two nodes ``steps`` apart, given two values of either that it can take."""
    length, least = joint.ndim, 1.0
    for t in range(length - steps):
        pair = joint.sum(axis=tuple(i for i in range(length) if i not in (t, t + steps)))
        for table in (pair, pair.T):
            rows = table[table.sum(axis=1) > 0]
            rows = rows / rows.sum(axis=1, keepdims=True)
            least = min(least, np.minimum(rows[:, None], rows[None]).sum(axis=2).min())
    return least
