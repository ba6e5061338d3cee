import math
from fractions import Fraction
from pathlib import Path
from random import SystemRandom

import numpy as np
import pytest
import yaml
from cases import counts as sizes
from flint import arb, ctx

import pufferflow as pf
from pufferflow.related.dp.base2_exponential import Base2Exponential, Base2Laplace, Eta, Seeded
from pufferflow.related.dp.laplace import Laplace
from reproduction import comparison
from reproduction.related import base2_exponential as study
from reproduction.related import base2_figures as figures
from reproduction.related import tables

HALF = Eta(1, 1, 1)
CONFIG = Path(__file__).parents[2] / "config/config.yaml"
SHIPPED = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["related"]["base2_exponential"]
SMALL = SHIPPED | {
    "loss_outcomes": [2, 16],
    "ranges": [1000, 2000],
    "noise_epsilons": [0.5, 2],
    "noise_draws": 50,
    "rounding_granularities": [0.5, 0.25],
    "precision_outcomes": [50, 100],
}
ATTACKS = study.all_attacks(30)


@pytest.fixture(scope="module")
def measured():
    return tables(study.measure(SMALL, 3))


@pytest.mark.parametrize(
    ("x", "y", "z", "words"),
    [
        (0, 1, 1, "x of η is 0; it must be an integer of at least 1"),
        (1, -2, 1, "y of η is -2"),
        (1, 1, 0, "z of η is 0"),
        (2, 1, 1, "x must be smaller than 2"),
        (1.5, 2, 1, "x of η is 1.5; it must be an integer"),
        (True, 2, 1, "x of η is True; it must be an integer"),
    ],
)
def test_bad_eta_is_one_sentence(x, y, z, words):
    with pytest.raises(pf.ParameterError, match=words):
        Eta(x, y, z)


@pytest.mark.parametrize(("x", "y", "z"), [(1, 1, 1), (3, 2, 5), (2**40 - 1, 40, 1), (6, 3, 2), (1, 30, 7)])
def test_loss_is_never_below_the_exact_value_and_tight(x, y, z):
    for factor in (1, 2, 6):
        loss = Eta(x, y, z).loss(factor)
        with ctx.workprec(2000):
            exact = -arb(factor * z) * (arb(x) / arb(2) ** y).log()
            assert arb(loss) >= exact
            assert arb(math.nextafter(loss, 0)) < exact
    assert Eta(x, y, z).value == pytest.approx(-z * math.log2(Fraction(x, 2**y)), rel=1e-9)
    assert Eta(x, y, z).base == Fraction(x, 2**y) ** z


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 3.7, 30.0])
@pytest.mark.parametrize("sensitivity", [1, 2, Fraction(3, 2)])
def test_for_epsilon_is_the_largest_eta_that_keeps_it(epsilon, sensitivity):
    eta = Eta.for_epsilon(epsilon, sensitivity, y=24)
    factor = 2 * math.ceil(sensitivity)
    assert eta.loss(factor) <= epsilon
    if eta.x > 1:
        assert Eta(eta.x - 1, 24).loss(factor) > epsilon


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "1"])
def test_for_epsilon_wants_a_positive_number(epsilon):
    with pytest.raises(pf.ParameterError, match="it must be a positive number"):
        Eta.for_epsilon(epsilon)


def test_for_epsilon_says_when_it_needs_more_bits():
    with pytest.raises(pf.ParameterError, match="raise y"):
        Eta.for_epsilon(1e-9)
    assert Eta.for_epsilon(1e-9, y=40).loss(2) <= 1e-9


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("1", 0, 5, 3), {}, "give Eta"),
        ((HALF, 5, 0, 3), {}, "utility_min = 5 exceeds utility_max = 0"),
        ((HALF, 0.5, 5, 3), {}, "utility_min is 0.5; it must be an integer"),
        ((HALF, 0, 5, 0), {}, "max_outcomes is 0"),
        ((HALF, 0, 5, 3), {"sensitivity": 0}, "sensitivity is 0; it must be positive"),
        ((HALF, 0, 5, 3), {"sensitivity": math.nan}, "sensitivity is nan"),
        ((HALF, 0, 5, 3), {"sampler": "fast"}, "choose from rejection, bitwise"),
        ((HALF, 0, 5, 3), {"minimum_attempts": 0}, "minimum_attempts is 0"),
        ((HALF, 0, 2**31, 3), {}, "narrow the range"),
    ],
)
def test_bad_arguments_are_one_sentence(arguments, options, words):
    with pytest.raises(pf.ParameterError, match=words) as caught:
        Base2Exponential(*arguments, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("utilities", "words"),
    [
        ([], "the set of outcomes is empty"),
        (np.array([]), "the set of outcomes is empty"),
        ([1, math.nan], "utility 1 is nan; it must be a finite number"),
        ([math.inf, 1], "utility 0 is inf; it must be a finite number"),
        ([1, None], "utility 1 is None"),
        ([[1, 2]], r"utility 0 is a list"),
        ([1] * 5, "5 outcomes, more than max_outcomes = 4"),
        (7, "give one number for each outcome"),
    ],
)
def test_bad_utilities_are_one_sentence(utilities, words):
    mechanism = Base2Exponential(HALF, 0, 5, 4)
    for use in (mechanism.release, mechanism.probabilities, mechanism.weights):
        with pytest.raises(pf.ParameterError, match=words):
            use(utilities)


