"""What goes beyond the paper: numbers between which something must hold, words, and the cohort."""

import numpy as np
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.mechanisms import MECHANISMS
from reproduction import tidy
from reproduction.beyond import cohort, measures
from reproduction.beyond.measures import models, wider_guarantees
from reproduction.beyond.shown import printed
from reproduction.data.discretise import Runs
from reproduction.data.sample import Participant, Sample

pytestmark = pytest.mark.xdist_group("beyond")  # what its tests share is made once


def table(rows, stage="beyond"):
    return tidy.frame(rows, stage)


# -- least noise and composition -------------------------------------------------------------------


@pytest.fixture(scope="module")
def noise():
    names = ["group-dp", "gk16", "mqm-exact", "wasserstein", "leakage"]
    cases = measures.synthetic_cases([[0.9, 0.6], [0.6, 0.6]], 30)
    loss = {"epsilons": [1], "longest": 30}
    return table(
        measures.least_noise(cases, [0.5, 1], names, {"mqm-exact": {"certified": True}}, loss)
    )


def test_no_scale_is_below_the_lower_bound_and_no_loss_above_epsilon(noise):
    assert len(noise) == 2 * 2 * 5
    shown = noise[noise["scale"].notna()]
    assert (shown["scale"] >= shown["lower_bound"]).all()
    assert (shown["gap"] == shown["scale"] / shown["lower_bound"]).all()
    assert (shown["expected_error"] == 2 * shown["scale"] * 2 / 30).all()
    assert set(noise.loc[noise["mechanism"] == "mqm-exact", "relative_noise"]) == {1}
    losses = noise[noise["actual_loss"].notna()]
    assert set(losses["epsilon"]) == {1}
    assert (losses["actual_loss"] <= 1 + 1e-9).all()


def test_total_epsilon_grows_and_each_bound_is_tighter_than_the_one_before():
    rows = table(measures.composition(measures.synthetic_cases([[0.9, 0.9]], 100), 0.1, 4))
    total = rows.pivot_table(index="releases", columns="bound", values="total_epsilon")
    assert (total.diff().dropna() > 0).all(axis=None)
    assert total["theorem_4_4"].to_numpy() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert (total["quilts"] <= total["theorem_4_4"] * (1 + 1e-9)).all()
    assert (total["leakage"] <= total["quilts"]).all()


# -- wider guarantees ------------------------------------------------------------------------------

MIXING = {"steps": 5, "overlap": 0.5}


