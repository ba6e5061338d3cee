"""Scales, errors, releases, timings and examples of a complete run, against the library."""

import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numba
import numpy as np
import pytest
from snakemake.iocontainers import Namedlist

import pufferflow as pf
from pufferflow.mechanisms import compute_scale
from reproduction import tidy
from reproduction.chains import load_chains
from reproduction.data.sample import load_sample, pooled
from reproduction.examples import CLIQUES, PEOPLE, contagion, flu_table

SCRIPTS = Path(__file__).parents[2] / "workflow" / "scripts"


def errors_of(folder, scales, sample=None, **params):
    """Run the script of a rule on a table of scales: its errors, and of a sample its releases."""
    tidy.write(scales, folder / "scales.csv", "scales")
    stages = ["errors", "releases"] if sample else ["errors"]
    made = {stage: folder / f"{stage}.csv" for stage in stages}
    params = {"repetitions": 500, "releases": 20, "seed": 20170514} | params
    snakemake = SimpleNamespace(
        input=Namedlist(fromdict={"sample": sample, "scales": [folder / "scales.csv"]}),
        output=Namedlist(fromdict=made),
        params=Namedlist(fromdict=params),
        threads=numba.config.NUMBA_NUM_THREADS,
        log=[folder / "log"],
    )
    script = SCRIPTS / ("measure_errors.py" if sample else "measure_errors_synthetic.py")
    with mock.patch.dict(os.environ):
        runpy.run_path(str(script), init_globals={"snakemake": snakemake})
    return [tidy.read(path, stage) for stage, path in made.items()]


def scales_in(project, folder):
    paths = sorted(project.made.glob(f"scales/{folder}/*.csv"))
    return tidy.read_all(paths, "scales")


WORKED = [  # ε, α; no error where GK16 does not apply
    (1, 0.1, 0.3363, 0.6864),
    (1, 0.2, 0.1422, 0.2963),
    (1, 0.3, 0.0722, 0.1772),
    (1, 0.4, 0.0395, 0.1211, 0.0389),
    (0.2, 0.1, 2.5905, 4.3555),
    (0.2, 0.3, 0.5966, 1.2097),
    (0.2, 0.4, 0.3261, 0.8490, 0.1944),
    (5, 0.1, 0.0210, 0.0987),
    (5, 0.3, 0.0041, 0.0216),
    (5, 0.4, 0.0026, 0.0135, 0.0078),
]


def test_synthetic_class_errors_to_four_digits(finished):
    """Worked values: exact / approx / GK16 error of the class [α, 1 − α] at T = 100."""
    table = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    assert len(table) == 3 * 3 * 31
    wide = table.pivot_table("expected_error", ["epsilon", "alpha"], "mechanism").round(4)
    for epsilon, alpha, *errors in WORKED:
        found = wide.loc[(epsilon, alpha), ["mqm-exact", "mqm-approx", "gk16"]]
        np.testing.assert_array_equal(found, [*errors, *[np.nan] * (3 - len(errors))])
    assert ((table["status"] == "ok") == table["expected_error"].notna()).all()
    assert ((table["status"] == "ok") == (table["reason"] == "")).all()


def rows(table):
    """The rows at ε = 1, in no order; texts of numbers have all digits."""
    return set(table[table["epsilon"] == 1].astype(str).itertuples(index=False, name=None))


def test_one_more_epsilon_changes_no_digit_of_the_others(finished, tmp_path):
    """Without the others the rows of one ε are the same."""
    (alone,) = errors_of(tmp_path, scales_in(finished, "synthetic").query("epsilon == 1"))
    whole = tidy.read(finished.made / "errors/synthetic.csv", "errors")
    assert rows(alone) == rows(whole) != set()
    scales = scales_in(finished, "electricity_bundled").query("epsilon == 1")
    errors, releases = errors_of(
        tmp_path, scales, finished.made / "samples/electricity_bundled.json"
    )
    whole = finished.made / "errors/electricity_bundled"
    assert rows(errors) == rows(tidy.read(f"{whole}.csv", "errors"))
    assert rows(releases) == rows(tidy.read(f"{whole}_releases.csv", "releases"))


