"""Scales, errors, releases, timings and examples, as the scripts of the workflow compute them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from script_runs import run_script

import pufferflow as pf
from reproduction import tidy
from reproduction.chains import fit_chains, save_chains
from reproduction.data.discretise import discretise
from reproduction.data.sample import Participant, Sample
from reproduction.examples import CLIQUES, PEOPLE, contagion, flu_table, worked_values
from reproduction.quilts import quilts
from reproduction.synthetic import gk16_limits

ROOT = Path(__file__).parents[2]
OPTIONS = {"mqm-exact": {"convention": "exact"}, "mqm-approx": {"eigengap": "auto"}}


def person(name, group, path):
    counts = np.zeros((3, 3), dtype=np.int64)
    np.add.at(counts, (path[:-1], path[1:]), 1)
    return Participant(name, group, (len(path),), np.bincount(path, minlength=3), counts)


class Data:
    """A small data set in a folder, and the stages run on it."""

    def __init__(self, folder):
        rng = np.random.default_rng(5)
        groups = ("a", "a", "a", "b")
        paths = [rng.integers(0, 3, 200 + 20 * i) for i in range(4)]
        people = [person(f"p{i}", group, paths[i]) for i, group in enumerate(groups)]
        self.folder = folder
        self.sample = Sample("activity", "synthetic", "made up", 60, ("x", "y", "z"), tuple(people))
        self.chains = fit_chains(self.sample, 0, "stationary")
        self.sample.save(folder / "sample.json")
        save_chains(self.chains, folder / "chains.json")

    def scales(self, mechanism, epsilons):
        path = self.folder / f"{mechanism}.csv"
        given = {"sample": self.folder / "sample.json", "chains": self.folder / "chains.json"}
        options = OPTIONS.get(mechanism, {})
        params = {"mechanism": mechanism, "epsilons": epsilons, "options": options}
        run_script("run_mechanism", given, {"scales": path}, **params)
        return path

    def errors(self, scales, repetitions=300, releases=5):
        made = {"errors": self.folder / "errors.csv", "releases": self.folder / "releases.csv"}
        given = {"sample": self.folder / "sample.json", "scales": scales}
        params = {"repetitions": repetitions, "releases": releases, "seed": 11}
        run_script("measure_errors", given, made, **params)
        return (tidy.read(made[stage], stage) for stage in made)


@pytest.fixture
def data(tmp_path):
    return Data(tmp_path)


def synthetic_errors(folder, mechanisms, epsilons, alphas, length=60, repetitions=40):
    scales = [folder / f"{mechanism}.csv" for mechanism in mechanisms]
    setting = {"epsilons": epsilons, "alphas": alphas, "length": length}
    for name, path in zip(mechanisms, scales, strict=True):
        params = {"mechanism": name, "options": OPTIONS.get(name, {})}
        run_script("run_mechanism_synthetic", {}, {"scales": path}, **params, **setting)
    errors, params = folder / "errors.csv", {"repetitions": repetitions, "seed": 7}
    run_script("measure_errors_synthetic", {"scales": scales}, {"errors": errors}, **params)
    return tidy.read(errors, "errors")


def test_synthetic_class_errors_to_four_digits(tmp_path):
    """Worked values: exact / approx / GK16 error of the class [α, 1 − α] at T = 100."""
    published = {
        (1.0, 0.1): (0.3363, 0.6864, None),
        (1.0, 0.2): (0.1422, 0.2963, None),
        (1.0, 0.3): (0.0722, 0.1772, None),
        (1.0, 0.4): (0.0395, 0.1211, 0.0389),
        (0.2, 0.1): (2.5905, 4.3555, None),
        (0.2, 0.3): (0.5966, 1.2097, None),
        (0.2, 0.4): (0.3261, 0.8490, 0.1944),
        (5.0, 0.1): (0.0210, 0.0987, None),
        (5.0, 0.3): (0.0041, 0.0216, None),
        (5.0, 0.4): (0.0026, 0.0135, 0.0078),
    }
    mechanisms = ["mqm-exact", "mqm-approx", "gk16"]
    grid = {"start": 0.1, "stop": 0.4, "step": 0.1}
    table = synthetic_errors(tmp_path, mechanisms, [0.2, 1, 5], grid, 100, 2)
    assert len(table) == 3 * 3 * 4
    for (epsilon, alpha), values in published.items():
        rows = table[(table["epsilon"] == epsilon) & (table["alpha"] == alpha)]
        rows = rows.set_index("mechanism").loc[mechanisms]
        assert list(rows["status"]) == ["ok" if v else "not applicable" for v in values]
        found = [None if np.isnan(error) else round(error, 4) for error in rows["expected_error"]]
        assert found == list(values)
    assert rows["reason"].to_list() == ["", "", ""]


def test_one_more_epsilon_changes_no_digit_of_the_others(tmp_path, data):
    grid = {"start": 0.2, "stop": 0.35, "step": 0.15}
    few, more = (
        synthetic_errors(tmp_path, list(OPTIONS), e, grid) for e in ([0.2, 1], [0.2, 2, 1])
    )
    kept = more[more["epsilon"] != 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(few, kept, check_exact=True)
    few, more = (list(data.errors([data.scales("mqm-exact", e)])) for e in ([1], [0.5, 1]))
    for one, other in zip(few, more, strict=True):
        kept = other[other["epsilon"] == 1].reset_index(drop=True)
        pd.testing.assert_frame_equal(one, kept, check_exact=True)


def test_simulated_means_agree_with_expected_errors(tmp_path, data):
    grid = {"start": 0.2, "stop": 0.4, "step": 0.1}
    table = synthetic_errors(tmp_path, list(OPTIONS), [1], grid, 100, 2000)
    mechanisms = ["participant-dp", "group-dp", "mqm-exact"]
    errors, _ = data.errors([data.scales(name, [0.5, 1]) for name in mechanisms])
    for rows in (table, errors):
        z = (rows["mean_error"] - rows["expected_error"]) / rows["standard_error"]
        assert np.abs(z).max() < 4.5


def test_gk16_limits():
    """The Toeplitz value is 0.32186; the first node of any start moves it right."""
    limits = gk16_limits(100)["alpha"].to_list()
    assert limits[1] == pytest.approx(0.32186, abs=5e-6)
    assert limits[1] < limits[0] < 0.33
    for step, applies in ((1e-6, True), (-1e-6, False)):
        family = pf.BinaryInterval(limits[0] + step, 1 - limits[0] - step)
        assert (pf.gk16(family, 100, 1).scale is not None) == applies


def test_histogram_scales_and_errors(data):
    mechanisms = ["participant-dp", "group-dp", "mqm-exact"]
    paths = [data.scales(name, [0.5, 1]) for name in mechanisms]
    scales = tidy.read_all(paths, "scales")
    at_one = scales[(scales["group"] == "a") & (scales["epsilon"] == 1)]
    aggregate = at_one[at_one["task"] == "aggregate"].set_index("mechanism")
    assert aggregate.loc["group-dp", "scale"] == aggregate.loc["participant-dp", "scale"] == 240
    assert aggregate.loc["participant-dp", "lipschitz"] == 2 / (200 + 220 + 240)
    exact = pf.mqm_exact(data.chains["a"], [200, 220, 240], 1).scale
    assert aggregate.loc["mqm-exact", "scale"] == exact
    # group b is one person: no aggregate task, and no "participant-dp"
    assert set(scales[scales["group"] == "b"]["task"]) == {"individual"}
    assert "participant-dp" not in set(scales[scales["task"] == "individual"]["mechanism"])

    errors, releases = data.errors(paths)
    row = errors[(errors["task"] == "individual") & (errors["mechanism"] == "group-dp")]
    row = row[(row["group"] == "a") & (row["epsilon"] == 0.5)].iloc[0]
    assert row["expected_error"] == pytest.approx(3 * 2 / 0.5)
    assert (row["participants"], row["bins"]) == (3, 3)
    exact = releases[releases["group"] == "a"].drop_duplicates("state")["exact_frequency"]
    assert exact.sum() == pytest.approx(1)
    assert len(releases[releases["group"] == "b"]) == 2 * 2 * 5 * 3


def test_scales_of_the_bundled_household(data):
    """Worked values: MQMExact on two years of minutes, maximum-likelihood P, stationary start."""
    path = ROOT / "pufferflow" / "data" / "electricity_uci235_minute_watts.csv.xz"
    settings = yaml.safe_load((ROOT / "config" / "config.yaml").read_text("utf-8"))
    sample = discretise(path, settings["datasets"]["electricity"], "electricity", "bundled")
    sample.save(data.folder / "sample.json")
    save_chains(fit_chains(sample, 0, "stationary"), data.folder / "chains.json")
    names = ("mqm-exact", "mqm-approx", "gk16")
    exact, approx, gk16 = (tidy.read(data.scales(n, [0.2, 1, 5]), "scales") for n in names)
    assert exact["scale"].round(3).to_list() == [4145.006, 595.126, 66.156]
    quilts = list(zip(exact["quilt_left"], exact["quilt_right"], strict=True))
    assert quilts == [(356, 354), (238, 237), (111, 109)]
    assert (approx["scale"] > exact["scale"]).all()
    assert set(gk16["status"]) == {"not applicable"}


def test_one_participant_without_a_scale_makes_the_row_not_applicable(data):
    path = data.scales("group-dp", [1])
    scales = tidy.read(path, "scales")
    lost = scales["participant"] == "p1"
    scales.loc[lost, "scale"] = np.nan
    scales.loc[lost, ["status", "reason"]] = ["not applicable", "because"]
    tidy.write(scales, path, "scales")
    errors, releases = data.errors([path], repetitions=10)
    row = errors[(errors["group"] == "a") & (errors["task"] == "individual")].iloc[0]
    assert (row["status"], row["reason"]) == ("not applicable", "because")
    assert np.isnan(row["expected_error"])
    assert set(releases["group"]) == {"a", "b"}


def test_seconds_are_means_over_the_classes_a_mechanism_applies_to(data):
    path, grid = data.folder / "seconds.csv", {"start": 0.2, "stop": 0.4, "step": 0.1}
    params = {"mechanisms": ["gk16", "mqm-approx"], "repeats": 2, "epsilon": 1.0, "length": 20}
    params |= {"alphas": grid, "options": {"mqm-approx": {"eigengap": "auto"}}}
    given = {"samples": [data.folder / "sample.json"], "chains": [data.folder / "chains.json"]}
    run_script("time_mechanisms", given, {"seconds": path}, **params)
    table = tidy.read(path, "timings")
    assert list(dict.fromkeys(table["group"])) == ["mean over 3 alpha", "a", "b"]
    assert table["families"].to_list() == [3, 3, 1, 1, 1, 1]
    assert table["applicable"].to_list()[:2] == [1, 3]
    assert table["repeats"].to_list() == [2] * 6
    assert (table["least_seconds"] > 0).all()
    assert (table["least_seconds"] <= table["median_seconds"]).all()


# -- examples ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worked():
    values = worked_values()
    assert values["key"].is_unique
    return values.set_index("key")["computed"]


def test_flu_networks_by_hand(worked, tmp_path):
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
    for size, W in ((4, 2), (10, 3)):
        databases = contagion(size)
        shares = [sum(p for d, p in databases.items() if sum(d) == j) for j in (0, 1)]
        assert float(shares[1] / shares[0]) == pytest.approx(np.exp(2), rel=1e-5)
        assert pf.PufferfishFramework.from_databases({"flu": databases}, sum).wasserstein().W == W
    found = [worked[f"flu/{key}"] for key in ("network/wasserstein", "network/group")]
    found += [worked[f"flu/{key}"] for key in ("large/wasserstein", "large/group")]
    assert list(map(float, found)) == [2, 4, 3, 10]


def test_quilts_are_those_the_library_finds(tmp_path):
    tidy.write(quilts(), tmp_path / "quilts.csv", "quilts")
    table = tidy.read(tmp_path / "quilts.csv", "quilts")
    letters = {"node": "i", "nearby": "n", "quilt": "q", "remote": "r"}
    chains = table[table["line"] != ""].groupby("line", sort=False)["role"]
    roles = ["".join(map(letters.get, of_line)) for _, of_line in chains]
    assert roles == ["rqninqr", "rqninnn", "nnninqr", "nnninnn", "rrqnnnninnnnqrrr"]
    network = table[table["line"] == ""].set_index("variable")
    # parents, children and other parents of children: nothing else is next to B2
    assert set(network.index[network["role"] == "quilt"]) == {"A2", "B1", "C2", "B3", "A3", "C1"}
