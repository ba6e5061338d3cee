"""Studies beyond the paper: related bounds against all sets, pieces of the cohort.

Other studies are in the stored tables of test_shown.py.
"""

import itertools
import math
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from cases import examples, seeds
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import convolve2d

import pufferflow as pf
from pufferflow import dp
from reproduction import tidy
from reproduction.beyond import measures, peers
from reproduction.related import alpha_beta, classical
from reproduction.related import base2_exponential as base2

# -- related bounds: by all sets of states, and never below ours for their own adversary ----------


def plain_temporal_leakage(chain, length, cost):
    """Largest α_i + β_i − c, with L over all sets of states."""
    matrix, start = chain.transition_matrix, chain.stationary_distribution
    sets = np.array(list(itertools.product([0, 1], repeat=len(start)))).T
    leaks = []
    for rows in (matrix.T * start / start[:, None], matrix):
        leak, found = cost, [cost]
        for _ in range(length - 1):
            reach = np.log1p(np.expm1(leak) * (rows @ sets))
            leak = cost + (reach[:, None] - reach[None]).max()
            found.append(leak)
        leaks.append(found)
    return max(back + ahead - cost for back, ahead in zip(leaks[0], leaks[1][::-1], strict=True))


@pytest.mark.parametrize("seed", seeds(10, 500))
def test_temporal_leakage_is_that_of_all_sets_and_never_below_ours(seed):
    (chain, _), *_ = itertools.islice(peers.random_cases(seed + 1, 1, 3), seed, None)
    length, cost = [1, 2, 7, 60][seed % 4], 10 ** (seed % 7 / 2 - 2)
    loss = peers.TemporalLeakage(chain, length).loss(cost)
    assert loss == pytest.approx(plain_temporal_leakage(chain, length, cost), rel=1e-9)
    ours = pf.leakage_loss(chain, length, 1 / cost)
    assert ours <= loss * (1 + 1e-6)
    stay = chain.transition_matrix.trace()
    if chain.states == 2 and stay >= 1:  # the bound is attained there
        assert ours == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("seed", seeds(12, 300))
def test_certainty_is_that_of_the_best_release_and_never_below_all_later_ones(seed):
    """Against all releases of a record, and of three records, that attain e^ε on sets of states."""
    cost, since = 10 ** (seed % 4 / 2 - 1), 1 + seed % 3
    (case,) = itertools.islice(peers.random_cases(3, 30, seed), seed % 3, seed % 3 + 1)
    found = {
        row["bound"]: row["certainty"] for row in peers.certainty(iter([case]), [cost], [since])
    }
    matrix = case[0].transition_matrix
    sets = np.exp(cost * np.array(list(itertools.product([0, 1], repeat=len(matrix)))).T)
    three = sets  # columns: what a release reveals of each state
    for _ in range(2):
        three = (sets[:, :, None] * (matrix @ three)[:, None]).reshape(len(matrix), -1)
    best = {}
    for bound, release in (("one-record", sets), ("all-later", three)):
        chances = np.linalg.matrix_power(matrix, since) @ release
        best[bound] = (chances.max(axis=0) / (chances.max(axis=0) + chances.min(axis=0))).max()
    assert found["one-record"] == pytest.approx(best["one-record"], rel=1e-12)
    assert best["all-later"] <= found["all-later"] * (1 + 1e-12)


def test_rows_of_the_study():
    rows = list(peers.related_bounds(peers.random_cases(10, 40, 1), [0.5, 30.0]))
    for row in rows:
        lowest, most = (0, 1) if row["bound"] == "lower-bound" else (1, math.inf)
        assert lowest - 1e-5 <= row["relative_noise"] <= most  # scales are found to 1e-7 of ε
    applies = [row for row in rows if row["bound"] == "bdp" and not row["reason"]]
    assert applies
    for row in applies:
        assert row["scale"] == 1 / (row["epsilon"] - row["smallest_epsilon"])


