"""The sampler of Noisy Max on every sequence of uniform integers; its factor."""

from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from pufferflow import hmm

UNEVEN = [["1/2", "1/2", 0], ["1/4", "1/2", "1/4"], [0, "1/4", "3/4"]]


class Listed:
    """Uniform integers from a list, each below a multiple of the bound."""

    def __init__(self, integers):
        self.left = list(integers)

    def randrange(self, bound):
        return self.left.pop(0) % bound


@pytest.mark.parametrize("rows", [None, UNEVEN])
@pytest.mark.parametrize("counts", [(0,), (2, 1), (1, 1), (0, 1, 1), (0, 2, 1), (2, 2, 0)])
@pytest.mark.parametrize("options", ["index first", "index last", "index uniform", "value first"])
def test_all_uniform_integers_give_the_exact_distribution(rows, counts, options, monkeypatch):
    release, ties = options.split()
    noisy_max = hmm.NoisyMax(release, 2, rows, ties)
    below = [6 if rows is None else 4] * len(counts)  # the common denominator
    if ties == "uniform":
        below.append(6)  # a multiple of the number of tied counts
    integers = list(product(*map(range, below)))
    monkeypatch.setattr("pufferflow.hmm.noisy_max.randomness", Listed)  # of the "seed"
    drawn = Counter(noisy_max.sample(counts, insecure_seed=u) for u in integers)
    found = noisy_max.distribution(counts)
    assert [Fraction(drawn[i], len(integers)) for i in range(len(found))] == list(found)


def test_a_seed_repeats_its_draw():
    fine = hmm.NoisyMax("index", 5, hmm.truncated_geometric(5, f"1/{10**30 + 57}"), "uniform")
    first, again = ([fine.sample([0, 2, 5], insecure_seed=i) for i in range(99)] for _ in "ab")
    assert first == again


@pytest.mark.parametrize("options", [("value",), (), ("index", 2, None, "last")])
def test_factor_bounds_every_neighbour(options):
    noisy_max, ratios = hmm.NoisyMax(*options), []
    for counts in product(range(3), repeat=3):
        for i, x in enumerate(counts):
            if x < 2:
                other = (*counts[:i], x + 1, *counts[i + 1 :])
                both = map(noisy_max.distribution, (counts, other))
                ratios += [max(p / q, q / p) for p, q in zip(*both, strict=True)]
    assert 1 < max(ratios) <= noisy_max.factor == 2
    assert hmm.NoisyMax(mechanism=UNEVEN).factor == float("inf")
