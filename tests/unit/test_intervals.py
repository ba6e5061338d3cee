from itertools import pairwise

import numpy as np
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.mechanisms import compute_scale
from pufferflow.models import model_document, parse_model, read_model, write_model

LOW = [[0.2, 0.1, 0.0], [0.1, 0.3, 0.1], [0.25, 0.25, 0.25]]
HIGH = [[0.9, 0.5, 0.2], [0.6, 0.6, 0.6], [0.5, 0.5, 0.5]]


def point(matrix):
    return pf.IntervalFamily(matrix, matrix)


# -- the family --------------------------------------------------------------------------------------


def test_bounds_are_made_as_tight_as_the_row_sums_allow():
    family = pf.IntervalFamily([[0.6, 0.0], [0.0, 0.0]], [[1, 1], [0.3, 1]])
    assert family.low == pytest.approx(np.array([[0.6, 0], [0, 0.7]]))
    assert family.high == pytest.approx(np.array([[1, 0.4], [0.3, 1]]))
    assert family.high[0, 1] >= 0.4
    assert family.low[1, 1] <= 0.7
    assert family.states == 2
    assert repr(family) == "IntervalFamily(2 states)"
    with pytest.raises(ValueError, match="read-only"):
        family.low[0, 0] = 0.1


def test_tightening_twice_changes_nothing():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        centre = rng.dirichlet(np.ones(k), size=k)
        once = pf.IntervalFamily(centre * rng.random((k, k)), np.minimum(centre + rng.random((k, k)), 1))
        twice = pf.IntervalFamily(once.low, once.high)
        assert np.array_equal(once.low, twice.low)
        assert np.array_equal(once.high, twice.high)


def test_contains():
    family = pf.IntervalFamily(LOW, HIGH)
    assert family.contains(pf.MarkovChain([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.5, 0.25, 0.25]]))
    assert not family.contains(pf.MarkovChain([[0.6, 0.15, 0.25], [0.3, 0.4, 0.3], [0.5, 0.25, 0.25]]))
    assert not family.contains(pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]]))


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([[0.5, 0.6], [0, 0]], [[1, 1], [1, 1]], "row 1: the lower bounds sum to 1.1, above 1; lower some of them"),
        ([[0, 0], [0, 0]], [[1, 1], [0.5, 0.4]], "row 2: the upper bounds sum to 0.9, below 1; raise some of them"),
        ([[0, 0.5], [0, 0]], [[1, 0.4], [1, 1]], "row 1, column 2: low 0.5 is above high 0.4; exchange or mend them"),
        (
            [[0, -0.1], [0, 0]],
            [[1, 1], [1, 1]],
            "low has no probability in row 1, column 2; each must lie between 0 and 1",
        ),
        ([[0, 0], [0, 0]], [[1, 1], [np.nan, 1]], "high has no probability in row 2, column 1"),
        ([[0, 0], [0, 0]], [[1, 1.5], [1, 1]], "high has no probability in row 1, column 2"),
        ([[0, 0]], [[1, 1]], r"low must be a square matrix, not of shape \(1, 2\); one row a state"),
        ([], [], "low must be a square matrix"),
        ([[0]], [[1, 1], [1, 1]], "low has 1 rows and high 2; give both for the same states"),
        ([[0], [0, 1]], [[1, 1], [1, 1]], "low must be numbers in rows of equal length"),
        ([["a"]], [[1]], "low must be numbers in rows of equal length"),
    ],
)
def test_impossible_families(low, high, message):
    with pytest.raises(pf.ChainError, match=message):
        pf.IntervalFamily(low, high)


def test_a_distribution_may_miss_1_by_rounding():
    row = [0.1] * 10
    family = point([row] * 10)
    assert pf.leakage(family, 50, 1.0).scale == pytest.approx(1, rel=1e-9)
    assert point([[1 / 3] * 3] * 3).low.sum() == pytest.approx(3)