def test_extreme_chains():
    disjoint = pf.MarkovChain(
        [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]]
    )
    assert peers.TemporalLeakage(disjoint, 10**6).scale(1.0) == pytest.approx(10**6, rel=1e-6)
    independent = pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]])
    assert peers.TemporalLeakage(independent, 100).scale(2.0) == 0.5
    assert peers.bayesian_dp_threshold(disjoint) == math.inf
    assert peers.bayesian_dp_threshold(pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]])) == 4 * math.log(4)


# -- cohort ----------------------------------------------------------------------------------------

COHORT = {"participants": 23, "states": 3, "shortest": 20, "longest": 200, "persistence": 0.8}
COHORT |= {"epsilons": [0.5, 2], "lower_bound": False}
COHORT["mechanisms"] = ["group-dp", "gk16", "mqm-approx", "mqm-exact"]


def run(folder, pieces=1, **changes):
    """All pieces of a cohort, written and read again."""
    folder.mkdir()
    files = [folder / f"{piece}.csv" for piece in range(1, pieces + 1)]
    for number, file in enumerate(files, start=1):
        rows = measures.cohort(f"{number}-of-{pieces}", COHORT | changes, {}, 3)
        tidy.write(tidy.frame(rows, "beyond"), file, "beyond")
    gathered = tidy.read_all(files, "beyond")
    tidy.write(gathered, folder / "cohort.csv", "beyond")
    tidy.write(measures.cohort_summary(gathered), folder / "summary.csv", "cohort_summary")
    return gathered


def test_bytes_do_not_depend_on_the_number_of_pieces(tmp_path):
    for name, pieces in (("one", 1), ("four", 4), ("many", 25)):  # two of 25 are empty
        run(tmp_path / name, pieces)
        for file in ("cohort.csv", "summary.csv"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "one" / file).read_bytes()


def test_more_participants_epsilons_or_mechanisms_change_no_other_row(tmp_path):
    small, mechanisms = run(tmp_path / "small", 2), [*COHORT["mechanisms"], "entry-dp"]
    large = run(tmp_path / "large", 3, participants=30, epsilons=[0.5, 1, 2], mechanisms=mechanisms)
    few, many = (set(rows.astype(str).itertuples(index=False)) for rows in (small, large))
    assert few < many


# -- what is measured of αβ, classical mechanisms and the base-2 exponential one -------------------

MEASURED = {"alpha_beta": ["rho_expected", "rho_measured", "rho_standard_error"]}
MEASURED |= {"classical": ["expected_error", "mean_error", "standard_error"]}


@pytest.mark.parametrize("name", MEASURED)
def test_measured_errors_agree_with_exact_ones(finished, name):
    curves = tidy.read(finished.made / f"related/{name}.csv", "related")
    exact, measured, error = curves[MEASURED[name]].dropna().to_numpy().T
    assert (np.abs(exact - measured)[error > 0] < 4.5 * error[error > 0]).all()
    assert (error > 0).sum() > 20


