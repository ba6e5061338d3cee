"""Frequencies of both samplers against the exact law; seeds are fixed, so a failure is a change, not bad luck."""

import numpy as np
import pytest
from cases import counts
from scipy.stats import chisquare
from stored_sums import stored_draw, stored_sums

from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta

UTILITIES = {
    "one dominates": [0, 9, 9, 9],
    "equal": [4] * 6,
    "mixed and clamped": [3, -2, 0, 7, 1, 1, 50],
    "a total just above a power of two": [0, 0, 30],
}


def agree(draws, law):
    seen = np.bincount(draws, minlength=len(law))
    expected = np.array([float(p) for p in law]) * len(draws)
    few = expected < 5
    if few.any():
        seen, expected = (np.append(a[~few], a[few].sum()) for a in (seen, expected))
    return chisquare(seen, expected).pvalue


@pytest.mark.parametrize("size", counts(2_500, 10_000))
@pytest.mark.parametrize("sampler", ["rejection", "bitwise"])
@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("eta", [Eta(1, 1), Eta(7, 3), Eta(5, 3, 2)])
def test_frequencies_are_the_exact_probabilities(sampler, name, eta, size):
    mechanism = Base2Exponential(eta, -2, 9, 8, sampler=sampler, insecure_seed=11, minimum_attempts=1 + eta.z)
    draws = mechanism.releases(UTILITIES[name], size)
    assert agree(draws, mechanism.probabilities(UTILITIES[name])) > 1e-3


@pytest.mark.parametrize("sampler", ["rejection", "bitwise"])
def test_operating_system_randomness_too(sampler):
    mechanism = Base2Exponential(Eta(3, 2), 0, 5, 8, sampler=sampler)
    utilities = [0, 1, 2, 3, 4, 5]
    assert agree(mechanism.releases(utilities, 20_000), mechanism.probabilities(utilities)) > 1e-9


@pytest.mark.parametrize("size", counts(2_500, 10_000))
@pytest.mark.parametrize("sampler", ["rejection", "bitwise"])
def test_utilities_are_rounded_anew_at_every_release(sampler, size):
    laplace = Base2Laplace(Eta(1, 1), -2, 2, 0.5, sampler=sampler, insecure_seed=4)
    utilities = laplace.utilities(0.75)
    draws = laplace.mechanism.releases(utilities, size)
    assert agree(draws, laplace.probabilities(0.75)) > 1e-3
    # negative utilities round up as often as they should: −0.25 goes to 0 with probability 3/4
    mechanism = Base2Exponential(Eta(1, 4), -1, 0, 3, sampler=sampler, insecure_seed=4)
    draws = mechanism.releases([-0.25, 0, 0], size)
    assert agree(draws, mechanism.probabilities([-0.25, 0, 0])) > 1e-3


def test_the_reference_implementation_that_stores_all_sums():
    mechanism = Base2Exponential(Eta(7, 3), 0, 9, 7, insecure_seed=2)
    utilities = [3, 1, 0, 7, 1, 1, 9]
    sums = stored_sums(mechanism, utilities)
    draws = [stored_draw(sums, mechanism._random) for _ in range(5000)]
    assert agree(draws, mechanism.probabilities(utilities)) > 1e-3