def test_utilities_are_clamped_and_counted():
    mechanism = Base2Exponential(HALF, -2, 3, 6)
    found = mechanism.release([-7, -2.5, 0.5, 3, 3.25, 10**30])
    assert (found.clamped, found.rounded) == (4, 1)
    assert mechanism.probabilities([-7, 9]) == mechanism.probabilities([-2, 3]) == [Fraction(32, 33), Fraction(1, 33)]


def test_weights_are_exact_and_fit_the_precision():
    eta = Eta(6, 3, 2)
    mechanism = Base2Exponential(eta, -3, 4, 8)
    weights = mechanism.weights([-3, 0, 4, 4])
    assert all(isinstance(w, int) for w in weights)
    assert Fraction(weights[1], weights[0]) == eta.base**3
    assert Fraction(weights[2], weights[0]) == eta.base**7
    for other in (HALF, eta, Eta(5, 4, 3)):
        mechanism = Base2Exponential(other, -3, 4, 8)
        assert sum(mechanism.weights([-3] * 8)).bit_length() <= mechanism.precision
    with pytest.raises(pf.ParameterError, match="weights are of integer utilities"):
        mechanism.weights([0.5])


def test_the_number_of_releases_is_checked():
    with pytest.raises(pf.ParameterError, match="count is 0"):
        Base2Exponential(HALF, 0, 5, 4).releases([1], 0)


def test_exact_law_refuses_what_it_cannot_enumerate():
    mechanism = Base2Exponential(HALF, 0, 5, 20)
    with pytest.raises(pf.ParameterError, match=r"2\^20 ways to round"):
        mechanism.probabilities([0.5] * 20)


def test_epsilon_counts_the_normaliser_and_rounds_the_sensitivity_up():
    one = Base2Exponential(HALF, 0, 5, 3)
    assert one.epsilon == pytest.approx(2 * math.log(2), rel=1e-15)
    for sensitivity in (1.5, 2, Fraction(7, 5), np.float64(1.25)):
        two = Base2Exponential(HALF, 0, 5, 3, sensitivity=sensitivity)
        assert two.epsilon == pytest.approx(4 * math.log(2), rel=1e-15)


@pytest.mark.parametrize("sampler", ["rejection", "bitwise"])
def test_a_seed_repeats_and_nothing_else_does(sampler):
    def run(**options):
        return Base2Exponential(HALF, 0, 5, 64, sampler=sampler, **options).releases([1] * 64, 40)

    assert run(insecure_seed=1) == run(insecure_seed=1) != run(insecure_seed=2)
    assert run() != run()
    assert isinstance(Base2Exponential(HALF, 0, 5, 64)._random, SystemRandom)


@pytest.mark.parametrize("kind", [int, np.int64, np.int8, float, np.float32, Fraction])
def test_any_kind_of_number(kind):
    utilities = [kind(3), kind(0), kind(100)]
    mechanism = Base2Exponential(Eta(3, 2), 0, 100, 3)
    assert mechanism.probabilities(utilities) == mechanism.probabilities([3, 0, 100])
    if kind is not Fraction:
        assert mechanism.probabilities(np.array(utilities)) == mechanism.probabilities([3, 0, 100])