@examples(10, 80)
@given(
    st.lists(st.integers(-50, 50) | st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.floats(0.05, 1e4),
    st.integers(1, 9),
)
def test_possible_outputs_are_those_of_every_uniform_number(values, scale, bits):
    """Of Laplace noise in doubles."""
    draws = list(itertools.product((-1, 1), range(1, 2**bits + 1)))
    every = [{base2.naive_laplace(v, scale, *drawn, bits) for drawn in draws} for v in values]
    for output in every[0] | every[1]:
        for near in (output, math.nextafter(output, math.inf)):
            assert base2.possible(near, values[0], scale, bits) == (near in every[0])


@st.composite
def parameters(draw):
    keep = draw(st.fractions(Fraction(1, 20), 1, max_denominator=20))
    beta = keep * draw(st.fractions(0, Fraction(9, 10), max_denominator=10))
    return dp.AlphaBeta(keep - beta, beta)


@examples(12, 60)
@given(parameters(), st.fractions(0, 1, max_denominator=50), st.sampled_from([1, 2, 3, 40, 150]))
def test_difference_of_answers_by_plain_convolution(view, prior, tuples):
    """The joint distribution of answer and published tuples, one tuple after the other."""
    p, keep, beta = float(prior), float(view.keep), float(view.beta)
    one = np.array([[(1 - p) * (1 - beta), (1 - p) * beta], [p * (1 - keep), p * keep]])
    joint = reduce(convolve2d, [one] * tuples)
    independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    plain = np.abs(joint - independent).sum()
    assert alpha_beta.answer_difference(view, prior, tuples) == pytest.approx(plain, abs=1e-9)
    assert plain <= alpha_beta.difference_bound(view, prior, tuples) + 1e-9


@examples(12, 120)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6))
def test_expected_bits_are_the_mean_over_every_string(weights):
    """Bit by bit: until all strings with the bits so far lie below, or above, the same sums."""
    sums = list(itertools.accumulate(weights))
    e, taken = (sums[-1] - 1).bit_length(), 0
    for s, left in itertools.product(range(1 << e), range(e, -1, -1)):
        low = s >> left << left
        taken += left > 0 and bisect_right(sums, low) != bisect_left(sums, low + (1 << left))
    # attempts are independent: bits of one, over the chance that it succeeds
    assert base2.expected_bits(sums, bitwise=True) == Fraction(taken, sums[-1])
    assert base2.expected_bits(sums, bitwise=False) == Fraction(e << e, sums[-1])


ETAS = [dp.Eta(1, 2), dp.Eta(3, 2), dp.Eta(1, 3, 2)]


@examples(20, 200)
@given(
    st.sampled_from(ETAS),
    st.lists(st.integers(0, 12).map(lambda i: Fraction(i, 4)), min_size=1, max_size=7),
)
def test_rounding_against_all_ways(eta, values):
    exact = dp.Base2Exponential(eta, 0, 4, len(values)).probabilities(values)
    found = base2.rounded_distribution(eta, values)
    np.testing.assert_allclose(found, np.array(exact, float), rtol=1e-12)


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1), Fraction(1, 4)])
def test_the_loss_of_rounding_is_the_exact_ratio(eta, alpha):
    mechanism = dp.Base2Exponential(eta, 0, 1, 7)
    first = mechanism.probabilities([1, *[1 - alpha] * 6])[0]
    second = mechanism.probabilities([1 - alpha, *[1] * 6])[0]
    ratio = float(second / first)
    assert 2 ** base2.rounding_loss(eta, 7, alpha) == pytest.approx(ratio, rel=1e-12)


def test_regret_is_the_expectation_over_all_sequences():
    losses, learner = np.random.default_rng(4).random((5, 3)), dp.WeightedMajority(0.9)
    rounds, expected = learner.probabilities(np.cumsum(losses, axis=0) - losses), 0.0
    for choices in itertools.product(range(3), repeat=5):
        chance = math.prod(rounds[range(5), choices])
        expected += chance * losses[range(5), choices].sum()
    regret = (expected - losses.sum(axis=0).min()) / 5
    assert classical.regret(learner, losses) == pytest.approx(regret, rel=1e-12)


@pytest.mark.parametrize("outcomes", [2, 3, 10, 1000])
def test_the_worst_shortfall_is_attained_and_never_exceeded(outcomes):
    chooser, rng = dp.Exponential(1.0, 0.7), np.random.default_rng(outcomes)
    worst = classical.worst_shortfall(chooser, outcomes)
    assert worst < chooser.scale * math.log(outcomes)
    gap = worst + chooser.scale
    attained = classical.shortfall(chooser, np.array([gap] + [0.0] * (outcomes - 1)))
    assert attained == pytest.approx(worst, rel=1e-9)
    for _ in range(100):
        utilities = rng.exponential(gap, outcomes) * rng.integers(0, 2, outcomes)
        assert classical.shortfall(chooser, utilities) <= worst * (1 + 1e-12)
