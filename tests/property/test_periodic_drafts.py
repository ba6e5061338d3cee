"""Slow periodic chains are drafted with a few of their matrices, which says where the search begins, nothing else."""

import numpy as np
import pytest
from cases import SLACK, examples
from hypothesis import assume, given
from hypothesis import strategies as st
from random_chains import matrices_of_a_clock

import pufferflow as pf
from pufferflow.coupling import periodic
from pufferflow.errors import ChainError


@st.composite
def days(draw):
    """Chains of 2 to 4 states with 16 to 24 matrices, of which some may never leave a state."""
    k, pieces = draw(st.integers(2, 4)), draw(st.integers(16, 24))
    matrices, rng = matrices_of_a_clock(draw, k, pieces)
    matrices[rng.random(pieces) < draw(st.sampled_from([0.0, 0.5]))] = np.eye(k)
    start = draw(st.sampled_from(["stationary", "any"]))
    try:
        return pf.PeriodicChain(matrices, repeat=draw(st.integers(1, 3)), initial_distribution=start)
    except ChainError:  # no unique stationary law
        assume(False)


@given(days(), st.sampled_from([1e-3, 0.2, 1.0, 10.0]), st.sampled_from([300, 10**6]), st.sampled_from([1, 2]))
@examples(6, 60)
def test_a_draft_changes_no_more_than_the_tolerance(chain, epsilon, length, window):
    scales = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(periodic, "_SLOW_WORK", 0)
        for few in (10**6, 8):  # none, then as it is
            patch.setattr(periodic, "_FEW", few)
            bounds = periodic.PeriodicLeakage(chain, length, periodic.Protection(window))
            found = bounds.scale(epsilon, length / epsilon)
            scales.append(length / epsilon if found is None else found[0])
            if found is not None:
                assert bounds.loss(1 / found[0]).value <= epsilon * (1 + SLACK)
    assert scales[1] == pytest.approx(scales[0], rel=5 * periodic._TOLERANCE)
    assert scales[1] >= pf.leakage(chain, length, epsilon, window=window).scale * (1 - SLACK)
