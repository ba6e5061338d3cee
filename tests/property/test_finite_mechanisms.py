"""(ε, δ) of finite mechanisms against the definition: every event, every pair of outputs, every database."""

import itertools
import math
from fractions import Fraction

import pytest
from cases import examples
from hypothesis import example, given
from hypothesis import strategies as st

from pufferflow.errors import DataError, ParameterError
from pufferflow.related.dp.differencing import difference_guess, differencing_success
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.finite import FiniteMechanism, PrivacyLevel, composed, grouped
from pufferflow.related.dp.sensitivity import add_or_remove_one, change_one, databases, sensitivity

HALF = Fraction(1, 2)


@st.composite
def laws(draw, inputs=3, outputs=4):
    """Laws of a few outputs, zeros among them, one an input."""
    weights = st.lists(st.integers(0, 6), min_size=outputs, max_size=outputs).filter(any)
    rows = [draw(weights) for _ in range(draw(st.integers(2, inputs)))]
    return {place: [Fraction(w, sum(row)) for w in row] for place, row in enumerate(rows)}


deltas = st.fractions(0, 1, max_denominator=20)


def events(size):
    return itertools.chain.from_iterable(itertools.combinations(range(size), n) for n in range(size + 1))


def holds(first, second, factor, delta):
    """Definition of (ε, δ)-DP for one ordered pair: all events."""
    return all(
        sum(first[y] for y in event) <= factor * sum(second[y] for y in event) + delta for event in events(len(first))
    )


def plain_delta(table, pairs, factor):
    """Least δ by trying every event."""
    return max(
        (sum(table[x][y] for y in e) - factor * sum(table[z][y] for y in e) for x, z in pairs for e in events(4)),
        default=0,
    )


@examples(12, 120)
@given(laws(), deltas, st.fractions(1, 8, max_denominator=10))
def test_the_level_is_the_least_for_which_every_event_holds(table, delta, factor):
    mechanism = FiniteMechanism(table)
    pairs = list(itertools.permutations(table, 2))
    assert mechanism.delta(factor) == plain_delta(table, pairs, factor)
    level = mechanism.level(delta)
    if level.factor == math.inf:
        assert not all(holds(table[x], table[z], 10**9, delta) for x, z in pairs)
        assert not mechanism.is_private(10**6, delta)
        return
    assert all(holds(table[x], table[z], level.factor, delta) for x, z in pairs)
    if level.factor > 1:
        assert not all(holds(table[x], table[z], level.factor * Fraction(10**9 - 1, 10**9), delta) for x, z in pairs)
        given_x, given_z = (table[x] for x in level.pair)
        inside, other = (sum(law[y] for y in level.event) for law in (given_x, given_z))
        assert inside == level.factor * other + delta


# ln 12/7 is between the float above it and the decimal which that prints
@examples(12, 120)
@example({0: [Fraction(w, 6) for w in (1, 1, 2, 2)], 1: [Fraction(w, 7) for w in (1, 2, 2, 2)]}, 0)
@given(laws(), deltas)
def test_e_to_the_epsilon_is_compared_exactly(table, delta):
    mechanism = FiniteMechanism(table)
    level = mechanism.level(delta)
    if level.factor == math.inf:
        assert level.epsilon == math.inf
        return
    exact = math.log(level.factor.numerator) - math.log(level.factor.denominator)
    assert exact - 1e-14 <= level.epsilon <= exact * (1 + 1e-12) + 1e-14
    assert mechanism.is_private(level.epsilon, delta)
    if level.factor > 1:
        assert not mechanism.is_private(math.nextafter(level.epsilon, 0) * (1 - 1e-12), delta)
    # at that ε no more than δ is left, up to the rounding of the float
    assert mechanism.delta_at(level.epsilon) <= float(delta) + 1e-15


@examples(12, 120)
@given(laws(), st.fractions(0, 3, max_denominator=50))
def test_delta_at_is_rounded_up_and_hardly(table, epsilon):
    mechanism, below, above = FiniteMechanism(table), *(Fraction(math.exp(epsilon)) * (1 + s) for s in (-1e-12, 1e-12))
    found = Fraction(mechanism.delta_at(epsilon))
    assert mechanism.delta(max(1, above)) <= found <= mechanism.delta(max(1, below)) + Fraction(1, 10**15)


