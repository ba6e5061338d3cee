"""Several αβ views, statistical differences and error probabilities, against sums over all instances and views."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from pufferflow.errors import DataError, ParameterError
from pufferflow.related.dp._binomials import sum_law, sum_window, window, window_law
from pufferflow.related.dp._roots import root_up
from pufferflow.related.dp.alpha_beta import AlphaBeta, check_views, choose_alpha_beta
from pufferflow.related.dp.domains import Domain
from pufferflow.related.dp.statistical_difference import (
    answer_difference,
    answer_difference_bound,
    extreme_difference,
    view_difference,
)
from pufferflow.related.dp.views import Publisher

probabilities = st.fractions(0, 1, max_denominator=12)


@st.composite
def parameters(draw):
    keep = draw(st.fractions(Fraction(1, 20), 1, max_denominator=20))
    beta = keep * draw(st.fractions(0, Fraction(9, 10), max_denominator=10))
    return AlphaBeta(keep - beta, beta)


@st.composite
def bounds(draw):
    gamma = draw(st.fractions(Fraction(1, 20), 1, max_denominator=30))
    return gamma * draw(st.fractions(Fraction(1, 30), Fraction(29, 30), max_denominator=30)), gamma


def view_law(view, instance):
    """Probability of each view of a database, given as 0 and 1 a tuple of the domain."""
    laws = {}
    for seen in itertools.product((0, 1), repeat=len(instance)):
        rates = [view.keep if inside else view.beta for inside in instance]
        laws[seen] = math.prod(rate if s else 1 - rate for rate, s in zip(rates, seen, strict=True))
    return laws


# -- several views -------------------------------------------------------------------------------


@given(st.lists(parameters(), min_size=1, max_size=3), bounds())
@examples(15, 660)
def test_views_together_against_bayes_on_all_their_outcomes(views, limits):
    d, gamma = limits
    check = check_views(views, d, gamma)
    priors = [d, d / 2, d / 10**30]
    if check.witness is not None:
        assert 0 < check.witness <= d
        priors = [check.witness]
    broken = False
    for p in priors:
        for seen in itertools.product((0, 1), repeat=len(views)):
            inside, outside = (
                math.prod(rate if s else 1 - rate for rate, s in zip(rates, seen, strict=True))
                for rates in ([view.keep for view in views], [view.beta for view in views])
            )
            if evidence := inside * p + outside * (1 - p):
                posterior = inside * p / evidence
                broken |= not d / gamma * p <= posterior <= gamma
                if p == d:
                    assert posterior <= check.posterior_inside
                assert posterior >= p * check.ratio_outside
    assert broken == (not check.private)
    if check.published_conditions:
        assert check.private


@examples(12, 120)
@given(bounds(), st.integers(1, 6), st.sampled_from(["exact", "published"]))
def test_parameters_for_several_views_are_private_and_nothing_is_left(limits, views, conditions):
    d, gamma = limits
    chosen = choose_alpha_beta(d, gamma, views=views, conditions=conditions)
    check = check_views([chosen] * views, d, gamma)
    assert check.private
    if conditions == "published":
        assert check.published_conditions
        return
    assert float(check.posterior_inside) == pytest.approx(float(gamma), rel=1e-12)
    assert float(check.ratio_outside) == pytest.approx(float(d / gamma), rel=1e-12)
    assert not check_views([chosen] * (views + 1), d, gamma).private


def test_three_naive_views_settle_a_tuple():
    alone = choose_alpha_beta("0.1", "0.5")
    found = [check_views([alone] * k, "0.1", "0.5").posterior_inside for k in (1, 2, 3)]
    assert found == [Fraction(1, 2), Fraction(9, 10), Fraction(81, 82)]


def test_a_publisher_counts_its_views_and_refuses_one_too_many():
    domain, d, gamma = Domain({"x": range(30)}), Fraction(1, 10), Fraction(1, 2)
    publisher = Publisher([(3,), (4,)], domain, d, gamma)
    two = choose_alpha_beta(d, gamma, views=2)
    first = publisher.publish(two, insecure_seed=1)
    assert publisher.views == (two,)
    with pytest.raises(ParameterError, match=r"view 2 is refused: with it a tuple's posterior could reach 0\.75"):
        publisher.publish(choose_alpha_beta(d, gamma), insecure_seed=2)
    assert publisher.views == (two,)
    second = publisher.publish(two, insecure_seed=3)
    assert publisher.views == (two, two)
    assert first.tuples() != second.tuples()
    # what is left allows nothing more
    with pytest.raises(ParameterError, match="view 3 is refused"):
        publisher.publish(choose_alpha_beta(d, gamma, views=1000))
    with pytest.raises(DataError, match="has a value of x"):
        Publisher([(40,)], domain, d, gamma)
    with pytest.raises(ParameterError, match="0 < d ≤ gamma"):
        Publisher([(3,)], domain, gamma, d)


@examples(12, 120)
@given(st.fractions(0, 1, max_denominator=10**6), st.integers(1, 9))
def test_roots_are_rounded_up_and_hardly(number, degree):
    root = root_up(number, degree)
    assert root**degree >= number
    assert root <= 1
    if root**degree > number:
        assert root**degree * (1 - Fraction(1, 2**60)) < number
        assert root < 1
    assert root_up(number**degree, degree) == number


# -- statistical differences ---------------------------------------------------------------------


@given(parameters(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 1))
@examples(10, 80)
def test_difference_of_views_against_all_views(view, first_only, second_only, shared):
    tuples = [(1, 0)] * first_only + [(0, 1)] * second_only + [(1, 1)] * shared + [(0, 0)]
    first, second = (view_law(view, [pair[side] for pair in tuples]) for side in (0, 1))
    plain = sum(abs(first[seen] - second[seen]) for seen in first)
    assert view_difference(view, first_only, second_only) == plain
    assert view_difference(view, 1) == 2 * view.alpha


@given(parameters(), probabilities, st.integers(1, 4))
@examples(12, 120)
def test_difference_of_answers_against_all_instances(view, prior, tuples):
    joint, answers, views = {}, {}, {}
    for instance in itertools.product((0, 1), repeat=tuples):
        weight = math.prod(prior if inside else 1 - prior for inside in instance)
        for seen, p in view_law(view, instance).items():
            key, mass = (sum(instance), seen), weight * p
            joint[key] = joint.get(key, 0) + mass
            answers[key[0]] = answers.get(key[0], 0) + mass
            views[seen] = views.get(seen, 0) + mass
    plain = sum(abs(joint[answer, seen] - answers[answer] * views[seen]) for answer, seen in joint)
    assert answer_difference(view, prior, tuples) == pytest.approx(float(plain), abs=1e-12)
    assert float(plain) <= answer_difference_bound(view, prior, tuples) + 1e-12


@given(parameters(), st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100), st.integers(100, 200))
@examples(10, 40)
def test_difference_of_answers_of_larger_tables(view, prior, tuples):
    """From the two laws of each tuple by plain convolution, one tuple after the other."""
    p, keep, beta = float(prior), float(view.keep), float(view.beta)
    joint = np.ones((1, 1))
    for _ in range(tuples):
        wider = np.zeros((len(joint) + 1, len(joint) + 1))
        for inside, rate, weight in ((0, beta, 1 - p), (1, keep, p)):
            for seen, factor in ((0, 1 - rate), (1, rate)):
                wider[inside : inside + len(joint), seen : seen + len(joint)] += weight * factor * joint
        joint = wider
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    plain = float(np.abs(joint - product).sum())
    assert answer_difference(view, prior, tuples) == pytest.approx(plain, abs=1e-9)
    assert plain <= answer_difference_bound(view, prior, tuples) + 1e-9


def test_on_the_impossibility_line_less_and_less_is_learned():
    line = choose_alpha_beta("0.1", "0.5")
    found = [answer_difference(line, Fraction(root // 10, root**2), root**2 // 2) for root in (100, 1000)]
    assert found[1] < found[0] / 3
    bound = answer_difference_bound(line, Fraction(1, 10**7), 10**12 // 2)
    assert bound < found[1] / 10
    # one that publishes the data says all, up to what was known before; one of no tuple nothing
    assert answer_difference(AlphaBeta(1, 0), "1/2", 1) == 1
    assert answer_difference(line, 0, 5) < 1e-15
    assert answer_difference_bound(line, 0, 5) == 0
    with pytest.raises(ParameterError, match="use answer_difference_bound"):
        answer_difference(AlphaBeta("0.5", "0.2"), "0.5", 10**12)
    with pytest.raises(ParameterError, match="pairs of counts"):
        view_difference(line, 10**6, 10)


@given(parameters(), st.integers(1, 3), st.integers(0, 2))
@examples(12, 120)
def test_difference_of_extreme_answers_against_all_instances(view, rows, spare):
    half = rows + spare
    views = [{}, {}]
    for chosen in itertools.combinations(range(half), rows):
        for side, start in enumerate((0, half)):
            inside = [int(place - start in chosen) for place in range(2 * half)]
            for seen, p in view_law(view, inside).items():
                views[side][seen] = views[side].get(seen, 0) + p
    plain = sum(abs(views[0][seen] - views[1][seen]) for seen in views[0]) / math.comb(half, rows)
    assert extreme_difference(view, rows, half) == pytest.approx(float(plain), abs=1e-9)


def test_on_the_impossibility_line_every_view_is_meaningless():
    """The source's own α and β at d = .1, γ = .5, n = √m/10; SciPy's binomial probabilities and the plain sum."""
    from scipy.stats import binom

    line = choose_alpha_beta("0.1", "0.5", conditions="published")
    assert float(line.alpha) == pytest.approx(0.7111, abs=5e-5)
    found = [extreme_difference(line, root // 10, root**2 // 2) for root in (100, 1000, 10**4, 10**6)]
    assert found == pytest.approx([0.394455, 0.394618, 0.394635, 0.394637], abs=1e-6)
    counts = np.arange(5001)
    kept, made_up = (binom.pmf(counts, n, float(p)) for n, p in ((10, line.keep), (4990, line.beta)))
    every, none = np.convolve(kept, made_up)[:5001], binom.pmf(counts, 5000, float(line.beta))
    plain = np.abs(np.outer(every, none) - np.outer(none, every)).sum()
    assert found[0] == pytest.approx(plain, abs=1e-9)
    with pytest.raises(ParameterError, match="rows is 3, above half, 2"):
        extreme_difference(line, 3, 2)


# -- errors --------------------------------------------------------------------------------------


@given(parameters(), st.integers(0, 4), st.integers(0, 4), st.fractions(0, 5, max_denominator=8))
@examples(20, 200)
def test_failures_against_all_views(view, count, others, error):
    """Errors are strict, so a decimal float of one that occurs must not be moved across it."""
    assume(Fraction(float(error)) == error)
    instance = [1] * count + [0] * others
    plain = sum(
        p
        for seen, p in view_law(view, instance).items()
        if abs((sum(seen) - view.beta * len(instance)) / view.alpha - count) > error
    )
    assert view.failure(float(error), count, count + others) == pytest.approx(float(plain), abs=1e-12)


rates = st.just(0.0) | st.floats(1e-12, 1)  # SciPy's own law overflows at smaller ones


@given(st.integers(0, 3000), rates, st.integers(0, 3000), rates)
@examples(12, 120)
def test_laws_of_counts_against_scipy(first, p, second, q):
    from scipy.stats import binom

    low, high = window(first, p)
    assert np.allclose(window_law(first, p), binom.pmf(np.arange(low, high), first, p), rtol=1e-9, atol=1e-14)
    assert binom.cdf(low - 1, first, p) + binom.sf(high - 1, first, p) < 1e-12
    law, (start, stop) = sum_law(first, p, second, q), sum_window(first, p, second, q)
    assert len(law) == stop - start
    mean = float(law @ np.arange(start, stop))
    assert mean == pytest.approx(first * p + second * q, rel=1e-9, abs=1e-9)


def test_the_constant_of_the_trade_off():
    n, m, gamma = 1000, 10**12, Fraction(1, 2)
    parameters = choose_alpha_beta(Fraction(4 * n, m), gamma)
    unit = math.sqrt(4 / gamma)
    assert parameters.rho(n, m) / unit == pytest.approx(math.sqrt(1 - gamma), rel=1e-6)
    # the normal law, up to what whole counts of about 60 leave of it
    assert 1 - parameters.failure(unit * math.sqrt(n), n, m) == pytest.approx(0.8427, abs=0.01)
    assert parameters.failure(1.96 * parameters.rho(n, m) * math.sqrt(n), n, m) == pytest.approx(0.05, abs=0.003)
    with pytest.raises(ParameterError, match="count is 5, above domain_count, 4"):
        parameters.failure(1.0, 5, 4)
