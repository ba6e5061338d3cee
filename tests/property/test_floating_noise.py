"""The attack on Laplace noise in doubles: which outputs are possible, against a list of all of them."""

import math
import random

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pufferflow.related.dp.base2_exponential import Base2Laplace, Eta
from pufferflow.related.dp.laplace import Laplace
from reproduction.related.base2_exponential import BITS, naive_laplace, naive_outputs, possible

values = st.one_of(st.integers(-50, 50).map(float), st.floats(-1e6, 1e6, allow_nan=False))


@examples(10, 80)
@given(values, values, st.floats(0.05, 1e4), st.integers(1, 9))
def test_possible_outputs_are_those_of_every_uniform_number(value, other, scale, bits):
    every = {
        centre: {naive_laplace(centre, scale, s, k, bits) for s in (-1, 1) for k in range(1, 2**bits + 1)}
        for centre in (value, other)
    }
    for output in every[value] | every[other]:
        for near in (output, math.nextafter(output, math.inf)):
            assert possible(near, value, scale, bits) == (near in every[value])


@examples(12, 120)
@given(st.integers(-100, 100), st.floats(0.1, 100), st.integers(1, 2**BITS), st.sampled_from([-1, 1]))
def test_every_output_is_possible_for_its_own_value(value, scale, uniform, sign):
    assert possible(naive_laplace(value, scale, sign, uniform), value, scale)


@pytest.mark.parametrize("epsilon", [pytest.param(0.1, marks=pytest.mark.long), 1])
def test_a_wider_search_finds_no_more(epsilon):
    """Outputs called impossible stay so when 50 times as many uniform numbers are tried."""
    scale = 1 / epsilon
    told = [x for x in naive_outputs(0, scale, 200, np.random.default_rng(2)) if not possible(x, 1, scale)]
    assert 80 < len(told) < 180
    for output in told:
        sign = 1 if output > 1 else -1
        near = round(2**BITS * math.exp(-abs(output - 1) / scale))
        for uniform in range(max(1, near - 2000), min(2**BITS, near + 2000)):
            assert naive_laplace(1, scale, sign, uniform) != output


def test_discrete_noise_takes_every_integer():
    laplace = Laplace(1, 0.5)
    assert all(isinstance(z, int) and laplace.probability(z - 1) > 0 for z in laplace.release([0] * 50))


def test_no_output_of_the_exact_mechanism_tells_the_value():
    laplace = Base2Laplace(Eta.for_epsilon(0.5), -6, 7, 1)
    value = random.Random(1).randrange(-5, 6)
    assert all(p > 0 for neighbour in (value, value + 1) for p in laplace.probabilities(neighbour))
