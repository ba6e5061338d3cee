"""Bounds of labelled chains against a linear program over all sequences of labels, and against all counts."""

import numpy as np
import pytest
from cases import counts
from sequence_programs import label_law, largest_loss, largest_loss_of_counts

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.coupling.loss import ProcessLoss
from pufferflow.coupling.process import of_histories
from pufferflow.errors import ChainError


def random_matrix(rng, n):
    """Dense, sparse, periodic and transient chains."""
    kind = rng.integers(5)
    matrix = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 5.0])), n)
    if kind == 1:
        matrix = matrix * (rng.random((n, n)) < 0.6) + 0.01 * np.eye(n)[rng.permutation(n)]
    elif kind == 2:
        matrix = np.eye(n)[rng.permutation(n)]
    elif kind == 3:
        matrix = np.triu(matrix) + 0.2 * np.eye(n)
    return matrix / matrix.sum(axis=1, keepdims=True)


def random_labelled(rng, start):
    kind = rng.integers(5)
    if kind == 0:
        law = rng.dirichlet(np.full(2, rng.choice([0.3, 1.0])), (2, 2))
        initial = rng.dirichlet(np.ones(4)).reshape(2, 2) if start == "given" else start
        return pf.HiddenChain.of_order(law, initial)
    if kind == 1:
        hidden = random_matrix(rng, 2)
        initial = rng.dirichlet(np.ones(2)) if start == "given" else start
        emission = rng.dirichlet(np.full(2, rng.choice([0.3, 1.0])), 2)
        return pf.HiddenChain.hidden(pf.MarkovChain(hidden, initial), emission)
    if kind == 2:
        initial = rng.dirichlet(np.ones(2)) if start == "given" else start
        return pf.HiddenChain.with_durations([[0, 1], [1, 0]], rng.dirichlet(np.ones(2), 2), initial)
    n = int(rng.integers(2, 5))
    labels = rng.permutation(np.arange(n) % min(n, rng.integers(1, 4)))
    law = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.7)
    initial = (law / law.sum() if law.any() else np.eye(n)[0]) if start == "given" else start
    return pf.HiddenChain(pf.MarkovChain(random_matrix(rng, n), initial), labels)


def laws(rng, chain):
    n = chain.states
    if chain.start != "any":
        return [chain.initial_distribution]
    return [0.999 * np.eye(n)[rng.integers(n)] + 0.001 / n, *rng.dirichlet(np.full(n, 0.2), 3)]


def excess(seed, window=1):
    rng = np.random.default_rng([7, seed])
    start = ("stationary", "given", "any")[seed % 3]
    try:
        family = random_labelled(rng, start)
    except ChainError:  # no unique stationary law
        return None
    k = family.states
    length = int(rng.integers(1, {1: 5, 2: 6, 3: 4, 4: 4}[k] + 1))
    cost = float(rng.choice([0.01, 0.1, 0.5, 1.5, 4.0]))
    matrices = [family.chain.transition_matrix] * (length - 1)
    program = max(
        largest_loss(label_law(matrices, law, family.observations, k), cost, min(window, length))
        for law in laws(rng, family.chain)
    )
    bound = pf.leakage_loss(family, length, 1 / cost)
    assert bound >= program * (1 - 1e-6), seed  # the tolerance of the solver
    return bound / program - 1


@pytest.mark.parametrize("cases", counts(12, 500))
def test_never_below_the_program(cases):
    found = [(seed, excess(seed)) for seed in range(cases)]
    slack = [(value, seed) for seed, value in found if value is not None]
    if cases > 100:
        print(f"{len(slack)} cases, largest excess and seed {max(slack)}, median {np.median([v for v, _ in slack])}")
    assert len(slack) > cases / 2
    assert min(slack)[0] < 1e-6  # it is attained


# -- chains of order m, and those who know records ---------------------------------------------------