def test_simulated_means_agree_with_expected_errors(finished, tmp_path):
    (more,) = errors_of(tmp_path, scales_in(finished, "synthetic"), repetitions=2000, seed=7)
    others = [f"errors/{name}_bundled.csv" for name in ("activity", "electricity")]
    for rows in (more, tidy.read_all([finished.made / name for name in others], "errors")):
        z = (rows["mean_error"] - rows["expected_error"]) / rows["standard_error"]
        assert np.abs(z).max() < 4.5


def test_gk16_limits(finished):
    """The Toeplitz value is 0.32186; the first node of any start moves it right."""
    table = tidy.read(finished.made / "examples/gk16_limits.csv", "gk16_limits")
    limits = table["alpha"].to_list()
    assert limits[1] == pytest.approx(0.32186, abs=5e-6)
    assert limits[1] < limits[0] < 0.33
    for step, applies in ((1e-6, True), (-1e-6, False)):
        family = pf.BinaryInterval(limits[0] + step, 1 - limits[0] - step)
        assert (pf.gk16(family, 100, 1).scale is not None) == applies


def test_histogram_scales_and_errors(finished):
    """Of men, whose records are one histogram, and of each of them; of one household."""
    sample = load_sample(finished.made / "samples/activity_bundled.json")
    men = sample.group("men_18_54")
    chain = load_chains(finished.made / "chains/activity_bundled.json")["men_18_54"]
    scales = scales_in(finished, "activity_bundled").query("group == 'men_18_54'")
    whole = scales[scales["task"] == "aggregate"].set_index("mechanism")
    own, lengths = pooled(men), pooled(men).segment_lengths
    assert whole.loc["group-dp", "scale"] == max(lengths)
    assert whole.loc["participant-dp", "scale"] == max(person.observations for person in men)
    assert set(whole["lipschitz"]) == {2 / own.observations}
    exact = compute_scale("mqm-exact", chain, lengths, 1, certified=True).scale
    assert whole.loc["mqm-exact", "scale"] == exact
    assert "participant-dp" not in set(scales[scales["task"] == "individual"]["mechanism"])
    household = scales_in(finished, "electricity_bundled")  # one person: no aggregate
    assert set(household["task"]) == {"individual"}

    errors = tidy.read(finished.made / "errors/activity_bundled.csv", "errors")
    row = errors.query("group == 'men_18_54' and mechanism == 'group-dp'").iloc[-1]
    each = [max(person.segment_lengths) * 2 / person.observations for person in men]
    assert row["expected_error"] == pytest.approx(4 * np.mean(each))
    assert (row["task"], row["participants"], row["bins"]) == ("individual", 26, 4)
    releases = tidy.read(finished.made / "errors/activity_bundled_releases.csv", "releases")
    exact = releases[releases["group"] == "men_18_54"].drop_duplicates("state")["exact_frequency"]
    assert exact.sum() == pytest.approx(1)
    assert len(releases) == 3 * 4 * 20 * 4  # no scale of GK16


def test_scales_of_the_bundled_household(finished):
    """Worked values: MQMExact on two years of minutes, maximum-likelihood P, stationary start."""
    scales = scales_in(finished, "electricity_bundled")
    names = ("mqm-exact", "mqm-approx", "gk16")
    exact, approx, gk16 = (scales[scales["mechanism"] == name] for name in names)
    assert exact["scale"].round(3).to_list() == [4145.006, 595.126, 66.156]
    quilts = list(zip(exact["quilt_left"], exact["quilt_right"], strict=True))
    assert quilts == [(356, 354), (238, 237), (111, 109)]
    assert (approx["scale"].to_numpy() > exact["scale"].to_numpy()).all()
    assert set(gk16["status"]) == {"not applicable"}


