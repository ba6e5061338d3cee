"""The αβ algorithm against Bayes on all instances and views, in exact fractions."""

import itertools
import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import counts, examples
from hypothesis import given
from hypothesis import strategies as st
from samplers import RARE, p_value

from pufferflow import dp
from pufferflow.dp import alpha_beta
from pufferflow.errors import ParameterError

DOMAIN = dp.Domain({"age": range(0, 100, 10), "answer": ["yes", "no"], "place": ("A", "B", "C")})
DATA = pd.DataFrame({"place": ["A", "B", "A"], "age": [30, 30, 90], "answer": ["yes", "yes", "no"]})
HALF = dp.AlphaBeta(0.5, 0.1)


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
    """Bounds, and parameters on the boundary of either condition or a little off it."""
    d, gamma = draw(bounds())
    best = dp.choose_alpha_beta(d, gamma)
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
    below = check.ratio_outside < d / gamma * (1 - Fraction(1, 10**20))
    assert broken or not (below or check.posterior_inside > gamma)


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
@given(bounds(), st.integers(1, 6))
def test_chosen_parameters_are_private_and_nothing_is_left(limits, views):
    d, gamma = limits
    chosen = dp.choose_alpha_beta(d, gamma, views=views)
    check = dp.check_views([chosen] * views, d, gamma)
    assert check.private
    assert float(check.posterior_inside) == pytest.approx(float(gamma), rel=1e-12)
    assert float(check.ratio_outside) == pytest.approx(float(d / gamma), rel=1e-12)
    assert not dp.check_views([chosen] * (views + 1), d, gamma).private


def test_a_publisher_counts_its_views_and_refuses_one_too_many():
    publisher = dp.Publisher([(3,), (4,)], dp.Domain({"x": range(30)}), "0.1", "0.5")
    two = dp.choose_alpha_beta("0.1", "0.5", views=2)
    first = publisher.publish(two, insecure_seed=1)
    with pytest.raises(ParameterError, match="view 2 is refused"):
        publisher.publish(dp.choose_alpha_beta("0.1", "0.5"))
    assert not first.table.equals(publisher.publish(two, insecure_seed=3).table)
    assert publisher.views == (two, two)
    with pytest.raises(ParameterError, match="view 3 is refused"):
        publisher.publish(dp.choose_alpha_beta("0.1", "0.5", views=1000))


def test_a_publisher_counts_the_views_of_other_threads(monkeypatch):
    publisher = dp.Publisher([(3,), (4,)], dp.Domain({"x": range(30)}), "0.1", "0.5")
    one, other, check = dp.choose_alpha_beta("0.1", "0.5"), [], alpha_beta.check_views

    def slow(*arguments):
        if not other:
            other.append(pool.submit(publisher.publish, one))
            wait(other, 0.2)
        return check(*arguments)

    monkeypatch.setattr(alpha_beta, "check_views", slow)
    with ThreadPoolExecutor(1) as pool:
        publisher.publish(one)
        with pytest.raises(ParameterError, match="view 2 is refused"):
            other[0].result()


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
    for used, fits in ((view, True), (dp.AlphaBeta(view.keep - half, half), False)):
        chances = views_of(used, [0, 1, 0, 0])
        p = p_value([found[seen] for seen in chances], [float(p) for p in chances.values()])
        assert p > 1e-3 if fits else p < RARE


def test_a_set_and_a_table_publish_the_same_in_the_order_of_the_domain():
    rows = list(DATA[["age", "answer", "place"]].itertuples(index=False, name=None))
    one, two = (dp.publish(data, DOMAIN, HALF, insecure_seed=9).table for data in (DATA, rows))
    assert one.equals(two)
    assert list(one.columns) == ["age", "answer", "place"]
    assert one["age"].dtype.kind == "i"
    big = dp.Domain({"x": range(3000), "y": range(1000)})  # drawn in several pieces
    data, sparse = {(0, 1), (1048, 576), (2000, 0)}, dp.AlphaBeta(1 - Fraction(1, 10**5), "1e-5")
    first, second = (dp.publish(data, big, sparse).table for _ in range(2))
    assert data <= set(first.itertuples(index=False, name=None))
    assert len(first) < 90
    assert not first.equals(second)


def test_codes_are_indices_and_queries_count_rows_and_domain():
    everything = DOMAIN.decode(np.arange(60))
    assert DOMAIN.encode(everything[["place", "answer", "age"]]).tolist() == list(range(60))
    exact = dp.publish(everything, DOMAIN, dp.AlphaBeta(1, 0))
    for where, size in (({}, 60), ({"age": [30, 90.0], "answer": "no"}, 6), ({"place": "A"}, 20)):
        assert exact.count(where) == dp.Estimate(size, 0)


@examples(20, 200)
@given(parameters(), st.integers(0, 4), st.integers(0, 4))
def test_estimates_are_unbiased_with_the_stated_error(view, count, others):
    size, mean, square = count + others, 0, 0
    for seen, p in views_of(view, [1] * count + [0] * others).items():
        off = (sum(seen) - view.beta * size) / view.alpha - count
        mean, square = mean + p * off, square + p * off**2
    assert mean == 0
    assert view.standard_error(count, size) ** 2 == pytest.approx(float(square), rel=1e-12)