@pytest.mark.parametrize("name", ["mqm-exact", "mqm-approx", "gk16"])
def test_other_mechanisms_refuse(name):
    message = "this needs finitely many chains, which a family between bounds does not have; use leakage"
    with pytest.raises(pf.ChainError, match=message):
        pf.MECHANISMS[name](pf.IntervalFamily(LOW, HIGH), 10, 1.0)
    refused = compute_scale(name, pf.IntervalFamily(LOW, HIGH), 10, 1.0)
    assert refused.status == "not applicable"
    assert message in refused.reason
    with pytest.raises(pf.ChainError, match="use leakage"):
        pf.IntervalFamily(LOW, HIGH).eigengap("auto")
    with pytest.raises(pf.ChainError, match="use leakage"):
        pf.IntervalFamily(LOW, HIGH).smallest_stationary_probability()


@pytest.mark.parametrize("name", ["entry-dp", "group-dp"])
def test_mechanisms_that_need_no_family_serve_it(name):
    family = pf.IntervalFamily(LOW, HIGH)
    assert pf.MECHANISMS[name](family, 10, 1.0) == pf.MECHANISMS[name](pf.BinaryInterval(0.3, 0.7), 10, 1.0)


# -- the scale ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_single_chain_is_bounded_closely(k):
    matrix = (np.random.default_rng(k).dirichlet(np.ones(k), size=k) + np.eye(k)) / 2
    exact = pf.leakage(pf.MarkovChain(matrix, "any"), 10**6, 1.0).scale
    assert exact * (1 - 1e-6) <= pf.leakage(point(matrix), 10**6, 1.0).scale <= 1.15 * exact


@pytest.mark.parametrize(("low", "high"), [(0.4, 0.6), (0.3, 0.7), (0.2, 0.6)])
def test_beside_the_proved_supremum_of_a_binary_interval(low, high):
    proved = pf.leakage(pf.BinaryInterval(low, high), 100, 1.0).scale
    family = pf.IntervalFamily([[low, 1 - high], [1 - high, low]], [[high, 1 - low], [1 - low, high]])
    assert proved * (1 - 1e-6) <= pf.leakage(family, 100, 1.0).scale <= 1.3 * proved


def test_low_0_gives_a_bound_once_all_states_are_reached():
    low = [[0.3, 0.3, 0], [0.2, 0.2, 0.2], [0, 0.3, 0.3]]
    high = [[0.7, 0.7, 0.1], [0.6, 0.6, 0.6], [0.1, 0.7, 0.7]]
    assert pf.leakage(pf.IntervalFamily(low, high), 10**9, 1.0).scale < 1000


@pytest.mark.parametrize("length", [1, 2, 3, 10])
def test_short_chains(length):
    scale = pf.leakage(pf.IntervalFamily(LOW, HIGH), length, 1.0).scale
    assert 1 <= scale <= length


def test_one_state():
    assert pf.leakage(pf.IntervalFamily([[0.5]], [[1]]), 100, 0.5).scale == pytest.approx(2)


# -- confidence --------------------------------------------------------------------------------------


def test_confidence_intervals_by_their_definition():
    counts = np.array([[30, 10], [0, 7]])
    family = pf.confidence_family(counts, 0.9)
    from scipy.stats import betabinom, binom

    def evidence(s, n, p):
        return betabinom.pmf(s, n, 0.5, 0.5) / binom.pmf(s, n, p)

    assert evidence(30, 40, family.high[0, 0]) == pytest.approx(2 / 0.1, rel=1e-6)
    assert evidence(30, 40, family.low[0, 0]) == pytest.approx(2 / 0.1, rel=1e-6)
    assert evidence(0, 7, family.high[1, 0]) == pytest.approx(2 / 0.1, rel=1e-6)
    assert family.low[1, 0] == 0
    assert family.high[1, 1] == 1


def test_more_counts_narrow_and_more_coverage_widens():
    counts = np.array([[30, 10, 5], [3, 8, 1], [4, 4, 4]])
    widths = [
        pf.confidence_family(times * counts, coverage)
        for times, coverage in ((10, 0.9), (1, 0.9), (1, 0.99), (1, 0.9999))
    ]
    for inner, outer in pairwise(widths):
        assert (outer.high - outer.low > inner.high - inner.low).all()


