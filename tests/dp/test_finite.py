"""(ε, δ) against its definition on every event; sensitivity and differencing against all pairs."""

import itertools
import math
from fractions import Fraction

import pytest
from cases import examples
from hypothesis import example, given
from hypothesis import strategies as st

from pufferflow import dp


@st.composite
def tables(draw, inputs=3, outputs=4):
    """Distributions of a few outputs, zeros among them, for a few inputs."""
    weights = st.lists(st.integers(0, 6), min_size=outputs, max_size=outputs).filter(any)
    rows = [draw(weights) for _ in range(draw(st.integers(2, inputs)))]
    return {i: [Fraction(w, sum(row)) for w in row] for i, row in enumerate(rows)}


deltas = st.fractions(0, 1, max_denominator=20)


def plain_delta(table, pairs, factor):
    """The least δ, by trying every event."""
    sizes = range(len(next(iter(table.values()))) + 1)
    events = [e for n in sizes for e in itertools.combinations(range(sizes[-1]), n)]
    return max(
        sum(table[x][y] for y in e) - factor * sum(table[z][y] for y in e)
        for x, z in [*pairs, (0, 0)]
        for e in events
    )


# ln 12/7 is between the float above it and the decimal which that prints
@examples(25, 240)
@example(
    {0: [Fraction(w, 6) for w in (1, 1, 2, 2)], 1: [Fraction(w, 7) for w in (1, 2, 2, 2)]}, 0, 2
)
@given(tables(), deltas, st.fractions(1, 8, max_denominator=10))
def test_the_level_is_the_least_for_which_every_event_holds(table, delta, factor):
    mechanism, pairs = dp.FiniteMechanism(table), list(itertools.permutations(table, 2))
    assert mechanism.delta(factor) == plain_delta(table, pairs, factor)
    level = mechanism.level(delta)
    if level.factor == math.inf:
        assert plain_delta(table, pairs, 10**9) > delta
        assert not mechanism.is_private(10**6, delta)
        assert level.epsilon == math.inf
        return
    assert plain_delta(table, pairs, level.factor) <= delta
    exact = math.log(level.factor.numerator) - math.log(level.factor.denominator)
    assert exact - 1e-14 <= level.epsilon <= exact * (1 + 1e-12) + 1e-14
    assert mechanism.is_private(level.epsilon, delta)
    if level.factor > 1:
        assert plain_delta(table, pairs, level.factor * Fraction(10**9 - 1, 10**9)) > delta
        assert not mechanism.is_private(math.nextafter(level.epsilon, 0) * (1 - 1e-12), delta)
    # at that ε no more than δ is left, up to the rounding of the float
    assert mechanism.delta_at(level.epsilon) <= float(delta) + 1e-15


@examples(12, 120)
@given(tables(), st.fractions(0, 3, max_denominator=50))
def test_delta_at_is_rounded_up_and_hardly(table, epsilon):
    mechanism, e = dp.FiniteMechanism(table), Fraction(math.exp(epsilon))
    below, above = (mechanism.delta(max(1, e * (1 + s))) for s in (1e-12, -1e-12))
    assert below <= Fraction(mechanism.delta_at(epsilon)) <= above + Fraction(1, 10**15)


@examples(10, 220)
@given(tables(), st.fractions(1, 20, max_denominator=10), deltas)
def test_composition_is_that_of_all_pairs_of_outputs(table, factor, delta):
    one = dp.FiniteMechanism(table)
    other = dp.FiniteMechanism({x: row[::-1] for x, row in table.items()})
    joint = dp.FiniteMechanism(
        {x: [p * q for p in row for q in row[::-1]] for x, row in table.items()}
    )
    together = one.compose(other)
    assert together.delta(factor) == joint.delta(factor)
    assert together.level(delta) == joint.level(delta)
    levels = [mechanism.level(delta / 2) for mechanism in (one, other)]
    assert together.level(delta).factor <= dp.composed(levels).factor
    cube = {x: [p * q * r for p in row for q in row for r in row] for x, row in table.items()}
    assert one.repeated(3).delta(factor) == dp.FiniteMechanism(cube).delta(factor)


