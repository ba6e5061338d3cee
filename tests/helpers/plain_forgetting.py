"""What mixing families lose, node by node and block by block, by definition."""

import math

import numpy as np


def leakages(steps, overlap, records, cost):
    """Leakage of 0, 1, …, ``records`` records on a side at most: Theorem F1 block after block."""
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
    return window * cost + max(
        side[j] + side[length - window - j] for j in range(length - window + 1)
    )