@pytest.mark.parametrize(
    ("utilities", "options"), [([4], {}), ([2, 2, 2, 2], {}), ([0, 5, 5], {"minimum_attempts": 9})]
)
def test_the_minimum_of_attempts_is_always_made(utilities, options):
    class Counting(SystemRandom):
        calls = 0

        def getrandbits(self, k):
            self.calls += 1
            return super().getrandbits(k)

    mechanism = Base2Exponential(HALF, 0, 5, 4, **options)
    mechanism._random = source = Counting()
    needed = []
    for _ in range(200):
        source.calls = 0
        mechanism.release(utilities)
        needed.append(source.calls)
    # a total weight that is a power of two is never rejected; [0, 5, 5] is, with probability 0.47
    minimum = options.get("minimum_attempts", 1)
    assert min(needed) == minimum
    assert needed.count(minimum) >= (180 if options else 200)


@pytest.mark.parametrize("span", sizes(10**5, 10**6))
def test_large_outcome_sets_and_ranges(span):
    mechanism = Base2Exponential(HALF, 0, 74_999, 75_000, insecure_seed=5)
    assert mechanism.precision < 75_020
    assert max(mechanism.releases(range(75_000), 50)) < 40
    wide = Base2Exponential(Eta(51_040, 16), 0, span, 3, sampler="bitwise", insecure_seed=5)
    assert wide.release([span, 0, span - 1]).index == 1


def test_laplace_on_a_grid():
    laplace = Base2Laplace(HALF, -2, 2, 0.5, sensitivity=2, insecure_seed=1)
    assert laplace.outcomes == [Fraction(i, 2) for i in range(-4, 5)]
    assert laplace.epsilon == pytest.approx(2 * math.log(2), rel=1e-15)
    law = laplace.probabilities(1)
    assert sum(law) == 1
    assert max(law) == law[6]
    assert laplace.probabilities(99) == laplace.probabilities(2)
    assert laplace.release(0.3) in [float(o) for o in laplace.outcomes]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((HALF, 1, 0, 0.5), "lower = 1 exceeds upper = 0"),
        ((HALF, 0, 1, 0), "granularity is 0; it must be positive"),
        ((HALF, 0, math.inf, 1), "upper is inf"),
        ((HALF, 0, 1, "a"), "granularity is a str"),
    ],
)
def test_bad_laplace_is_one_sentence(arguments, words):
    with pytest.raises(pf.ParameterError, match=words):
        Base2Laplace(*arguments)
    with pytest.raises(pf.ParameterError, match="the value is nan"):
        Base2Laplace(HALF, 0, 1, 1).release(math.nan)


@pytest.mark.parametrize("name", ["zero", "swapped", "truncated"])
def test_attacks_break_the_naive_mechanism_and_not_ours(name):
    attack = ATTACKS[name]
    there, absent = attack.utilities.values()
    assert max(abs(a - b) for a, b in zip(there, absent, strict=True)) == 1
    naive = study.distributions(attack, "naive")
    assert study.privacy_loss(*naive.values()) == math.inf
    assert naive["with Alice"][attack.watched] == 1
    assert naive["without Alice"][attack.watched] < 0.7
    ours = study.distributions(attack, "base-2")
    assert all(p > 0 for law in ours.values() for p in law)
    assert study.privacy_loss(*ours.values()) <= attack.epsilon


def test_two_outcomes_tell_the_database_for_sure():
    naive = study.distributions(ATTACKS["swapped"], "naive")
    assert naive == {"with Alice": [1, 0], "without Alice": [0, 1]}
    x = ATTACKS["zero"].utilities["without Alice"][0]
    assert np.exp(-0.25 * x) > 0 == np.exp(-0.25 * (x + 1))


def test_truncated_addition_hangs_on_the_order():
    first, last = ATTACKS["truncated"], ATTACKS["last"]
    assert study.privacy_loss(*study.distributions(first, "naive").values()) == math.inf
    assert study.privacy_loss(*study.distributions(last, "naive").values()) <= last.epsilon
    ours, reversed_ours = (study.distributions(attack, "base-2")["with Alice"] for attack in (first, last))
    assert ours == reversed_ours[::-1]


