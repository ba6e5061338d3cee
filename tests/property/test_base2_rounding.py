"""The law with utilities rounded at random: against every way to round them, and within its bounds."""

from fractions import Fraction

import numpy as np
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta
from reproduction.related.base2_exponential import (
    rounded_distribution,
    rounding_bounds,
    unrounded_distribution,
)

utilities = st.lists(st.integers(0, 12).map(lambda i: Fraction(i, 4)), min_size=1, max_size=7)
etas = st.sampled_from([Eta(1, 1), Eta(1, 2), Eta(3, 2), Eta(5, 3)])


@examples(20, 200)
@given(etas, utilities)
def test_the_law_is_that_of_all_ways_to_round(eta, values):
    exact = [float(p) for p in Base2Exponential(eta, 0, 4, len(values)).probabilities(values)]
    np.testing.assert_allclose(rounded_distribution(eta, values), exact, rtol=1e-12)


@examples(20, 200)
@given(etas, utilities)
def test_the_bounds_hold_exactly(eta, values):
    exact = Base2Exponential(eta, 0, 4, len(values)).probabilities(values)
    lower, width = rounding_bounds(eta, values)
    assert all(low <= p <= low + width for low, p in zip(lower, exact, strict=True))
    if all(u.denominator == 1 for u in values):
        assert width == 0
        np.testing.assert_allclose(unrounded_distribution(eta, values), [float(p) for p in exact], rtol=1e-12)


def test_the_grid_is_symmetric_and_whole():
    assert Base2Laplace(Eta(1, 2), -1, 1, 0.5).utilities(0) == [1, Fraction(1, 2), 0, Fraction(1, 2), 1]
    assert len(Base2Laplace(Eta(1, 2), -10, 10, 0.25).utilities(0)) == 81