def random_order(rng, start):
    """Of order 1 to 3 (the order, k): dense, nearly deterministic, or with triples that never occur."""
    order, k = [(1, 2), (1, 3), (2, 2), (2, 2), (2, 3), (3, 2)][rng.integers(6)]
    shape = (k,) * (order + 1)
    law = rng.dirichlet(np.full(k, rng.choice([0.5, 5.0, 50.0])), shape[:-1])
    kind = rng.integers(3)
    if kind == 1:
        law = 0.4 * np.eye(k)[np.indices(shape[:-1])[-1]] + 0.6 * law
    elif kind == 2:
        law = law * (rng.random(shape) < 0.8) + 1e-3 * np.eye(k)[rng.integers(k, size=shape[:-1])]
        law /= law.sum(axis=-1, keepdims=True)
    initial = rng.dirichlet(np.ones(k**order)).reshape(shape[:-1]) if start == "given" else start
    return pf.HiddenChain.of_order(law, initial), k


def informed_excess(seed):
    rng = np.random.default_rng([13, seed])
    try:
        family, k = random_order(rng, ("stationary", "given", "any")[seed % 3])
    except ChainError:  # no unique stationary law
        return None
    if family.words is None:  # records that nothing leads to
        return None
    window = int(rng.choice([1, 1, 2, 3]))
    length = int(rng.integers(2, 9) if k == 2 else rng.integers(2, 6))
    cost = float(rng.choice([0.01, 0.1, 0.5, 1.5]))
    matrices = [family.chain.transition_matrix] * (length - 1)
    joints = [label_law(matrices, law, family.observations, k) for law in laws(rng, family.chain)]
    least = max(largest_loss_of_counts(joint, cost, window) for joint in joints)
    if k**length <= 16 and window == 1:
        least = max(
            least, *(largest_loss(joint, cost, min(window, length), side_information="any") for joint in joints)
        )
    bound = ProcessLoss(of_histories(family, length, Protection(window, "any"))).loss(cost).value
    assert bound >= least * (1 - 1e-6), seed
    assert pf.leakage_loss(family, length, 1 / cost, window=window, side_information="any") <= bound * (1 + 1e-12)
    return bound / least - 1, bound < length * cost * (1 - 1e-6)


@pytest.mark.parametrize("cases", counts(10, 600))
def test_whoever_knows_records_of_a_chain_of_some_order(cases):
    found = [value for value in map(informed_excess, range(cases)) if value is not None]
    if cases > 100:
        print(f"{len(found)} cases, largest excess {max(found)}, median {np.median([v for v, _ in found])}")
    assert len(found) > cases / 2
    assert sum(less for _, less in found) > len(found) / 10  # than all records together


@pytest.mark.parametrize("start", ["stationary", "any"])
def test_of_longer_segments(start):
    """Random counts and random known records; these segments are too long to look at all of them."""
    rng = np.random.default_rng(3)
    law = 0.6 * np.eye(2)[np.indices((2, 2))[-1]] + 0.4 * rng.dirichlet([2, 2], (2, 2))
    family, length, cost = pf.HiddenChain.of_order(law, start), 40, 0.1
    matrix, labels = family.chain.transition_matrix, family.observations
    first = family.chain.initial_distribution if start == "stationary" else np.full(4, 0.25)
    largest = cost
    for _ in range(300):
        node = int(rng.integers(length))
        weights, plain = np.ones((length, 4)), np.ones((length, 4))
        sets = rng.integers(2) if rng.random() < 0.5 else rng.integers(2, size=length)
        weights[np.broadcast_to(labels, (length, 4)) == np.broadcast_to(sets, length)[:, None]] = np.exp(cost)
        for t in np.flatnonzero(rng.random(length) < rng.choice([0.0, 0.05, 0.3])):
            weights[t] = plain[t] = labels == rng.integers(2)
        told = []
        for x in range(2):
            at = []
            for table in (weights, plain):
                now = first * (table[0] if node else labels == x)
                for t in range(1, length):
                    now = (now @ matrix) * (table[t] if t != node else labels == x)
                at.append(now.sum())
            told.append(np.log(at[0] / at[1]) if at[1] > 0 else np.nan)
        largest = max(largest, cost + float(np.nan_to_num(abs(told[0] - told[1]))))
    bound = pf.leakage_loss(family, length, 1 / cost, side_information="any")
    assert largest <= bound < 0.5 * length * cost
    assert bound < 4 * largest
