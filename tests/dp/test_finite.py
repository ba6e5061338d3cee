"""(ε, δ) against its definition on every event, and sensitivity against all pairs of databases."""

import itertools
import math
from fractions import Fraction

from cases import examples
from flint import arb, ctx, fmpq
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
    rounded = Fraction(mechanism.delta_at(math.log(factor)))
    assert mechanism.delta(factor * Fraction(1 + 10**-12)) <= rounded
    assert rounded <= mechanism.delta(factor) + Fraction(1, 10**12)
    level = mechanism.level(delta)
    if level.factor == math.inf:
        assert plain_delta(table, pairs, 10**9) > delta
        assert level.epsilon == math.inf
        return
    assert plain_delta(table, pairs, level.factor) <= delta
    exact = math.log(level.factor.numerator) - math.log(level.factor.denominator)
    assert exact - 1e-14 <= level.epsilon <= exact * (1 + 1e-12) + 1e-14
    with ctx.workprec(200):
        assert arb(repr(level.epsilon)) >= arb(fmpq(*level.factor.as_integer_ratio())).log()
    if level.factor > 1:
        assert plain_delta(table, pairs, level.factor * Fraction(10**9 - 1, 10**9)) > delta
    # at that ε no more than δ is left, up to the rounding of the float
    assert mechanism.delta_at(level.epsilon) <= float(delta) + 1e-15


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
    levels = [mechanism.level(delta / 2).factor for mechanism in (one, other)]
    assert together.level(delta).factor <= math.prod(levels)  # basic composition
    cube = {x: [p * q * r for p in row for q in row for r in row] for x, row in table.items()}
    assert one.repeated(3).delta(factor) == dp.FiniteMechanism(cube).delta(factor)


@examples(12, 120)
@given(tables(inputs=5), st.integers(1, 4), deltas)
def test_groups_are_inputs_within_so_many_steps(table, size, delta):
    path = dp.FiniteMechanism(table, itertools.pairwise(table))
    near = [(x, y) for x in table for y in table if 0 < abs(x - y) <= size]
    assert path.group(size).neighbours == set(near)
    factor = path.level(delta).factor
    if factor < math.inf:
        bound = delta * sum(factor**i for i in range(size))
        assert path.group(size).delta(factor**size) <= bound


@examples(10, 80)
@given(st.data(), st.integers(0, 2), st.integers(2, 3), st.booleans())
def test_sensitivity_of_any_query(data, records, values, changed):
    every = [x for n in range(records + 2) for x in itertools.product(range(values), repeat=n)]
    number = st.fractions(-5, 5, max_denominator=9)
    query = {x: (data.draw(number), data.draw(number)) for x in every}

    def neighbours(x, y):
        if changed:
            return len(x) == len(y) and sum(a != b for a, b in zip(x, y, strict=True)) == 1
        shorter, longer = sorted((x, y), key=len)
        removed = [longer[:i] + longer[i + 1 :] for i in range(len(longer))]
        # a record is added at the end
        return shorter in (removed if len(y) < len(x) else removed[-1:])

    requested = [x for x in every if len(x) == records]
    function = (dp.change_one if changed else dp.add_or_remove_one)(range(values))
    found = dp.sensitivity(query.__getitem__, requested, function)
    pairs = [(query[x], query[y]) for x in requested for y in every if neighbours(x, y)]
    assert found == max((abs(a - c) + abs(b - d) for (a, b), (c, d) in pairs), default=0)
