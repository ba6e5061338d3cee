"""The αβ algorithm against Bayes on all instances and views, in exact fractions."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import assume, given
from hypothesis import strategies as st
from samplers import RARE, p_value

from pufferflow import dp
from pufferflow.dp.alpha_beta import binomial, root_up
from pufferflow.errors import DataError, ParameterError

DOMAIN = dp.Domain({"age": range(0, 100, 10), "answer": ["yes", "no"], "place": ("A", "B", "C")})
DATA = pd.DataFrame({"place": ["A", "B", "A"], "age": [30, 30, 90], "answer": ["yes", "yes", "no"]})
HALF = dp.AlphaBeta(0.5, 0.1)
LINE = dp.choose_alpha_beta("0.1", "0.5")


@st.composite
def parameters(draw):
    keep = draw(st.fractions(Fraction(1, 20), 1, max_denominator=20))
    beta = keep * draw(st.fractions(0, Fraction(9, 10), max_denominator=10))
    return dp.AlphaBeta(keep - beta, beta)


@st.composite
def bounds(draw):
    gamma = draw(st.fractions(Fraction(1, 20), 1, max_denominator=30))
    return gamma * draw(st.fractions(Fraction(1, 30), Fraction(29, 30), max_denominator=30)), gamma


@st.composite
def near_the_boundary(draw):
    """Bounds, and parameters on the boundary of either condition or a little beside it."""
    d, gamma = draw(bounds())
    conditions = draw(st.sampled_from(["exact", "published"]))
    best = dp.choose_alpha_beta(d, gamma, conditions=conditions)
    shifts = st.sampled_from([-1, 0, 1])
    alpha, beta = (
        x * (1 + Fraction(draw(shifts), draw(st.sampled_from([10, 10**9]))))
        for x in (best.alpha, best.beta)
    )
    alpha = min(alpha, Fraction(1))
    return (d, gamma), dp.AlphaBeta(alpha, min(beta, 1 - alpha))


def views_of(view, instance):
    """Probability of each view of a database, given as 0 and 1 for every tuple of the domain."""
    rates = [view.keep if inside else view.beta for inside in instance]
    return {
        seen: math.prod(rate if s else 1 - rate for rate, s in zip(rates, seen, strict=True))
        for seen in itertools.product((0, 1), repeat=len(instance))
    }


@examples(40, 900)
@given(near_the_boundary(), st.lists(parameters(), max_size=2))
def test_views_together_against_bayes_on_all_their_outcomes(case, others):
    """(d, γ)-privacy by its definition: at the boundary, on both sides of it, with more views."""
    (d, gamma), first = case
    views = [first, *others]
    check, broken = dp.check_views(views, d, gamma), False
    for p in (d, d / 2, d / 10**30):
        for seen in itertools.product((0, 1), repeat=len(views)):
            inside, outside = (
                math.prod(rate if s else 1 - rate for rate, s in zip(rates, seen, strict=True))
                for rates in ([view.keep for view in views], [view.beta for view in views])
            )
            if evidence := inside * p + outside * (1 - p):
                posterior = inside * p / evidence
                broken |= not d / gamma * p <= posterior <= gamma
                assert p * check.ratio_outside <= posterior
                assert posterior <= check.posterior_inside
    assert broken <= (not check.private)
    # the ratio is an infimum, which no prior above 0 attains
    if (
        check.ratio_outside < d / gamma * (1 - Fraction(1, 10**20))
        or check.posterior_inside > gamma
    ):
        assert broken
    assert check.private or not check.published_conditions


def test_other_tuples_do_not_matter():
    """The posterior of a tuple given the whole published set, by enumeration of all instances."""
    view, priors = dp.AlphaBeta("2/5", "1/7"), [Fraction(1, 10), Fraction(1, 3), Fraction(1)]
    every = list(itertools.product((0, 1), repeat=len(priors)))
    joint = Counter()
    for instance in every:
        p = math.prod(p if i else 1 - p for i, p in zip(instance, priors, strict=True))
        joint.update({(instance, seen): p * of for seen, of in views_of(view, instance).items()})
    for seen, (t, p) in itertools.product(every, enumerate(priors)):
        present, absent = (sum(joint[i, seen] for i in every if i[t] == x) for x in (1, 0))
        rates = (view.keep, view.beta) if seen[t] else (1 - view.keep, 1 - view.beta)
        assert present * (1 - p) * rates[1] == absent * p * rates[0]


@examples(12, 120)
@given(bounds(), st.integers(1, 6), st.sampled_from(["exact", "published"]))
def test_chosen_parameters_are_private_and_nothing_is_left(limits, views, conditions):
    chosen = dp.choose_alpha_beta(*limits, views=views, conditions=conditions)
    check = dp.check_views([chosen] * views, *limits)
    assert check.private
    if conditions == "published":
        assert check.published_conditions
        return
    d, gamma = limits
    assert float(check.posterior_inside) == pytest.approx(float(gamma), rel=1e-12)
    assert float(check.ratio_outside) == pytest.approx(float(d / gamma), rel=1e-12)
    assert not dp.check_views([chosen] * (views + 1), d, gamma).private


@pytest.mark.parametrize("fineness", counts(12, 40))
@pytest.mark.parametrize(("d", "gamma"), [("1/50", "1/5"), ("1/1000000000", "1/2"), ("1/3", "1")])
def test_the_best_parameters_beat_every_other_pair(d, gamma, fineness):
    best = dp.choose_alpha_beta(d, gamma)
    grid = [Fraction(i, fineness) for i in range(1, fineness + 1)]
    others = [dp.AlphaBeta(s * (1 - r), s * r) for s in grid for r in [0, *grid[:-1]]]
    others = [other for other in others if dp.check_views([other], d, gamma).private]
    for other in [dp.choose_alpha_beta(d, gamma, conditions="published"), *others]:
        for query in ((0, 10), (10, 10), (1, 1000), (10, 10**9)):
            assert best.standard_error(*query) <= other.standard_error(*query) * (1 + 1e-12)


@examples(12, 120)
@given(st.fractions(0, 1, max_denominator=10**6), st.integers(1, 9))
def test_roots_are_rounded_up_and_hardly(number, degree):
    root = root_up(number, degree)
    assert number <= root**degree
    assert root <= 1
    assert root**degree * (1 - Fraction(1, 2**60)) <= number
    assert root_up(number**degree, degree) == number


def test_a_publisher_counts_its_views_and_refuses_one_too_many():
    publisher = dp.Publisher([(3,), (4,)], dp.Domain({"x": range(30)}), "0.1", "0.5")
    two = dp.choose_alpha_beta("0.1", "0.5", views=2)
    first = publisher.publish(two, insecure_seed=1)
    with pytest.raises(ParameterError, match="view 2 is refused"):
        publisher.publish(LINE)
    second = publisher.publish(two, insecure_seed=3)
    assert publisher.views == (two, two)
    assert not first.table.equals(second.table)
    with pytest.raises(ParameterError, match="view 3 is refused"):
        publisher.publish(dp.choose_alpha_beta("0.1", "0.5", views=1000))


@pytest.mark.parametrize("draws", counts(300, 1000))
@pytest.mark.parametrize(("alpha", "beta"), [("1/2", "1/5"), ("1/10", "7/10")])
def test_the_distribution_of_the_published_set(alpha, beta, draws):
    """Chi-square over all subsets of a small domain, and with half of the insertions it fails."""
    domain, every = dp.Domain({"x": [0, 1], "y": [0, 1]}), list(itertools.product((0, 1), repeat=2))
    view, half = dp.AlphaBeta(alpha, beta), Fraction(beta) / 2
    found = Counter()
    for seed in range(draws):
        table = dp.publish({(0, 1)}, domain, view, insecure_seed=seed).table
        assert domain.encode(table).tolist() == sorted(domain.encode(table))
        rows = set(table.itertuples(index=False, name=None))
        found[tuple(int(t in rows) for t in every)] += 1
    for parameters, fits in ((view, True), (dp.AlphaBeta(view.keep - half, half), False)):
        law = views_of(parameters, [0, 1, 0, 0])
        p = p_value([found[seen] for seen in law], [float(chance) for chance in law.values()])
        assert p > 1e-3 if fits else p < RARE


def test_a_set_and_a_table_publish_the_same_in_the_order_of_the_domain():
    rows = list(DATA[["age", "answer", "place"]].itertuples(index=False, name=None))
    one, two = (dp.publish(data, DOMAIN, HALF, insecure_seed=9).table for data in (DATA, rows))
    assert one.equals(two)
    assert list(one.columns) == ["age", "answer", "place"]
    assert one["age"].dtype.kind == "i"
    exact = dp.publish(DATA, DOMAIN, dp.AlphaBeta(1, 0))
    assert set(exact.table.itertuples(index=False, name=None)) == set(rows)
    assert exact.count({"age": 30}).count == 2
    big = dp.Domain({"x": range(3 * 10**6)})  # drawn in several pieces
    data, sparse = [(1,), (2**20,), (2 * 10**6,)], dp.AlphaBeta(1 - Fraction(1, 10**5), "1e-5")
    first, second = (dp.publish(data, big, sparse).table["x"].tolist() for _ in range(2))
    assert {1, 2**20, 2 * 10**6} <= set(first)
    assert len(first) < 90
    assert first != second


@pytest.mark.parametrize(
    ("where", "size"),
    [
        ({}, 60),
        ({"age": 30}, 6),
        ({"age": range(30, 61, 10)}, 24),
        ({"age": [30, 90.0], "answer": "no"}, 6),
        ({"place": ["A", "A", "C"]}, 40),
    ],
)
def test_queries_count_rows_and_domain(where, size):
    mask, count = DOMAIN.selected(where, DOMAIN.decode(np.arange(60)))
    assert mask.sum() == count == size


@pytest.mark.parametrize("values", [range(9, -1, -3), range(-4, 11, 5), range(7, 8), [5, -3, 0]])
def test_codes_are_indices(values):
    domain = dp.Domain({"x": values, "y": range(2)})
    for x in range(-20, 20):
        table = pd.DataFrame({"y": [1], "x": [x]})
        if x in values:
            assert domain.encode(table).tolist() == [2 * list(values).index(x) + 1]
            assert domain.decode(domain.encode(table)).to_dict("list") == {"x": [x], "y": [1]}
        else:
            with pytest.raises(DataError, match="row 1 of the data has a value of x"):
                domain.encode(table)


@examples(10, 80)
@given(parameters(), st.integers(0, 5))
def test_difference_of_views_against_all_views(view, tuples):
    first, second = (views_of(view, [inside] * tuples) for inside in (1, 0))
    assert dp.view_difference(view, tuples) == sum(
        abs(first[seen] - second[seen]) for seen in first
    )
    assert dp.view_difference(view, 1) == 2 * view.alpha


@examples(12, 60)
@given(parameters(), st.fractions(0, 1, max_denominator=50), st.sampled_from([1, 2, 3, 40, 150]))
def test_difference_of_answers_by_plain_convolution(view, prior, tuples):
    """The joint distribution of answer and published tuples, one tuple after the other."""
    p, keep, beta = float(prior), float(view.keep), float(view.beta)
    one, joint = np.outer([1 - p, p], [0, 0]), np.ones((1, 1))
    one[:] = [[(1 - p) * (1 - beta), (1 - p) * beta], [p * (1 - keep), p * keep]]
    for _ in range(tuples):
        wider = np.zeros(np.add(joint.shape, 1))
        for i, j in itertools.product((0, 1), repeat=2):
            wider[i : i + len(joint), j : j + len(joint)] += one[i, j] * joint
        joint = wider
    plain = np.abs(
        joint - joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    ).sum()
    assert dp.answer_difference(view, prior, tuples) == pytest.approx(plain, abs=1e-9)
    assert plain <= dp.answer_difference_bound(view, prior, tuples) + 1e-9


@examples(12, 120)
@given(parameters(), st.integers(1, 3), st.integers(0, 2))
def test_difference_of_extreme_answers_against_all_instances(view, rows, spare):
    half, views = rows + spare, (Counter(), Counter())
    for chosen in itertools.combinations(range(half), rows):
        inside = [int(i in chosen) for i in range(half)] + [0] * half
        views[0].update(views_of(view, inside))
        views[1].update(views_of(view, inside[half:] + inside[:half]))
    plain = sum(abs(views[0][seen] - views[1][seen]) for seen in views[0]) / math.comb(half, rows)
    assert dp.extreme_difference(view, rows, half) == pytest.approx(float(plain), abs=1e-9)


def test_the_impossibility_line():
    """d = γ/(1−γ) n/√m: of counts ever less is learned, and the views of all or none differ < ½."""
    found = [dp.answer_difference(LINE, Fraction(r // 10, r**2), r**2 // 2) for r in (100, 1000)]
    assert found[1] < found[0] / 3
    assert dp.answer_difference_bound(LINE, Fraction(1, 10**7), 10**12 // 2) < found[1] / 10
    source = dp.choose_alpha_beta("0.1", "0.5", conditions="published")
    found = [dp.extreme_difference(source, r // 10, r**2 // 2) for r in (100, 1000, 10**4)]
    assert found == pytest.approx([0.394455, 0.394618, 0.394635], abs=1e-6)


@examples(20, 200)
@given(parameters(), st.integers(0, 4), st.integers(0, 4), st.fractions(0, 5, max_denominator=8))
def test_estimates_and_failures_against_all_views(view, count, others, error):
    """The estimate is unbiased with the stated error; errors beyond ``error`` are strict."""
    assume(Fraction(float(error)) == error)
    size, mean, square, missed = count + others, 0, 0, 0
    for seen, p in views_of(view, [1] * count + [0] * others).items():
        off = (sum(seen) - view.beta * size) / view.alpha - count
        mean, square, missed = mean + p * off, square + p * off**2, missed + p * (abs(off) > error)
    assert mean == 0
    assert view.standard_error(count, size) ** 2 == pytest.approx(float(square), rel=1e-12)
    assert view.failure(float(error), count, size) == pytest.approx(float(missed), abs=1e-12)


@examples(12, 120)
@given(st.integers(0, 3000), st.just(0.0) | st.floats(1e-12, 1))
def test_binomial_against_scipy(trials, p):
    from scipy.stats import binom

    low, law = binomial(trials, p)
    x = np.arange(low, low + len(law))
    np.testing.assert_allclose(law, binom.pmf(x, trials, p), rtol=1e-9, atol=1e-14)
    assert binom.cdf(low - 1, trials, p) + binom.sf(x[-1], trials, p) < 1e-12
