"""Classical mechanisms: exact privacy, which fails when the noise is halved, and their other claims."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from pufferflow.errors import DataError, ParameterError, PufferflowError
from pufferflow.related.dp.exponential import Exponential
from pufferflow.related.dp.laplace import Laplace
from pufferflow.related.dp.randomised_response import RandomisedResponse
from pufferflow.related.dp.weighted_majority import ACCOUNTS, WeightedMajority, private_rate

EPSILONS = (0.01, 0.3, 1.0, 4.0)


# -- randomised response -------------------------------------------------------------------------


def response_loss(response):
    pairs = itertools.product(response.categories, repeat=3)
    ratio = max(response.probability(a, x) / response.probability(a, y) for a, x, y in pairs)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


@pytest.mark.parametrize("categories", [("yes", "no"), ("a", "b", "c", "d", "e")])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomised_response_spends_its_epsilon_and_no_more(categories, epsilon):
    response = RandomisedResponse.for_epsilon(categories, epsilon)
    exact = response_loss(response)
    assert epsilon * (1 - 1e-9) < exact <= epsilon * (1 + 1e-12)
    assert exact * (1 - 1e-12) <= response.epsilon <= epsilon
    for truth in categories:
        assert sum(response.probability(a, truth) for a in categories) == 1
    halved = RandomisedResponse(categories, (1 + response.truth) / 2)
    assert response_loss(halved) > epsilon


def test_two_coins_are_ln_3_private():
    coins = RandomisedResponse(("yes", "no"), 0.75)
    assert coins.probability("yes", "yes") == Fraction(3, 4)
    assert response_loss(coins) == pytest.approx(math.log(3), rel=1e-15)
    assert coins.epsilon == pytest.approx(math.log(3), rel=1e-15)


def test_the_estimate_of_randomised_response_is_unbiased():
    response = RandomisedResponse(("a", "b", "c"), 0.5)
    truth = ["a", "a", "b"]
    mean = {c: Fraction(0) for c in response.categories}
    square = Fraction(0)
    for answers in itertools.product(response.categories, repeat=3):
        p = math.prod(response.probability(a, t) for a, t in zip(answers, truth, strict=True))
        counts = response.estimate(answers).set_index("category")["count"]
        for c in mean:
            mean[c] += p * Fraction(counts[c])
        square += p * Fraction(counts["a"]) ** 2
    assert [float(mean[c]) for c in "abc"] == pytest.approx([2, 1, 0], abs=1e-12)
    assert response.standard_error(2, 3) == pytest.approx(math.sqrt(square - mean["a"] ** 2), rel=1e-12)


# -- Laplace -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [1.0, 3.0])
def test_laplace_spends_its_epsilon_and_no_more(sensitivity, epsilon):
    mechanism, halved = Laplace(sensitivity, epsilon), Laplace(sensitivity / 2, epsilon)
    step = int(sensitivity)

    def loss(noise):
        return max(math.log(noise.probability(z) / noise.probability(z + step)) for z in range(-5, 6))

    assert epsilon * (1 - 1e-9) < loss(mechanism) <= epsilon * (1 + 1e-9)
    assert loss(halved) > 1.9 * epsilon
    # what OpenDP promises
    assert mechanism.measurement(whole=True).map(step) <= epsilon
    assert epsilon < mechanism.measurement(whole=False).map(2 * sensitivity) <= 2 * epsilon
    reach = int(60 * mechanism.scale) + 60
    law = {z: mechanism.probability(z) for z in range(-reach, reach + 1)}
    assert sum(law.values()) == pytest.approx(1, rel=1e-12)
    variance = sum(p * z * z for z, p in law.items())
    assert mechanism.standard_error() == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_laplace_keeps_types():
    mechanism = Laplace(1.0, 50.0)
    assert mechanism.release([3, -4]) == [3, -4]
    assert mechanism.release([0.5]) == pytest.approx([0.5], abs=2)
    assert mechanism.release([]) == []
    assert all(isinstance(value, int) for value in mechanism.release(np.arange(3)))
    assert Laplace(np.int64(2), np.float32(0.5)).scale == pytest.approx(4)


# -- exponential ---------------------------------------------------------------------------------


def exponential_loss(mechanism, sensitivity):
    """Largest loss over utilities on a grid and all changes of them by up to the sensitivity."""
    loss = 0.0
    for gap in (0.0, 1.0, 30 * mechanism.scale):
        before = np.array([0.0, gap, 0.3 * gap])
        for change in itertools.product((-sensitivity, 0.0, sensitivity), repeat=3):
            p, q = mechanism.probabilities(before), mechanism.probabilities(before + change)
            loss = max(loss, np.abs(np.log(p / q)).max())
    return loss


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sensitivity", [0.5, 2.0])
def test_exponential_spends_its_epsilon_and_no_more(sensitivity, epsilon):
    mechanism, halved = Exponential(sensitivity, epsilon), Exponential(sensitivity, 2 * epsilon)
    assert epsilon * (1 - 1e-6) < exponential_loss(mechanism, sensitivity) <= epsilon * (1 + 1e-9)
    assert exponential_loss(halved, sensitivity) > 1.9 * epsilon


@pytest.mark.parametrize("outcomes", [2, 3, 10, 1000])
def test_the_worst_shortfall_is_attained_and_never_exceeded(outcomes):
    mechanism = Exponential(1.0, 0.7)
    worst = mechanism.worst_shortfall(outcomes)
    assert worst < mechanism.shortfall_bound(outcomes)
    gap = worst + mechanism.scale
    assert mechanism.expected_shortfall([gap] + [0.0] * (outcomes - 1)) == pytest.approx(worst, rel=1e-9)
    rng = np.random.default_rng(outcomes)
    for _ in range(100):
        utilities = rng.exponential(gap, outcomes) * rng.integers(0, 2, outcomes)
        assert mechanism.expected_shortfall(utilities) <= worst * (1 + 1e-12)


def test_exponential_releases_positions():
    assert Exponential(1.0, 500.0).release([1.0, 9.0, 2.0], count=4) == [1, 1, 1, 1]
    assert Exponential(1.0, 1.0).release([5]) == [0]


# -- weighted majority ---------------------------------------------------------------------------


def joint_law(learner, losses):
    """Probability of every sequence of choices."""
    before = np.vstack([np.zeros(learner.experts), np.cumsum(losses, axis=0)[:-1]])
    rounds = learner.probabilities(before)
    return np.array(
        [math.prod(row[c] for row, c in zip(rounds, choice, strict=True)) for choice in _choices(learner, losses)]
    )


def _choices(learner, losses):
    return itertools.product(range(learner.experts), repeat=len(losses))


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def neighbours(rounds, lead):
    """Loss tables that differ in the first round, after which one expert keeps a lead."""
    table = np.zeros((rounds, 2))
    table[1:, 0] = lead
    one, two = table.copy(), table.copy()
    one[0], two[0] = (1, 0), (0, 1)
    return one, two


def test_one_choice_of_weighted_majority_is_two_eta_private():
    for rate in (0.01, 0.5, 3.0):
        for lead in (0.0, 1.0, 30 / rate):
            pairs = [([lead + 1, 0.0], [lead, 1.0]), ([lead + 1, 1.0], [lead, 0.0])]
            for one, two in pairs:
                for factor, limit in ((1, 2 * rate), (2, 4 * rate)):
                    learner = WeightedMajority(2, rate * factor)
                    loss = np.abs(np.log(learner.probabilities(one) / learner.probabilities(two))).max()
                    assert loss <= limit * (1 + 1e-12)
    # attained in the limit, so half the noise breaks it
    learner = WeightedMajority(2, 1.0)
    p, q = learner.probabilities([31.0, 0.0]), learner.probabilities([30.0, 1.0])
    assert np.abs(np.log(p / q)).max() > 1.99


def test_the_pure_account_holds_and_fails_with_half_the_noise():
    """The choices after a changed round, made while one expert leads by 40 losses: the trailing one leaks most."""
    rounds = 6
    one, two = (np.add(np.cumsum(table, axis=0)[:-1], [40.0, 0.0]) for table in neighbours(rounds, 1.0))
    limit = WeightedMajority(2, 1.0).epsilon(rounds, account="pure")
    assert limit == pytest.approx(2 * 5)
    for rate, holds in ((1.0, True), (2.0, False)):
        learner = WeightedMajority(2, rate)
        losses = np.abs(np.log(learner.probabilities(one) / learner.probabilities(two))).max(axis=1)
        assert losses.sum() > 0.99 * 10 * rate
        assert bool(losses.sum() <= limit) is holds


@pytest.mark.parametrize("delta", [1e-6, 0.05])
def test_the_approximate_accounts_hold_on_all_sequences(delta):
    for rounds in (2, 5, 9):
        for lead in (0.0, 1.0):
            one, two = neighbours(rounds, lead)
            for account in ("published", "zcdp"):
                rate = private_rate(0.5, rounds, delta, account=account)
                learner = WeightedMajority(2, rate)
                p, q = joint_law(learner, one), joint_law(learner, two)
                assert p.sum() == pytest.approx(1)
                assert hockey_stick(p, q, 0.5) <= delta
                assert hockey_stick(q, p, 0.5) <= delta


def test_the_zcdp_account_is_that_of_the_renyi_divergences():
    """Each choice is η²/2-zCDP: D_a ≤ a η²/2 for all orders, over many pairs; not with η doubled."""
    rng = np.random.default_rng(1)
    broken = 0
    for _ in range(300):
        k, rate = int(rng.integers(2, 6)), float(rng.uniform(0.01, 2))
        sums = rng.uniform(0, 3 / rate, k)
        change = rng.choice([-1.0, 0.0, 1.0], k)
        for factor in (1.0, 2.0):
            learner = WeightedMajority(k, rate * factor)
            p, q = learner.probabilities(sums), learner.probabilities(sums + change)
            for order in (1.01, 2.0, 10.0):
                divergence = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
                if factor == 1:
                    assert divergence <= order * rate**2 / 2 + 1e-12
                else:
                    broken += divergence > order * rate**2 / 2
    assert broken > 100


def test_accounts_and_rates_are_inverse():
    for account in ACCOUNTS:
        delta = 0.0 if account == "pure" else 1e-6
        for epsilon in (0.01, 0.5, 1.0):
            for rounds in (2, 100, 10**6):
                rate = private_rate(epsilon, rounds, delta, account=account)
                loss = WeightedMajority(2, rate).epsilon(rounds, delta, account=account)
                assert epsilon * (1 - 1e-9) < loss <= epsilon
    published, zcdp = (private_rate(1, 1000, 1e-6, account=a) for a in ("published", "zcdp"))
    assert published == pytest.approx(1 / math.sqrt(32 * 1000 * math.log(1e6)), rel=1e-9)
    assert zcdp > 3.8 * published
    assert WeightedMajority(2, 0.1).epsilon(1, account="pure") == 0


def test_regret_stays_below_the_corrected_bound_and_above_the_printed_one():
    rng = np.random.default_rng(2)
    experts, rounds = 10, 400
    perfect = np.ones((rounds, experts))
    perfect[:, 0] = 0
    random = [rng.random((rounds, experts)) * rng.random(experts) for _ in range(5)]
    for rate in (0.005, 0.05, 0.5):
        learner = WeightedMajority(experts, rate)
        for losses in (perfect, *random):
            assert learner.regret(losses) <= learner.regret_bound(rounds, sharper=True) <= learner.regret_bound(rounds)
    # the misprint ln k/(nT) with n records would promise this much
    assert WeightedMajority(experts, 0.005).regret(perfect) > 0.005 + math.log(experts) / (rounds * rounds)
    tuned = WeightedMajority.tuned(experts, rounds)
    assert tuned.regret_bound(rounds) == pytest.approx(2 * math.sqrt(math.log(experts) / rounds))


def test_regret_is_the_expectation_over_all_sequences():
    losses = np.random.default_rng(4).random((5, 3))
    learner = WeightedMajority(3, 0.9)
    law = joint_law(learner, losses)
    totals = [losses[np.arange(5), list(choice)].sum() for choice in _choices(learner, losses)]
    expected = (law @ totals - losses.sum(axis=0).min()) / 5
    assert learner.regret(losses) == pytest.approx(expected, rel=1e-12)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RandomisedResponse(("a",), 1.0), "two or more distinct"),
        (lambda: RandomisedResponse(("a", "a"), 0.7), "two or more distinct"),
        (lambda: RandomisedResponse((1, 2), 0.7), "must be texts"),
        (lambda: RandomisedResponse(("a", "b"), 0.3), "truth is .*; it must be"),
        (lambda: RandomisedResponse(("a", "b"), 1.0), "truth is .*; it must be"),
        (lambda: RandomisedResponse(("a", "b"), math.nan), "truth is .*; it must be"),
        (lambda: RandomisedResponse(("a", "b"), 0.7).release(["a", "c"]), "answer 2 is none of the categories"),
        (lambda: RandomisedResponse(("a", "b"), 0.7).estimate(["c"]), "answer 1 is none of the categories"),
        (lambda: RandomisedResponse(("a", "b"), 0.5).estimate(["a"]), "no estimate"),
        (lambda: RandomisedResponse(("a", "b"), 0.7).probability("a", "z"), "'z' is none"),
        (lambda: RandomisedResponse.for_epsilon(("a", "b"), 0), "epsilon is .*; it must be"),
        (lambda: RandomisedResponse.for_epsilon((), 1), "two or more distinct"),
        (lambda: Laplace(0, 1), "sensitivity is .*; it must be"),
        (lambda: Laplace(True, 1), "sensitivity is .*; it must be"),
        (lambda: Laplace(1, -1), "epsilon is .*; it must be"),
        (lambda: Laplace(1, math.inf), "epsilon is .*; it must be"),
        (lambda: Laplace(1e300, 1e-300), "sensitivity / epsilon is .*; it must be"),
        (lambda: Laplace(1, 1).release([1, 2.5]), "all int or all finite float"),
        (lambda: Laplace(1, 1).release([math.nan]), "all int or all finite float"),
        (lambda: Laplace(1, 1).release([2**63]), "within"),
        (lambda: Exponential(1, "1"), "epsilon is .*; it must be"),
        (lambda: Exponential(1, 1).release([]), "utilities"),
        (lambda: Exponential(1, 1).probabilities([1, math.inf]), "utilities"),
        (lambda: WeightedMajority(0, 1), "experts is .*; it must be"),
        (lambda: WeightedMajority(2, 0), "rate is .*; it must be"),
        (lambda: WeightedMajority.tuned(1, 5), "nothing to learn"),
        (lambda: WeightedMajority(2, 1).play([[0, 2]]), "expert 2 in round 1 is not in"),
        (lambda: WeightedMajority(2, 1).play([[0, 1, 1]]), "shape"),
        (lambda: WeightedMajority(2, 1).regret([[0, math.nan]]), "expert 2 in round 1 is not in"),
        (lambda: WeightedMajority(2, 1).choose([0.0]), "one finite number for each of the 2 experts"),
        (lambda: WeightedMajority(2, 1).epsilon(10), "delta is 0.*; it must lie between 0 and 1"),
        (lambda: WeightedMajority(2, 1).epsilon(10, 0.1, account="pure"), "delta 0"),
        (lambda: WeightedMajority(2, 1).epsilon(10, 0.1, account="best"), "account is 'best'; choose from"),
        (lambda: WeightedMajority(2, 1).epsilon(10, 1e-6, account="published"), "use the zcdp account"),
        (lambda: private_rate(1, 0, 0.1), "rounds is .*; it must be"),
        (lambda: private_rate(100, 100, 0.01, account="published"), "does not hold"),
    ],
)
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(PufferflowError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ParameterError | DataError)


@pytest.mark.filterwarnings("error")
def test_utilities_as_far_apart_as_floats_go():
    chosen = Exponential(1.0, 1.0)
    assert chosen.probabilities([1e308, -1e308, 1e308]).tolist() == [0.5, 0, 0.5]
    assert chosen.expected_shortfall([1e308, -1e308]) == 0
    assert Exponential(8e307, 1.0).probabilities([8e307, -8e307])[0] == pytest.approx(1 / (1 + math.exp(-1)))