def test_a_state_never_left_gets_the_full_simplex():
    family = pf.confidence_family(np.array([[5, 1, 0], [0, 0, 0], [2, 2, 2]]))
    assert family.low[1].tolist() == [0, 0, 0]
    assert family.high[1].tolist() == [1, 1, 1]
    assert (family.high[0] < 1).all() or family.high[0, 2] < 1


def test_large_counts_keep_the_estimate_inside():
    family = pf.confidence_family(np.array([[10**9, 10**3], [10**6, 10**9]]))
    assert family.low[0, 1] < 1e-6 < family.high[0, 1]
    assert family.high[0, 1] < 1.5e-6


@pytest.mark.parametrize("records", counts(100, 400))
@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_coverage_on_simulated_chains(coverage, records):
    """At least the stated share of records (a binomial test at four standard deviations)."""
    rng = np.random.default_rng(3)
    matrix = np.array([[0.9, 0.08, 0.02], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]])
    chain = pf.MarkovChain(matrix, [1, 0, 0])
    hits = narrow = 0
    for _ in range(records):
        states = chain.simulate(200, rng)
        seen = np.zeros((3, 3), dtype=np.int64)
        np.add.at(seen, (states[:-1], states[1:]), 1)
        hits += pf.confidence_family(seen, coverage).contains(chain, 0)
        narrow += pf.confidence_family(np.asarray(seen * 20), coverage).contains(chain, 0)
    assert hits / records >= coverage - 4 * np.sqrt(coverage * (1 - coverage) / records)
    assert narrow / records < 0.5  # overstated counts miss it, so the test can fail


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -1, "0.9", None, float("nan")])
def test_coverage_must_be_a_probability(coverage):
    with pytest.raises(pf.ParameterError, match="it must lie between 0 and 1, for example"):
        pf.confidence_family(np.ones((2, 2), dtype=int), coverage)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.ones((2, 3), dtype=int), r"shape \(2, 3\); give one row and one column a state"),
        (np.ones((2, 2)), "must be integers of at least 0; give counts, not frequencies"),
        (np.array([[1, -1], [0, 0]]), "must be integers of at least 0"),
        (np.zeros((0, 0), dtype=int), "shape"),
    ],
)
def test_bad_counts(counts, message):
    with pytest.raises(pf.DataError, match=message):
        pf.confidence_family(counts)


# -- model files -------------------------------------------------------------------------------------


def test_model_files_give_the_family_back_exactly(tmp_path):
    for family in (pf.IntervalFamily(LOW, HIGH), pf.confidence_family(np.array([[5, 1, 0], [0, 0, 0], [2, 2, 2]]))):
        again = read_model(write_model(tmp_path / "model.json", family))
        assert isinstance(again, pf.IntervalFamily)
        assert np.array_equal(again.low, family.low)
        assert np.array_equal(again.high, family.high)
        assert model_document(again) == model_document(family)


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ([LOW, HIGH], "interval must be an object with low and high, not a list"),
        ({"low": LOW}, "interval has no high; give its fields low, high, backward"),
        ({"low": LOW, "high": 1}, "interval: high must be a list of rows, each a list of numbers"),
        ({"low": [["0", 0]], "high": HIGH}, "interval: low must be a list of rows"),
        ({"low": LOW, "high": HIGH, "start": "any"}, "interval has the unknown key 'start'; allowed are low, high"),
        ({"low": HIGH, "high": HIGH}, "interval: row 1: the lower bounds sum to 1.6, above 1"),
    ],
)
def test_bad_models(interval, message):
    with pytest.raises((pf.ModelError, pf.ChainError), match=message):
        parse_model({"interval": interval})


def test_one_kind_of_family_a_model():
    with pytest.raises(pf.ModelError, match="exactly one of the keys chains, binary_interval, interval, total_var"):
        parse_model({"interval": {"low": LOW, "high": HIGH}, "binary_interval": [0.3, 0.7]})
