"""The search against every sequence and every path of hidden states, in exact fractions."""

import math
from fractions import Fraction
from itertools import product

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_hidden_markov import all_ratios, path_probability

from pufferflow import hmm

SPARSE, FULL = st.sampled_from([0, 0, 1, 2, 3]), st.sampled_from([1, 1, 2, 5, 1000])
FACTORS = st.sampled_from(["1/2", 1, "11/10", "3/2", 2, 5, 100])


@st.composite
def models(draw, most_states=4, most_observations=3):
    weights = draw(st.sampled_from([SPARSE, FULL]))
    k, m = draw(st.integers(1, most_states)), draw(st.integers(1, most_observations))

    def law(size):
        drawn = draw(st.lists(weights, min_size=size, max_size=size))
        if not any(drawn):
            drawn[draw(st.integers(0, size - 1))] = 1
        return [Fraction(w, sum(drawn)) for w in drawn]

    secrets = ["a", "b", "c"][: draw(st.integers(2, 3))]
    matrices = [[law(size) for _ in range(k)] for size in (k, m)]
    return hmm.HiddenMarkovModel(*matrices, {secret: law(k) for secret in secrets})


@examples(12, 120)
@given(models(), st.integers(1, 3), FACTORS)
def test_search_agrees_with_enumeration(model, length, factor):
    ratios = list(all_ratios(model, length))
    largest = max(ratio for ratio, _ in ratios)
    assert hmm.largest_ratio(model, length).ratio == largest
    # also at the largest ratio itself, where holding and violating meet
    for limit in {Fraction(factor), largest} - {math.inf}:
        verdict = hmm.check(model, limit, length)
        violating = [sequence for ratio, sequence in ratios if ratio > limit]
        assert verdict.holds == (not violating)
        if violating:
            witness = verdict.witness
            word = witness.observations
            assert len(word) == min(map(len, violating))
            assert witness.ratio > limit
            assert witness.probability == path_probability(model, witness.secret, word)
            assert witness.other_probability == path_probability(model, witness.other, word)
        elif verdict.every_length and length < 3:
            assert all(ratio <= limit for ratio, _ in all_ratios(model, length + 1))


@given(models(most_states=3, most_observations=2), st.integers(4, 7))
@examples(10, 80)
def test_long_sequences(model, length):
    laws = {s: model.observation_distribution(s, length) for s in model.initial_distributions}
    largest = max(
        laws[s][w] / laws[t][w] if laws[t].get(w) else math.inf
        for pair in model.pairs
        for s, t in (pair, pair[::-1])
        for w in laws[s]
    )
    assert hmm.largest_ratio(model, length).ratio == max(largest, 1)
    assert hmm.largest_ratio(model, length - 1).ratio <= max(largest, 1)


@given(models(most_states=3, most_observations=2), st.integers(1, 3), FACTORS)
@examples(10, 50)
def test_solver_agrees_with_search(model, length, factor):
    by_solver = hmm.check_by_solver(model, factor, length)
    assert by_solver.holds == hmm.check(model, factor, length).holds
    if not by_solver.holds:
        assert by_solver.witness.ratio > Fraction(factor)
        assert len(by_solver.witness.observations) == length


@pytest.mark.parametrize("relation", ["one-by-one", "all-by-one", "one-anywhere"])
@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize(
    "rows", [None, [["1/2", "1/2", 0], ["1/3", "1/3", "1/3"], ["1/10", "1/5", "7/10"]]]
)
def test_neighbours_against_all_pairs(relation, queries, rows):
    largest, law = 0, hmm.NoisyMax("value", mechanism=rows).distribution
    for counts, other in product(product(range(3), repeat=queries), repeat=2):
        moved = [abs(x - y) for x, y in zip(counts, other, strict=True)]
        near = {
            "one-by-one": sum(moved) == 1,
            "all-by-one": max(moved) == 1,
            "one-anywhere": sum(d > 0 for d in moved) == 1,
        }
        if near[relation]:
            pairs = zip(law(counts), law(other), strict=True)
            largest = max([largest, *(p / q if q else math.inf for p, q in pairs if p)])
    found = hmm.largest_value_ratio(queries, relation, mechanism=rows)
    assert found.ratio == largest
    both = (law(list(map(int, counts.split()))) for counts in (found.secret, found.other))
    values = [distribution[int(found.observations[0])] for distribution in both]
    assert [found.probability, found.other_probability] == values


@given(st.data())
@examples(10, 60)
def test_product_form_against_the_hidden_markov_model(data):
    n, ties = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(["first", "last", "uniform"]))

    def law():
        drawn = data.draw(st.lists(SPARSE, min_size=3, max_size=3).filter(any))
        return [Fraction(w, sum(drawn)) for w in drawn]

    priors = {"a": [law() for _ in range(n)], "b": [[0, 1, 0]] * n}
    rows = [law() for _ in range(3)]
    for release in ("index", "value"):
        noisy_max = hmm.NoisyMax(release, 2, rows, ties)
        model = noisy_max.model(priors)
        for secret, counts in (("a", priors["a"]), ("b", [1] * n)):
            expected = noisy_max.distribution(counts)
            assert sum(expected) == 1
            found = model.observation_distribution(secret)
            assert [found.get(("⊥", str(i)), 0) for i in range(len(expected))] == list(expected)