def test_tables_are_deterministic_and_compared(measured):
    curves, values = measured
    again = tables(study.measure(SMALL, 3))
    assert curves.equals(again[0])
    assert values.equals(again[1])
    assert curves.columns[0] == "panel"
    assert not curves["share"].equals(tables(study.measure(SMALL, 4))[0]["share"])
    compared = comparison.comparison_table(comparison.stated_rows(values, "base2_exponential")).data
    differing = compared[compared["verdict"] == "differs"]
    assert sorted(differing["ours"]) == ["0.644", "0.7213", "1025", "2.359 > 2 bits with 16 outcomes"]
    in_code = compared["origin"] == "author's code"
    assert compared["place"][in_code].str.match(r"cilvento/(b2dp|b2_exponential_mechanism), [\w/.]+").all()


def test_every_reported_value_has_a_computed_one():
    values = tables(study.measure(SHIPPED | {"noise_draws": 5}, 3))[1]
    reported = comparison.reported_values("base2_exponential")
    assert reported["key"].is_unique
    assert values["key"].is_unique
    rows = list(comparison.stated_rows(values, "base2_exponential"))
    assert len(rows) == len(reported)
    assert {row.verdict for row in rows} == {"reproduced", "differs", "not comparable"}
    by_key = values.set_index("key")["computed"]
    # the counts that the author's program comes to
    assert by_key["base2/precision/5000"] == "8192 of 15002"
    assert by_key["base2/precision/edge"] == "1025"
    assert by_key["base2/range/all exact sums"] == "linear"


def test_random_bits_taken_are_those_expected(measured):
    rows = measured[0][measured[0]["panel"] == "random bits"]
    assert set(rows["mechanism"]) == {"all exact sums", "rejection", "bitwise"}
    assert set(rows["outcomes"]) == {50, 100}
    for row in rows.itertuples():
        utilities = [0] * row.outcomes if row.outcome == "all equal" else range(row.outcomes)
        if row.mechanism == "all exact sums":  # s of p bits at once, and again while it is not below the total
            mechanism, source = Base2Exponential(HALF, 0, row.outcomes, row.outcomes), Seeded(3)
            total = sum(mechanism.weights(utilities))
            for _ in range(20):
                while source.getrandbits((total - 1).bit_length()) >= total:
                    pass
            taken = source.taken
        else:
            mechanism = Base2Exponential(HALF, 0, row.outcomes, row.outcomes, sampler=row.mechanism, insecure_seed=3)
            mechanism.releases(utilities, 20)
            taken = mechanism.random_bits
        # 20 draws; a rejected attempt doubles the bits of one
        assert 0.5 * row.expected_bits < taken / 20 < 2 * row.expected_bits
        assert row.expected_bits <= 2 * row.precision_bits or row.mechanism == "rejection"


def test_noise_in_doubles_alone_tells_the_value(measured):
    """The exact mechanism on a grid and the discrete Laplace give no output that one of two values cannot give."""
    shares = measured[0][measured[0]["panel"] == "floating noise"]
    assert set(shares["mechanism"]) == {"naive"}
    assert shares["share"].min() > 0.4
    for epsilon in shares["epsilon"]:
        base2 = Base2Laplace(Eta.for_epsilon(epsilon, y=24), -20, 21, 1)
        assert all(p > 0 for value in (0, 1) for p in base2.probabilities(value))
        far = math.ceil(40 / epsilon)
        assert all(Laplace(1, epsilon).probability(z) > 0 for z in range(-far - 1, far + 1))


def test_growth_is_counted(measured):
    rows = measured[0][measured[0]["panel"] == "growth, range"]
    stored = rows[rows["mechanism"] == "all exact sums"]
    # 1 + 999 weights that do not reach 1: every sum has one bit more than its binary places
    assert list(stored["bits"]) == [1000 * (span + 1) for span in stored["utility_range"]]
    enclosed = rows[rows["mechanism"] == "enclosed sums"]["bits"]
    assert enclosed.max() < 1.01 * enclosed.min()
    assert measured[1].set_index("key")["computed"]["base2/range/all exact sums"] == "linear"
    one = tables(study.measure(SMALL | {"ranges": [1000]}, 3))[1]["key"]
    assert not one.str.startswith("base2/range/").any()


def test_figures_are_drawn(measured):
    assert len(figures.figure(measured[0]).axes) == 4
    with pytest.raises(pf.DataError, match="no row"):
        figures.figure(measured[0].iloc[:0])


def test_connectors_are_level(measured):
    panel = figures.figure(measured[0]).axes[0]
    assert len(panel.lines) == 12
    assert all(line.get_ydata()[0] == line.get_ydata()[-1] for line in panel.lines)
