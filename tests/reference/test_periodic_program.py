"""Bounds of periodic chains against a linear program over all sequences."""

import numpy as np
import pytest
from cases import counts
from sequence_programs import label_law, largest_loss

import pufferflow as pf
from pufferflow.coupling import periodic
from pufferflow.errors import ChainError
from tests.reference.test_hidden_program import random_matrix


def excess(seed, monkeypatch):
    rng = np.random.default_rng([8, seed])
    k = int(rng.integers(2, 4))
    parts, repeat = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    matrices = [random_matrix(rng, k) for _ in range(parts)]
    period = parts * repeat
    start = "any" if rng.random() < 0.3 else "stationary"
    try:
        chain = pf.PeriodicChain(matrices, repeat=repeat, initial_distribution=start)
    except ChainError:  # no unique stationary law
        return None
    length = int(rng.integers(1, {2: 6, 3: 4}[k] + 1))
    cost = float(rng.choice([0.01, 0.1, 0.5, 1.5, 4.0]))
    program = 0.0
    for phase in range(period):  # at which a segment begins: any
        steps = [chain.transition_matrix(phase + i) for i in range(length - 1)]
        if start == "any":
            laws = [0.999 * np.eye(k)[rng.integers(k)] + 0.001 / k, *rng.dirichlet(np.full(k, 0.2), 2)]
        else:
            laws = [chain.stationary_distributions[phase]]
        program = max(program, *(largest_loss(label_law(steps, law, np.arange(k), k), cost) for law in laws))
    bound = pf.leakage_loss(chain, length, 1 / cost)
    assert bound >= program * (1 - 1e-6), seed  # the tolerance of the solver
    with monkeypatch.context() as patch:  # the families that serve all lengths
        patch.setattr(periodic, "_EXACT_STEPS", 0)
        all_round = periodic.PeriodicLeakage(chain, length, periodic.Protection()).loss(cost).value
        assert all_round >= program * (1 - 1e-6), seed  # blocks of several steps may know more than each of them
    return bound / program - 1


@pytest.mark.parametrize("cases", counts(8, 500))
def test_never_below_the_program(monkeypatch, cases):
    found = [(seed, excess(seed, monkeypatch)) for seed in range(cases)]
    slack = [(value, seed) for seed, value in found if value is not None]
    if cases > 100:
        print(f"{len(slack)} cases, largest excess and seed {max(slack)}, median {np.median([v for v, _ in slack])}")
    assert len(slack) > cases / 2
    assert min(slack)[0] < 1e-6  # it is attained
