import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pufferflow import _randomness
from pufferflow.errors import DataError, ParameterError, PufferflowError
from pufferflow.related.dp.alpha_beta import AlphaBeta, choose_alpha_beta, publish
from pufferflow.related.dp.domains import Domain, first_occurrences

DOMAIN = Domain({"age": range(0, 100, 10), "answer": ["yes", "no"], "place": ("A", "B", "C")})
DATA = pd.DataFrame({"place": ["A", "B", "A"], "age": [30, 30, 90], "answer": ["yes", "yes", "no"]})
HALF = AlphaBeta(0.5, 0.1)


def test_the_published_set_lies_in_the_domain_in_its_order():
    found = publish(DATA, DOMAIN, HALF, insecure_seed=3)
    assert list(found.table.columns) == ["age", "answer", "place"]
    codes = DOMAIN.encode(found.table)
    assert codes.tolist() == sorted(codes.tolist())
    assert len(found.tuples()) == len(found.table) > 0
    assert found.table["age"].dtype.kind == "i"
    again = publish(DATA.iloc[::-1], DOMAIN, HALF, insecure_seed=3)
    assert len(again.table) > 0
    # without a seed two publications of a large domain differ
    big = Domain({"x": range(10**6)})
    assert publish({(1,)}, big, AlphaBeta(0.5, 1e-4)).tuples() != publish({(1,)}, big, AlphaBeta(0.5, 1e-4)).tuples()


def test_a_set_and_a_table_publish_the_same():
    rows = list(DATA[["age", "answer", "place"]].itertuples(index=False, name=None))
    one, two = (publish(data, DOMAIN, HALF, insecure_seed=9).tuples() for data in (DATA, rows))
    assert one == two


def test_keeping_all_and_inserting_all():
    assert publish(DATA, DOMAIN, AlphaBeta(1, 0)).tuples() == set(
        DATA[["age", "answer", "place"]].itertuples(index=False, name=None)
    )
    assert publish(DATA, DOMAIN, AlphaBeta(1, 0)).count({"age": 30}).count == 2
    empty = DATA.iloc[:0]
    assert len(publish(empty, DOMAIN, AlphaBeta(0.5, 0)).table) == 0
    # a dense publication: almost the whole domain, without repetition
    dense = publish(DATA, DOMAIN, AlphaBeta("0.01", "0.95"), insecure_seed=1)
    assert 45 < len(dense.tuples()) == len(dense.table) <= 60


@pytest.mark.parametrize(
    ("where", "domain_count"),
    [
        (None, 60),
        ({}, 60),
        ({"age": 30}, 6),
        ({"age": range(25, 61)}, 24),
        ({"age": [30, 90], "answer": "no"}, 6),
        ({"place": ["A", "A", "C"]}, 40),
        ({"age": range(500, 600)}, 0),
        ({"age": range(60, 25)}, 0),
    ],
)
def test_queries_count_rows_and_domain(where, domain_count):
    everything = DOMAIN.decode(np.stack(np.unravel_index(np.arange(60), DOMAIN.sizes), axis=1))
    mask, count = DOMAIN.selected(where or {}, everything)
    assert mask.sum() == count == domain_count
    found = publish(DATA, DOMAIN, HALF, insecure_seed=2).count(where)
    assert found.standard_error >= 0
    assert math.isfinite(found.count)


def test_descending_ranges_count_too():
    domain = Domain({"x": range(9, -1, -3)})
    assert domain.selected({"x": range(1, 7)}, domain.decode(np.arange(4)[:, None]))[1] == 2


@pytest.mark.parametrize("values", [range(9, -1, -3), range(-4, 11, 5), range(7, 8), range(3)])
def test_positions_in_a_range_are_those_of_python(values):
    domain = Domain({"x": values})
    for number in range(-20, 20):
        for kind in (np.int64, object):
            table = pd.DataFrame({"x": np.array([number], kind)})
            if number in values:
                assert domain.encode(table).tolist() == [[values.index(number)]]
            else:
                with pytest.raises(DataError, match="row 1 of the data has a value of x that"):
                    domain.encode(table)


