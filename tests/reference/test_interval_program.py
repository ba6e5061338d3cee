"""Leakage of families known by bounds against a linear program over all sequences, for chains that change with time."""

import numpy as np
import pytest
from cases import seeds
from interval_families import draw, family
from sequence_programs import largest_loss

import pufferflow as pf
from pufferflow._util.protection import Protection
from pufferflow.coupling.loss import ProcessLoss
from pufferflow.coupling.process import of_sets


def joint_law(law, steps):
    joint = np.array(law, dtype=float)
    for matrix in steps:
        joint = joint[..., None] * matrix
    return joint


def reversed_steps(law, steps):
    """Laws of each record given the next one; that of the record itself where the next one does not occur."""
    found = []
    for matrix in steps:
        joint = law[:, None] * matrix
        after = joint.sum(axis=0)
        found.append(np.where(after > 0, joint / np.where(after > 0, after, 1), law[:, None]).T)
        law = after
    return found


def around(rng, matrices, width):
    """A family that holds all these matrices, some at its ends."""
    low, high = np.min(matrices, axis=0), np.max(matrices, axis=0)
    return pf.IntervalFamily(
        np.maximum(low - width * rng.random(low.shape), 0), np.minimum(high + width * rng.random(low.shape), 1)
    )


def balls(rng, matrices, width):
    """As :func:`around`, within distances of a centre."""
    weights = rng.dirichlet(np.ones(len(matrices)))
    centre = np.tensordot(weights, matrices, axes=1)
    radius = max(np.abs(m - centre).sum(axis=1).max() / 2 for m in matrices)
    return pf.TotalVariationFamily(centre, min(1.0, radius * (1 + 1e-12) + 1e-15 + width * rng.random()))


def random_case(seed):
    """A family, a law and steps of a chain in it, c and what it protects."""
    rng = np.random.default_rng(seed)
    k, length = [(2, 3), (3, 2), (3, 3), (2, 5), (3, 4), (2, 6), (3, 3)][seed % 7]
    width = float(rng.choice([0.0, 0.01, 0.1, 0.3]))
    sticky = float(rng.choice([0.0, 0.5, 0.9]))
    law = rng.dirichlet(np.full(k, rng.choice([0.1, 1.0])))
    box = family(rng, k, width, sticky, zeros=float(rng.choice([0.0, 0.3])))
    corner = bool(seed % 2)
    steps = [draw(box, rng, corner) for _ in range(length - 1)]
    if seed % 5 == 0:
        steps = [steps[0]] * len(steps)
    kind = seed % 4
    if kind == 1:
        theta = box
    else:
        make = balls if kind == 3 else around
        spread = width * float(rng.choice([0.0, 0.3]))
        ahead, back = make(rng, steps, spread), make(rng, reversed_steps(law, steps), spread)
        if kind == 3:
            theta = pf.TotalVariationFamily(ahead.transition_matrix, ahead.radius, backward=back)
        else:
            theta = pf.IntervalFamily(ahead.low, ahead.high, backward=back)
    cost = float(rng.choice([0.01, 0.1, 0.5, 1.5, 4.0]))
    return theta, law, steps, cost, 2 if seed % 11 == 3 else 1


def excess(seed):
    """Excess of the bound over the program."""
    theta, law, steps, cost, window = random_case(seed)
    program = largest_loss(joint_law(law, steps), cost, window)
    bound = ProcessLoss(of_sets(theta, len(steps) + 1, Protection(window))).loss(cost).value
    return bound / program - 1


@pytest.mark.parametrize("seed", seeds(7, 500))
def test_never_below_the_program(seed):
    assert excess(seed) >= -1e-6  # the tolerance of the solver