@given(laws(), st.fractions(1, 20, max_denominator=10), deltas)
@examples(10, 220)
def test_composition_is_that_of_all_pairs_of_outputs(table, factor, delta):
    one = FiniteMechanism(table)
    other = FiniteMechanism({given: law[::-1] for given, law in table.items()})
    joint = FiniteMechanism({x: [p * q for p in table[x] for q in table[x][::-1]] for x in table})
    together = one.compose(other)
    assert together.outputs <= joint.outputs
    assert together.delta(factor) == joint.delta(factor)
    assert together.level(delta).factor == joint.level(delta).factor
    levels = [mechanism.level(delta / 2) for mechanism in (one, other)]
    assert together.level(delta).factor <= composed(levels).factor
    thrice = FiniteMechanism({x: [p * q * r for p in law for q in law for r in law] for x, law in table.items()})
    assert one.repeated(3).delta(factor) == thrice.delta(factor)


@examples(12, 120)
@given(laws(inputs=5), st.integers(1, 4), deltas)
def test_groups_are_inputs_within_so_many_steps(table, size, delta):
    path = FiniteMechanism(table, list(itertools.pairwise(table)))
    plain = FiniteMechanism(table, [(x, y) for x in table for y in table if 0 < abs(x - y) <= size])
    assert set(path.group(size).neighbours) == set(plain.neighbours)
    assert path.group(size).level(delta).factor == plain.level(delta).factor
    bound = grouped(path.level(delta), size)
    if bound.factor < math.inf:
        assert plain.delta(bound.factor) <= bound.delta


def test_known_levels():
    coins = FiniteMechanism({"yes": ["3/4", "1/4"], "no": ["1/4", "3/4"]})
    assert coins.level() == PrivacyLevel(Fraction(3), Fraction(0), ("yes", "no"), (0,))
    assert not coins.is_private("1.0986122886681096")
    assert coins.is_private("1.0986122886681099")
    assert coins.delta_at(0) == 0.5
    assert coins.delta_at(1) == pytest.approx(0.75 - math.e / 4, rel=1e-15)
    # ever more uses need ever less than the sum, and 100 of them 101 outputs
    often = coins.repeated(100)
    assert often.outputs == 101
    assert often.level().factor == Fraction(3) ** 100
    assert often.level("1e-6").epsilon < 100 * math.log(3) - 10
    # neighbours that nothing tells apart, and a mechanism that shows its input
    assert FiniteMechanism({0: [1], 1: [1]}).level() == PrivacyLevel(Fraction(1), Fraction(0))
    shown = FiniteMechanism({0: [1, 0], 1: [0, 1]})
    assert shown.level("1/2").factor == math.inf
    assert shown.level(1).factor == 1
    assert shown.delta_at("1e300") == 1
    assert grouped(shown.level(), 2).factor == math.inf
    assert FiniteMechanism({0: ["1/2", "1/2"]}).level().epsilon == 0


def test_a_zero_that_only_one_input_has_needs_its_delta():
    mechanism = FiniteMechanism({0: ["1/10", "9/10", 0], 1: [0, "8/10", "2/10"]})
    assert mechanism.level("1/10").factor == math.inf
    assert mechanism.level("2/10").factor == 1
    assert mechanism.delta(2) == Fraction(2, 10)


# -- sensitivity ---------------------------------------------------------------------------------


def plain_sensitivity(query, every, beside, group):
    """Largest change over all pairs, by the distance of each pair."""
    graph = {x: {y for y in every if beside(x, y)} for x in every}
    largest = 0
    for x in every:
        reached = {x}
        for _ in range(group):
            reached |= {z for y in reached for z in graph[y]}
        largest = max([largest, *(abs(query[x] - query[y]) for y in reached)])
    return largest


@given(st.data(), st.integers(1, 2), st.integers(2, 3), st.integers(1, 2))
@examples(10, 80)
def test_sensitivity_of_any_query(data, records, values, group):
    domain = Domain({"x": range(values)})
    every = list(databases(domain, records))
    query = {x: data.draw(st.fractions(-5, 5, max_denominator=9)) for x in every}
    found = sensitivity(query.__getitem__, every, change_one(domain), group=group)
    assert found.value == plain_sensitivity(
        query, every, lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)) == 1, group
    )
    assert found.rounded_up >= found.value
    if found.value:
        assert abs(query[found.database] - query[found.neighbour]) == found.value


@examples(8, 270)
@given(st.integers(0, 3), st.integers(1, 3), st.integers(1, 2))
def test_sensitivity_with_a_record_more_or_less(records, values, group):
    domain = Domain({"x": range(values)})
    every = [x for n in range(records + group + 1) for x in databases(domain, n)]
    query = {x: Fraction(sum(v for (v,) in x) ** 2, len(x) + 1) for x in every}

    def beside(x, y):
        longer, shorter = (x, y) if len(x) > len(y) else (y, x)
        shorter = list(shorter)
        return len(longer) == len(shorter) + 1 and any(
            sorted(longer[:i] + longer[i + 1 :]) == sorted(shorter) for i in range(len(longer))
        )

    asked = list(databases(domain, records))
    found = sensitivity(query.__getitem__, asked, add_or_remove_one(domain), group=group)
    steps = {x: {x} for x in asked}
    for _ in range(group):
        steps = {x: reached | {z for y in reached for z in every if beside(y, z)} for x, reached in steps.items()}
    assert found.value == max(abs(query[x] - query[y]) for x in asked for y in steps[x])