def test_a_billion_tuples_take_the_work_of_the_data_and_the_insertions(monkeypatch):
    n = 50_000
    domain = Domain({"a": range(1000), "b": range(1, 100_001), "c": list("abcdefghij")})
    assert domain.size == 10**9
    places = np.random.default_rng(1).choice(domain.size, n, replace=False)
    data = domain.decode(np.stack(np.unravel_index(places, domain.sizes), axis=1))
    d, gamma = Fraction(2 * n, domain.size), Fraction(1, 2)
    parameters = choose_alpha_beta(d, gamma)
    taken = []
    source = _randomness.GeneratorRandomness
    take = source.take
    monkeypatch.setattr(source, "take", lambda self, size: taken.append(size) or take(self, size))
    tracemalloc.start()
    try:
        found = publish(data, domain, parameters, insecure_seed=1)
        _, memory = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    rows = n + float(parameters.beta) * domain.size
    assert sum(taken) < 100 * rows  # random bytes; measured: 24 a row
    assert len(taken) < 100  # calls, each for many rows at once; measured: 25
    assert memory < 1000 * rows  # bytes; measured: 170 a row
    assert abs(len(found.table) - n - float(parameters.beta) * domain.size) < 5 * math.sqrt(3 * n)
    for where, truth in (({"c": "a"}, (data["c"] == "a").sum()), ({"a": range(500)}, (data["a"] < 500).sum())):
        estimate = found.count(where)
        assert abs(estimate.count - truth) < 5 * estimate.standard_error


def test_domains_beyond_64_bits_work():
    domain = Domain({f"c{i}": range(10**6) for i in range(6)})
    data = domain.decode(np.arange(60, dtype=np.int64).reshape(10, 6))
    parameters = choose_alpha_beta(Fraction(100, domain.size), "0.5")
    found = publish(data, domain, parameters, insecure_seed=4)
    assert 50 < len(found.table) < 200
    assert found.count().count == pytest.approx(10, abs=60)


def test_first_occurrences():
    rng = np.random.default_rng(0)
    for columns, high in ((1, 3), (2, 4), (3, 2**40)):
        codes = rng.integers(0, high, (50, columns)) // (2**38 if high > 10 else 1)
        expected = [i for i, row in enumerate(codes.tolist()) if row not in codes[:i].tolist()]
        assert first_occurrences(codes).tolist() == expected
    assert first_occurrences(np.empty((0, 3), np.int64)).size == 0


def test_the_loss_of_the_best_parameters():
    for d, gamma in (("0.01", "0.3"), ("0.2", "0.9"), ("1e-300", "0.5")):
        d, gamma = Fraction(d), Fraction(gamma)
        logits = [
            math.log(p.numerator)
            - math.log((1 - p).numerator)
            - math.log(p.denominator)
            + math.log((1 - p).denominator)
            for p in (d, gamma)
        ]
        assert choose_alpha_beta(d, gamma).epsilon == pytest.approx(logits[1] - logits[0], rel=1e-9)
    assert AlphaBeta(0.5, 0).epsilon == AlphaBeta(0.5, 0.5).epsilon == math.inf