def test_one_participant_without_a_scale_makes_the_row_not_applicable(finished, tmp_path):
    scales = tidy.read(finished.made / "scales/walks_2_file/mqm-exact.csv", "scales")
    lost = scales["participant"] == "007"
    scales.loc[lost, "scale"] = np.nan
    scales.loc[lost, ["status", "reason"]] = ["not applicable", "because"]
    errors, releases = errors_of(tmp_path, scales, finished.made / "samples/walks_2_file.json")
    row = errors[(errors["group"] == "young") & (errors["task"] == "individual")].iloc[0]
    assert (row["status"], row["reason"]) == ("not applicable", "because")
    assert np.isnan(row["expected_error"])
    assert set(releases["group"]) == {"young", "old"}


def test_seconds_are_means_over_the_classes_a_mechanism_applies_to(finished):
    table = tidy.read(finished.made / "timings/mechanisms.csv", "timings")
    classes = table[table["group"] == "mean over 31 alpha"].set_index("mechanism")
    assert set(classes["families"]) == {31}
    assert classes["applicable"].to_dict() == {"gk16": 8, "mqm-approx": 31, "mqm-exact": 31}
    assert set(table.loc[table["dataset"] != "synthetic", "families"]) == {1}
    assert set(table["repeats"]) == {3}


def test_other_data_has_one_row_a_sample_group_task_and_mechanism(finished):
    others = tidy.read(finished.made / "beyond/other_data_bundled.csv", "beyond")
    key = ["data", "step_seconds", "group", "task", "mechanism"]
    assert not others.duplicated(key).any()
    assert (others["status"] == "ok").all()
    people = others.query("step_seconds == 60 and dataset == 'activity'").drop_duplicates("group")
    sizes = {"men_18_54": 26, "older_women_55plus": 31, "overweight_women_18_54": 14}
    assert dict(zip(people["group"], people["participants"], strict=True)) == sizes | {
        "fitbit_wearers": 33
    }
    # the noise of group privacy over a household hides all of its records, whatever the step or the
    # window
    household = others.query("dataset == 'electricity' and mechanism == 'group-dp'")
    assert len(household) == 4
    assert (household["expected_error"] / (2 * 51)).between(1, 1.01).all()


# -- examples ------------------------------------------------------------------------------------


def test_flu_networks_by_hand(tmp_path):
    """Section 2.2, P(N = j) ∝ e^{2j}: others do not move a clique's people further apart."""
    table = flu_table()
    assert list(table) == ["scenario", *PEOPLE, "value", "probability"]
    assert len(table) == 2**9
    table.to_csv(tmp_path / "flu.csv", index=False)
    framework = pf.PufferfishFramework.from_table(tmp_path / "flu.csv")
    group = framework.group_sensitivity(CLIQUES)
    assert (group.sensitivity, group.independent) == (4, True)
    assert not framework.group_sensitivity([("ann", "bob")]).independent
    assert framework.wasserstein().W == 2
    ill = [sum(p for d, p in contagion(4).items() if sum(d) == j) for j in (0, 1)]
    assert float(ill[1] / ill[0]) == pytest.approx(np.exp(2), rel=1e-5)


def test_quilts_are_those_the_library_finds(finished):
    table = tidy.read(finished.made / "examples/quilts.csv", "quilts")
    letters = {"node": "i", "nearby": "n", "quilt": "q", "remote": "r"}
    chains = table[table["line"] != ""].groupby("line", sort=False)["role"]
    roles = ["".join(map(letters.get, of_line)) for _, of_line in chains]
    assert roles == ["rqninqr", "rqninnn", "nnninqr", "nnninnn", "rrqnnnninnnnqrrr"]
    network = table[table["line"] == ""].set_index("variable")
    # parents, children and other parents of children: nothing else is next to B2
    assert set(network.index[network["role"] == "quilt"]) == {"A2", "B1", "C2", "B3", "A3", "C1"}
