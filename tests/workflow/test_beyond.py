"""Studies beyond the paper: bounds between which numbers lie, related bounds, and the cohort."""

import itertools
import math

import numpy as np
import pytest
from cases import counts, seeds

import pufferflow as pf
from pufferflow.mechanisms import MECHANISMS
from reproduction import tidy
from reproduction.beyond import cohort, measures
from reproduction.beyond.measures import models, wider_guarantees
from reproduction.beyond.peers import (
    TemporalLeakage,
    bayesian_dp_threshold,
    certainty,
    random_cases,
    related_bounds,
)
from reproduction.data.discretise import Runs
from reproduction.data.sample import Participant, Sample

pytestmark = pytest.mark.xdist_group("beyond")  # what its tests share is made once


def table(rows):
    return tidy.frame(rows, "beyond")


# -- least noise and composition -------------------------------------------------------------------


def test_no_scale_is_below_the_lower_bound_and_no_loss_above_epsilon():
    names = ["group-dp", "gk16", "mqm-exact", "wasserstein", "leakage"]
    cases = measures.synthetic_cases([[0.9, 0.6], [0.6, 0.6]], 30)
    given = names, {"mqm-exact": {"certified": True}}, {"epsilons": [1], "longest": 30}
    noise = table(measures.least_noise(cases, [0.5, 1], *given))
    assert len(noise) == 2 * 2 * 5
    shown = noise[noise["scale"].notna()]
    assert (shown["scale"] >= shown["lower_bound"]).all()
    assert (shown["gap"] == shown["scale"] / shown["lower_bound"]).all()
    assert (shown["expected_error"] == 2 * shown["scale"] * 2 / 30).all()
    assert set(noise.loc[noise["mechanism"] == "mqm-exact", "relative_noise"]) == {1}
    losses = noise[noise["actual_loss"].notna()]
    assert set(losses["epsilon"]) == {1}
    assert (losses["actual_loss"] <= 1 + 1e-9).all()


def test_each_bound_of_several_releases_is_tighter_than_the_one_before():
    rows = table(measures.composition(measures.synthetic_cases([[0.9, 0.9]], 100), 0.1, 4))
    total = rows.pivot_table(index="releases", columns="bound", values="total_epsilon")
    assert total["theorem_4_4"].to_numpy() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert (total["leakage"] <= total["quilts"]).all()
    assert (total["quilts"] <= total["theorem_4_4"] * (1 + 1e-9)).all()


# -- wider guarantees ------------------------------------------------------------------------------

MIXING = {"steps": 5, "overlap": 0.5}