def test_rho():
    m, n, gamma = 10**12, 1000, Fraction(1, 100)
    rho = choose_alpha_beta(Fraction(4 * n, m), gamma).rho(n, m)
    # √(k/γ) is the limit for small γ; the exact one is √(k(1−γ)/γ)
    assert rho == pytest.approx(math.sqrt(4 * 99), rel=1e-4)
    assert rho < math.sqrt(4 / gamma)
    parameters = choose_alpha_beta(Fraction(4 * n, m), gamma)
    assert parameters.rho(n, m, 0.05) > parameters.rho(n, m, 0.5) > rho
    rng = np.random.default_rng(3)
    counts = rng.binomial(n, float(parameters.keep), 4000) + rng.binomial(m - n, float(parameters.beta), 4000)
    errors = np.abs((counts - float(parameters.beta * m)) / float(parameters.alpha) - n)
    for failure in (0.3, 0.05, 0.01):
        assert (errors > parameters.rho(n, m, failure) * math.sqrt(n)).mean() < failure


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AlphaBeta(0.7, 0.4), "alpha \\+ beta is 1.1"),
        (lambda: AlphaBeta(-0.1, 0.4), "alpha is .*; it must be a probability"),
        (lambda: AlphaBeta(0.1, 1.4), "beta is .*; it must be a probability"),
        (lambda: AlphaBeta(0.1, "x"), "beta is .*; it must be a number"),
        (lambda: AlphaBeta(float("nan"), 0), "alpha is .*; it must be a number"),
        (lambda: AlphaBeta(True, 0), "alpha is .*; it must be a probability"),
        (lambda: AlphaBeta(0, 0.5), "alpha is 0"),
        (lambda: choose_alpha_beta(0.5, 0.2), "0 < d ≤ gamma"),
        (lambda: choose_alpha_beta(0, 0.2), "0 < d ≤ gamma"),
        (lambda: choose_alpha_beta(0.2, 0.2), "raise gamma"),
        (lambda: choose_alpha_beta(0.2, 1.2), "gamma is .*; it must be a probability"),
        (
            lambda: choose_alpha_beta(0.1, 0.2, conditions="tight"),
            "conditions is 'tight'; choose from exact, published",
        ),
        (lambda: HALF.rho(5, 4), "n is 5, m is 4"),
        (lambda: HALF.rho(5, 40, 1.0), "failure is 1.0; it must lie"),
        (lambda: AlphaBeta(1, 0).posterior(0, published=True), "no posterior"),
        (lambda: Domain({}), "no column"),
        (lambda: Domain({"a": []}), "has no value"),
        (lambda: Domain({"a": "yes"}), "sequence of values"),
        (lambda: Domain({"a": 3}), "sequence of values"),
        (lambda: Domain({"a": [1, 2, 1]}), "declares 1 twice"),
        (lambda: Domain({"a": range(2**63 - 1)}), "more than 2\\^62"),
        (lambda: publish(DATA.assign(z=1), DOMAIN, HALF), "column 'z' of the data is not in the domain"),
        (lambda: publish(DATA.drop(columns="age"), DOMAIN, HALF), "column 'age' of the domain is not in the data"),
        (lambda: publish(DATA[["age", "age", "answer", "place"]], DOMAIN, HALF), "occurs twice"),
        (lambda: publish(DATA.assign(age=35), DOMAIN, HALF), "row 1 of the data has a value of age"),
        (lambda: publish(DATA.assign(age=[30, 30.5, 90]), DOMAIN, HALF), "row 2 of the data has a value of age"),
        (lambda: publish(DATA.assign(age=["30", "30", "90"]), DOMAIN, HALF), "row 1 of the data has a value of age"),
        (lambda: publish(DATA.assign(place=["A", None, "B"]), DOMAIN, HALF), "row 2 of the data has a value of place"),
        (lambda: publish(DATA.assign(age=[30, np.nan, 90]), DOMAIN, HALF), "row 2 of the data has a value of age"),
        (lambda: publish(pd.concat([DATA, DATA.iloc[[1]]]), DOMAIN, HALF), "row 4 of the data repeats"),
        (lambda: publish({(1,), (2,), (3,)}, Domain({"a": [1, 2]}), HALF), "3 rows, the declared domain only 2"),
        (lambda: publish({(1, 2)}, Domain({"a": [1, 2]}), HALF), "not a tuple of the 1 columns"),
        (lambda: publish(["a"], Domain({"a": ["a", "b"]}), HALF), "not a tuple of the 1 columns"),
        (lambda: publish(set(), Domain({"a": range(10**12)}), HALF), "would be inserted"),
        (lambda: publish(DATA, DOMAIN, HALF, insecure_seed=-1), "insecure_seed"),
        (lambda: publish(DATA, DOMAIN, HALF, insecure_seed=0.5), "insecure_seed"),
        (lambda: publish(DATA, DOMAIN, HALF).count({"zip": 1}), "column 'zip'"),
        (lambda: publish(DATA, DOMAIN, HALF).count({"age": 31}), "age = 31"),
        (lambda: publish(DATA, DOMAIN, HALF).count({"age": range(0, 50, 5)}), "step 1"),
        (lambda: publish(DATA, DOMAIN, HALF).estimate([True], 3), "one truth value a published row"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(PufferflowError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ParameterError | DataError)


def test_estimates_of_any_query():
    found = publish(DATA, DOMAIN, HALF, insecure_seed=5)
    either = (found.table["age"] == 30) | (found.table["place"] == "A")
    estimate = found.estimate(either, 6 + 20 - 2)
    assert estimate.count == pytest.approx((either.sum() - 0.1 * 24) / 0.5)
    with pytest.raises(DataError, match="domain_count is 61"):
        found.estimate(either, 61)
