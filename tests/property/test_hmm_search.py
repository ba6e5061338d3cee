"""The pruned search against every sequence and every path of hidden states, in exact fractions."""

import math
from fractions import Fraction

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from plain_hidden_markov import all_ratios, path_probability

from pufferflow import hmm
from pufferflow.related.hmm import checking

SPARSE, FULL = st.sampled_from([0, 0, 1, 2, 3]), st.sampled_from([1, 1, 2, 5, 1000])


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
    return hmm.HiddenMarkovModel(
        [law(k) for _ in range(k)], [law(m) for _ in range(k)], {secret: law(k) for secret in secrets}
    )


@examples(12, 120)
@given(models(), st.integers(1, 3), st.sampled_from(["1/2", 1, "11/10", "3/2", 2, 5, 100]))
def test_search_agrees_with_enumeration(model, length, factor):
    ratios = list(all_ratios(model, length))
    largest = max(ratio for ratio, _ in ratios)
    found = hmm.largest_ratio(model, length)
    assert found.ratio == largest
    # also at the largest ratio itself, where holding and violating meet
    for limit in {Fraction(factor), largest} - {math.inf}:
        verdict = hmm.check(model, limit, length)
        violating = [sequence for ratio, sequence in ratios if ratio > limit]
        assert verdict.holds == (not violating)
        if violating:
            witness = verdict.witness
            assert len(witness.observations) == min(map(len, violating))
            assert witness.ratio > limit
            assert witness.probability == path_probability(model, witness.secret, witness.observations)
            assert witness.other_probability == path_probability(model, witness.other, witness.observations)
        elif verdict.every_length and length < 3:
            assert all(ratio <= limit for ratio, _ in all_ratios(model, length + 1))


@given(models(most_states=3, most_observations=2), st.integers(4, 7))
@examples(10, 80)
def test_long_sequences(model, length):
    laws = {secret: model.observation_law(secret, length) for secret in model.initial_distributions}
    largest = max(
        laws[s][w] / laws[t][w] if laws[t].get(w) else math.inf
        for pair in model.pairs
        for s, t in (pair, pair[::-1])
        for w in laws[s]
    )
    assert hmm.largest_ratio(model, length).ratio == max(largest, 1)


@given(models(most_states=3, most_observations=2), st.integers(1, 3), st.sampled_from(["1/2", 1, "3/2", 3]))
@examples(10, 50)
def test_solver_agrees_with_search(model, length, factor):
    by_solver = hmm.check_by_solver(model, factor, length)
    assert by_solver.holds == hmm.check(model, factor, length).holds
    if not by_solver.holds:
        assert by_solver.witness.ratio > Fraction(factor)
        assert len(by_solver.witness.observations) == length


@given(models(most_states=3, most_observations=2))
@examples(10, 50)
def test_ratio_never_falls_with_the_length(model):
    ratios = [hmm.largest_ratio(model, length).ratio for length in range(1, 5)]
    assert ratios == sorted(ratios)
    start = [
        p / q if q else math.inf
        for pair in model.pairs
        for s, t in (pair, pair[::-1])
        for p, q in zip(model.initial_distributions[s], model.initial_distributions[t], strict=True)
        if p
    ]
    assert ratios[-1] <= max(start)


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=4).flatmap(
        lambda u: st.tuples(st.just(u), st.lists(st.integers(-3, 3), min_size=len(u), max_size=len(u)))
    )
)
@examples(20, 1330)
def test_dominance(pair):
    u, v = map(tuple, pair)
    steps = [Fraction(i, 12) for i in range(1, 12 * 12)]  # quotients of the entries have denominators 1, 2, 3
    possible = any(all(a <= t * b for a, b in zip(u, v, strict=True)) for t in steps)
    # between 0 and the smallest positive quotient 1/3, and beyond the largest 3, the steps reach
    assert checking._dominated(u, v) == possible


@pytest.mark.parametrize("relation", ["one-by-one", "all-by-one", "one-anywhere"])
@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize("rows", [None, [["1/2", "1/2", 0], ["1/3", "1/3", "1/3"], ["1/10", "1/5", "7/10"]]])
def test_neighbours_against_all_pairs(relation, queries, rows):
    from itertools import product

    noise = hmm.truncated_geometric(2) if rows is None else rows
    largest = 0
    for counts in product(range(3), repeat=queries):
        for other in product(range(3), repeat=queries):
            moved = [abs(x - y) for x, y in zip(counts, other, strict=True)]
            near = {
                "one-by-one": sum(moved) == 1,
                "all-by-one": max(moved) == 1,
                "one-anywhere": sum(d > 0 for d in moved) == 1,
            }[relation]
            if near:
                p, q = (hmm.value_law([noise[x] for x in c]) for c in (counts, other))
                largest = max([largest, *(a / b if b else math.inf for a, b in zip(p, q, strict=True) if a)])
    found = hmm.largest_value_ratio(queries, relation, mechanism=rows)
    assert found.ratio == largest
    p, q = (hmm.value_law([noise[x] for x in c])[found.value] for c in (found.counts, found.neighbour))
    assert (found.probability, found.neighbour_probability) == (p, q)


@given(st.data())
@examples(10, 60)
def test_product_form_against_the_hidden_markov_model(data):
    n, ties = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(["first", "last", "uniform"]))

    def law():
        drawn = data.draw(st.lists(SPARSE, min_size=3, max_size=3).filter(any))
        return [Fraction(w, sum(drawn)) for w in drawn]

    priors = {secret: [law() for _ in range(n)] for secret in "ab"}
    rows = [law() for _ in range(3)]
    for release in ("index", "value"):
        model = hmm.noisy_max(priors, rows, release=release, ties=ties)
        for secret, laws in priors.items():
            noisy = hmm.noisy_laws(laws, rows)
            expected = hmm.index_law(noisy, ties) if release == "index" else hmm.value_law(noisy)
            assert sum(expected) == 1
            found = model.observation_law(secret)
            assert [found.get(("⊥", str(i)), 0) for i in range(len(expected))] == list(expected)