@examples(12, 120)
@given(tables(inputs=5), st.integers(1, 4), deltas)
def test_groups_are_inputs_within_so_many_steps(table, size, delta):
    path = dp.FiniteMechanism(table, itertools.pairwise(table))
    near = [(x, y) for x in table for y in table if 0 < abs(x - y) <= size]
    assert set(path.group(size).neighbours) == set(near)
    bound = dp.grouped(path.level(delta), size)
    if bound.factor < math.inf:
        assert path.group(size).delta(bound.factor) <= bound.delta


def test_known_levels():
    coins = dp.FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
    assert coins.level() == dp.PrivacyLevel(Fraction(3), Fraction(0))
    assert not coins.is_private("1.0986122886681096")
    assert coins.is_private("1.0986122886681099")
    assert (coins.delta_at(0), coins.delta_at(1)) == (
        0.5,
        pytest.approx(0.75 - math.e / 4, rel=1e-15),
    )
    often = coins.repeated(100)
    assert (often.outputs, often.level().factor) == (101, 3**100)
    assert often.level("1e-6").epsilon < 100 * math.log(3) - 10
    shown = dp.FiniteMechanism({0: [1, 0], 1: [0, 1]})
    assert (shown.level("1/2").factor, shown.level(1).factor, shown.delta_at("1e300")) == (
        math.inf,
        1,
        1,
    )
    assert dp.grouped(shown.level(), 2).factor == math.inf
    zero = dp.FiniteMechanism({0: ["1/10", "9/10", 0], 1: [0, "8/10", "2/10"]})
    assert (zero.level("1/10").factor, zero.level("2/10").factor) == (math.inf, 1)


@examples(10, 80)
@given(st.data(), st.integers(0, 2), st.integers(2, 3), st.booleans())
def test_sensitivity_of_any_query(data, records, values, changed):
    domain = dp.Domain({"x": range(values)})
    every = [x for n in range(records + 2) for x in dp.databases(domain, n)]
    query = {x: data.draw(st.fractions(-5, 5, max_denominator=9)) for x in every}

    def beside(x, y):
        if changed:
            return len(x) == len(y) and sum(a != b for a, b in zip(x, y, strict=True)) == 1
        shorter, longer = sorted((x, y), key=len)
        removed = [longer[:i] + longer[i + 1 :] for i in range(len(longer))]
        # a record is added at the end
        return shorter in (removed if len(y) < len(x) else removed[-1:])

    requested = list(dp.databases(domain, records))
    neighbours = (dp.change_one if changed else dp.add_or_remove_one)(domain)
    found = dp.sensitivity(query.__getitem__, requested, neighbours)
    gaps = [abs(query[x] - query[y]) for x in requested for y in every if beside(x, y)]
    assert found == max(gaps, default=0)


def test_sensitivities_of_the_textbook():
    person = dp.Domain({"age": range(20, 24), "smokes": [False, True]})
    every = list(dp.databases(person, 2))
    queries = {
        lambda people: sum(smokes for _, smokes in people): 1,
        lambda people: [sum(a == age for age, _ in people) for a in range(20, 24)]: 2,
        lambda people: sum(age for age, _ in people): 3,
        lambda people: 7: 0,
    }
    for query, expected in queries.items():
        assert dp.sensitivity(query, every, dp.change_one(person)) == expected


@examples(10, 50)
@given(st.fractions(0, Fraction(9, 10), max_denominator=30))
def test_differencing_against_all_noises(ratio):
    """Sum over both noises; no other rule on the difference does better."""
    reach = 1 if ratio == 0 else math.ceil(25 / -math.log(ratio))
    noise = {
        z: float((1 - ratio) / (1 + ratio) * ratio ** abs(z)) for z in range(-reach, reach + 1)
    }
    difference = dict.fromkeys(range(-2 * reach - 1, 2 * reach + 2), 0.0)
    for (a, p), (b, q) in itertools.product(noise.items(), repeat=2):
        difference[a - b] += p * q
    bits = [(bit, d, p) for bit in (0, 1) for d, p in difference.items()]
    guessed = sum(p * (dp.difference_guess(bit + d, 0) == bit) for bit, d, p in bits) / 2
    best = sum(max(p, difference.get(d - 1, 0.0)) for d, p in difference.items()) / 2
    assert float(dp.differencing_success(ratio)) == pytest.approx(guessed, abs=1e-9)
    assert guessed == pytest.approx(best, abs=1e-12)
    # two counts, each with this noise, are ratio^-2-DP together
    assert dp.differencing_success(ratio) <= 1 / (1 + ratio**2)
