"""The sampler of Noisy Max against its law: every sequence of uniform integers, and a chi-square test of draws.

A test that passes must fail when a probability is off. Draws of the system's randomness have no seed: a false alarm is
raised less than once in 10^7 runs: the level is 10^-9, and the rarest outcome makes the tail of chi-square heavier.
"""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from pufferflow import hmm

RARE = 1e-9
UNEVEN = [["1/2", "1/2", 0], ["1/4", "1/2", "1/4"], [0, "1/4", "3/4"]]


class Listed:
    """Uniform integers from a list, one byte each."""

    def __init__(self, integers):
        self.left = list(integers)

    def take(self, size):
        return bytes([self.left.pop(0)] if size else [])


@pytest.mark.parametrize("rows", [None, UNEVEN])
@pytest.mark.parametrize("counts", [(0,), (2, 1), (0, 1, 1), (0, 2, 1), (2, 2, 0)])
@pytest.mark.parametrize(("release", "ties"), [("index", "first"), ("index", "last"), ("value", "first")])
def test_all_uniform_integers_give_the_exact_law(rows, counts, release, ties):
    mechanism = hmm.NoisyMax(release, 2, rows, ties)
    below = 6 if rows is None else 4  # the common denominator
    drawn = Counter(mechanism._drawn(counts, Listed(u)) for u in product(range(below), repeat=len(counts)))
    law = mechanism.law(counts)
    assert sum(law) == 1
    assert [Fraction(drawn[outcome], below ** len(counts)) for outcome in range(len(law))] == list(law)


@pytest.mark.parametrize("counts", [(1, 1), (0, 2), (2, 1)])
def test_ties_broken_by_one_more_integer(counts):
    mechanism = hmm.NoisyMax(ties="uniform")
    drawn = Counter(mechanism._drawn(counts, Listed(u)) for u in product(range(6), range(6), range(2)))
    assert [Fraction(drawn[index], 72) for index in range(2)] == list(mechanism.law(counts))


def test_laws_are_those_of_the_hidden_markov_model():
    for release, counts in product(("index", "value"), [(0, 1, 1), (0, 2, 1)]):
        unit = [[int(x == count) for x in range(3)] for count in counts]
        model = hmm.noisy_max({"these": unit, "others": [[1, 0, 0]] * 3}, release=release)
        law = [model.probability("these", ("⊥", str(outcome))) for outcome in range(3)]
        assert list(hmm.NoisyMax(release).law(counts)) == law


@pytest.mark.parametrize(
    ("rng", "size"),
    [
        *((None, 4000), (np.random.default_rng(1), 1500)),
        pytest.param(np.random.default_rng(1), 4000, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    "mechanism",
    [
        hmm.NoisyMax(),
        hmm.NoisyMax("value"),
        hmm.NoisyMax(ties="uniform"),
        hmm.NoisyMax("index", 5, hmm.truncated_geometric(5, f"1/{10**30 + 57}"), "uniform"),
        hmm.NoisyMax("value", 5, hmm.truncated_geometric(5, "9/10")),
    ],
)
def test_draws_follow_the_law(mechanism, rng, size):
    counts = [0, 2, 1, 2, 0]
    law = [float(p) for p in mechanism.law(counts)]
    drawn = Counter(mechanism.draw(counts, rng=rng) for _ in range(size))
    common = [outcome for outcome, p in enumerate(law) if p * size >= 5]
    rest = 1 - sum(law[outcome] for outcome in common)
    observed = [drawn[outcome] for outcome in common]
    if rest * size < 1e-9:
        assert sum(observed) == size
    else:
        observed, law = [*observed, size - sum(observed)], [*(law[outcome] for outcome in common), rest]
        common = range(len(law))
    assert chisquare(observed, [law[outcome] * size for outcome in common], sum_check=False).pvalue > RARE


def test_the_chi_square_test_sees_noise_that_is_halved():
    counts, size = [0, 2, 1], 4000
    narrow = hmm.NoisyMax(mechanism=hmm.truncated_geometric(2, "1/4"))
    rng = np.random.default_rng(2)
    drawn = Counter(narrow.draw(counts, rng=rng) for _ in range(size))
    law = [float(p) * size for p in hmm.NoisyMax().law(counts)]
    assert chisquare([drawn[index] for index in range(3)], law).pvalue < RARE


def test_a_generator_repeats_its_draws():
    drawn = [[hmm.NoisyMax().draw([1] * 9, rng=np.random.default_rng(seed)) for seed in range(40)] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) > 1


def test_factor_bounds_every_neighbour():
    rows = [["1/2", "1/3", "1/6"], ["1/4", "1/2", "1/4"], ["1/6", "1/6", "2/3"]]
    for mechanism in (hmm.NoisyMax("value"), hmm.NoisyMax(), hmm.NoisyMax(mechanism=rows), hmm.NoisyMax(ties="last")):
        ratios = []
        for counts in product(range(3), repeat=3):
            for i, x in enumerate(counts):
                if x < 2:
                    p, q = mechanism.law(counts), mechanism.law((*counts[:i], x + 1, *counts[i + 1 :]))
                    ratios += [max(a / b, b / a) for a, b in zip(p, q, strict=True)]
        assert 1 < max(ratios) <= mechanism.factor
    assert hmm.NoisyMax().factor == 2
    assert hmm.NoisyMax(mechanism=UNEVEN).factor == float("inf")
