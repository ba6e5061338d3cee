"""Chains that forget against a linear program over all sequences."""

import numpy as np
import pytest
from cases import counts
from plain_forgetting import joint_law, overlap
from sequence_programs import largest_loss

import pufferflow as pf

SIZES = [(2, 3), (2, 4), (2, 5), (2, 6), (3, 3), (3, 4)]


def random_case(seed):
    """Law of a random chain, homogeneous or not, with steps and overlap of families that it lies in."""
    rng = np.random.default_rng([14, seed])
    k, length = (3, 5) if seed % 50 == 49 else SIZES[seed % len(SIZES)]
    while True:
        count = 1 if seed % 2 else length - 1  # one matrix, or one a step
        matrices = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])), (count, k))
        if rng.random() < 0.5:  # impossible steps: periodic and transient chains among them
            matrices = matrices * (rng.random((count, k, k)) < 0.6) + 1e-3 * np.eye(k)[rng.permutation(k)]
            matrices /= matrices.sum(axis=2, keepdims=True)
        law = rng.dirichlet(np.full(k, 0.7)) * (rng.random(k) < 0.8)
        if not law.any():
            continue
        joint = joint_law(law / law.sum(), [matrices[t % count] for t in range(length - 1)])
        found = [(m, a) for m in range(1, length) if (a := overlap(joint, m) * (1 - 1e-12)) > 0.001]
        if found:
            cost = float(rng.choice([0.01, 0.1, 0.5, 1.5, 9 / length]))  # beyond 10/T the solver gives up
            return joint, found, cost


def excess(seed):
    """Excess of the best of the families' bounds over the program."""
    joint, families, cost = random_case(seed)
    window = 2 if seed % 4 == 3 and joint.shape[0] == 2 else 1
    program = largest_loss(joint, cost, window)
    bounds = [pf.leakage_loss(pf.MixingFamily(m, a), joint.ndim, 1 / cost, window=window) for m, a in families]
    assert min(bounds) >= program * (1 - 1e-6)  # the tolerance of the solver
    return min(bounds) / program - 1


@pytest.mark.parametrize("cases", counts(9, 500))
def test_never_below_the_program(cases):
    found = sorted(excess(seed) for seed in range(cases))
    print(
        f"\n{cases} chains: excess of the bound {found[0]:.2g} at least, {np.median(found):.2g} in the median, "
        f"{found[-1]:.3g} at most"
    )
    assert found[0] < 0.05  # close to attained, by some chain


@pytest.mark.parametrize("length", [2, 4, 6])
def test_of_no_more_records_than_the_steps_all_may_be_one(length):
    """A chain that never moves lies in the family as long as nothing is asked of it, and loses all that there is."""
    joint = joint_law([0.5, 0.5], [np.eye(2)] * (length - 1))
    family = pf.MixingFamily(length, 0.5)
    assert pf.leakage_loss(family, length, 2.0) == pytest.approx(largest_loss(joint, 0.5), rel=1e-7)


def test_one_step_is_nearly_attained():
    """Rows (1, 0) and (1 − β, β) ahead: the recursion of one side is exact for this chain."""
    beta, cost, length = 0.6, 0.3, 6
    joint = joint_law([0.5, 0.5], [np.array([[1, 0], [1 - beta, beta]])] * (length - 1))
    ahead = cost * np.arange(length)
    for n in range(1, length):
        ahead[n] = np.log1p(beta * np.expm1(cost + ahead[n - 1]))
    assert largest_loss(joint, cost) >= (cost + ahead[-1]) * (1 - 1e-7)
