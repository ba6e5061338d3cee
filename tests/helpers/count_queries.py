"""The loss of counts whose sets of labels change with time, along the records in a plain loop."""

from itertools import product

import numpy as np


def log_ratios(steps, law, factors, labels, window, known):
    """Log of what a count multiplies the probability of each sequence of labels in a window by.

    One number a sequence.

    Parameters
    ----------
    steps : list of array, shape (k, k)
        The T - 1 matrices.
    law : array, shape (k,)
        Of the first record.
    factors : array, shape (T, k)
        e^(-c) where a record counts, otherwise 1.
    labels : array, shape (k,)
        What is seen of each state.
    window : tuple of int
        The first of its records, from 0, and how many.
    known : dict
        Records that the adversary knows, with their labels.
    """
    first, width = window
    seen = np.array(
        [labels == known[t] if t in known else np.ones(len(law)) for t in range(len(factors))]
    )

    def ends(weights):
        before, after = law, np.ones(len(law))
        for t in range(first):
            before = (before * weights[t]) @ steps[t]
        for t in range(len(factors) - 1, first + width - 1, -1):
            after = steps[t - 1] @ (weights[t] * after)
        return before, after

    (before, after), (plain, rest), found = ends(seen * factors), ends(seen), []
    for sequence in product(np.unique(labels), repeat=width):
        above, below = before, plain
        for t, label in enumerate(sequence, first):
            if t > first:
                above, below = above @ steps[t - 1], below @ steps[t - 1]
            above, below = above * (labels == label) * factors[t], below * (labels == label)
        if below @ rest > 1e-250:
            found.append(np.log((above @ after) / (below @ rest)))
    return found


def worst_count(rng, steps, law, cost, labels, window, known):
    """Largest loss that an ascent finds: one record and label after the other counts or not,
    whatever tells more.
    """
    length, kinds = len(steps) + 1, labels.max() + 1
    counted = rng.random((length, kinds)) < 0.5

    def loss():
        factors = np.where(counted, np.exp(-cost), 1.0)[:, labels]
        return np.ptp(log_ratios(steps, law, factors, labels, window, known) or [0.0])

    best, before = loss(), -1.0
    while best > before * 1.001 + 1e-12:
        before = best
        for t in sorted(set(range(length)) - set(known), key=lambda t: abs(t - window[0])):
            for kind in range(kinds):
                counted[t, kind] ^= True
                if (now := loss()) > best:
                    best = now
                else:
                    counted[t, kind] ^= True
    return best
