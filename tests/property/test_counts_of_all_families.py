"""No count of records, whatever it counts when, tells more than the bounds of any kind of family.

Linear programs over all sequences (``tests/reference``) allow 3 states and 6 records. These are more.
"""

import numpy as np
import pytest
from cases import seeds
from count_queries import worst_count

import pufferflow as pf
from pufferflow.errors import ChainError

RADII = [0.01, 0.1, 0.3]


def matrices(rng, k, number):
    """Dense and sparse ones, such as hardly ever move, and states that are seldom or never reached."""
    found = rng.dirichlet(np.full(k, rng.choice([0.1, 0.5, 2.0])), (number, k))
    found[rng.random(found.shape) < rng.choice([0.0, 0.3, 0.5])] = 0.0
    found += np.eye(k) * rng.choice([0.0, 0.1, 2.0, 20.0])
    for matrix in found:
        if rng.random() < 0.3:
            matrix[rng.random(k) < 0.7, rng.integers(k)] = 0.0
        for row in matrix:
            if not row.any():
                row[rng.integers(k)] = 1.0
    return found / found.sum(axis=2, keepdims=True)


def starting(rng, matrix):
    """A chain with any kind of start."""
    start = rng.choice(["stationary", "any", "given"])
    if start != "given":
        return pf.MarkovChain(matrix, str(start))
    law = rng.dirichlet(np.full(len(matrix), 0.3)) * (rng.random(len(matrix)) < 0.7)
    return pf.MarkovChain(matrix, law / law.sum() if law.any() else np.eye(len(matrix))[0])


def first_law(rng, chain):
    """The law of the first record, one that it may have where any may be."""
    if chain.start == "any":
        return rng.dirichlet(np.full(chain.states, rng.choice([0.1, 1.0])))
    return chain.stationary_distribution if chain.start == "stationary" else chain.initial_distribution


def known_chain(rng, length):
    chain = starting(rng, matrices(rng, int(rng.integers(2, 6)), 1)[0])
    return chain, [chain.transition_matrix] * (length - 1), first_law(rng, chain), np.arange(chain.states)


def labelled(rng, length):
    chain, steps, law, names = known_chain(rng, length)
    _, labels = np.unique(rng.integers(0, max(2, chain.states - 1), chain.states), return_inverse=True)
    labels = labels if labels.any() else names
    return pf.HiddenChain(chain, labels), steps, law, labels


def of_order_two(rng, length):
    names = int(rng.integers(2, 4))
    records = np.cumsum(rng.random(120) < rng.choice([0.1, 0.5])) if rng.random() < 0.7 else rng.integers(0, 9, 60)
    counts = np.zeros((names,) * 3, dtype=np.int64)
    np.add.at(counts, tuple(records[i : len(records) - 2 + i] % names for i in range(3)), 1)
    family, _ = pf.fit_chain(counts, order=2, smoothing=float(rng.choice([0.0, 0.5])))
    chain = family.chain
    return family, [chain.transition_matrix] * (length - 1), first_law(rng, chain), np.asarray(family.observations)


def clocked(rng, length):
    k, start = int(rng.integers(2, 6)), str(rng.choice(["stationary", "any"]))
    chain = pf.PeriodicChain(
        matrices(rng, k, int(rng.integers(1, 5))), repeat=int(rng.integers(1, 4)), initial_distribution=start
    )
    phase = int(rng.integers(chain.period))
    law = rng.dirichlet(np.full(k, 0.3)) if start == "any" else chain.stationary_distributions[phase]
    steps = [chain.transition_matrix((phase + t) % chain.period) for t in range(length - 1)]
    return chain, steps, law, np.arange(k)


def pushed(row, room, rng):
    """A row with as much as there is ``room`` moved to states in a random order."""
    left = 1 - row.sum()
    for y in rng.permutation(len(row)):
        row[y] += (more := min(left, room[y]))
        left -= more
    return row


def between(rng, length):
    (matrix,), radius = matrices(rng, int(rng.integers(2, 6)), 1), rng.choice(RADII)
    k, away = len(matrix), radius * rng.random((2, *matrix.shape))
    family = pf.IntervalFamily(np.maximum(matrix - away[0], 0.0), np.minimum(matrix + away[1], 1.0))
    steps = [
        np.array([pushed(low.copy(), high - low, rng) for low, high in zip(family.low, family.high, strict=True)])
        for _ in range(length - 1)
    ]
    return family, steps, rng.dirichlet(np.full(k, 0.3)), np.arange(k)


def near(rng, length):
    (matrix,), radius = matrices(rng, int(rng.integers(2, 6)), 1), float(rng.choice(RADII))
    steps, k = [], len(matrix)
    for _ in range(length - 1):
        moved = matrix.copy()
        for row, toward in zip(moved, rng.integers(0, k, k), strict=True):
            left = radius
            for y in rng.permutation(np.delete(np.arange(k), toward)):
                row[y] -= (less := min(left, row[y]))
                row[toward] += less
                left -= less
        steps.append(moved)
    return pf.TotalVariationFamily(matrix, radius), steps, rng.dirichlet(np.full(k, 0.3)), np.arange(k)


def seen_of(rng, steps, law, labels, window):
    """Some records outside of the window, as they came out once."""
    states = [rng.choice(len(law), p=law / law.sum())]
    for step in steps:
        states.append(rng.choice(len(law), p=step[states[-1]] / step[states[-1]].sum()))
    inside = range(window[0], sum(window))
    return {t: labels[x] for t, x in enumerate(states) if t not in inside and rng.random() < 0.25}


@pytest.mark.parametrize("seed", seeds(8, 500))
@pytest.mark.parametrize("made", [known_chain, labelled, of_order_two, clocked, between, near])
def test_no_count_tells_more(made, seed):
    rng = np.random.default_rng([seed, 13])
    length, cost = int(rng.choice([2, 3, 5, 8, 12, 20])), float(rng.choice([0.01, 0.1, 0.5, 1.0, 3.0]))
    try:
        family, steps, law, labels = made(rng, length)
    except ChainError:  # no unique stationary law
        return
    width = min(int(rng.choice([1, 1, 2, 3])), length)
    window = int(rng.integers(length - width + 1)), width
    side_information = str(rng.choice(["none", "any"]))
    known = {} if side_information == "none" else seen_of(rng, steps, law, labels, window)
    bound = pf.leakage_loss(family, length, 1 / cost, window=width, side_information=side_information)
    assert worst_count(rng, steps, law, cost, labels, window, known) <= bound * (1 + 1e-9) + 1e-12