@pytest.fixture(scope="module")
def runs():
    """Counts of a simulated binary chain, in quarters of an hour."""
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    states = chain.simulate(5000, np.random.default_rng(3))
    triples, hourly = np.zeros((2, 2, 2), dtype=np.int64), np.zeros((24, 2, 2), dtype=np.int64)
    np.add.at(triples, (states[:-2], states[1:-1], states[2:]), 1)
    np.add.at(hourly, (np.arange(4999) // 4 % 24, states[:-1], states[1:]), 1)
    return Runs(triples, hourly)


@pytest.fixture(scope="module")
def measured(runs):
    counts = runs.hourly.sum(axis=0)
    person = Participant("somebody", "somebody", (20, 30), counts.sum(axis=1), counts)
    sample = Sample("own", "synthetic", "a simulated chain", 900, ("low", "high"), (person,))
    given = sample, {"somebody": runs}, [0.5, 2.0], [1, 4, 90], 0.9, MIXING, [2.0]
    return table(wider_guarantees(*given))


def test_wider_guarantees_never_cost_less(measured):
    """Side information, longer windows and wider models: more noise, and more loss without it."""
    keys = ["model", "epsilon", "window", "side_information"]
    for value in ("scale", "paper_loss"):
        costs = measured.set_index(keys)[value].unstack("side_information")
        assert costs.notna().all(axis=None)
        assert (costs["any"] >= costs["none"] * (1 - 1e-6)).all()
        longer = costs.unstack("window").T
        growth = (longer / longer.groupby(level=0).shift()).dropna()
        assert (growth >= 1 - 1e-6).all(axis=None)
        assert (costs.loc["intervals"] >= costs.loc["fitted"] * (1 - 1e-6)).all(axis=None)
    whole = measured[measured["window"] == 90]  # of every segment
    assert whole["scale"].to_numpy() == pytest.approx(30 / whole["epsilon"].to_numpy())


def test_scales_and_losses_are_those_of_the_mechanisms(runs, measured):
    family = models(runs, 900, 0.9, MIXING)
    for row in measured.to_dict("records"):
        options = {"window": row["window"], "side_information": row["side_information"]}
        loss = pf.leakage_loss(family[row["model"]], 30, row["paper_scale"], **options)
        assert row["paper_loss"] == pytest.approx(loss, rel=1e-6)
        assert row["relative_noise"] == row["scale"] / row["paper_scale"]
    counts = runs.hourly.sum(axis=0)
    fitted = pf.MarkovChain(counts / counts.sum(axis=1, keepdims=True))
    papers = {pf.mqm_exact(fitted, 30, epsilon).scale for epsilon in (0.5, 2.0)}
    assert set(measured["paper_scale"]) == papers
    assert measured["certified"].notna().sum() == len(measured) / 2
    assert measured.query("model == 'fitted' and epsilon == 2")["certified"].all()


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
    (chain, _), *_ = itertools.islice(random_cases(seed + 1, 1, 3), seed, None)
    length, cost = [1, 2, 7, 60][seed % 4], 10 ** (seed % 7 / 2 - 2)
    loss = TemporalLeakage(chain, length).loss(cost)
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
    (case,) = itertools.islice(random_cases(3, 30, seed), seed % 3, seed % 3 + 1)
    found = {row["bound"]: row["certainty"] for row in certainty(iter([case]), [cost], [since])}
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
    rows = list(related_bounds(random_cases(10, 40, 1), [0.5, 30.0]))
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
    assert TemporalLeakage(disjoint, 10**6).scale(1.0) == pytest.approx(10**6, rel=1e-6)
    independent = pf.MarkovChain([[0.3, 0.7], [0.3, 0.7]])
    assert TemporalLeakage(independent, 100).scale(2.0) == 0.5
    assert bayesian_dp_threshold(disjoint) == math.inf
    assert bayesian_dp_threshold(pf.MarkovChain([[0.8, 0.2], [0.4, 0.6]])) == 4 * math.log(4)


# -- cohort ----------------------------------------------------------------------------------------

COHORT = {"participants": 23, "states": 3, "shortest": 20, "longest": 200, "persistence": 0.8}
COHORT |= {"epsilons": [0.5, 2], "lower_bound": False}
COHORT["mechanisms"] = ["group-dp", "gk16", "mqm-approx", "mqm-exact"]


def run(folder, pieces=1, **changes):
    """All pieces of a cohort, written and read again."""
    folder.mkdir()
    files = [folder / f"{piece}.csv" for piece in range(1, pieces + 1)]
    for number, file in enumerate(files, start=1):
        rows = cohort.measure(f"{number}-of-{pieces}", COHORT | changes, {}, 3)
        tidy.write(table(rows), file, "beyond")
    gathered = tidy.read_all(files, "beyond")
    tidy.write(gathered, folder / "cohort.csv", "beyond")
    tidy.write(cohort.summarise(gathered), folder / "summary.csv", "cohort_summary")
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


def test_rows_are_the_scales_of_the_participants_chains(tmp_path):
    rows = run(tmp_path / "run", 2)
    assert len(rows) == 23 * 2 * 4
    for number in (1, 12, 23):
        chain, length = cohort.simulated_chain(number, COHORT, 3)
        for row in rows[rows["participant"] == str(number)].itertuples():
            found = MECHANISMS[row.mechanism](chain, length, row.epsilon)
            assert (row.status, row.reason, row.length) == (found.status, found.reason, length)
            if found.scale is None:
                assert np.isnan(row.scale)
            else:
                assert row.scale == found.scale
                assert row.expected_error == pytest.approx(3 * found.scale * 2 / length)


@pytest.mark.parametrize("participants", counts(4, 8))
def test_no_scale_of_a_participant_is_below_the_lower_bound(tmp_path, participants):
    few = {"participants": participants, "mechanisms": ["group-dp", "mqm-exact", "leakage"]}
    rows = run(tmp_path / "run", 2, lower_bound=True, **few)
    assert (rows["scale"] >= rows["lower_bound"]).all()
    for row in rows.sample(6, random_state=1).itertuples():
        chain, length = cohort.simulated_chain(int(row.participant), COHORT, 3)
        assert row.lower_bound == pf.lower_bound(chain, length, row.epsilon).scale
        assert row.least_error == pytest.approx(row.expected_error * row.lower_bound / row.scale)
    gaps = tidy.read(tmp_path / "run/summary.csv", "cohort_summary").query("quantity == 'gap'")
    largest = (rows["scale"] / rows["lower_bound"]).groupby([rows["epsilon"], rows["mechanism"]])
    found = gaps.sort_values(["epsilon", "mechanism"])["max"].to_numpy()
    assert found == pytest.approx(largest.max().to_numpy())
    assert set(gaps["count"]) == {participants}


@pytest.mark.parametrize("participants", counts(600, 2000))
def test_released_errors_have_the_expected_mean(tmp_path, participants):
    rows = run(tmp_path / "run", participants=participants, mechanisms=["group-dp"], epsilons=[1])
    summary = cohort.summarise(rows).set_index("quantity")
    # group-dp: scale T, Lipschitz 2/T, so every participant's error is 2 k in the mean
    assert summary.loc["expected_error", "mean"] == pytest.approx(6)
    standard_error = summary.loc["released_error", "std"] / np.sqrt(participants)
    assert abs(summary.loc["released_error", "mean"] - 6) < 4 * standard_error
    assert standard_error == pytest.approx(2 * np.sqrt(3 / participants), rel=0.2)