def test_sensitivities_of_the_textbook():
    person = Domain({"age": range(20, 24), "smokes": [False, True]})
    every = list(databases(person, 2))
    assert len(every) == 64
    beside = change_one(person)

    def of(query, **others):
        return sensitivity(query, every, beside, **others).value

    assert of(lambda people: sum(smokes for _, smokes in people)) == 1
    assert of(lambda people: [sum(a == age for age, _ in people) for a in range(20, 24)]) == 2
    assert of(lambda people: sum(age for age, _ in people)) == 3
    assert of(lambda people: sum(age for age, _ in people), group=2) == 6
    assert of(lambda people: 7) == 0

    # the user's own: only the age may change, by one year
    def a_year(people):
        for place, (age, smokes) in enumerate(people):
            for other in {age - 1, age + 1} & set(range(20, 24)):
                yield (*people[:place], (other, smokes), *people[place + 1 :])

    assert sensitivity(lambda people: max(age for age, _ in people), every, a_year).value == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FiniteMechanism({}), "no input"),
        (lambda: FiniteMechanism({0: [1], 1: ["1/2", "1/2"]}), "different numbers of outputs"),
        (lambda: FiniteMechanism({0: ["1/2", "1/3"]}), "law 1 is no law"),
        (lambda: FiniteMechanism({0: ["3/2", "-1/2"]}), "law 1 is no law"),
        (lambda: FiniteMechanism({0: [1]}, [(0, 1)]), "names an input without a law"),
        (lambda: FiniteMechanism({0: [1]}, [0]), "no pair of inputs"),
        (lambda: FiniteMechanism({0: [1]}).delta("1/2"), "factor is '1/2'; it must be a number of at least 1"),
        (lambda: FiniteMechanism({0: [1]}).level(-1), "delta is -1; it must be a number of at least 0"),
        (lambda: FiniteMechanism({0: [1]}).is_private(-1), "epsilon is -1"),
        (lambda: FiniteMechanism({0: [1]}).compose(FiniteMechanism({1: [1]})), "different inputs or neighbours"),
        (lambda: FiniteMechanism({0: ["1/2000"] * 2000}).compose(FiniteMechanism({0: ["1/2000"] * 2000})), "more than"),
        (lambda: databases(Domain({"x": range(10)}), 7), "more than 1000000 databases"),
        (lambda: databases(Domain({"x": range(10**9)}), 0), "more than 1000000"),
        (lambda: sensitivity(len, [], lambda x: []), "no database"),
        (lambda: sensitivity(3, [()], lambda x: []), "query must be a function"),
        (lambda: sensitivity(lambda x: "a", [()], lambda x: [(1,)]), "neither a number"),
        (lambda: sensitivity(lambda x: [1] * len(x), [()], lambda x: [(1,)]), "always give as many"),
        (lambda: differencing_success(1), "ratio is 1; it must be a number from 0 to below 1"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises((ParameterError, DataError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# -- the differencing attack ---------------------------------------------------------------------


@given(st.fractions(0, Fraction(9, 10), max_denominator=30))
@examples(10, 50)
def test_differencing_against_all_noises(ratio):
    """Sum over both noises, cut off where almost none is left; no other rule on the difference does better."""
    reach = 1 if ratio == 0 else math.ceil(25 / -math.log(ratio))
    noise = {z: float((1 - ratio) / (1 + ratio) * ratio ** abs(z)) for z in range(-reach, reach + 1)}
    difference = dict.fromkeys(range(-2 * reach, 2 * reach + 1), 0.0)
    for a, p in noise.items():
        for b, q in noise.items():
            difference[a - b] += p * q
    guessed = sum(p * (difference_guess(bit + d, 0) == bit) for bit in (0, 1) for d, p in difference.items()) / 2
    seen = range(-2 * reach, 2 * reach + 2)
    best = sum(max(difference.get(d, 0.0), difference.get(d - 1, 0.0)) for d in seen) / 2
    assert float(differencing_success(ratio)) == pytest.approx(guessed, abs=1e-9)
    assert guessed == pytest.approx(best, abs=1e-12)
    # two counts, each with this noise, are ratio^-2-DP together
    assert differencing_success(ratio) <= 1 / (1 + ratio**2)
