"""How many cases a property is tried on: some in every run, many more in `make test-long`."""

import pytest
from hypothesis import settings

SLACK = 1e-3
"""How far bounds of one loss may be apart: what a post-fixed point leaves a step, 1e-6, times the
steps remembered.
"""
LONG = settings.get_current_profile_name() == "long"


def counts(usual, long):
    """Values of a parameter that says how many: ``usual`` in every run, ``long`` in long ones."""
    return [pytest.param(long, marks=pytest.mark.long)] if LONG else [usual]


def seeds(usual, long):
    """Values of a parameter that numbers the cases: the first ``usual`` in every run, the others in
    the long one.
    """
    if not LONG:
        return range(usual)
    return [pytest.param(seed, marks=pytest.mark.long) for seed in range(usual, long)]


def examples(usual, long, **more):
    """Settings of a hypothesis test, which draws its own cases; the profile names the run."""
    if not LONG:
        return settings(max_examples=usual, **more)
    return lambda test: pytest.mark.long(settings(max_examples=long, **more)(test))
