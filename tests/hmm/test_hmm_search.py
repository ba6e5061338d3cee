"""Search and Noisy Max against all sequences, paths, noisy counts and random integers, exactly."""

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from cases import examples
from forks import ended
from hypothesis import given
from hypothesis import strategies as st

from pufferflow import hmm

SPARSE, FULL = st.sampled_from([0, 0, 1, 2, 3]), st.sampled_from([1, 1, 2, 5, 1000])
UNEVEN = [["1/2", "1/2", 0], ["1/4", "1/2", "1/4"], [0, "1/4", "3/4"]]
FACTORS = st.sampled_from(["1/2", 1, "11/10", "3/2", 2, 5, 100])


@st.composite
def distributions(draw, size, weights=SPARSE):
    drawn = draw(st.lists(weights, min_size=size, max_size=size))
    if not any(drawn):
        drawn[draw(st.integers(0, size - 1))] = 1
    return [Fraction(w, sum(drawn)) for w in drawn]


@st.composite
def models(draw, max_states=4, max_observations=3):
    weights = draw(st.sampled_from([SPARSE, FULL]))
    k, m = draw(st.integers(1, max_states)), draw(st.integers(1, max_observations))
    matrices = [[draw(distributions(size, weights)) for _ in range(k)] for size in (k, m)]
    secrets = ["a", "b", "c"][: draw(st.integers(2, 3))]
    return hmm.HiddenMarkovModel(*matrices, {s: draw(distributions(k, weights)) for s in secrets})


def path_probability(model, secret, sequence):
    """P(sequence | secret), the sum over all paths of hidden states."""
    total = Fraction(0)
    for path in product(range(len(model.states)), repeat=len(sequence)):
        weight = model.initial_distributions[secret][path[0]]
        for t, observation in enumerate(sequence):
            weight *= model.observation_matrix[path[t]][model.observations.index(observation)]
            if t + 1 < len(path):
                weight *= model.transition_matrix[path[t]][path[t + 1]]
        total += weight
    return total


def all_ratios(model, length):
    """The ratio of every possible sequence of up to ``length`` observations, both ways."""
    for t in range(1, length + 1):
        for sequence in product(model.observations, repeat=t):
            p = {one: path_probability(model, one, sequence) for one in model.initial_distributions}
            for pair in model.pairs:
                for secret, other in (pair, pair[::-1]):
                    if p[secret]:
                        yield p[secret] / p[other] if p[other] else math.inf, sequence


@examples(12, 120)
@given(models(), st.integers(1, 3), FACTORS)
def test_search_and_solver_agree_with_enumeration(model, length, factor):
    ratios = list(all_ratios(model, length))
    largest = max(ratio for ratio, _ in ratios)
    assert hmm.largest_ratio(model, length).ratio == largest
    # also at the largest ratio itself, where holding and violating meet
    for limit in {Fraction(factor), largest} - {math.inf}:
        found = hmm.check(model, limit, length), hmm.check_by_solver(model, limit, length)
        violating = [sequence for ratio, sequence in ratios if ratio > limit]
        assert [one.holds for one in found] == [not violating] * 2
        shortest = min(map(len, violating), default=0)
        for one, steps in zip(found, (shortest, length), strict=True):
            if witness := one.witness:
                word, secrets = witness.observations, (witness.secret, witness.other)
                assert len(word) == steps
                assert witness.ratio > limit
                both = [path_probability(model, secret, word) for secret in secrets]
                assert [witness.probability, witness.other_probability] == both
        if found[0].every_length and length < 3:
            assert all(ratio <= limit for ratio, _ in all_ratios(model, length + 1))


def test_threads_may_query_the_solver_at_once():
    model = hmm.NoisyMax().model({"a": UNEVEN[:2], "b": UNEVEN[1:]})

    def query(factor):
        return hmm.check_by_solver(model, factor).holds

    def together():
        with ThreadPoolExecutor(4) as pool:
            assert [*pool.map(query, [2, 3] * 20)] == [query(2), query(3)] * 20

    assert ended(together) == [0]


@given(models(max_states=3, max_observations=2), st.integers(4, 7))
@examples(10, 80)
def test_long_sequences(model, length):
    words = list(product(model.observations, repeat=length))
    p = {s: [model.probability(s, word) for word in words] for s in model.initial_distributions}
    pairs = [of for s, t in model.directions() for of in zip(p[s], p[t], strict=True)]
    largest = max(one / other if other else math.inf for one, other in pairs if one)
    assert hmm.largest_ratio(model, length).ratio == max(largest, 1)


@pytest.mark.parametrize("relation", ["one-by-one", "all-by-one", "one-anywhere"])
@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize(
    "rows", [None, [["1/2", "1/2", 0], ["1/3", "1/3", "1/3"], ["1/10", "1/5", "7/10"]]]
)
def test_neighbours_against_all_pairs(relation, queries, rows):
    largest, of = 0, hmm.NoisyMax("value", mechanism=rows).distribution
    for counts, other in product(product(range(3), repeat=queries), repeat=2):
        moved = [abs(x - y) for x, y in zip(counts, other, strict=True)]
        near = {
            "one-by-one": sum(moved) == 1,
            "all-by-one": max(moved) == 1,
            "one-anywhere": sum(d > 0 for d in moved) == 1,
        }
        if near[relation]:
            pairs = zip(of(counts), of(other), strict=True)
            largest = max([largest, *(p / q if q else math.inf for p, q in pairs if p)])
    found = hmm.largest_value_ratio(queries, relation, mechanism=rows)
    assert found.ratio == largest
    both = (of(list(map(int, counts.split()))) for counts in (found.secret, found.other))
    values = [distribution[int(found.observations[0])] for distribution in both]
    assert [found.probability, found.other_probability] == values


@pytest.mark.parametrize("ties", ["first", "last", "uniform"])
@given(st.data())
@examples(5, 30)
def test_noisy_max_against_all_noisy_counts(ties, data):
    n = data.draw(st.integers(1, 3))
    priors = {s: [data.draw(distributions(3)) for _ in range(n)] for s in "ab"}
    rows = np.array([data.draw(distributions(3)) for _ in range(3)])
    for release, (secret, counts) in product(("index", "value"), priors.items()):
        noisy_max = hmm.NoisyMax(release, 2, rows, ties)
        model, found = noisy_max.model(priors), noisy_max.distribution(counts)
        noisy, expected = np.array(counts) @ rows, [0] * len(found)
        for drawn in product(range(3), repeat=n):
            tied = [i for i, value in enumerate(drawn) if value == max(drawn)]
            kept = {"first": tied[:1], "last": tied[-1:], "uniform": tied}[ties]
            for outcome in kept if release == "index" else [max(drawn)] * len(kept):
                p = math.prod(of[v] for of, v in zip(noisy, drawn, strict=True))
                expected[outcome] += p / len(kept)
        assert list(found) == expected
        assert expected == [model.probability(secret, ("⊥", str(i))) for i in range(len(found))]


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