@pytest.fixture(scope="module")
def runs():
    """Counts of a simulated binary chain, in quarters of an hour."""
    rng = np.random.default_rng(3)
    chain = pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]])
    states = chain.simulate(5000, rng)
    triples, hourly = np.zeros((2, 2, 2), dtype=np.int64), np.zeros((24, 2, 2), dtype=np.int64)
    np.add.at(triples, (states[:-2], states[1:-1], states[2:]), 1)
    np.add.at(hourly, (np.arange(4999) // 4 % 24, states[:-1], states[1:]), 1)
    return {"somebody": Runs(triples, hourly)}


def sample(runs):
    counts = runs["somebody"].hourly.sum(axis=0)
    person = Participant("somebody", "somebody", (40, 60), counts.sum(axis=1), counts)
    return Sample("simulated", "synthetic", "a simulated chain", 900, ("low", "high"), (person,))


@pytest.fixture(scope="module")
def measured(runs):
    return table(wider_guarantees(sample(runs), runs, [0.5, 2.0], [1, 4, 90], 0.9, MIXING, [2.0]))


def test_wider_guarantees_never_cost_less(measured):
    keys = ["model", "epsilon", "window", "side_information"]
    scales = measured.set_index(keys)["scale"]
    losses = measured.set_index(keys)["paper_loss"]
    assert scales.notna().all()
    for (model, epsilon, window, _), scale in scales[
        scales.index.get_level_values("side_information") == "none"
    ].items():
        assert scales[model, epsilon, window, "any"] >= scale * (1 - 1e-6)
        assert losses[model, epsilon, window, "any"] >= losses[model, epsilon, window, "none"] * (
            1 - 1e-6
        )
    for (model, epsilon, window, side_information), scale in scales.items():
        if window < 90:
            assert scales[model, epsilon, {1: 4, 4: 90}[window], side_information] >= scale * (
                1 - 1e-6
            )
        else:  # the whole of every segment
            assert scale == pytest.approx(60 / epsilon)
    assert (scales["intervals"] >= scales["fitted"] * (1 - 1e-6)).all()


def test_scales_and_losses_are_those_of_the_mechanisms(runs, measured):
    family = models(runs["somebody"], 900, 0.9, MIXING)
    for row in measured.to_dict("records"):
        options = {"window": row["window"], "side_information": row["side_information"]}
        loss = pf.leakage_loss(family[row["model"]], 60, row["paper_scale"], **options)
        assert row["paper_loss"] == pytest.approx(loss, rel=1e-6)
        assert row["relative_noise"] == row["scale"] / row["paper_scale"]
    fitted = pf.MarkovChain(
        runs["somebody"].hourly.sum(axis=0) / runs["somebody"].hourly.sum(axis=(0, 2))[:, None]
    )
    assert set(measured["paper_scale"]) == {
        pf.mqm_exact(fitted, 60, epsilon).scale for epsilon in (0.5, 2.0)
    }
    assert measured["certified"].notna().sum() == len(measured) / 2
    assert measured.loc[
        (measured["model"] == "fitted") & (measured["epsilon"] == 2), "certified"
    ].all()


# -- other data ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def others(raw_files):
    settings = {"epsilons": [1.0], "mechanisms": ["group-dp", "mqm-exact"], "step_minutes": [1, 60]}
    return table(measures.other_data(*raw_files, settings, {"mqm-exact": {"certified": True}}))


@pytest.fixture(scope="module")
def raw_files():
    from pathlib import Path

    root = Path(__file__).parents[2]
    names = (
        "workflow/data/activity_nhanes2003_minutes",
        "workflow/data/activity_fitbit2016_minutes",
    )
    household = "pufferflow/data/electricity_uci235_minute_watts"
    return [str(root / f"{name}.csv.xz") for name in (*names, household)]


def test_one_row_a_sample_group_task_and_mechanism(others):
    key = ["data", "step_seconds", "group", "task", "mechanism"]
    assert not others.duplicated(key).any()
    assert (others["status"] == "ok").all()
    minutes = others[others["step_seconds"] == 60]
    people = (
        minutes[minutes["dataset"] == "activity"]
        .drop_duplicates("group")
        .set_index("group")["participants"]
    )
    assert people.to_dict() == {
        "men_18_54": 26,
        "older_women_55plus": 31,
        "overweight_women_18_54": 14,
        "fitbit_wearers": 33,
    }
    # the noise of group privacy over a household hides all of its records, whatever the step or the
    # window
    household = others[(others["dataset"] == "electricity") & (others["mechanism"] == "group-dp")]
    assert len(household) == 4
    assert (household["expected_error"] / (2 * 51)).between(1, 1.01).all()


# -- cohort ----------------------------------------------------------------------------------------

COHORT = {"participants": 23, "states": 3, "shortest": 20, "longest": 200, "persistence": 0.8}
COHORT |= {
    "epsilons": [0.5, 2],
    "lower_bound": False,
    "mechanisms": ["group-dp", "gk16", "mqm-approx", "mqm-exact"],
}


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
    for name, pieces in (("one", 1), ("four", 4), ("many", 40)):  # some of 40 are empty
        run(tmp_path / name, pieces)
        for file in ("cohort.csv", "summary.csv"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "one" / file).read_bytes()


def test_more_participants_epsilons_or_mechanisms_change_no_other_row(tmp_path):
    small, mechanisms = run(tmp_path / "small", 2), [*COHORT["mechanisms"], "entry-dp"]
    large = run(tmp_path / "large", 3, participants=30, epsilons=[0.5, 1, 2], mechanisms=mechanisms)
    assert set(small.astype(str).itertuples(index=False)) < set(
        large.astype(str).itertuples(index=False)
    )


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
    few = {
        "participants": participants,
        "mechanisms": ["group-dp", "mqm-exact", "leakage"],
        "lower_bound": True,
    }
    rows = run(tmp_path / "run", 2, **few)
    assert (rows["scale"] >= rows["lower_bound"]).all()
    for row in rows.sample(6, random_state=1).itertuples():
        chain, length = cohort.simulated_chain(int(row.participant), COHORT, 3)
        assert row.lower_bound == pf.lower_bound(chain, length, row.epsilon).scale
        assert row.least_error == pytest.approx(row.expected_error * row.lower_bound / row.scale)
    summary = tidy.read(tmp_path / "run/summary.csv", "cohort_summary").set_index(
        ["quantity", "epsilon", "mechanism"]
    )
    gaps = (rows["scale"] / rows["lower_bound"]).groupby([rows["epsilon"], rows["mechanism"]]).max()
    for (epsilon, mechanism), largest in gaps.items():
        gap = summary.loc[("gap", epsilon, mechanism)]
        assert gap["count"] == participants
        assert 1 <= gap["50%"] <= gap["95%"] <= gap["max"] == pytest.approx(largest)
    assert "least_error" in printed(summary.reset_index(), "cohort").markdown()


@pytest.mark.parametrize("participants", counts(600, 2000))
def test_released_errors_have_the_expected_mean(tmp_path, participants):
    rows = run(tmp_path / "run", participants=participants, mechanisms=["group-dp"], epsilons=[1])
    summary = cohort.summarise(rows).set_index("quantity")
    # group-dp: scale T, Lipschitz 2/T, so every participant's error is 2 k in the mean
    assert summary.loc["expected_error", "mean"] == pytest.approx(6)
    standard_error = summary.loc["released_error", "std"] / np.sqrt(participants)
    assert abs(summary.loc["released_error", "mean"] - 6) < 4 * standard_error
    assert standard_error == pytest.approx(2 * np.sqrt(3 / participants), rel=0.2)
